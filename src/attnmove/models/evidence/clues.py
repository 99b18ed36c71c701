"""What the visible day and the user's last days say for each place in play, for each target.

Letters as in play.py; P pairs of a target and a place in play of its row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from attnmove.models.compiled import compiled
from attnmove.models.evidence.features import CLOCK_WIDTHS, DAY_DECAYS, DAY_WEIGHTS, FAR, LONG_AGO
from attnmove.models.evidence.pairs import At, Pairs, Told
from attnmove.models.evidence.play import Play
from attnmove.nouns import MISSING, Bool, Float32, Float64, Int64

Clues = dict[str, npt.NDArray[Any]]
"""Values by feature."""

_COUNTED = CLOCK_WIDTHS.index(2.0)
"""Sightings around the target's time are counted in a window of this width."""
_PROMISING = {"all": 2.0, "recent": 6.0, "alike": 6.0}
"""Shares that count for a place's promise, by the weight of the days, with the width of the window."""


def day_clues(play: Play, pairs: Pairs, told: Told) -> None:
    """Where the user is seen today, and how far away in time."""
    seen, visible = play.seen_today, play.visible != MISSING
    distance = apart(play.n_slots)
    kernel = exact(np.concatenate([np.exp(-distance / decay) for decay in DAY_DECAYS], axis=1))  # (T, decays * T)
    share = seen.sum(axis=1) / np.maximum(1, visible.sum(axis=1))[play.row]
    _tell_day(pairs.at, seen, share, seen @ kernel, visible @ kernel, told.since(f"day_{DAY_DECAYS[0]}"))


@compiled
def _tell_day(at: At, seen: Float64, share: Float64, here: Float64, everywhere: Float64, values: Float32) -> None:
    """`here` (E, decays * T) and `everywhere` (R, decays * T) are today's sightings, fading in time."""
    n_slots = seen.shape[1]
    n_decays = here.shape[1] // n_slots
    for m in range(len(at.row)):
        row, slot = at.row[m], at.slot[m]
        for p in range(at.start[m], at.start[m + 1]):
            entry = p - at.offset[m]
            for i in range(n_decays):
                values[p, i] = here[entry, i * n_slots + slot] / (everywhere[row, i * n_slots + slot] + 0.05)
            values[p, n_decays] = here[entry, slot]
            values[p, n_decays + 1] = share[entry]
            values[p, n_decays + 2 : n_decays + 4] = FAR
            if share[entry] == 0:
                continue
            for before in range(slot, -1, -1):
                if seen[entry, before]:
                    values[p, n_decays + 2] = slot - before
                    break
            for after in range(slot, n_slots):
                if seen[entry, after]:
                    values[p, n_decays + 3] = after - slot
                    break


class Cells(NamedTuple):
    """When the user was at each place in play on the last days, by row."""

    begin: Int64
    """(R + 1,) the cells of row r are begin[r] … begin[r + 1] - 1."""
    entry: Int64
    slot: Int64
    weight: Float64
    """(cells, weights) the sightings there and then, by what their days count."""


