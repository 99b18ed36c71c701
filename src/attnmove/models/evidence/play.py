"""The places in play: where the user is seen today and was on the last days, a short list for each user-day.

Letters: R user-days (rows), T slots, W earlier days, M targets, E places in play of all rows, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from attnmove.models.ranking import heaviest
from attnmove.nouns import MISSING, SATURDAY, Bool, Cases, Float32, Float64, Int32, Int64, weekday

LAST_DAYS = 64
"""Earlier days that are looked at, the most recent ones."""
_MOST_PLACES = 128
"""Places in play of a row: those of the day, then the most visited, recent visits counting more, up to so many."""
_FADING_DAYS = 14.0


@dataclass(frozen=True, eq=False)
class LastDays:
    """The last days before each row, the most recent first."""

    loc: Int32
    """(R, W, T) MISSING where not seen, and on days that are not there."""
    there: Bool
    """(R, W)"""
    age: Int64
    """(R, W) days ago; a large number where there is no such day."""
    same_weekday: Bool
    """(R, W) as the row's day."""
    same_kind: Bool
    """(R, W) both a Saturday or Sunday, or neither."""
    date: np.ndarray[tuple[int, ...], np.dtype[np.datetime64]] = field(repr=False)

    @classmethod
    def of(cls, cases: Cases) -> LastDays:
        count = np.minimum(cases.end - cases.first, LAST_DAYS)
        w = max(1, int(count.max(initial=0)))
        back = np.arange(w)
        there = back < count[:, None]
        at = np.where(there, cases.end[:, None] - 1 - back, 0)
        if len(cases.past) == 0:
            loc = np.full((len(cases), w, cases.n_slots), MISSING, dtype=np.int32)
            date = np.zeros((len(cases), w), dtype="datetime64[D]")
        else:
            loc = np.where(there[..., None], cases.past[at], np.int32(MISSING))
            date = cases.past_date[at].astype("datetime64[D]")
        today = cases.date.astype("datetime64[D]").astype(np.int64)[:, None]
        then = date.astype(np.int64)
        now_is, then_is = weekday(today), weekday(then)
        return cls(
            loc=loc,
            there=there,
            age=np.where(there, today - then, 9999),
            same_weekday=there & (now_is == then_is),
            same_kind=there & ((now_is >= SATURDAY) == (then_is >= SATURDAY)),
            date=date,
        )


@dataclass(frozen=True, eq=False)
class Play:
    """The places in play of R rows, and every fix of the last days as one of them."""

    last: LastDays
    visible: Int32
    """(R, T)"""
    start: Int64
    """(R + 1,) the places of row r are place[start[r]:start[r + 1]], ascending."""
    place: Int64
    """(E,)"""
    today: Int64
    """(R, T) the visible slots as entries of `place`, MISSING elsewhere."""
    then: Int32
    """(R, W, T) the fixes of the last days likewise; MISSING too where a place is not in play."""

    @classmethod
    def of(cls, cases: Cases) -> Play:
        last, visible, n = LastDays.of(cases), cases.visible, len(cases.locations)
        row, day, slot = np.nonzero(last.loc != MISSING)
        row_now, slot_now = np.nonzero(visible != MISSING)
        key_then = row * n + last.loc[row, day, slot]
        key_now = row_now * n + visible[row_now, slot_now]
        key, entry = np.unique(np.concatenate([key_then, key_now]), return_inverse=True)
        entry_then, entry_now = entry[: len(row)], entry[len(row) :]
        fresh = 1e-3 + np.exp(-last.age[row, day] / _FADING_DAYS)
        weight = np.bincount(entry_then, fresh, len(key)).astype(np.float64)
        weight[entry_now] = np.inf
        in_row = np.searchsorted(key, np.arange(len(cases) + 1) * n)
        kept = heaviest(in_row, weight, most=_MOST_PLACES)
        number = np.where(kept, np.cumsum(kept) - 1, MISSING)
        then = np.full(last.loc.shape, MISSING, dtype=np.int32)
        then[row, day, slot] = number[entry_then]
        today = np.full(visible.shape, MISSING)
        today[row_now, slot_now] = number[entry_now]
        key = key[kept]
        return cls(
            last=last,
            visible=visible,
            start=np.searchsorted(key, np.arange(len(cases) + 1) * n),
            place=key % max(1, n),
            today=today,
            then=then,
        )

    @property
    def n_slots(self) -> int:
        return int(self.visible.shape[1])

    @cached_property
    def row(self) -> Int64:
        """(E,) the row of each place."""
        return np.repeat(np.arange(len(self.visible)), np.diff(self.start))

    @cached_property
    def fixes(self) -> Fixes:
        """The fixes of the last days at places in play, by row, then slot."""
        row, slot, day = np.nonzero(np.swapaxes(self.then, 1, 2) != MISSING)
        n_cells = len(self.visible) * self.n_slots
        return Fixes(
            row=row,
            slot=slot,
            day=day,
            entry=self.then[row, day, slot].astype(np.int64),
            start=np.searchsorted(row * self.n_slots + slot, np.arange(n_cells + 1)),
        )

    @cached_property
    def seen_today(self) -> Float64:
        """(E, T) 1 where the place is visible today."""
        out = np.zeros((len(self.place), self.n_slots))
        row, slot = np.nonzero(self.today != MISSING)
        out[self.today[row, slot], slot] = 1
        return out

    @cached_property
    def agreement(self) -> tuple[Bool, Bool]:
        """(R, W, T) where a last day shows the same place as today, and where it shows another."""
        both = (self.last.loc != MISSING) & (self.visible != MISSING)[:, None, :]
        same = both & (self.last.loc == self.visible[:, None, :])
        return same, both & ~same

    @cached_property
    def resemblance(self) -> Float32:
        """(R, W) share of slots, visible on both days, with the same place; towards a quarter where there are few."""
        same, other = (part.sum(axis=-1) for part in self.agreement)
        share: Float32 = ((same + 0.5) / (same + other + 2.0)).astype(np.float32)
        return share


@dataclass(frozen=True, eq=False)
class Fixes:
    """Single sightings on earlier days."""

    row: Int64
    slot: Int64
    day: Int64
    """Position among the row's last days."""
    entry: Int64
    """Which place in play."""
    start: Int64
    """(R * T + 1,) the fixes of row r at slot t are start[r * T + t] … start[r * T + t + 1] - 1."""

    def between(self, row: Int64, slot: Int64, reach: int, n_slots: int) -> tuple[Int64, Int64]:
        """For each (row, slot) the fixes of the row at most `reach` slots of the clock away: the first, and the end."""
        first = row * n_slots + np.maximum(slot - reach, 0)
        end = row * n_slots + np.minimum(slot + reach + 1, n_slots)
        return self.start[first], self.start[end]
