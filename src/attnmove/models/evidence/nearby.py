"""What lies around a candidate: places of today and of the last days that are not the candidate, but near it.

A phone near the edge of a location is now here, now next door; what speaks for a place speaks for its neighbours too.
Letters as in play.py; S spots, the different candidates of all targets of a row; N pairs of a spot and a place in play
of its row, spot by spot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from attnmove.models.compiled import compiled
from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.clues import Clues
from attnmove.models.evidence.features import NEAR, NEAR_KM
from attnmove.models.evidence.pairs import At, Pairs, Told
from attnmove.models.evidence.play import Play
from attnmove.nouns import MISSING, Bool, Float32, Int32, Int64

_FAR_KM = np.float32(1e5)
"""Farther than any two places: how far one is whose centre is not known."""
_VALUE_STEPS, _FADING_STEPS = np.float32(4096), np.float32(2048)
"""Shares in steps of the one are added up with weights in steps of the other, as whole numbers: a tree would make a
leap of a rounding error."""


class Spots(NamedTuple):
    """The different candidates of each row, ascending."""

    row: Int64
    place: Int64
    begin: Int64
    """(S + 1,) the N pairs of a spot are begin[s] … begin[s + 1] - 1."""


class Known(NamedTuple):
    """What is known of the places in play."""

    start: Int64
    """(R + 1,)"""
    place: Int64
    today: Bool
    """(E,) whether it is visible today."""
    homes: Int64
    """(2, R) which of them the user was at most and second most; MISSING where there is none."""


def nearby_clues(asked: Asked, play: Play, pairs: Pairs, told: Told, key: Int64, atlas: Atlas) -> tuple[Clues, Clues]:
    """What is near each candidate, and what kind of life the user of each target leads.

    Parameters
    ----------
    told
        What the day and the past say for each place in play.
    key
        (E,) target * L + place of the candidates, ascending.
    """
    n = len(atlas.known)
    target, place = np.divmod(key, n)
    row_place, spot = np.unique(asked.row[target] * n + place, return_inverse=True)
    row, at = np.divmod(row_place, n)
    spots = Spots(row, at, np.concatenate([[0], np.cumsum(np.diff(play.start)[row])]))
    count = np.bincount(play.fixes.entry, minlength=len(play.place))
    homes = _most_visited(play, count)
    today = play.seen_today.max(axis=1, initial=0) > 0
    known = Known(play.start, play.place, today, np.stack(homes))
    km = np.empty(spots.begin[-1], dtype=np.float32)
    special = np.empty((3, len(row)), dtype=np.float32)
    _measure(spots, known, atlas.position_km, atlas.known, km, special)
    clues: Clues = dict(zip(("km_today", "km_home", "km_second"), special[:, spot], strict=True))
    shares = np.stack([np.rint(told.of(name) * _VALUE_STEPS).astype(np.int32) for name in NEAR])  # (numbers, P)
    sums = np.empty((len(NEAR_KM), len(NEAR), len(key)), dtype=np.int32)
    _add_up(pairs.at, target, spot, spots, _fading(km), shares, sums)
    clues |= {
        f"near_{name}_{width}": sums[i, j].astype(np.float32) / (_VALUE_STEPS * _FADING_STEPS)
        for i, width in enumerate(NEAR_KM)
        for j, name in enumerate(NEAR)
    }
    return clues, _life(asked, play, count, homes[0], atlas)


@compiled
def _measure(spots: Spots, known: Known, position_km: Float32, located: Bool, km: Float32, special: Float32) -> None:
    """(N,) kilometres from each spot to the places in play, endless to itself; (3, S) to the nearest other place of
    today, to home and to the second home, NaN where there is none."""
    for s in range(len(spots.row)):
        here, first = spots.place[s], known.start[spots.row[s]]
        special[:, s] = np.float32(np.nan)
        for i in range(spots.begin[s + 1] - spots.begin[s]):
            there = known.place[first + i]
            far = _FAR_KM
            if located[here] and located[there]:
                x = position_km[here, 0] - position_km[there, 0]
                y = position_km[here, 1] - position_km[there, 1]
                z = position_km[here, 2] - position_km[there, 2]
                far = np.sqrt(x * x + y * y + z * z)
                if known.today[first + i] and here != there and not special[0, s] <= far:
                    special[0, s] = far
                for h in range(2):
                    if known.homes[h, spots.row[s]] == first + i:
                        special[1 + h, s] = far
            km[spots.begin[s] + i] = np.float32(np.inf) if here == there else far


def _fading(km: Float32) -> npt.NDArray[np.int32]:
    """(widths, N) what a place in play counts for a spot, by how far it fades, in whole steps."""
    slowly = np.exp(km / np.float32(-NEAR_KM[1]))
    fast = np.square(np.square(slowly))  # over a fourth of the kilometres
    return np.stack([np.rint(weight * _FADING_STEPS).astype(np.int32) for weight in (fast, slowly)])


@compiled
def _add_up(at: At, target: Int64, spot: Int64, spots: Spots, fading: Int32, shares: Int32, sums: Int32) -> None:
    """(widths, numbers, E) the shares of the places in play around each candidate."""
    for e in range(len(target)):
        first, begin = at.start[target[e]], spots.begin[spot[e]]
        n = spots.begin[spot[e] + 1] - begin
        for i in range(len(fading)):
            weight = fading[i, begin : begin + n]
            for j in range(len(shares)):
                share, total = shares[j, first : first + n], np.int32(0)
                for p in range(n):
                    total = np.int32(total + np.int32(weight[p] * share[p]))  # 32 bits hold it, and are twice as fast
                sums[i, j, e] = total


def _most_visited(play: Play, count: Int64) -> tuple[Int64, Int64]:
    """(R,) twice: the entries of the places with the most and the second most sightings on the last days, of equals
    the lower id; MISSING where there is none."""
    order = np.lexsort((-count, play.row))
    rank = np.arange(len(order)) - play.start[play.row]
    seen = count[order] > 0
    best = np.full((2, len(play.visible)), MISSING)
    for i in (0, 1):
        entry = order[(rank == i) & seen]
        best[i, play.row[entry]] = entry
    return best[0], best[1]


def _life(asked: Asked, play: Play, count: Int64, home: Int64, atlas: Atlas) -> Clues:
    """How far from home the user of each target is on average, and how much at home."""
    n_rows = len(play.visible)
    total = np.bincount(play.row, count, n_rows)
    has = home != MISSING
    base = np.where(has, np.append(play.place, 0)[home], MISSING)
    km = np.nan_to_num(atlas.km(base[play.row], play.place))
    radius = np.bincount(play.row, count * km, n_rows) / np.maximum(1, total)
    known = has & atlas.known[np.maximum(base, 0)]
    share = np.where(has, np.append(count, 0)[home], 0) / np.maximum(1, total)
    return {
        "radius_km": np.where(known, radius, np.nan)[asked.row],
        "home_share": share[asked.row],
    }
