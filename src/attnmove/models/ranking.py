"""The first few of each group: group g is start[g] … start[g + 1] - 1 of what is ranked."""

from __future__ import annotations

import numpy as np

from attnmove.models.compiled import compiled
from attnmove.nouns import MISSING, Bool, Float64, Int64


def heaviest(start: Int64, weight: Float64, *, most: int) -> Bool:
    """True at the `most` heaviest of each group, of equals the first, and at all of endless weight."""
    kept = np.ones(len(weight), dtype=np.bool_)
    _drop_lighter(start, weight, most, kept)
    return kept


def leading(start: Int64, score: Float64, *, most: int) -> Int64:
    """(G, most) those of the highest scores of each group, the best first, of equals the first; MISSING beyond the
    last."""
    best = np.full((len(start) - 1, most), MISSING)
    _lead(start, score, best)
    return best


def leading_of(some: Int64, score: Float64, *, most: int) -> Int64:
    """(G, most) the same among some (G, k) of each group, MISSING beyond the last; of equals the lower one."""
    best = np.full((len(some), most), MISSING)
    _lead_of(some, score, best)
    return best


@compiled
def _drop_lighter(start: Int64, weight: Float64, most: int, kept: Bool) -> None:
    for g in range(len(start) - 1):
        n = start[g + 1] - start[g]
        if n <= most:
            continue
        mine = weight[start[g] : start[g + 1]]
        least = np.partition(mine, n - most)[n - most]
        left = most - (mine > least).sum()
        for i in range(n):
            level = mine[i] == least
            kept[start[g] + i] = mine[i] == np.inf or mine[i] > least or (level and left > 0)
            left -= level


@compiled
def _insert(best: Int64, n: int, one: int, score: Float64) -> int:
    """Put one where it belongs among the first n of the best, if anywhere; how many there are then."""
    at = n
    while at > 0 and (score[one] > score[best[at - 1]] or (score[one] == score[best[at - 1]] and one < best[at - 1])):
        at -= 1
    if at == len(best):
        return n
    for later in range(min(n, len(best) - 1), at, -1):
        best[later] = best[later - 1]
    best[at] = one
    return min(n + 1, len(best))


@compiled
def _lead(start: Int64, score: Float64, best: Int64) -> None:
    for g in range(len(start) - 1):
        n = 0
        for one in range(start[g], start[g + 1]):
            n = _insert(best[g], n, one, score)


@compiled
def _lead_of(some: Int64, score: Float64, best: Int64) -> None:
    for g in range(len(some)):
        n = 0
        for one in some[g]:
            if one != MISSING:
                n = _insert(best[g], n, one, score)