def past_clues(play: Play, pairs: Pairs, told: Told) -> None:
    """How much each place was visited on the last days, around the target's time, under several weightings of days."""
    fixes, t = play.fixes, play.n_slots
    cell, which = np.unique(fixes.entry * t + fixes.slot, return_inverse=True)
    weight = np.stack([of_day[fixes.row, fixes.day] for of_day in _day_weights(play).values()], axis=1)
    cells = Cells(np.searchsorted(cell, play.start * t), cell // t, cell % t, _sums(which, weight, len(cell)))
    ever_here = _sums(cells.entry, cells.weight, len(play.place))  # (E, weights)
    ever = _sums(play.row, ever_here, len(play.visible))  # (R, weights)
    kernel = np.stack([exact(np.exp(-0.5 * (np.arange(t) / width) ** 2)) for width in CLOCK_WIDTHS])
    counted = np.array([[_PROMISING.get(name) == width for width in CLOCK_WIDTHS] for name in DAY_WEIGHTS])
    first = told.since(f"past_{DAY_WEIGHTS[0]}_{CLOCK_WIDTHS[0]}")
    _tell_past(pairs.at, cells, kernel, ever_here, ever, counted, first, told.of("past_count"), told.promise)
    _tell_habits(pairs.at, _habits(play), told.since("days_since"))


def _sums(group: Int64, weight: Float64, n_groups: int) -> Float64:
    """(n_groups, weights) the weights (n, weights) of each group, added up."""
    sums = [np.bincount(group, mine, n_groups) for mine in weight.T]
    return np.stack(sums, axis=1).astype(np.float64, copy=False)


@compiled
def _tell_past(
    at: At,
    cells: Cells,
    kernel: Float64,
    ever_here: Float64,
    ever: Float64,
    promising: Bool,
    values: Float32,
    count: Float32,
    promise: Float64,
) -> None:
    """`kernel` (widths, T) tells what a sighting counts by how many slots of the clock it is off; the `promising`
    (weights, widths) shares are promises, and that of all sightings."""
    n_weights, n_widths = promising.shape
    for m in range(len(at.row)):
        row, slot, first = at.row[m], at.slot[m], at.start[m]
        n = at.start[m + 1] - first
        here, everywhere = np.zeros((n, n_widths, n_weights)), np.zeros((n_widths, n_weights))
        for c in range(cells.begin[row], cells.begin[row + 1]):
            p, off = cells.entry[c] + at.offset[m] - first, abs(cells.slot[c] - slot)
            for i in range(n_widths):
                if kernel[i, off] > 0:
                    for w in range(n_weights):
                        weight = cells.weight[c, w] * kernel[i, off]
                        here[p, i, w] += weight
                        everywhere[i, w] += weight
        for p in range(n):
            for w in range(n_weights):
                for i in range(n_widths):
                    share = here[p, i, w] / (everywhere[i, w] + 0.3)
                    values[first + p, w * n_widths + i] = share
                    if promising[w, i]:
                        promise[first + p] += share
            entry = first + p - at.offset[m]
            for w in range(n_weights):
                values[first + p, n_weights * n_widths + w] = ever_here[entry, w] / (ever[row, w] + 1)
            promise[first + p] += ever_here[entry, 0] / (ever[row, 0] + 1)
            count[first + p] = here[p, _COUNTED, 0]


def _day_weights(play: Play) -> dict[str, Float64]:
    """(R, W) what each of the last days counts."""
    last = play.last
    counts: dict[str, tuple[Bool, Float64]] = {
        "all": (last.there, np.zeros(last.age.shape)),
        "recent": (last.there, -last.age / 7.0),
        "weekday": (last.same_weekday, -last.age / 60.0),
        "kind": (last.same_kind, -last.age / 30.0),
        "alike": (last.there, 6.0 * play.resemblance - last.age / 60.0),
    }
    return {name: exact(np.where(counts[name][0], np.exp(counts[name][1]), 0)) for name in DAY_WEIGHTS}


class Habits(NamedTuple):
    """When and how long the user was at each place in play, and whether just before today."""

    since: Float64
    """(E,) days."""
    n_days: Int64
    known_days: Int64
    """(R,)"""
    dwell: Float64
    """(E,) how often still there one slot later."""
    lately: Float64
    """(E,) sightings, fading over two hours into the first slot of today."""
    fading: Float64
    """(T,) what is left of that."""
    half_day: Float64
    """(E,) sightings, fading over half a day."""
    half_day_all: Float64
    """(R,)"""


def _habits(play: Play) -> Habits:
    fixes, t, n = play.fixes, play.n_slots, len(play.place)
    was_there = np.zeros((n, play.then.shape[1]), dtype=np.bool_)  # (E, W)
    was_there[fixes.entry, fixes.day] = True
    last_age = play.last.age[play.row, was_there.argmax(axis=1)]
    since = np.where(was_there.any(axis=1), np.minimum(last_age, LONG_AGO), LONG_AGO)
    now, later = play.then[:, :, :-1], play.then[:, :, 1:]
    tried, stayed = (now != MISSING) & (later != MISSING), (now != MISSING) & (now == later)
    stays = np.bincount(now[stayed], minlength=n) + 1
    tries = np.bincount(now[tried], minlength=n) + 2
    slots_ago = play.last.age[fixes.row, fixes.day] * t - fixes.slot  # at the first slot of today
    two_hours = t / 12
    lately = np.bincount(fixes.entry, np.exp(-np.minimum(slots_ago / two_hours, 500)), n).astype(np.float64)
    half_day = np.bincount(fixes.entry, np.exp(-np.minimum(slots_ago / (6 * two_hours), 500)), n).astype(np.float64)
    return Habits(
        since=since,
        n_days=was_there.sum(axis=1),
        known_days=play.last.there.sum(axis=1),
        dwell=stays / tries,
        lately=lately,
        fading=np.exp(-np.arange(t) / two_hours),
        half_day=half_day,
        half_day_all=np.bincount(play.row, half_day, len(play.visible)).astype(np.float64),
    )


@compiled
def _tell_habits(at: At, habits: Habits, values: Float32) -> None:
    for m in range(len(at.row)):
        row, slot = at.row[m], at.slot[m]
        for p in range(at.start[m], at.start[m + 1]):
            entry = p - at.offset[m]
            values[p, 0] = habits.since[entry]
            values[p, 1] = habits.n_days[entry]
            values[p, 2] = habits.n_days[entry] / (habits.known_days[row] + 1)
            values[p, 3] = habits.dwell[entry]
            values[p, 4] = habits.lately[entry] * habits.fading[slot]
            values[p, 5] = habits.half_day[entry] / (habits.half_day_all[row] + 1e-3)


def exact(weights: Float64) -> Float64:
    """The weights in steps of 1/4096.

    Products and sums of such numbers have no rounding error, so that a matrix product gives the same whatever else is
    multiplied in one go; a tree would make a leap of a difference in the last digit.
    """
    return np.round(weights * 4096) / 4096


def apart(n_slots: int) -> Float64:
    """(T, T) slots between two slots."""
    slot = np.arange(n_slots, dtype=np.float64)
    return np.abs(slot[:, None] - slot)
