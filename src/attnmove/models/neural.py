"""A network behind the contract: it is trained by the one loop and answers in log-probabilities."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from attnmove.errors import ConfigError, DataError, RunError
from attnmove.models.contract import Scores, State, in_chunks, not_fitted, taken
from attnmove.models.habits import spread, user_keys
from attnmove.nets.attnmove import AttnMove
from attnmove.nets.batch import home_of, plan_of, tensors_of
from attnmove.nets.bistddp import BiSTDDP
from attnmove.nets.config import AttnMoveConfig, BiSTDDPConfig, DeepMoveConfig, RecurrentConfig
from attnmove.nets.deepmove import DeepMove
from attnmove.nets.layers import Network
from attnmove.nets.recurrent import Recurrent
from attnmove.nouns import EARTH_RADIUS_M, MINUTES_PER_DAY, MISSING, Cases, Float32, Int64
from attnmove.train.config import Training
from attnmove.train.loop import Asked, Outcome, Tell, accelerator_for, train_network


@dataclass(frozen=True)
class Sizes:
    """What a network must know of the data before it can be built."""

    n_locations: int
    n_slots: int
    n_users: int
    position: torch.Tensor
    """(L, 3) of the locations, in kilometres from the centre of the Earth; NaN where not known."""


def make_network(config: Any, sizes: Sizes) -> Network:
    """A network with fresh weights, of the kind its configuration belongs to."""
    size = {"n_locations": sizes.n_locations, "n_slots": sizes.n_slots}
    match config:
        case AttnMoveConfig():
            return AttnMove(config, **size)
        case RecurrentConfig():
            return Recurrent(config, **size)
        case DeepMoveConfig():
            return DeepMove(config, **size, n_users=sizes.n_users)
        case BiSTDDPConfig():
            return BiSTDDP(config, **size, n_users=sizes.n_users, position=sizes.position)
    raise TypeError(f"no network has the configuration {type(config).__name__}")


class Neural:
    """A network that recovers."""

    def __init__(self, config: Any, training: Training, *, seed: int, device: str) -> None:
        self.config, self.training, self.seed, self.device = config, training, seed, device
        self.outcome: Outcome | None = None
        """How the last training ended."""
        self.writes = True
        """False in all but one of several processes that train together: one writes the run."""
        self._net: Network | None = None
        self._users: Int64 = np.zeros(0, dtype=np.int64)
        self._n_slots = 0

    def fit(
        self,
        train: Cases,
        valid: Cases | None = None,
        *,
        checkpoint: Path | None = None,
        resume: bool = False,
        tell: Tell | None = None,
    ) -> Self:
        """Train; the epoch is chosen on `valid`. With `checkpoint`, a file to `resume` from is kept there."""
        accelerator = accelerator_for(self.device, self.training.precision)
        self.writes = accelerator.is_main_process
        users = np.unique(user_keys(train.user))
        net = self._build(train, users)
        self.outcome = train_network(
            net.to(accelerator.device),
            self._asked(train, users, accelerator.device),
            self._asked(valid, users, accelerator.device)
            if valid is not None and np.any(valid.hidden & (valid.loc != MISSING))
            else None,
            self.training,
            seed=self.seed,
            accelerator=accelerator,
            checkpoint=checkpoint,
            identity=self._identity(train, valid),
            resume=resume,
            tell=tell,
        )
        self._net, self._users, self._n_slots = net, users, train.n_slots
        return self

    def scores(self, cases: Cases) -> Iterator[Scores]:
        net = self._ready(cases)
        return in_chunks(cases, lambda chunk: self._log_prob(net, chunk))

    def state(self) -> State:
        if self._net is None:
            raise not_fitted(self)
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in self._net.state_dict().items()}
        facts = {"users": self._users, "n_slots": np.array([self._n_slots], dtype=np.int64)}
        return facts | {f"net/{name}": array for name, array in weights.items()}

    def restore(self, state: State) -> Self:
        device = accelerator_for(self.device, self.training.precision).device
        users, (n_slots,) = taken(state, "users", "i"), taken(state, "n_slots", "i")[:1]
        weights = {name[4:]: array for name, array in state.items() if name.startswith("net/")}
        if "places.table" not in weights or not 1 <= n_slots <= MINUTES_PER_DAY:
            raise RunError("these are not the weights of a network")
        n_locations = len(weights["places.table"]) - 1
        unknown = torch.full((n_locations, 3), torch.nan)
        sizes = Sizes(n_locations, int(n_slots), len(users), unknown)
        # Built without memory first: what a file claims is believed only when its arrays have the shapes for it.
        with torch.device("meta"):
            shapes = {name: tuple(t.shape) for name, t in make_network(self.config, sizes).state_dict().items()}
        found = {name: array.shape for name, array in weights.items()}
        if found != shapes or any(array.dtype != np.float32 for array in weights.values()):
            raise RunError("the weights are not those of this model and configuration")
        net = make_network(self.config, sizes)
        net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
        self._net, self._users, self._n_slots = net.to(device).eval(), users, int(n_slots)
        return self

    @property
    def network(self) -> Network:
        """The trained network itself. Raises NotFittedError before `fit`."""
        if self._net is None:
            raise not_fitted(self)
        return self._net

    def _ready(self, cases: Cases) -> Network:
        net = self.network
        if len(cases.locations) != net.places.n_locations or cases.n_slots != self._n_slots:
            raise DataError(
                f"the model knows {net.places.n_locations:,} locations and {self._n_slots} slots a day, the data have "
                f"{len(cases.locations):,} and {cases.n_slots}: it was trained on another dataset"
            )
        return net

    def _build(self, train: Cases, users: Int64) -> Network:
        position = torch.from_numpy(train.locations.on_sphere * EARTH_RADIUS_M / 1000).float()
        sizes = Sizes(len(train.locations), train.n_slots, len(users), position)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                return make_network(self.config, sizes)
        except (RuntimeError, MemoryError) as error:
            raise ConfigError("a network of these settings does not fit into memory; try a lower width") from error

    def _asked(self, cases: Cases, users: Int64, device: torch.device) -> Asked:
        data = tensors_of(cases, _numbers(cases, users), home_of(cases, device))
        observed = cases.loc != MISSING
        return Asked(data, cases.hidden & observed, observed)  # what nobody saw cannot be learnt from

    @torch.no_grad()
    def _log_prob(self, net: Network, chunk: Cases) -> Float32:
        device = net.places.table.device
        data = tensors_of(_recent(chunk, net.past_days), _numbers(chunk, self._users), device)
        plan = plan_of(data, chunk.hidden, np.arange(len(chunk)))
        batch, _ = plan.cut(data, 0, len(chunk), past_days=net.past_days)
        out: Float32 = net(batch).float().log_softmax(-1).cpu().numpy()
        return out

    def _identity(self, train: Cases, valid: Cases | None) -> str:
        """A fingerprint of everything that makes a training what it is."""
        digest = hashlib.sha256(json.dumps([asdict(self.config), asdict(self.training), self.seed]).encode())
        digest.update(type(self.config).__name__.encode())
        for cases in (train, valid):
            if cases is not None:
                arrays = (cases.loc, cases.hidden, cases.history, cases.past, cases.first, cases.end)
                for array in (*arrays, user_keys(cases.user), cases.locations.centres):
                    digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def _numbers(cases: Cases, users: Int64) -> Int64:
    """(K,) the number of each row's user among the trained ones, U for a stranger."""
    keys = user_keys(cases.user)
    at = np.searchsorted(users, keys)
    known = users[np.minimum(at, len(users) - 1)] == keys if len(users) else np.zeros(len(keys), dtype=np.bool_)
    return np.where(known, at, len(users))


def _recent(cases: Cases, days: int) -> Cases:
    """The same cases with a past of only the last `days` days of each row, so that little goes to the device."""
    first = np.maximum(cases.first, cases.end - days)
    kept = np.unique(spread(first, cases.end)[1])
    length = cases.end - first
    # Days that lie side by side in `past` do so among those kept.
    end = np.where(length > 0, np.searchsorted(kept, cases.end - 1) + 1, 0)
    return replace(cases, past=cases.past[kept], past_date=cases.past_date[kept], first=end - length, end=end)
