"""What the visible day and the user's last days say for each place in play, for each target.

Letters as in play.py; P pairs of a target and a place in play of its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.features import (
    CLOCK_WIDTHS,
    DAY_DECAYS,
    DAY_WEIGHTS,
    FAR,
    LOCAL_DECAYS,
    LONG_AGO,
)
from attnmove.models.evidence.play import Play
from attnmove.models.habits import spread
from attnmove.nouns import MISSING, Bool, Float32, Float64, Int32, Int64

Clues = dict[str, npt.NDArray[Any]]
"""Values by feature, one a pair."""

_REACH = 8
"""Slots of the clock around the target in which earlier sightings are compared with today."""
_LOCAL_REACH = 2
_NEAR_KM = 0.7
"""Where today is compared with earlier days, places so far apart are a quarter as good as the same one."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every target with every place in play of its row."""

    target: Int64
    entry: Int64
    start: Int64
    """(M + 1,) the pairs of a target."""
    offset: Int64
    """(M,) what to add to an entry of the target's row to get its pair."""

    @classmethod
    def of(cls, asked: Asked, play: Play) -> Pairs:
        first, end = play.start[asked.row], play.start[asked.row + 1]
        target, entry = spread(first, end)
        start = np.concatenate([[0], np.cumsum(end - first)])
        return cls(target, entry, start, start[:-1] - first)

    def __len__(self) -> int:
        return len(self.target)


def day_clues(asked: Asked, play: Play, pairs: Pairs) -> Clues:
    """Where the user is seen today, and how far away in time."""
    slot, seen = asked.slot[pairs.target], play.seen_today
    row = asked.row[pairs.target]
    distance = _apart(play.n_slots)
    clues: Clues = {}
    for decay in DAY_DECAYS:
        kernel = _exact(np.exp(-distance / decay))
        weight = (seen @ kernel)[pairs.entry, slot]
        total = ((play.visible != MISSING) @ kernel)[row, slot]
        clues[f"day_{decay}"] = weight / (total + 0.05)
        if decay == DAY_DECAYS[0]:
            clues["day_weight"] = weight
    count, n_seen = seen.sum(axis=1), (play.visible != MISSING).sum(axis=1)
    clues["day_share"] = count[pairs.entry] / np.maximum(1, n_seen)[row]
    slots = np.arange(play.n_slots, dtype=np.int32)
    since = np.maximum.accumulate(np.where(seen > 0, slots, np.int32(-1)), axis=1)[pairs.entry, slot]
    until = np.minimum.accumulate(np.where(seen > 0, slots, np.int32(9999))[:, ::-1], axis=1)[:, ::-1]
    until = until[pairs.entry, slot]
    clues["since_seen"] = np.where(since < 0, FAR, slot - since)
    clues["until_seen"] = np.where(until == 9999, FAR, until - slot)
    return clues


def past_clues(asked: Asked, play: Play, pairs: Pairs) -> Clues:
    """How much each place was visited on the last days, around the target's time, under several weightings of days."""
    slot, row = asked.slot[pairs.target], asked.row[pairs.target]
    fixes, t, n_rows = play.fixes, play.n_slots, len(play.visible)
    kernels = [np.exp(-0.5 * (_apart(t) / width) ** 2) for width in CLOCK_WIDTHS]
    kernel = _exact(np.concatenate(kernels, axis=1))  # (T, widths * T)
    at_place, at_row = (number * kernel.shape[1] + slot for number in (pairs.entry, row))  # in the flat tables below
    clues: Clues = {}
    for name, of_day in _day_weights(play).items():
        weight = of_day[fixes.row, fixes.day]
        table = np.bincount(fixes.entry * t + fixes.slot, weight, len(play.place) * t).reshape(-1, t)
        totals = np.bincount(fixes.row * t + fixes.slot, weight, n_rows * t).reshape(-1, t)
        here, all_here = (table @ kernel).ravel(), (totals @ kernel).ravel()
        for i, width in enumerate(CLOCK_WIDTHS):
            value = here.take(at_place + i * t)
            clues[f"past_{name}_{width}"] = value / (all_here.take(at_row + i * t) + 0.3)
            if (name, width) == ("all", 2.0):
                clues["past_count"] = value
        clues[f"past_{name}_day"] = table.sum(axis=1)[pairs.entry] / (totals.sum(axis=1)[row] + 1)
    return clues | _visit_clues(asked, play, pairs)


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
    return {name: _exact(np.where(counts[name][0], np.exp(counts[name][1]), 0)) for name in DAY_WEIGHTS}


