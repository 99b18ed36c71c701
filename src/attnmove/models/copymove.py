"""CopyMove over the evidence: the network that attends, points and weighs, trained by the one loop."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmove.errors import ConfigError, DataError, RunError
from attnmove.models.contract import State, not_fitted
from attnmove.models.evidence.features import NAMES, column
from attnmove.models.evidence.gather import Evidence
from attnmove.models.evidential import Keep, Lesson
from attnmove.nets.batch import CaseTensors, plan_of, tensors_of
from attnmove.nets.candidates import CandidateTensors
from attnmove.nets.config import CopyMoveConfig
from attnmove.nets.copymove import CopyMove as CopyNetwork
from attnmove.nouns import MISSING, Bool, Cases, Float64
from attnmove.train.config import Training
from attnmove.train.loop import Asked, Outcome, accelerator_for, train_network

_DAYS_AT_ONCE = 16
"""User-days whose candidates are scored together."""
_SIGHTED = [column("day_share"), column("n_days")]
"""Above 0 where the evidence has a candidate on the day, on earlier days; where it is withheld, nothing is copied."""


class CopyMove:
    """Scores candidates by the numbers about them and by where attention points."""

    def __init__(self, config: CopyMoveConfig, training: Training, *, seed: int, device: str) -> None:
        if training.masks != "stored":
            raise ConfigError("copymove: masks must be stored, for the evidence was gathered for what is hidden")
        self.config, self.training, self.seed, self.device = config, training, seed, device
        self.outcome: Outcome | None = None
        """How the last training ended."""
        self.writes = True
        """False in all but one of several processes that train together: one writes the run."""
        self._net: CopyNetwork | None = None

    @property
    def travels(self) -> bool:
        """Whether it may learn elsewhere: an embedding of locations knows one place only."""
        return not self.config.places

    def learn(self, lessons: list[Lesson], valid: list[Lesson], *, keep: Keep) -> None:
        """Train on the targets whose truth is a candidate; the epoch is chosen on those of `valid`."""
        accelerator = accelerator_for(self.device, self.training.precision)
        self.writes = accelerator.is_main_process
        if not any((lesson.truth != MISSING).any() for lesson in lessons):
            raise RunError("there is nothing to train on: no target's place is among its candidates")
        first = lessons[0].cases
        net = self._build(len(first.locations), first.n_slots)
        net.standardise_by([torch.from_numpy(lesson.evidence.values) for lesson in lessons])
        train = _asked(lessons, net)
        checked = _asked(valid, net) if any((lesson.truth != MISSING).any() for lesson in valid) else None
        of_all = _of_all(valid)
        tell = keep.tell
        outcome = train_network(
            net.to(accelerator.device),
            train,
            checked,
            self.training,
            seed=self.seed,
            accelerator=accelerator,
            checkpoint=keep.checkpoint,
            identity=self._identity(train, checked) if keep.checkpoint is not None else "",
            resume=keep.resume,
            tell=None if tell is None else lambda now: tell(of_all(now)),
        )
        self.outcome = replace(outcome, log=[of_all(row) for row in outcome.log])
        self._net = net

    @torch.no_grad()
    def score(self, evidence: Evidence, cases: Cases) -> Float64:
        net = self._ready(cases)
        out = np.zeros(len(evidence.place))
        asked = np.diff(evidence.start) > 0
        if not asked.any():
            return out
        data, hidden = _stored([Lesson(cases, evidence, np.full(len(evidence), MISSING))], [asked], net)
        plan = plan_of(data, hidden, np.arange(len(cases)))
        for a, b in plan.cuts(_DAYS_AT_ONCE):
            batch, _ = plan.cut(data, a, b, past_days=net.past_days)
            batch = batch.to(net.mean.device)
            assert batch.candidates is not None
            logits = net(batch)[batch.candidates.target, batch.candidates.position]
            out[batch.candidates.entry.cpu().numpy()] = logits.double().cpu().numpy()
        return out

    def state(self) -> State:
        if self._net is None:
            raise not_fitted(self)
        return {f"net/{name}": tensor.detach().cpu().numpy() for name, tensor in self._net.state_dict().items()}

    def restore(self, state: State) -> None:
        device = accelerator_for(self.device, self.training.precision).device
        weights = {name[4:]: array for name, array in state.items() if name.startswith("net/")}
        sized = ("places.table", "copy_day.apart")
        if any(name not in weights or weights[name].ndim == 0 for name in sized):
            raise RunError("these are not the weights of a network")
        n_locations, n_slots = len(weights["places.table"]) - 1, (len(weights["copy_day.apart"]) + 1) // 2
        if min(n_locations, n_slots) < 1:
            raise RunError("these are not the weights of a network")
        size = {"n_locations": n_locations, "n_slots": n_slots, "n_features": len(NAMES)}
        # Built without memory first: what a file claims is believed only when its arrays have the shapes for it.
        with torch.device("meta"):
            shapes = {name: tuple(t.shape) for name, t in CopyNetwork(self.config, **size).state_dict().items()}
        found = {name: array.shape for name, array in weights.items()}
        if found != shapes or any(array.dtype != np.float32 for array in weights.values()):
            raise RunError("the weights are not those of this model and configuration")
        rising = (weights["deviation"] > 0).all() and (np.diff(weights["edges"]) > 0).all()
        if not rising or not all(np.isfinite(weights[name]).all() for name in ("mean", "deviation", "edges")):
            raise RunError("numbers cannot be standardised by such a mean, deviation and edges")
        net = CopyNetwork(self.config, **size)
        net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
        self._net = net.to(device).eval()

    @property
    def network(self) -> CopyNetwork:
        """The trained network itself. Raises NotFittedError before `learn`."""
        if self._net is None:
            raise not_fitted(self)
        return self._net

    def _ready(self, cases: Cases) -> CopyNetwork:
        net, n = self.network, len(cases.locations)
        if cases.n_slots != net.n_slots or (self.config.places and n != net.places.n_locations):
            raise DataError(
                f"the model knows {net.places.n_locations:,} locations and {net.n_slots} slots a day, the data have "
                f"{n:,} and {cases.n_slots}: it was trained on another dataset"
            )
        return net

    def _build(self, n_locations: int, n_slots: int) -> CopyNetwork:
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                return CopyNetwork(self.config, n_locations=n_locations, n_slots=n_slots, n_features=len(NAMES))
        except (RuntimeError, MemoryError) as error:
            raise ConfigError("a network of these settings does not fit into memory; try a lower width") from error

    def _identity(self, *every: Asked | None) -> str:
        """A fingerprint of everything that makes a training what it is."""
        digest = hashlib.sha256(json.dumps([asdict(self.config), asdict(self.training), self.seed]).encode())
        for asked in every:
            if asked is not None and asked.data.candidates is not None:
                for tensor in (*vars(asked.data).values(), *vars(asked.data.candidates).values()):
                    if isinstance(tensor, Tensor):
                        digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()


def _asked(lessons: list[Lesson], net: CopyNetwork) -> Asked:
    """The targets whose truth is among their candidates, to learn from or to choose by."""
    data, hidden = _stored(lessons, [lesson.truth != MISSING for lesson in lessons], net)
    return Asked(data, hidden, hidden)


def _stored(lessons: list[Lesson], useful: list[Bool], net: CopyNetwork) -> tuple[CaseTensors, Bool]:
    """The cases of all lessons on the host, with nothing at hidden slots but at the `useful` targets, whose candidates
    are kept, and (K, T) where these are."""
    cases = _joined([lesson.cases for lesson in lessons])
    first_row = np.cumsum([0, *(len(lesson.cases) for lesson in lessons)])
    sizes = np.concatenate([np.diff(lesson.evidence.start)[mine] for lesson, mine in zip(lessons, useful, strict=True)])
    start = np.concatenate([[0], np.cumsum(sizes)])
    number, truth = (np.full(cases.loc.shape, MISSING, dtype=np.int32) for _ in range(2))
    place = np.empty(start[-1], dtype=np.int64)
    known = np.empty((start[-1], 2), dtype=np.bool_)
    values = torch.empty((int(start[-1]), len(NAMES)), dtype=torch.float16)
    n_targets, n = 0, 0
    for lesson, mine, first in zip(lessons, useful, first_row.tolist(), strict=False):
        evidence = lesson.evidence
        row, slot = evidence.index[mine].T
        number[first + row, slot] = np.arange(n_targets, n_targets + len(row))
        truth[first + row, slot] = np.maximum(MISSING, (lesson.truth - evidence.start[:-1])[mine])
        kept = np.repeat(mine, np.diff(evidence.start))
        here = slice(n, n + int(kept.sum()))
        place[here] = evidence.place[kept]
        raw = evidence.values[kept]
        known[here] = raw[:, _SIGHTED] > 0
        values[here] = net.standardised(torch.from_numpy(raw).to(net.mean.device)).cpu()
        n_targets, n = n_targets + len(row), here.stop
    candidates = CandidateTensors(
        number=torch.from_numpy(number),
        truth=torch.from_numpy(truth),
        start=torch.from_numpy(start),
        place=torch.from_numpy(place),
        values=values,
        known=torch.from_numpy(known),
    )
    visible = replace(cases, loc=cases.visible)
    data = tensors_of(visible, np.zeros(len(cases), dtype=np.int64), torch.device("cpu"))
    return replace(data, candidates=candidates), number != MISSING


def _joined(every: list[Cases]) -> Cases:
    """All cases one after the other; a past that several look back upon is kept once."""
    if len(every) == 1:
        return every[0]
    pasts = {id(cases.past): cases for cases in every}
    first_row = dict(zip(pasts, np.cumsum([0, *(len(cases.past) for cases in pasts.values())]).tolist(), strict=False))

    def of_all(name: str) -> Any:
        return np.concatenate([getattr(cases, name) for cases in every])

    def of_past(name: str) -> Any:
        parts = [getattr(cases, name) for cases in pasts.values()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    offset = np.repeat([first_row[id(cases.past)] for cases in every], [len(cases) for cases in every])
    return replace(
        every[0],
        user=of_all("user"),
        date=of_all("date"),
        loc=of_all("loc"),
        hidden=of_all("hidden"),
        history=of_all("history"),
        past=of_past("past"),
        past_date=of_past("past_date"),
        first=of_all("first") + offset,
        end=of_all("end") + offset,
    )


def _of_all(valid: list[Lesson]) -> Callable[[dict[str, float]], dict[str, float]]:
    """From what the loop measures, where the truth is a candidate, to recall and MAP of all; the NLL stays theirs."""
    truth = np.concatenate([np.zeros(0, dtype=np.int64), *(lesson.truth for lesson in valid)])
    share = float((truth != MISSING).mean()) if len(truth) else 1.0

    def scaled(row: dict[str, float]) -> dict[str, float]:
        return {name: value * share if name in ("valid_recall", "valid_map") else value for name, value in row.items()}

    return scaled
