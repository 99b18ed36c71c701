from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from attnmove.errors import ConfigError
from attnmove.nouns import EARTH_RADIUS_M, distance_m
from attnmove.space.grid import KEY_STRIDE, Grid
from space.shapes import keys_of


def key(row: int, column: int) -> int:
    return row * KEY_STRIDE + column


def test_key_worked_by_hand() -> None:
    # Half a meridian is pi * 6,371,008.8 m = 20,015,114.4 m: 200 bands of 0.9 degrees for cells of 100 km.
    grid = Grid(100_000)
    assert grid.n_rows == 200
    # Latitude 39.9: row floor(129.9 / 0.9) = 144, middle 40.05; 400.302 * cos(40.05°) = 306.42 -> 306 columns.
    # Longitude 116.4: column floor(296.4 / 360 * 306) = floor(251.94) = 251.
    assert keys_of(grid, (116.4, 39.9)) == [key(144, 251)]


def test_key_follows_the_formula_in_the_docstring_point_by_point() -> None:
    grid = Grid(500)
    generator = np.random.default_rng(1)
    for lon, lat in zip(generator.uniform(-180, 180, 200), generator.uniform(-90, 90, 200), strict=True):
        row = min(math.floor((lat + 90) / 180 * grid.n_rows), grid.n_rows - 1)
        middle = (row + 0.5) / grid.n_rows * 180 - 90
        n_cols = max(1, math.floor(grid.equator_cells * math.cos(math.radians(middle)) + 0.5))
        assert keys_of(grid, (lon, lat)) == [key(row, math.floor((lon + 180) / 360 * n_cols) % n_cols)]


@pytest.mark.parametrize("lat", [0.0, 40.0, -40.0, 60.0, 80.0])
def test_cells_of_500_m_are_500_m_wide_and_high_at_every_latitude(lat: float) -> None:
    grid = Grid(500)
    cell = grid.locations(np.array(keys_of(grid, (116.4, lat))))
    west, south, east, north = shapely.bounds(shapely.from_wkb(cell.geometry))[0]
    middle = cell.lat[0]
    assert distance_m(west, middle, east, middle) == pytest.approx(500, rel=0.005)
    assert distance_m(west, south, west, north) == pytest.approx(500, rel=0.005)
    band = np.sin(np.radians(north)) - np.sin(np.radians(south))
    assert EARTH_RADIUS_M**2 * np.radians(east - west) * band == pytest.approx(250_000, rel=0.01)


def test_latitude_90_belongs_to_the_last_row_and_minus_90_to_the_first() -> None:
    grid = Grid(500)
    assert [k // KEY_STRIDE for k in keys_of(grid, (0, 90), (0, -90))] == [grid.n_rows - 1, 0]


def test_longitude_180_is_longitude_minus_180() -> None:
    grid = Grid(500)
    for lat in (-90.0, -33.3, 0.0, 40.0, 90.0):
        east, west = keys_of(grid, (180, lat), (-180, lat))
        assert east == west
        assert east % KEY_STRIDE == 0


def test_the_largest_cells_have_a_column_at_the_poles() -> None:
    grid = Grid(100_000)
    keys = np.array(keys_of(grid, (-170, 90), (170, 90)))
    assert len(grid.locations(np.unique(keys))) == 2


@given(
    lon=st.floats(-180, 180, exclude_max=True),
    lat=st.floats(-90, 90),
    cell_m=st.floats(10, 100_000),
)
def test_a_point_lies_in_the_rectangle_of_its_cell(lon: float, lat: float, cell_m: float) -> None:
    grid = Grid(cell_m)
    cell = grid.locations(np.array(keys_of(grid, (lon, lat))))
    west, south, east, north = shapely.bounds(shapely.from_wkb(cell.geometry))[0]
    rounding = 1e-12 * 360
    # Just under longitude 180 the division rounds up, and the point falls into the neighbour across the antimeridian.
    assert west - rounding <= lon <= east + rounding or (west == -180 and lon > 180 - rounding)
    assert south - rounding <= lat <= north + rounding
    assert keys_of(grid, (cell.lon[0], cell.lat[0])) == cell.key.tolist()


def test_a_cell_is_named_by_row_and_column() -> None:
    assert Grid(500).locations(np.array([key(3, 2)])).name.tolist() == ["3:2"]


@pytest.mark.parametrize(("cell_m", "spec"), [(500, "grid:500"), (500.0, "grid:500"), (12345.67, "grid:12345.67")])
def test_spec_names_the_size_in_full(cell_m: float, spec: str) -> None:
    assert Grid(cell_m).spec == spec


@pytest.mark.parametrize("cell_m", [0, -500, 9.99, 100_001, float("nan"), float("inf")])
def test_a_size_out_of_range_is_refused(cell_m: float) -> None:
    with pytest.raises(ConfigError, match="10 to 100000 metres"):
        Grid(cell_m)