def _visit_clues(asked: Asked, play: Play, pairs: Pairs) -> Clues:
    """When and how long the user was there, and whether just before today."""
    fixes, t, n = play.fixes, play.n_slots, len(play.place)
    w = play.then.shape[1]
    since = np.full(n, LONG_AGO)
    np.minimum.at(since, fixes.entry, play.last.age[fixes.row, fixes.day])
    n_days = np.bincount(np.unique(fixes.entry * w + fixes.day) // w, minlength=n)
    now, later = play.then[:, :, :-1], play.then[:, :, 1:]
    tried, stayed = (now != MISSING) & (later != MISSING), (now != MISSING) & (now == later)
    stays = np.bincount(now[stayed], minlength=n) + 1
    tries = np.bincount(now[tried], minlength=n) + 2
    slots_ago = play.last.age[fixes.row, fixes.day] * t - fixes.slot  # at the first slot of today
    fading = t / 12
    lately = np.bincount(fixes.entry, np.exp(-np.minimum(slots_ago / fading, 500)), n)
    half_day = np.bincount(fixes.entry, np.exp(-np.minimum(slots_ago / (6 * fading), 500)), n)
    of_row = np.bincount(play.row, half_day, len(play.visible))
    row, entry = asked.row[pairs.target], pairs.entry
    known = play.last.there.sum(axis=1)
    return {
        "days_since": since[entry],
        "n_days": n_days[entry],
        "share_of_days": n_days[entry] / (known[row] + 1),
        "dwell": (stays / tries)[entry],
        "evening": lately[entry] * np.exp(-asked.slot[pairs.target] / fading),
        "evening_share": half_day[entry] / (of_row[row] + 1e-3),
    }


def analogy_clues(asked: Asked, play: Play, pairs: Pairs, atlas: Atlas) -> Clues:
    """Where the user was on earlier days, around this time, in situations like the target's.

    Notes
    -----
    This is the inter-trajectory attention of the paper spelled out: an earlier sighting counts by how similar, in
    space, the places before and after it are to those around the target, and by how much its day agrees with today.
    """
    fixes, t = play.fixes, play.n_slots
    target, fix = fixes.around(asked.row, asked.slot, _REACH, t)
    row, day, slot = fixes.row[fix], fixes.day[fix], fixes.slot[fix]
    pair = pairs.offset[target] + fixes.entry[fix]
    before, after = (
        _likeness(play, pairs, atlas, side, target, row, day, slot + step[target])
        for side, step in (
            (asked.prev[pairs.target], np.where(asked.prev == MISSING, 2 * t, -asked.gap_prev)),
            (asked.next[pairs.target], np.where(asked.next == MISSING, 2 * t, asked.gap_next)),
        )
    )
    apart = np.abs(slot - asked.slot[target])
    recent = np.exp(-play.last.age[row, day] / 40.0)
    clock = np.exp(-apart / 4.0)
    weights = {
        "after_prev": before * recent,
        "before_next": after * recent,
        "analogy": np.exp(3.0 * (before + after)) * clock * recent,
        "analogy_either": (before + after) * clock * recent,
        "analogy_both": before * after * recent,
    }
    clues = {name: _shares(pair, target, weight, pairs, 0.05) for name, weight in weights.items()}
    near = apart <= _LOCAL_REACH
    pair, target, row, day = pair[near], target[near], row[near], day[near]
    close = np.exp(-0.5 * apart[near] ** 2)
    for decay in LOCAL_DECAYS:
        kernel = _exact(np.exp(-_apart(t) / decay))
        same, other = (part.astype(np.float64) @ kernel for part in play.agreement)  # (R, W, T)
        agrees = np.exp(2.0 * same - other)[row, day, asked.slot[target]]
        clues[f"local_{decay}"] = _shares(pair, target, agrees * close, pairs, 0.5)
    return clues


def _likeness(
    play: Play, pairs: Pairs, atlas: Atlas, side: Int32, target: Int64, row: Int64, day: Int64, slot: Int64
) -> Float32:
    """How similar the places at (row, day, slot) are to a side of the target, 0 to 1; a slot off matters little."""
    place = play.place[pairs.entry]
    km = np.nan_to_num(atlas.km(place, side), nan=np.inf)
    alike = np.where(place == side, 1.0, 0.7 * np.exp(-km / _NEAR_KM)).astype(np.float32)
    alike[side == MISSING] = 0
    best = np.zeros(len(slot), dtype=np.float32)
    for off, worth in ((0, 1.0), (-1, 0.8), (1, 0.8)):
        at = slot + off
        inside = (at >= 0) & (at < play.n_slots)
        entry = play.then[row, day, np.clip(at, 0, play.n_slots - 1)]
        there = inside & (entry != MISSING)
        best[there] = np.maximum(best[there], np.float32(worth) * alike[pairs.offset[target[there]] + entry[there]])
    return best


def _shares(pair: Int64, target: Int64, weight: npt.NDArray[Any], pairs: Pairs, calm: float) -> Float64:
    """(P,) the share of each pair in its target's weight; `calm` keeps shares of next to nothing small."""
    of_pair = np.bincount(pair, weight, len(pairs))
    of_target = np.bincount(target, weight, len(pairs.start) - 1)
    return of_pair / (of_target[pairs.target] + calm)


def _exact(weights: Float64) -> Float64:
    """The weights in steps of 1/4096.

    Products and sums of such numbers have no rounding error, so that a matrix product gives the same whatever else is
    multiplied in one go; a tree would make a leap of a difference in the last digit.
    """
    return np.round(weights * 4096) / 4096


def _apart(n_slots: int) -> Float64:
    """(T, T) slots between two slots."""
    slot = np.arange(n_slots, dtype=np.float64)
    return np.abs(slot[:, None] - slot)
