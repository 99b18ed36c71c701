"""Where the user comes from and where they go: the visible slots beyond those next to a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.clues import Clues
from attnmove.nouns import MISSING, Cases, Float32, Float64, Int32, Int64

_AHEAD = 2
"""Slots that a way is thought to go on as it was."""
_LIVELY = 3
"""Slots between two sightings at most for the way between them to be the way one goes."""


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

    def stride(self, atlas: Atlas) -> Float64:
        """(M, 3) kilometres a slot, towards the target; NaN where it is not known."""
        stride: Float64 = (atlas.at(self.near).astype(np.float64) - atlas.at(self.next)) / self.step[:, None]
        return stride


def sides_of(cases: Cases) -> tuple[Side, Side]:
    """What is visible before and after every target."""
    visible, n_slots = cases.visible, cases.n_slots
    row, slot = np.nonzero(visible != MISSING)
    place, n = visible[row, slot], len(row)
    new = np.ones(n + 1, dtype=np.bool_)  # whether a stay begins; one more begins after the last
    new[1:-1] = (place[1:] != place[:-1]) | (row[1:] != row[:-1])
    number = np.arange(n + 1)
    begins = np.maximum.accumulate(np.where(new, number, 0))
    comes = np.minimum.accumulate(np.where(new, number, n)[::-1])[::-1]  # the first stay that begins here or later
    target_row, target_slot = cases.index.T
    after = np.searchsorted(row * n_slots + slot, target_row * n_slots + target_slot)
    before = after - 1
    # The last entry, which -1 and n mean, is no sighting.
    rows, slots, places = np.append(row, -1), np.append(slot, 0), np.append(place, np.int32(MISSING))

    def side(nearest: Int64, step: int, other: Int64) -> Side:
        inside = (np.clip(at, -1, n) for at in (nearest, nearest + step, other))
        one, two, three = (np.where(rows[at] == target_row, at, -1) for at in inside)
        return Side(
            near=places[one],
            next=places[two],
            other=places[three],
            gap=np.where(one == -1, 0, np.abs(slots[one] - target_slot)),
            step=np.where(two == -1, 1, np.abs(slots[two] - slots[one])),
        )

    return side(before, -1, begins[np.maximum(before, 0)] - 1), side(after, 1, comes[np.minimum(after + 1, n)])


def course_clues(cases: Cases, target: Int64, place: Int64, atlas: Atlas) -> tuple[Clues, Clues]:
    """How well each candidate lies on the way the user goes, and how fast that is, a value a target."""
    before, after = sides_of(cases)

    def onwards(side: Side) -> Float32:
        ahead = atlas.at(side.near) + side.stride(atlas) * np.minimum(side.gap, _AHEAD)[:, None]
        return ahead.astype(np.float32)

    def speed(side: Side) -> Float64:
        out: Float64 = np.sqrt(np.square(side.stride(atlas)).sum(axis=1))
        return out

    of_candidate: Clues = {
        "km_from": atlas.km(before.other[target], place),
        "km_towards": atlas.km(place, after.other[target]),
        "km_onwards": atlas.km_to(place, onwards(before)[target]),
        "km_backwards": atlas.km_to(place, onwards(after)[target]),
        "km_curve": atlas.km_to(place, _curve(before, after, atlas)[target]),
    }
    return of_candidate, {"speed_prev": speed(before), "speed_next": speed(after)}


def _curve(before: Side, after: Side, atlas: Atlas) -> Float32:
    """(M, 3) where one is at the target's time who leaves and arrives going as one is seen to go: a cubic through both
    sides. NaN where a side is not known."""
    gap = np.maximum(1, before.gap + after.gap).astype(np.float64)[:, None]
    t = before.gap[:, None] / gap

    def leaning(side: Side) -> Float64:
        stride = np.where((side.step <= _LIVELY)[:, None], np.nan_to_num(side.stride(atlas)), 0)
        lean: Float64 = stride * np.minimum(gap, _LIVELY)
        return lean

    point: Float64 = (1 + 2 * t) * (1 - t) ** 2 * atlas.at(before.near) + t**2 * (3 - 2 * t) * atlas.at(after.near)
    point += t * (1 - t) ** 2 * leaning(before) + t**2 * (1 - t) * leaning(after)
    out: Float32 = point.astype(np.float32)
    return out
