"""Where the user was on earlier days, around this time, in situations like the target's.

This is the inter-trajectory attention of the paper spelled out: an earlier sighting counts by how similar, in space,
the places before and after it are to those around the target, and by how much its day agrees with today.
Letters as in play.py; P pairs of a target and a place in play of its row, S sightings of the last days within reach of
each target, target by target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnmove.models.compiled import compiled
from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.clues import apart, exact
from attnmove.models.evidence.features import LOCAL_DECAYS
from attnmove.models.evidence.pairs import At, Pairs, Told
from attnmove.models.evidence.play import Play
from attnmove.nouns import MISSING, Float32, Float64, Int32, Int64

_REACH = 8
"""Slots of the clock around the target in which earlier sightings are compared with today."""
_LOCAL_REACH = 2
_NEAR_KM = 0.7
"""Where today is compared with earlier days, places so far apart are a quarter as good as the same one."""
_FADING_SLOTS, _FADING_DAYS = 4.0, 40.0


class Near(NamedTuple):
    """The sightings of the last days within reach of each target."""

    first: Int64
    """(M,) those of target m are the fixes first[m] … end[m] - 1."""
    end: Int64
    begin: Int64
    """(M,) where the first of them stands among the S."""
    entry: Int64
    """(fixes,) which place in play."""
    day: Int64
    slot: Int64


class Worth(NamedTuple):
    """What a sighting counts by when it was, and by how much its day agrees with today around the target."""

    age: Float64
    """(R, W) by its day."""
    clock: Float64
    """By slots of the clock to the target."""
    close: Float64
    """The same, where agreement counts."""
    agrees: Float64
    """(decays, R, W, T)"""


def analogy_clues(asked: Asked, play: Play, pairs: Pairs, atlas: Atlas, told: Told) -> None:
    """The shares of each place in play among the sightings within reach, weighted by likeness to the target."""
    near, t = _near(asked, play), play.n_slots
    sides = np.stack([asked.prev, asked.next])  # (2, M)
    km = atlas.km_to_points(play.place[pairs.entry], atlas.at(sides), pairs.target)  # (2, P)
    fading = 0.7 * np.exp(-np.nan_to_num(km, nan=np.inf) / _NEAR_KM)
    same = play.place[pairs.entry] == sides[:, pairs.target]
    alike = np.where(same, 1.0, fading).astype(np.float32)
    away = np.where(sides == MISSING, 2 * t, np.stack([-asked.gap_prev, asked.gap_next]))
    n = int((near.end - near.first).sum())
    likeness = np.empty((2, n), dtype=np.float32)
    _compare(pairs.at, near, play.then, alike, away, likeness)
    both: Float32 = np.exp(3.0 * (likeness[0] + likeness[1]))
    _tell_analogies(pairs.at, near, likeness, both, _worth(play), told.since(f"local_{LOCAL_DECAYS[0]}"), told.promise)


def _near(asked: Asked, play: Play) -> Near:
    fixes = play.fixes
    first, end = fixes.between(asked.row, asked.slot, _REACH, play.n_slots)
    return Near(first, end, np.cumsum(end - first) - (end - first), fixes.entry, fixes.day, fixes.slot)


def _worth(play: Play) -> Worth:
    distance = apart(play.n_slots)
    agrees = []
    for decay in LOCAL_DECAYS:
        kernel = exact(np.exp(-distance / decay))
        same, other = (part.astype(np.float64) @ kernel for part in play.agreement)  # (R, W, T)
        agrees.append(np.exp(2.0 * same - other))
    return Worth(
        age=np.exp(-play.last.age / _FADING_DAYS),
        clock=np.exp(-np.arange(_REACH + 1) / _FADING_SLOTS),
        close=np.exp(-0.5 * np.arange(_LOCAL_REACH + 1) ** 2),
        agrees=np.stack(agrees),
    )


@compiled
def _compare(at: At, near: Near, then: Int32, alike: Float32, away: Int64, likeness: Float32) -> None:
    """(2, S) how similar the place as far before, or after, each sighting is to that before, or after, the target.

    From 0 to 1; a slot off matters little. `alike` (2, P) tells the places in play, `away` (2, M) is how far the place
    before, or after, the target is.
    """
    n_slots = then.shape[2]
    for m in range(len(at.row)):
        row, offset = at.row[m], at.offset[m]
        for i in range(near.end[m] - near.first[m]):
            fix = near.first[m] + i
            day = then[row, near.day[fix]]
            for side in range(2):
                there, best = near.slot[fix] + away[side, m], np.float32(0)
                for step in range(-1, 2):
                    if 0 <= there + step < n_slots and day[there + step] != MISSING:
                        worth = np.float32(1.0) if step == 0 else np.float32(0.8)
                        best = max(best, worth * alike[side, offset + day[there + step]])
                likeness[side, near.begin[m] + i] = best


@compiled
def _tell_analogies(
    at: At, near: Near, likeness: Float32, both: Float32, worth: Worth, values: Float32, promise: Float64
) -> None:
    n_decays = len(worth.agrees)
    for m in range(len(at.row)):
        row, slot, first = at.row[m], at.slot[m], at.start[m]
        n = at.start[m + 1] - first
        sums, total = np.zeros((n, n_decays + 5)), np.zeros(n_decays + 5)
        weight = np.zeros(n_decays + 5)
        for i in range(near.end[m] - near.first[m]):
            fix, s = near.first[m] + i, near.begin[m] + i
            day, off = near.day[fix], abs(near.slot[fix] - slot)
            recent, clock = worth.age[row, day], worth.clock[off]
            before, after = likeness[0, s], likeness[1, s]
            for d in range(n_decays):
                weight[d] = worth.agrees[d, row, day, slot] * worth.close[off] if off < len(worth.close) else 0.0
            weight[n_decays] = before * recent
            weight[n_decays + 1] = after * recent
            weight[n_decays + 2] = both[s] * clock * recent
            weight[n_decays + 3] = (before + after) * clock * recent
            weight[n_decays + 4] = (before * after) * recent
            pair = near.entry[fix] + at.offset[m] - first
            for k in range(n_decays + 5):
                sums[pair, k] += weight[k]
                total[k] += weight[k]
        for p in range(n):
            for k in range(n_decays + 5):
                # What is added to the whole keeps shares of next to nothing small.
                share = sums[p, k] / (total[k] + (0.5 if k < n_decays else 0.05))
                values[first + p, k] = share
                if n_decays <= k < n_decays + 3:
                    promise[first + p] += share
