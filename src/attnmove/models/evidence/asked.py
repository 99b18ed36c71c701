"""The targets, and what is visible of their day on both sides of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.nouns import MISSING, Cases, Int32, Int64


@dataclass(frozen=True, eq=False)
class Side:
    """The visible slots on one side of M targets, the nearest first; MISSING where there is none."""

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


@dataclass(frozen=True, eq=False)
class Asked:
    """The M targets of some cases."""

    row: Int64
    slot: Int64
    before: Side
    after: Side

    @classmethod
    def of(cls, cases: Cases) -> Asked:
        visible, n_slots = cases.visible, cases.n_slots
        seen_row, seen_slot = np.nonzero(visible != MISSING)
        seen_place, n = visible[seen_row, seen_slot], len(seen_row)
        new = np.ones(n + 1, dtype=np.bool_)  # whether a stay begins; one more begins after the last
        new[1:-1] = (seen_place[1:] != seen_place[:-1]) | (seen_row[1:] != seen_row[:-1])
        number = np.arange(n + 1)
        begins = np.maximum.accumulate(np.where(new, number, 0))
        comes = np.minimum.accumulate(np.where(new, number, n)[::-1])[::-1]  # the first stay that begins here or later
        row, slot = cases.index.T
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
