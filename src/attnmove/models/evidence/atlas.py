"""Where locations lie: distances, and the nearest ones through a spatial index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from attnmove.models.compiled import compiled
from attnmove.nouns import EARTH_RADIUS_M, MISSING, Bool, Float32, Int32, Int64, Locations

NEIGHBOURS = 12
"""Nearest locations kept of each one."""
_AROUND_A_POINT = 10
"""Nearest locations of a point between two."""


@dataclass(frozen=True, eq=False)
class Atlas:
    """The centres of L locations, in kilometres from the centre of the Earth; straight through it, which over the
    distances of a day differs from the way along the ground by less than a centre is worth."""

    position_km: Float32
    """(L, 3), 0 where not known."""
    known: Bool
    """(L,)"""

    @classmethod
    def of(cls, locations: Locations) -> Atlas:
        sphere = locations.on_sphere
        known = np.asarray(np.isfinite(sphere).all(axis=1))
        position = np.where(known[:, None], sphere, 0) * EARTH_RADIUS_M / 1000
        return cls(position.astype(np.float32), known)

    @cached_property
    def neighbours(self) -> Int32:
        """(L, NEIGHBOURS) the nearest other locations, the nearest first; MISSING where there are no more."""
        near = np.full((len(self.known), NEIGHBOURS), MISSING, dtype=np.int32)
        ids = self._ids
        k = min(NEIGHBOURS, len(ids) - 1)
        if k > 0:
            found = self._tree.query(self.position_km[ids], k=k + 1, workers=-1)[1]
            # Of locations at one point any may come first, itself too: it is put first, then left out.
            own = found == np.arange(len(ids))[:, None]
            found = np.take_along_axis(found, np.argsort(~own, axis=1, kind="stable"), axis=1)
            near[ids, :k] = ids[found[:, 1:]]
        return near

    @cached_property
    def spacing_km(self) -> Float32:
        """(L,) mean distance to the three nearest others: how large a location is here. NaN where not known."""
        near = self.neighbours[:, :3]
        here = np.repeat(np.arange(len(near))[:, None], near.shape[1], axis=1)
        far = self.km(here, np.maximum(near, 0))
        far = np.where(near == MISSING, np.float32(np.nan), far)
        count = np.isfinite(far).sum(axis=1)
        mean = np.nansum(far, axis=1) / np.maximum(count, 1)
        return np.where(count > 0, mean, np.nan).astype(np.float32)

    def at(self, i: npt.NDArray[Any]) -> Float32:
        """(…, 3) where locations lie; NaN where one is not known or MISSING."""
        return np.where(self._is_known(i)[..., None], self.position_km[i], np.float32(np.nan))

    def km(self, i: npt.NDArray[Any], j: npt.NDArray[Any]) -> Float32:
        """Kilometres between locations, element by element; NaN where one is not known or MISSING."""
        apart = self.position_km[i]
        apart -= self.position_km[j]
        return np.where(self._is_known(i) & self._is_known(j), _length(apart), np.float32(np.nan))

    def km_to(self, i: npt.NDArray[Any], point_km: Float32) -> Float32:
        """Kilometres between locations (E,) and points (E, 3); NaN where a location is not known."""
        return np.where(self._is_known(i), _length(self.position_km[i] - point_km), np.float32(np.nan))

    def km_to_points(self, i: Int64, points_km: Float32, which: Int64) -> Float32:
        """(K, E) kilometres between locations i (E,) and K points each: those of points_km (K, M, 3) at `which` (E,).

        NaN where a location or a point is not known.
        """
        out = np.empty((len(points_km), len(i)), dtype=np.float32)
        _measure(self.position_km, self.known, i, points_km, which, out)
        return out

    def around(self, point_km: Float32) -> Int64:
        """(M, k) the locations nearest to points (M, 3); k is 0 where no location is known."""
        ids = self._ids
        k = min(_AROUND_A_POINT, len(ids))
        if k == 0 or len(point_km) == 0:
            return np.zeros((len(point_km), 0), dtype=np.int64)
        found = self._tree.query(point_km, k=k)[1]
        return ids[np.reshape(found, (len(point_km), k))]

    @cached_property
    def _ids(self) -> Int64:
        return np.flatnonzero(self.known)

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.position_km[self._ids])

    def _is_known(self, i: npt.NDArray[Any]) -> Bool:
        known: Bool = self.known[i] & (i != MISSING)
        return known


def _length(vector: Float32) -> Float32:
    out: Float32 = np.sqrt(np.einsum("...i,...i->...", vector, vector))
    return out


@compiled
def _measure(position_km: Float32, known: Bool, i: Int64, points_km: Float32, which: Int64, km: Float32) -> None:
    for k in range(len(points_km)):
        for e in range(len(i)):
            here, there = i[e], which[e]
            x = position_km[here, 0] - points_km[k, there, 0]
            y = position_km[here, 1] - points_km[k, there, 1]
            z = position_km[here, 2] - points_km[k, there, 2]
            km[k, e] = np.sqrt(x * x + y * y + z * z) if known[here] else np.float32(np.nan)
