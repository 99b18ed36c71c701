"""The targets, and what is visible of their day on both sides of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attnmove.nouns import MISSING, Bool, Cases, Int32, Int64

_NIGHT = 3
"""A night is a third of a day: who was seen last longer ago has been elsewhere since, as far as one knows."""


@dataclass(frozen=True, eq=False)
class Side:
    """The visible slots on one side of M targets, the evening before among them, the nearest first; MISSING where there
    is none."""

    near: Int32
    """(M,) the place of the nearest."""
    next: Int32
    """(M,) the place of the one after it, often the same."""
    other: Int32
    """(M,) the nearest place that is not `near`."""
    gap: Int64
    """(M,) slots from the target to the nearest; 0 where there is none."""
    step: Int64
    """(M,) slots from there to the one after it, 1 where there is none."""

    def without(self, some: Bool) -> Side:
        """Nothing is visible on this side of some of the targets."""
        near, second, other = (
            np.where(some, np.int32(MISSING), places) for places in (self.near, self.next, self.other)
        )
        return Side(near, second, other, gap=np.where(some, 0, self.gap), step=np.where(some, 1, self.step))


@dataclass(frozen=True, eq=False)
class Asked:
    """The M targets of some cases."""

    row: Int64
    slot: Int64
    before: Side
    after: Side

    @classmethod
    def of(cls, cases: Cases, *, night: bool = False) -> Asked:
        """The targets of the cases; `night`: where today has no visible slot before a target, the last of the evening
        before is taken if it is no more than a night ago. What comes before that place, or before the day's first, is
        looked for in the last third of the day before too."""
        row, slot = cases.index.T
        if not night:
            return cls._within(cases.visible, row, slot)
        eve = _eve(cases)
        made = cls._within(np.concatenate([eve, cases.visible], axis=1), row, slot + eve.shape[1])
        long_ago = (made.before.gap > slot) & (made.before.gap > cases.n_slots // _NIGHT)
        return replace(made, slot=slot, before=made.before.without(long_ago))

    @classmethod
    def _within(cls, visible: Int32, row: Int64, slot: Int64) -> Asked:
        n_slots = visible.shape[1]
        seen_row, seen_slot = np.nonzero(visible != MISSING)
        seen_place, n = visible[seen_row, seen_slot], len(seen_row)
        new = np.ones(n + 1, dtype=np.bool_)  # whether a stay begins; one more begins after the last
        new[1:-1] = (seen_place[1:] != seen_place[:-1]) | (seen_row[1:] != seen_row[:-1])
        number = np.arange(n + 1)
        begins = np.maximum.accumulate(np.where(new, number, 0))
        comes = np.minimum.accumulate(np.where(new, number, n)[::-1])[::-1]  # the first stay that begins here or later
        after = np.searchsorted(seen_row * n_slots + seen_slot, row * n_slots + slot)
        before = after - 1
        # The last entry, which -1 and n mean, is no sighting.
        rows, slots = np.append(seen_row, -1), np.append(seen_slot, 0)
        places = np.append(seen_place, np.int32(MISSING))

        def side(nearest: Int64, step: int, other: Int64) -> Side:
            inside = (np.clip(at, -1, n) for at in (nearest, nearest + step, other))
            one, two, three = (np.where(rows[at] == row, at, -1) for at in inside)
            return Side(
                near=places[one],
                next=places[two],
                other=places[three],
                gap=np.where(one == -1, 0, np.abs(slots[one] - slot)),
                step=np.where(two == -1, 1, np.abs(slots[two] - slots[one])),
            )

        return cls(
            row=row,
            slot=slot,
            before=side(before, -1, begins[np.maximum(before, 0)] - 1),
            after=side(after, 1, comes[np.minimum(after + 1, n)]),
        )

    def __len__(self) -> int:
        return len(self.row)

    @property
    def prev(self) -> Int32:
        """(M,) the place of the visible slot before; MISSING where there is none."""
        return self.before.near

    @property
    def prev_today(self) -> Int32:
        """(M,) the same, MISSING too where it is of the night before."""
        return np.where(self.before.gap > self.slot, np.int32(MISSING), self.before.near)

    @property
    def next(self) -> Int32:
        """(M,) the place of the visible slot after, likewise."""
        return self.after.near

    @property
    def gap_prev(self) -> Int64:
        """(M,) slots to the one before; 0 where there is none."""
        return self.before.gap

    @property
    def gap_next(self) -> Int64:
        """(M,) slots to the one after; 0 where there is none."""
        return self.after.gap


def _eve(cases: Cases) -> Int32:
    """(K, n) what may be known of the last hours before each row's day; MISSING where nothing is."""
    n_eve = cases.n_slots // _NIGHT
    out = np.full((len(cases), n_eve), MISSING, dtype=np.int32)
    row = np.flatnonzero(cases.end > cases.first)
    last = cases.end[row] - 1
    before = cases.date[row].astype("datetime64[D]") - cases.past_date[last].astype("datetime64[D]")
    just = before == np.timedelta64(1, "D")
    out[row[just]] = cases.past[last[just], cases.n_slots - n_eve :]
    return out
