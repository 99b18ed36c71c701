"""Hexagons of the H3 system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h3ronpy
import numpy as np
import pyarrow as pa
import shapely
from h3ronpy import vector

from attnmove.errors import ConfigError
from attnmove.nouns import Float64, Int64, Locations
from attnmove.space.tessellation import NO_CELL, on_earth, refuse_unknown

MAX_RES = 15


@dataclass(frozen=True)
class H3:
    """H3 cells of one resolution; the key is the H3 index, the name its hexadecimal text.

    An outline that crosses the antimeridian is cut in two there; one around a pole runs along the pole. Edges are
    straight in longitude and latitude where H3's are arcs, so outlines of coarse cells are approximate; keys are not.
    """

    res: int
    """0 (cells of 4.4 million km²) to 15 (0.9 m²); 8 is 0.74 km²."""

    def __post_init__(self) -> None:
        if not 0 <= self.res <= MAX_RES:
            raise ConfigError(f"h3: the resolution must be 0 to {MAX_RES}, found {self.res}")

    @property
    def spec(self) -> str:
        """The rule in one word, such as h3:8."""
        return f"h3:{self.res}"

    def keys(self, lon: Float64, lat: Float64) -> Int64:
        """The cell of each point, NO_CELL where a coordinate is NaN or out of range."""
        lon, lat = np.asarray(lon, dtype=np.float64), np.asarray(lat, dtype=np.float64)
        valid = on_earth(lon, lat)
        if not valid.all():
            keys = np.full(len(lon), NO_CELL, dtype=np.int64)
            keys[valid] = self.keys(lon[valid], lat[valid])
            return keys
        cells: Int64 = _numpy(vector.coordinates_to_cells(lat, lon, self.res)).view(np.int64)
        return cells

    def all_keys(self) -> Int64 | None:
        """None: the cells of the whole Earth have no list."""
        return None

    def locations(self, keys: Int64) -> Locations:
        """Cells named by their H3 index, with their outlines; raises DataError for an unknown key."""
        keys = np.asarray(keys, dtype=np.int64)
        cells = keys.view(np.uint64)
        refuse_unknown(keys, _numpy(h3ronpy.cells_valid(cells, booleanarray=True)), self.spec)
        refuse_unknown(keys, _numpy(h3ronpy.cells_resolution(cells)) == self.res, self.spec)
        centres = vector.cells_to_coordinates(cells)
        return Locations(
            name=_numpy(h3ronpy.cells_to_string(cells)).astype(object),
            lon=_numpy(centres["lng"]),
            lat=_numpy(centres["lat"]),
            key=keys,
            geometry=shapely.to_wkb(self._outlines(cells)).tolist(),
        )

    def to_json(self) -> dict[str, Any]:
        """The kind and the resolution."""
        return {"kind": "h3", "res": self.res}

    def _outlines(self, cells: Any) -> Any:
        outlines = shapely.from_wkb(_numpy(vector.cells_to_wkb_polygons(cells)))
        poles = self.keys(np.zeros(2), np.array([90.0, -90.0]))
        west, _, east, _ = shapely.bounds(outlines).T
        for i in np.flatnonzero((east - west > 180) | np.isin(cells.view(np.int64), poles)).tolist():
            at_pole = np.flatnonzero(poles == cells.view(np.int64)[i])
            outlines[i] = _around_pole(outlines[i], 90 - 180 * at_pole[0]) if len(at_pole) else _cut(outlines[i])
        return outlines


def _numpy(array: Any) -> Any:
    return np.array(pa.array(array).to_numpy(zero_copy_only=False))  # a copy: what Arrow holds cannot be written to


def _cut(outline: Any) -> Any:
    """The outline that crosses the antimeridian as one part on each side of it."""
    ring = shapely.get_coordinates(outline)
    eastward = shapely.polygons(np.column_stack([ring[:, 0] % 360, ring[:, 1]]))
    east = shapely.intersection(eastward, shapely.box(0, -90, 180, 90))
    west = shapely.intersection(eastward, shapely.box(180, -90, 360, 90))
    return shapely.union(east, shapely.transform(west, lambda xy: xy - [360, 0]))


def _around_pole(outline: Any, pole_lat: float) -> Any:
    """The outline whose corners go once around a pole as a strip from -180 to 180 degrees that ends at the pole."""
    corners = shapely.get_coordinates(outline)[:-1]
    corners = corners[np.argsort(corners[:, 0])]
    seam_lat = np.interp(180, [corners[-1, 0], corners[0, 0] + 360], [corners[-1, 1], corners[0, 1]])
    ends = [[180, seam_lat], [180, pole_lat], [-180, pole_lat], [-180, seam_lat]]
    return shapely.polygons(np.concatenate([corners, ends]))
