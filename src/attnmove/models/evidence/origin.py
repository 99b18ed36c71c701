"""Where an answer comes from: what kind of evidence it leaned on, and which sighting counted most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnmove.models.evidence.features import FAMILIES
from attnmove.models.evidence.gather import Evidence
from attnmove.models.evidence.play import Play
from attnmove.nouns import MISSING, Cases, Dates, Float32, Float64, Int64

_CLOCK_SLOTS, _AGE_DAYS = 2.0, 60.0
"""How a past sighting fades with the clock time between it and the target, and with its age."""


@dataclass(frozen=True)
class Origins:
    """What the answers to M targets leaned on."""

    share: Float32
    """(M, 4) of day, past, others, space (features.FAMILIES): how much of the score would be lost without it.

    A row sums to one, or to nothing where there is no answer or nothing in particular speaks for it."""
    date: Dates
    """(M,) the day of the sighting that counted most, today's date for a visible slot; NaT where there is none."""
    slot: Int64
    """(M,) its slot; MISSING where there is none."""

    @property
    def leading(self) -> list[str | None]:
        """The kind of evidence with the largest share; None where there is none."""
        best = self.share.argmax(axis=1)
        some = self.share.max(axis=1, initial=0) > 0
        return [FAMILIES[i] if has else None for i, has in zip(best.tolist(), some.tolist(), strict=True)]


def origins_of(evidence: Evidence, chosen: Int64, cases: Cases, score: Callable[[Evidence, Cases], Float64]) -> Origins:
    """The origins of the chosen candidates (M,), MISSING where none was chosen."""
    answered = np.flatnonzero(chosen != MISSING)
    share = np.zeros((len(chosen), len(FAMILIES)), dtype=np.float32)
    date = np.full(len(chosen), np.datetime64("NaT"), dtype="datetime64[D]")
    slot = np.full(len(chosen), MISSING)
    if len(answered):
        mine = _only(evidence, answered, chosen[answered])
        share[answered] = _shares(mine, cases, score)
        date[answered], slot[answered] = _sightings(mine, share[answered], cases)
    return Origins(share, date, slot)


def _only(evidence: Evidence, target: Int64, candidate: Int64) -> Evidence:
    """The evidence of one candidate a target."""
    return Evidence(
        index=evidence.index[target],
        start=np.arange(len(target) + 1),
        place=evidence.place[candidate],
        values=evidence.values[candidate],
    )


def _shares(mine: Evidence, cases: Cases, score: Callable[[Evidence, Cases], Float64]) -> Float32:
    """(M, 4) what the score loses when a family says nothing, in shares of all losses."""
    full, *without = _asked_once([mine, *(mine.without(family) for family in FAMILIES)], cases, score)
    lost = np.stack([np.maximum(0, full - less) for less in without], axis=1)
    total = lost.sum(axis=1, keepdims=True)
    share: Float32 = np.divide(lost, total, out=np.zeros_like(lost), where=total > 0).astype(np.float32)
    return share


def _asked_once(every: Sequence[Evidence], cases: Cases, score: Callable[[Evidence, Cases], Float64]) -> list[Float64]:
    """The scores of several evidences for the same cases; the scorer meets as many copies of the cases, once."""
    n = len(cases)
    copies = cases.rows(np.tile(np.arange(n), len(every)))
    starts = np.cumsum([0, *(len(one.place) for one in every)])
    joined = Evidence(
        index=np.concatenate([one.index + np.array([i * n, 0]) for i, one in enumerate(every)]),
        start=np.concatenate([[0], *(one.start[1:] + first for one, first in zip(every, starts, strict=False))]),
        place=np.concatenate([one.place for one in every]),
        values=np.concatenate([one.values for one in every]),
    )
    return np.split(score(joined, copies), starts[1:-1])


def _sightings(mine: Evidence, share: Float32, cases: Cases) -> tuple[Dates, Int64]:
    """The sighting of the answered place that counts most: of today, or of an earlier day where the past has the larger
    share or today shows nothing."""
    row, slot = mine.index.T
    play, slots = Play.of(cases), np.arange(cases.n_slots)
    place = mine.place
    apart = np.abs(slots - slot[:, None])  # (M, T)
    today = np.where(play.visible[row] == place[:, None], apart, np.inf)
    last = play.last
    worth = np.exp(6.0 * play.resemblance - last.age / _AGE_DAYS) * np.where(last.same_weekday, 2.0, 1.0)  # (R, W)
    there = last.loc[row] == place[:, None, None]  # (M, W, T)
    weight = np.where(there, worth[row][:, :, None] * np.exp(-apart / _CLOCK_SLOTS)[:, None, :], 0)
    best = weight.reshape(len(row), -1).argmax(axis=1)
    day, slot_then = np.divmod(best, cases.n_slots)
    was, is_now = there.any(axis=(1, 2)), np.isfinite(today).any(axis=1)
    past_leads = was & (~is_now | (share[:, 1] > share[:, 0]))
    none = np.datetime64("NaT")
    date_now = np.where(is_now, cases.date[row].astype("datetime64[D]"), none)
    date = np.where(past_leads, last.date[row, day], date_now)
    return date, np.where(past_leads, slot_then, np.where(is_now, today.argmin(axis=1), MISSING))
