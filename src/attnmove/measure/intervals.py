"""Intervals over users: people differ more than their slots do, so whole users are drawn again, not targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.errors import DataError
from attnmove.measure.outcomes import Outcomes
from attnmove.nouns import Float64

N_DRAWS = 1000
_TAILS = (0.025, 0.975)
_WEIGHTS_AT_ONCE = 1 << 22
"""Draws times users held at a time: 32 MiB of them."""


@dataclass(frozen=True)
class Interval:
    """The middle 95 % of the draws; NaN where fewer than two users make it meaningless."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How much better one model is than another on the same targets."""

    n: int
    recall: float
    recall_interval: Interval
    map: float
    map_interval: Interval


def intervals_of(outcomes: Outcomes, rng: np.random.Generator) -> dict[str, Interval]:
    """95 % intervals of recall, map and distance_m over users drawn with replacement."""
    values = np.column_stack([outcomes.right, 1.0 / outcomes.rank, outcomes.distance_m])
    found = _intervals(outcomes, values, rng)
    return dict(zip(("recall", "map", "distance_m"), found, strict=True))


def paired(one: Outcomes, other: Outcomes, rng: np.random.Generator) -> Difference:
    """Recall and MAP of `one` minus those of `other`, with 95 % intervals over users.

    Raises DataError unless both answer the same targets.
    """
    if len(one) != len(other) or not (
        np.array_equal(one.row, other.row)
        and np.array_equal(one.slot, other.slot)
        and np.array_equal(one.truth, other.truth)
    ):
        raise DataError("paired: expected two answers to the same targets, found different ones; use the same cases")
    gained = np.column_stack([one.right.astype(float) - other.right, 1.0 / one.rank - 1.0 / other.rank])
    recall, map_ = gained.mean(axis=0).tolist() if len(one) else (float("nan"), float("nan"))
    recall_interval, map_interval = _intervals(one, gained, rng)
    return Difference(len(one), recall, recall_interval, map_, map_interval)


def intervals_of_sums(sums: Float64, n: Float64, rng: np.random.Generator) -> list[Interval]:
    """An interval for the mean of each column, from the users' sums (U, C) and numbers of targets (U,)."""
    n_users = len(sums)
    if n_users < 2:
        return [Interval(float("nan"), float("nan"))] * sums.shape[1]
    counted = np.column_stack([sums, n])  # (U, C + 1)
    at_once = max(1, _WEIGHTS_AT_ONCE // n_users)
    drawn = []
    for start in range(0, N_DRAWS, at_once):
        size = min(at_once, N_DRAWS - start)
        times = rng.multinomial(n_users, np.full(n_users, 1 / n_users), size=size)  # (draws, U)
        drawn.append(times @ counted)
    total = np.concatenate(drawn)
    means = total[:, :-1] / total[:, -1:]
    low, high = np.quantile(means, _TAILS, axis=0)
    return [Interval(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _intervals(outcomes: Outcomes, values: Float64, rng: np.random.Generator) -> list[Interval]:
    """An interval for the mean of each column of `values` (M, C)."""
    users, code = np.unique(outcomes.user.astype(str), return_inverse=True)
    n_users = len(users)
    sums: Float64 = np.stack(
        [np.bincount(code, weights=column, minlength=n_users) for column in values.T], axis=1, dtype=np.float64
    )  # (U, C)
    return intervals_of_sums(sums, np.bincount(code, minlength=n_users).astype(float), rng)
