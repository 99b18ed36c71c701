"""What lies around a candidate: places of today and of the last days that are not the candidate, but near it.

A phone near the edge of a location is now here, now next door; what speaks for a place speaks for its neighbours too.
Letters as in play.py; U candidates of a row, those of all its targets; P places in play of a row.
"""

from __future__ import annotations

import numpy as np

from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.clues import Asked, Clues, Pairs, exact
from attnmove.models.evidence.features import NEAR, NEAR_KM
from attnmove.models.evidence.play import Play
from attnmove.nouns import MISSING, Float32, Float64, Int64


def nearby_clues(asked: Asked, play: Play, pairs: Pairs, mine: Clues, key: Int64, atlas: Atlas) -> tuple[Clues, Clues]:
    """What is near each candidate, and what kind of life the user of each target leads.

    Parameters
    ----------
    mine
        What the day and the past say for each place in play, one value a pair.
    key
        (E,) target * L + place of the candidates, ascending.
    """
    n = len(atlas.known)
    target, place = np.divmod(key, n)
    row = asked.row[target]
    of_row, candidate = np.unique(row * n + place, return_inverse=True)
    u_row, u = of_row // n, _within(of_row // n)
    p = _within(play.row)
    km = _distances(play, of_row, atlas)  # (R, U, P)
    there = np.zeros((len(play.visible), km.shape[2]), dtype=np.int64)
    there[play.row, p] = play.place
    itself = np.zeros(km.shape, dtype=np.bool_)
    itself[u_row, u] = there[u_row] == (of_row % n)[:, None]
    clues = _sums_around(asked, play, pairs, mine, _fading(km, itself), (u_row[candidate], u[candidate], target))
    today = np.zeros(there.shape, dtype=np.bool_)
    today[play.row, p] = play.seen_today.any(axis=1)
    others = np.where(today[:, None] & ~itself & ~np.isnan(km), km, np.float32(np.inf))
    nearest = others.min(axis=2)[u_row, u][candidate]
    clues["km_today"] = np.where(np.isinf(nearest), np.nan, nearest)
    count = np.bincount(play.fixes.entry, minlength=len(play.place))
    homes = _most_visited(play, count)
    for name, home in zip(("km_home", "km_second"), homes, strict=True):
        clues[name] = np.where(home[row] == MISSING, np.nan, km[row, u[candidate], np.append(p, 0)[home[row]]])
    return clues, _life(asked, play, count, homes[0], atlas)


def _within(group: Int64) -> Int64:
    """0, 1, 2, … within each group; groups ascend."""
    return np.arange(len(group)) - np.searchsorted(group, group)


def _distances(play: Play, of_row: Int64, atlas: Atlas) -> Float32:
    """(R, U, P) kilometres between candidates and places in play of a row; NaN where a centre is not known."""
    n, n_rows = len(atlas.known), len(play.visible)
    sides = []
    for row, place in ((of_row // n, of_row % n), (play.row, play.place)):
        within = _within(row)
        side = np.full((3, n_rows, int(within.max(initial=0)) + 1), np.nan, dtype=np.float32)
        side[:, row, within] = np.where(atlas.known[place], atlas.position_km[place].T, np.float32(np.nan))
        sides.append(side)
    squares = np.zeros((n_rows, sides[0].shape[2], sides[1].shape[2]), dtype=np.float32)
    for one, other in zip(*sides, strict=True):
        squares += np.square(one[:, :, None] - other[:, None])
    return np.sqrt(squares)


def _fading(km: Float32, itself: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> dict[float, Float64]:
    """(R, U, P) what a place in play counts for a candidate, by how far it fades; nothing where it is the candidate."""
    narrow, wide = NEAR_KM
    slowly = np.where(itself, np.float32(0), np.nan_to_num(np.exp(km / np.float32(-wide))))
    return {narrow: exact(np.square(np.square(slowly)).astype(np.float64)), wide: exact(slowly.astype(np.float64))}


def _sums_around(
    asked: Asked,
    play: Play,
    pairs: Pairs,
    mine: Clues,
    fading: dict[float, Float64],
    at: tuple[Int64, Int64, Int64],
) -> Clues:
    """The numbers of the places in play around each candidate, added up; candidates are (row, which of the row's,
    target)."""
    number, k = _within(asked.row), len(NEAR)
    n_rows, _, n_places = next(iter(fading.values())).shape
    table = np.zeros((n_rows, n_places, (int(number.max(initial=0)) + 1) * k))  # the numbers of a row's targets
    of_pair = asked.row[pairs.target], _within(play.row)[pairs.entry], number[pairs.target] * k
    row, which, target = at
    for i, name in enumerate(NEAR):
        table[of_pair[0], of_pair[1], of_pair[2] + i] = exact(mine[name].astype(np.float64))
    clues: Clues = {}
    for km, kernel in fading.items():
        sums = kernel @ table
        clues |= {f"near_{name}_{km}": sums[row, which, number[target] * k + i] for i, name in enumerate(NEAR)}
    return clues


def _most_visited(play: Play, count: Int64) -> tuple[Int64, Int64]:
    """(R,) twice: the entries of the places with the most and the second most sightings on the last days, of equals
    the lower id; MISSING where there is none."""
    order = np.lexsort((-count, play.row))
    rank = _within(play.row)
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
