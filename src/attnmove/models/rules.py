"""Models without training in the proper sense: five rules, each a few lines of numpy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from attnmove.errors import ConfigError, DataError
from attnmove.models.contract import Scores, State, in_chunks, normalised, not_fitted
from attnmove.models.habits import Habits
from attnmove.nouns import EARTH_RADIUS_M, MISSING, Cases, Float32, Float64, Int32, Int64

_EVERYWHERE = 1e-6
"""Share left to every location alike, so that no location is impossible."""
_EVERYONE = 1e-3
"""Weight of what all users do, where a user's own habits leave a tie."""


class _Rule:
    """What the rules share: they know people's habits and answer in chunks."""

    def __init__(self) -> None:
        self._habits: Habits | None = None

    def fit(self, train: Cases, valid: Cases | None = None) -> Self:
        self._habits = Habits.of(train)
        return self

    def scores(self, cases: Cases) -> Iterator[Scores]:
        if self._habits is None:
            raise not_fitted(self)
        self._habits.check(cases)
        return in_chunks(cases, self._log_prob)

    def state(self) -> State:
        if self._habits is None:
            raise not_fitted(self)
        return self._habits.state()

    def restore(self, state: State) -> Self:
        self._habits = Habits.restored(state)
        return self

    def _log_prob(self, cases: Cases) -> Float32:
        raise NotImplementedError

    def _usual(self, cases: Cases) -> Float64:
        """(K, L) the user's share of each location, a little of everyone's, and a trace of everywhere."""
        assert self._habits is not None
        own, all_ = self._habits.of_users(cases), self._habits.everyone
        own /= np.maximum(1, own.sum(axis=1, keepdims=True))
        usual: Float64 = own + _EVERYONE * (all_ / max(1, all_.sum())) + _EVERYWHERE / len(all_)
        return usual


class Top(_Rule):
    """The user's most frequent places in the training days; for a new user those of the days before."""

    def _log_prob(self, cases: Cases) -> Float32:
        return normalised(self._usual(cases)[cases.index[:, 0]])


class History(_Rule):
    """The history row at that slot, and nothing where the row is empty: no fallback, as in the paper."""

    def _log_prob(self, cases: Cases) -> Float32:
        place = cases.history[cases.hidden]
        weight = np.full((len(place), len(cases.locations)), _EVERYWHERE)
        known = np.flatnonzero(place != MISSING)
        weight[known, place[known]] = 1.0
        return normalised(weight)


class Nearest(_Rule):
    """The nearest visible slot of the day (tie: the earlier), then the user's places by frequency."""

    def _log_prob(self, cases: Cases) -> Float32:
        weight = self._usual(cases)[cases.index[:, 0]]
        place = _nearest(cases)
        known = np.flatnonzero(place != MISSING)
        weight[known, place[known]] += 2.0
        return normalised(weight)


@dataclass(frozen=True)
class VoteConfig:
    """Settings of the vote."""

    decay_slots: float = 1.5
    """A visible slot n slots away has exp(-n / decay_slots) votes; above 0."""
    habit: float = 0.3
    """Votes shared by the user's places in proportion to their frequency; 0 or more."""
    history: float = 0.1
    """Votes of the history row; 0 or more."""

    def __post_init__(self) -> None:
        if not self.decay_slots > 0 or not self.habit >= 0 or not self.history >= 0:
            raise ConfigError("vote: decay_slots must be above 0, habit and history 0 or more")


class Vote(_Rule):
    """Visible slots vote for their places, nearer ones louder; the user's habits and the history row have a voice."""

    def __init__(self, config: VoteConfig | None = None) -> None:
        super().__init__()
        self.config = config or VoteConfig()

    def _log_prob(self, cases: Cases) -> Float32:
        row, slot = cases.index.T
        weight = self.config.habit * self._usual(cases)[row] + _EVERYWHERE / len(cases.locations)
        loc = cases.visible[row]  # (M, T)
        votes = np.exp(-np.abs(np.arange(cases.n_slots) - slot[:, None]) / self.config.decay_slots)
        target, at = np.nonzero(loc != MISSING)
        np.add.at(weight, (target, loc[target, at]), votes[target, at])
        usual = cases.history[row, slot]
        known = np.flatnonzero(usual != MISSING)
        weight[known, usual[known]] += self.config.history
        return normalised(weight)


@dataclass(frozen=True)
class LinearConfig:
    """Settings of the straight line."""

    blur_m: float = 300.0
    """Probability falls by e with every so many metres from the line's point; above 0."""

    def __post_init__(self) -> None:
        if not self.blur_m > 0:
            raise ConfigError(f"linear: blur_m must be above 0 metres, found {self.blur_m}")


class Linear(_Rule):
    """Straight and uniform from the visible slot before to the one after; locations by distance from that point.

    With a visible slot on one side only, its place is copied.
    """

    def __init__(self, config: LinearConfig | None = None) -> None:
        super().__init__()
        self.config = config or LinearConfig()

    def fit(self, train: Cases, valid: Cases | None = None) -> Self:
        if not np.isfinite(train.locations.centres).all():
            raise DataError("linear needs the centre of every location; this dataset does not know them all")
        return super().fit(train, valid)

    def _log_prob(self, cases: Cases) -> Float32:
        centres = cases.locations.on_sphere  # (L, 3)
        point, known = _on_the_line(cases, centres)  # (M, 3)
        nearness = np.clip(point @ centres.T, -1.0, 1.0)  # (M, L) cosine of the angle between
        log_weight = -EARTH_RADIUS_M * np.arccos(nearness) / self.config.blur_m
        log_weight -= log_weight.max(axis=1, keepdims=True)
        weight = np.exp(np.maximum(log_weight, -80.0))
        # A day without any visible slot has no line; its people have habits.
        lost = np.flatnonzero(~known)
        weight[lost] = self._usual(cases)[cases.index[lost, 0]]
        return normalised(weight)


def _nearest(cases: Cases) -> Int32:
    """(M,) the place of the nearest visible slot, MISSING on a day without any."""
    row, slot = cases.index.T
    before, after = _sides(cases)
    far = 2 * cases.n_slots
    to_before = np.where(before >= 0, slot - before, far)
    to_after = np.where(after < cases.n_slots, after - slot, far)
    nearest = np.where(to_before <= to_after, before, after)
    place = cases.visible[row, np.clip(nearest, 0, cases.n_slots - 1)]
    return np.where((to_before < far) | (to_after < far), place, MISSING).astype(np.int32)


def _sides(cases: Cases) -> tuple[Int64, Int64]:
    """(M,) the nearest visible slots before and after each target."""
    before, after = cases.around()
    return before[cases.hidden], after[cases.hidden]


def _on_the_line(cases: Cases, centres: Float64) -> tuple[Float64, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """(M, 3) where each target is on the straight line, and whether its day has one."""
    row, slot = cases.index.T
    before, after = _sides(cases)
    has_before, has_after = before >= 0, after < cases.n_slots
    start = np.where(has_before, before, after)
    stop = np.where(has_after, after, before)
    share = np.where(has_before & has_after, (slot - start) / np.maximum(1, stop - start), 0.0)[:, None]
    known = has_before | has_after
    visible = cases.visible
    last = cases.n_slots - 1
    a = centres[np.maximum(visible[row, np.clip(start, 0, last)], 0)]
    b = centres[np.maximum(visible[row, np.clip(stop, 0, last)], 0)]
    point = (1 - share) * a + share * b
    return point / np.linalg.norm(point, axis=1, keepdims=True), known
