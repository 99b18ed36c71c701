"""What a model answered for each target, beside the truth: all that any measure needs."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from attnmove.errors import DataError
from attnmove.metrics import ranks_of
from attnmove.models.contract import Recoverer, Scores
from attnmove.nouns import MISSING, Bool, Cases, Float32, Float64, Int32, Int64, Text


@dataclass(frozen=True)
class Outcomes:
    """One entry a target with known truth, in the order of rows and slots."""

    user: Text
    row: Int64 = field(repr=False)
    """The target's row in the cases."""
    slot: Int64 = field(repr=False)
    truth: Int32 = field(repr=False)
    predicted: Int32 = field(repr=False)
    """The most probable location; ties: the lower id."""
    rank: Int64 = field(repr=False)
    """Place of the truth among all locations, 1 for the best."""
    log_prob: Float32 = field(repr=False)
    """Natural log-probability of the truth."""
    confidence: Float32 = field(repr=False)
    """Probability of the predicted location."""
    distance_m: Float64 = field(repr=False)
    """Metres between the centres of truth and prediction; NaN where one is not known."""

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, part.name)) for part in fields(self)}
        if len(lengths) != 1:
            raise DataError(f"outcomes: all fields must have the same length; found {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.user)

    @property
    def right(self) -> Bool:
        """(M,) True where the prediction is the truth."""
        hit: Bool = self.rank == 1
        return hit

    def only(self, mask: npt.NDArray[Any]) -> Outcomes:
        """The outcomes at `mask` (or positions), in this order."""
        return Outcomes(**{part.name: getattr(self, part.name)[mask] for part in fields(self)})


def outcomes_of(model: Recoverer, cases: Cases) -> Outcomes:
    """Ask the model for every target of the cases and keep of each chunk only what is measured.

    Targets whose truth nobody knows are answered but cannot be measured: they are left out. Raises DataError when the
    scores leave out a target, answer one twice or answer something that was not asked.
    """
    index, truth = cases.index, cases.truth
    known = truth != MISSING
    n_targets = len(index)
    position = np.full(cases.hidden.shape, -1, dtype=np.int64)
    position[cases.hidden] = np.arange(n_targets)
    answered = np.zeros(n_targets, dtype=np.bool_)
    predicted = np.zeros(n_targets, dtype=np.int32)
    rank = np.zeros(n_targets, dtype=np.int64)
    log_prob = np.zeros(n_targets, dtype=np.float32)
    confidence = np.zeros(n_targets, dtype=np.float32)
    for chunk in model.scores(cases):
        at = _place(chunk, position, answered, n_locations=len(cases.locations))
        own = np.maximum(truth[at], 0)
        rows = np.arange(len(at))
        predicted[at] = chunk.log_prob.argmax(axis=1)
        rank[at] = ranks_of(chunk.log_prob, own)
        log_prob[at] = chunk.log_prob[rows, own]
        confidence[at] = np.exp(chunk.log_prob[rows, predicted[at]])
    if not answered.all():
        row, slot = index[np.flatnonzero(~answered)[0]].tolist()
        lost = int((~answered).sum())
        raise DataError(f"scores: {lost} of {n_targets} targets have no answer, the first in row {row}, slot {slot}")
    return Outcomes(
        user=cases.user[index[known, 0]],
        row=index[known, 0],
        slot=index[known, 1],
        truth=truth[known],
        predicted=predicted[known],
        rank=rank[known],
        log_prob=log_prob[known],
        confidence=confidence[known],
        distance_m=cases.locations.distance_m(truth[known], predicted[known]),
    )


def _place(chunk: Scores, position: Int64, answered: Bool, *, n_locations: int) -> Int64:
    """The positions of a chunk's targets, marked as answered; DataError when it is not a clean part of the answer."""
    if chunk.log_prob.shape != (len(chunk.index), n_locations):
        raise DataError(
            f"scores: expected {len(chunk.index)} x {n_locations} log-probabilities, found {chunk.log_prob.shape}"
        )
    row, slot = chunk.index.reshape(-1, 2).T
    inside = (row >= 0) & (row < position.shape[0]) & (slot >= 0) & (slot < position.shape[1])
    at = np.full(len(row), -1, dtype=np.int64)
    at[inside] = position[row[inside], slot[inside]]
    if (at < 0).any():
        first = int(np.flatnonzero(at < 0)[0])
        raise DataError(f"scores: row {row[first]}, slot {slot[first]} was answered but is not a target")
    twice = answered[at] | (np.bincount(at, minlength=len(answered))[at] > 1)
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        raise DataError(f"scores: row {row[first]}, slot {slot[first]} was answered twice")
    broken = np.isnan(chunk.log_prob).any(axis=1)
    if broken.any():
        first = int(np.flatnonzero(broken)[0])
        raise DataError(f"scores: row {row[first]}, slot {slot[first]} has a log-probability that is not a number")
    answered[at] = True
    return at
