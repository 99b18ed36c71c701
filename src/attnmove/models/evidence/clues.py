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


def past_clues(play: Play, pairs: Pairs, told: Told) -> None:
    """How much each place was visited on the last days, around the target's time, under several weightings of days."""
    fixes, t, n, n_rows = play.fixes, play.n_slots, len(play.place), len(play.visible)
    kernels = [np.exp(-0.5 * (apart(t) / width) ** 2) for width in CLOCK_WIDTHS]
    kernel = exact(np.concatenate(kernels, axis=1))  # (T, widths * T)
    at_place, at_row = fixes.entry * t + fixes.slot, fixes.row * t + fixes.slot
    ever_here, ever = np.empty((len(DAY_WEIGHTS), n)), np.empty((len(DAY_WEIGHTS), n_rows))
    for i, (name, of_day) in enumerate(_day_weights(play).items()):
        weight = of_day[fixes.row, fixes.day]
        table = np.bincount(at_place, weight, n * t).reshape(-1, t)
        totals = np.bincount(at_row, weight, n_rows * t).reshape(-1, t)
        promising = CLOCK_WIDTHS.index(_PROMISING[name]) if name in _PROMISING else MISSING
        out = told.since(f"past_{name}_{CLOCK_WIDTHS[0]}")
        _tell_past(pairs.at, table @ kernel, totals @ kernel, promising, out, told.promise)
        ever_here[i], ever[i] = table.sum(axis=1), totals.sum(axis=1)
        if name == DAY_WEIGHTS[0]:
            told.of("past_count")[:] = (table @ kernel)[pairs.entry, _COUNTED * t + pairs.at.slot[pairs.target]]
    _tell_visits(pairs.at, ever_here, ever, told.since(f"past_{DAY_WEIGHTS[0]}_day"), told.promise)
    _tell_habits(pairs.at, _habits(play), told.since("days_since"))


@compiled
def _tell_past(at: At, here: Float64, everywhere: Float64, promising: int, values: Float32, promise: Float64) -> None:
    """`here` (E, widths * T) and `everywhere` (R, widths * T) are sightings around a time of day; the shares of the
    `promising` width count as promise."""
    n_widths = len(CLOCK_WIDTHS)
    n_slots = here.shape[1] // n_widths
    for m in range(len(at.row)):
        row, slot = at.row[m], at.slot[m]
        for i in range(n_widths):
            then = i * n_slots + slot
            around = everywhere[row, then] + 0.3
            for p in range(at.start[m], at.start[m + 1]):
                share = here[p - at.offset[m], then] / around
                values[p, i] = share
                if i == promising:
                    promise[p] += share


@compiled
def _tell_visits(at: At, here: Float64, everywhere: Float64, values: Float32, promise: Float64) -> None:
    """`here` (weights, E) and `everywhere` (weights, R) are sightings at any time; those of all days promise."""
    for m in range(len(at.row)):
        row = at.row[m]
        for p in range(at.start[m], at.start[m + 1]):
            entry = p - at.offset[m]
            for w in range(len(here)):
                values[p, w] = here[w, entry] / (everywhere[w, row] + 1)
            promise[p] += here[0, entry] / (everywhere[0, row] + 1)


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
