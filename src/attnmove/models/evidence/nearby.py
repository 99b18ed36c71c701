"""What lies around a candidate: places of today and of the last days that are not the candidate, but near it.

A phone near the edge of a location is now here, now next door; what speaks for a place speaks for its neighbours too.
Letters as in play.py; U candidates of a row, those of all its targets; P places in play of a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.clues import Clues
from attnmove.models.evidence.crowd import found
from attnmove.models.evidence.features import NEAR, NEAR_KM
from attnmove.models.evidence.pairs import Pairs, Told
from attnmove.models.evidence.play import Play
from attnmove.nouns import MISSING, Bool, Float32, Int64

_FAR_KM = np.float32(1e5)
"""Farther than any two places: how far one is whose centre is not known."""
_VALUE_STEPS, _FADING_STEPS = np.float32(4096), np.float32(2048)
"""A share in steps of the one times a weight in steps of the other, added up over places whose shares sum to one, is a
whole number that 32 bits hold: sums have no rounding error, whatever else is multiplied in one go."""


def nearby_clues(asked: Asked, play: Play, pairs: Pairs, told: Told, key: Int64, atlas: Atlas) -> tuple[Clues, Clues]:
    """What is near each candidate, and what kind of life the user of each target leads.

    Parameters
    ----------
    told
        What the day and the past say for each place in play.
    key
        (E,) target * L + place of the candidates, ascending.
    """
    n, n_rows = len(atlas.known), len(play.visible)
    target, place = np.divmod(key, n)
    row_place, at = np.unique(asked.row[target] * n + place, return_inverse=True)
    candidates = Rows.of(*np.divmod(row_place, n))
    places = Rows.of(play.row, play.place)
    km = candidates.km_to(places, n_rows, atlas)
    same, own = found(row_place, play.row * n + play.place)
    itself = candidates.row[same[own]], candidates.number[same[own]], places.number[own]
    clues = _sums_around(asked, pairs, told, _fading(km, itself), candidates, places, target, at)
    today = places.only(np.asarray(play.seen_today.any(axis=1)))
    clues["km_today"] = _to_another(candidates, today, n_rows, atlas)[at]
    count = np.bincount(play.fixes.entry, minlength=len(play.place))
    homes = _most_visited(play, count)
    for name, home in zip(("km_home", "km_second"), homes, strict=True):
        of_row = home[candidates.row]
        there = km[candidates.row, candidates.number, np.append(places.number, 0)[of_row]]
        clues[name] = np.where((of_row == MISSING) | (there >= _FAR_KM), np.nan, there)[at]
    return clues, _life(asked, play, count, homes[0], atlas)


@dataclass(frozen=True, eq=False)
class Rows:
    """Places of rows, row by row."""

    row: Int64
    place: Int64
    number: Int64
    """0, 1, 2, … within each row."""

    @classmethod
    def of(cls, row: Int64, place: Int64) -> Rows:
        return cls(row, place, _within(row))

    def only(self, some: Bool) -> Rows:
        """Those of the places."""
        return Rows.of(self.row[some], self.place[some])

    @property
    def most(self) -> int:
        """Places of a row at most, but one at least."""
        return int(self.number.max(initial=0)) + 1

    def km_to(self, others: Rows, n_rows: int, atlas: Atlas) -> Float32:
        """(n_rows, most, others.most) kilometres between the places of a row and the others of the row; very many where
        a centre is not known or there are fewer places."""
        one, other = self._positions(n_rows, 2 * _FAR_KM, atlas), others._positions(n_rows, -2 * _FAR_KM, atlas)
        squares = np.zeros((n_rows, self.most, others.most), dtype=np.float32)
        for x, y in zip(one, other, strict=True):
            apart = x[:, :, None] - y[:, None]
            squares += np.square(apart, out=apart)
        return np.sqrt(squares, out=squares)

    def _positions(self, n_rows: int, unknown: np.float32, atlas: Atlas) -> Float32:
        """(3, n_rows, most)"""
        out = np.full((3, n_rows, self.most), unknown, dtype=np.float32)
        known = atlas.known[self.place]
        out[:, self.row[known], self.number[known]] = atlas.position_km[self.place[known]].T
        return out


def _within(group: Int64) -> Int64:
    """0, 1, 2, … within each group; groups ascend."""
    return np.arange(len(group)) - np.searchsorted(group, group)


def _fading(km: Float32, itself: tuple[Int64, Int64, Int64]) -> dict[float, Float32]:
    """(R, U, P) what a place in play counts for a candidate, by how far it fades, in whole steps; nothing where it is
    the candidate."""
    narrow, wide = NEAR_KM
    slowly = np.exp(km / np.float32(-wide))
    slowly[itself] = 0
    fast = np.square(np.square(slowly))
    return {far: np.rint(np.multiply(k, _FADING_STEPS, out=k), out=k) for far, k in ((narrow, fast), (wide, slowly))}


def _sums_around(
    asked: Asked,
    pairs: Pairs,
    told: Told,
    fading: dict[float, Float32],
    candidates: Rows,
    places: Rows,
    target: Int64,
    at: Int64,
) -> Clues:
    """The numbers of the places in play around each candidate, added up: for each `target` and which of the
    `candidates` it is about."""
    number, k = _within(asked.row), len(NEAR)
    n_rows, n_candidates, n_places = next(iter(fading.values())).shape
    width = (int(number.max(initial=0)) + 1) * k
    table = np.zeros(n_rows * n_places * width, dtype=np.float32)  # the numbers of a row's targets, place by place
    cell = (asked.row[pairs.target] * n_places + places.number[pairs.entry]) * width + number[pairs.target] * k
    for i, name in enumerate(NEAR):
        table[cell + i] = np.rint(told.of(name) * _VALUE_STEPS)
    wanted = (candidates.row[at] * n_candidates + candidates.number[at]) * width + number[target] * k
    clues: Clues = {}
    for km, weights in fading.items():
        sums = (weights @ table.reshape(n_rows, n_places, width)).ravel()
        clues |= {
            f"near_{name}_{km}": sums.take(wanted + i) / (_VALUE_STEPS * _FADING_STEPS) for i, name in enumerate(NEAR)
        }
    return clues


def _to_another(candidates: Rows, today: Rows, n_rows: int, atlas: Atlas) -> Float32:
    """Kilometres from each candidate to the nearest place of today that is another one; NaN where there is none."""
    km = candidates.km_to(today, n_rows, atlas)[candidates.row, candidates.number]
    place = np.full((n_rows, today.most), MISSING)
    place[today.row, today.number] = today.place
    nearest = np.where(place[candidates.row] == candidates.place[:, None], _FAR_KM, km).min(axis=1)
    return np.where(nearest >= _FAR_KM, np.float32(np.nan), nearest)


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
