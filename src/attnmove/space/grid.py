"""Cells of equal size in metres at any latitude, by arithmetic alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnmove.errors import ConfigError
from attnmove.nouns import EARTH_RADIUS_M, Float64, Int64, Locations
from attnmove.space.tessellation import NO_CELL, on_earth, refuse_unknown

KEY_STRIDE = 2**32
"""key = row * KEY_STRIDE + column."""

MIN_CELL_M = 10.0
MAX_CELL_M = 100_000.0


@dataclass(frozen=True)
class Grid:
    """Latitude bands `cell_m` high, each cut into columns as near to `cell_m` wide as a whole number of them allows.

    The key of a point, in arithmetic a query engine can repeat (all divisions are of real numbers):

        row    = min(floor((lat + 90) / 180 * n_rows), n_rows - 1)
        middle = (row + 0.5) / n_rows * 180 - 90
        n_cols = max(1, floor(equator_cells * cos(radians(middle)) + 0.5))
        column = floor((lon + 180) / 360 * n_cols) mod n_cols
        key    = row * KEY_STRIDE + column

    Latitude 90 belongs to the last row, longitude 180 is longitude -180.
    """

    cell_m: float
    """Side of a cell in metres, 10 to 100,000."""

    def __post_init__(self) -> None:
        if not MIN_CELL_M <= self.cell_m <= MAX_CELL_M:
            raise ConfigError(
                f"grid: a cell must be {MIN_CELL_M:.0f} to {MAX_CELL_M:.0f} metres wide, found {self.cell_m:g}"
            )

    @property
    def spec(self) -> str:
        """The rule in one word, such as grid:500."""
        whole = int(self.cell_m)
        return f"grid:{whole if whole == self.cell_m else self.cell_m}"

    @property
    def n_rows(self) -> int:
        """How many bands lie between the poles."""
        return max(1, math.floor(math.pi * EARTH_RADIUS_M / self.cell_m + 0.5))

    @property
    def equator_cells(self) -> float:
        """How many cells, not rounded, lie around the equator."""
        return 2 * math.pi * EARTH_RADIUS_M / self.cell_m

    def keys(self, lon: Float64, lat: Float64) -> Int64:
        """The cell of each point, NO_CELL where a coordinate is NaN or out of range."""
        lon, lat = np.asarray(lon, dtype=np.float64), np.asarray(lat, dtype=np.float64)
        valid = on_earth(lon, lat)
        if not valid.all():
            keys = np.full(len(lon), NO_CELL, dtype=np.int64)
            keys[valid] = self.keys(lon[valid], lat[valid])
            return keys
        row = np.minimum(np.floor((lat + 90) / 180 * self.n_rows), self.n_rows - 1)
        n_cols = self._n_cols(row)
        column = np.floor((lon + 180) / 360 * n_cols)
        # A remainder costs five times as much, and only longitude 180 ever needs one.
        column[column >= n_cols] = 0
        return row.astype(np.int64) * KEY_STRIDE + column.astype(np.int64)

    def all_keys(self) -> Int64 | None:
        """None: the cells of the whole Earth have no list."""
        return None

    def locations(self, keys: Int64) -> Locations:
        """Cells named `row:column`, with their longitude-latitude rectangles; raises DataError for an unknown key."""
        import shapely  # keys and centres are asked for where it is not installed, too

        bare, (west, south, east, north) = self.centres(keys), self._sides(keys)
        return replace(bare, geometry=shapely.to_wkb(shapely.box(west, south, east, north)).tolist())

    def centres(self, keys: Int64) -> Locations:
        """The same without the rectangles."""
        west, south, east, north = self._sides(keys)
        row, column = np.divmod(np.asarray(keys, dtype=np.int64), KEY_STRIDE)
        return Locations(
            name=np.array([f"{r}:{c}" for r, c in zip(row.tolist(), column.tolist(), strict=True)], dtype=object),
            lon=(west + east) / 2,
            lat=(south + north) / 2,
            key=np.asarray(keys, dtype=np.int64),
        )

    def to_json(self) -> dict[str, Any]:
        """The kind and the size of a cell."""
        return {"kind": "grid", "cell_m": self.cell_m}

    def _sides(self, keys: Int64) -> tuple[Float64, Float64, Float64, Float64]:
        """West, south, east and north in degrees; raises DataError for an unknown key."""
        keys = np.asarray(keys, dtype=np.int64)
        row, column = np.divmod(keys, KEY_STRIDE)
        n_cols = self._n_cols(row)
        refuse_unknown(keys, (row >= 0) & (row < self.n_rows) & (column < n_cols), self.spec)
        west, east = column / n_cols * 360 - 180, (column + 1) / n_cols * 360 - 180
        return west, row / self.n_rows * 180 - 90, east, (row + 1) / self.n_rows * 180 - 90

    def _n_cols(self, row: Float64 | Int64) -> Float64:
        middle = (row + 0.5) / self.n_rows * 180 - 90
        n_cols: Float64 = np.maximum(np.floor(self.equator_cells * np.cos(np.radians(middle)) + 0.5), 1)
        return n_cols
