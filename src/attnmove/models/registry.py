"""The models by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnmove.errors import ConfigError, check_names
from attnmove.models.boost import Boost, BoostConfig
from attnmove.models.contract import Recoverer
from attnmove.models.evidential import Evidential, LessonConfig
from attnmove.models.forest import Forest, ForestConfig
from attnmove.models.networks import COPYMOVE_TRAINING, NETWORKS, build
from attnmove.models.rules import History, Linear, LinearConfig, Nearest, Top, Vote, VoteConfig
from attnmove.models.settings import Settings, configure
from attnmove.nets.config import CopyMoveConfig
from attnmove.train.config import Training, check_device


@dataclass(frozen=True)
class Entry:
    """A model that can be asked for by name."""

    summary: str
    """What it is, in a line."""
    build: Callable[..., Recoverer]
    """From the configurations, a seed and a device to a model; see `make_model`."""
    defaults: tuple[Any, ...] = ()
    """Its configurations: frozen dataclasses."""
    kind: str = "rule"
    """rule (fits at once), forest, trees (boosted, over the evidence), or network (is trained)."""


def _rule(make: Callable[..., Recoverer]) -> Callable[..., Recoverer]:
    return lambda *configs, seed, device: make(*configs)


def _forest(config: ForestConfig, *, seed: int, device: str) -> Recoverer:
    return Forest(config, seed=seed)


def _boost(config: BoostConfig, lessons: LessonConfig, *, seed: int, device: str) -> Recoverer:
    return Evidential(Boost(config, seed=seed), lessons, seed=seed)


def _copymove(config: Any, training: Training, lessons: LessonConfig, *, seed: int, device: str) -> Recoverer:
    from attnmove.models.copymove import CopyMove  # torch is loaded when a network is wanted

    return Evidential(CopyMove(config, training, seed=seed, device=device), lessons, seed=seed)


MODELS: dict[str, Entry] = {
    "boost": Entry(
        "boosted trees over the places in play and what speaks for each",
        _boost,
        (BoostConfig(), LessonConfig()),
        "trees",
    ),
    "copymove": Entry(
        "a network that points at the places in play, fed with what speaks for each",
        _copymove,
        (CopyMoveConfig(), COPYMOVE_TRAINING, LessonConfig(draws=2)),
        "network",
    ),
    "top": Entry("the user's most frequent places in the training days", _rule(Top)),
    "history": Entry("the history row at that slot, nothing where it is empty", _rule(History)),
    "linear": Entry("straight from the visible slot before to the one after", _rule(Linear), (LinearConfig(),)),
    "nearest": Entry("the place of the nearest visible slot of the day", _rule(Nearest)),
    "vote": Entry("visible slots vote, nearer ones louder, with habits and history", _rule(Vote), (VoteConfig(),)),
    "rf": Entry("a random forest over the places and times around the target", _forest, (ForestConfig(),), "forest"),
    "rf-copy": Entry(
        "the same forest, which may also answer with a place it sees", _forest, (ForestConfig(relative=True),), "forest"
    ),
}


MODELS |= {
    name: Entry(named.summary, build, (named.config, named.training), kind="network")
    for name, named in NETWORKS.items()
}


TABLE2 = (
    *("top", "history", "linear", "rf", "lstm", "bilstm", "deepmove", "bi-stddp", "attnmove-h", "attnmove"),
    *("nearest", "vote"),
)
"""The models of the paper's Table 2, and the two rules that stand beside them."""


def make_model(name: str, *, settings: Settings | None = None, seed: int = 0, device: str = "auto") -> Recoverer:
    """An untrained model. Raises ConfigError on a name or setting there is not."""
    check_names("model", [name], MODELS)
    check_device(device)
    if not 0 <= seed < 2**32:
        raise ConfigError(f"seed: expected 0 to {2**32 - 1}, found {seed}")
    entry = MODELS[name]
    return entry.build(*configure(entry.defaults, settings or {}), seed=seed, device=device)
