"""The networks by name: each a configuration of one of four, with the training that suits it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnmove.nets.config import AttnMoveConfig, BiSTDDPConfig, DeepMoveConfig, RecurrentConfig
from attnmove.train.config import Training

if TYPE_CHECKING:
    from attnmove.models.neural import Neural


def build(config: Any, training: Training, *, seed: int, device: str) -> Neural:
    """An untrained network of the kind its configuration belongs to."""
    from attnmove.models.neural import Neural  # torch is loaded when a network is wanted, not when models are listed

    return Neural(config, training, seed=seed, device=device)


@dataclass(frozen=True)
class Named:
    """A network that can be asked for by name."""

    summary: str
    config: Any
    training: Training


# Settings were chosen on the validation days of Geolife; experiments/LOG.md has what was tried.
ATTNMOVE = AttnMoveConfig()
ATTNMOVE_TRAINING = Training(weight_decay=3.0, label_smoothing=0.2)


COPYMOVE_TRAINING = Training(
    epochs=5, patience=0, batch_days=24, masks="stored", lr=2e-3, weight_decay=0.05, label_smoothing=0.0
)


def _attnmove(summary: str, **changes: Any) -> Named:
    return Named(summary, replace(ATTNMOVE, **changes), ATTNMOVE_TRAINING)


NETWORKS: dict[str, Named] = {
    "lstm": Named("recurrent, reads the day up to the target", RecurrentConfig(), Training(lr=6e-3)),
    "bilstm": Named("recurrent, reads the day from both ends", RecurrentConfig(both_ways=True), Training(lr=6e-3)),
    "deepmove": Named(
        "recurrent, with attention over earlier days and the user",
        DeepMoveConfig(),
        Training(lr=3e-3, weight_decay=0.3),
    ),
    "bi-stddp": Named(
        "places before and after, distances, user, time of day",
        BiSTDDPConfig(),
        Training(lr=3e-3, weight_decay=1.0),
    ),
    "attnmove-h": _attnmove("AttnMove without history", use_history=False),
    "attnmove": _attnmove("the network of the paper, in the blocks of its code"),
    "attnmove-relu": Named(
        "AttnMove in the blocks the paper writes: ReLU(attention + W x)",
        replace(ATTNMOVE, blocks="relu"),
        Training(weight_decay=1.0, epochs=60, patience=15),
    ),
    "attnmove-missing": _attnmove("AttnMove whose attention sees missing slots too, as its code", attend_missing=True),
    "attnmove-no-historical": _attnmove("ablation: historical intra-trajectory attention", historical_attention=False),
    "attnmove-no-current": _attnmove("ablation: current intra-trajectory attention", current_attention=False),
    "attnmove-no-inter": _attnmove("ablation: inter-trajectory attention", inter_attention=False),
    "attnmove-no-generation": _attnmove("ablation: location generation attention", generation_attention=False),
}
