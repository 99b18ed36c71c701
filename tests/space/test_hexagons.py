from __future__ import annotations

import h3ronpy
import numpy as np
import pyarrow as pa
import pytest
import shapely

from attnmove.errors import ConfigError, DataError
from attnmove.space.hexagons import H3
from attnmove.space.polygon_index import area_m2
from space.shapes import keys_of


def test_the_key_is_the_h3_index_of_latitude_and_longitude_in_this_order() -> None:
    # 8831aa4287fffff has its centre near 39.9 N, 116.4 E; with the two exchanged there would be no such latitude.
    cell = H3(8).locations(np.array(keys_of(H3(8), (116.4, 39.9))))
    assert cell.name.tolist() == ["8831aa4287fffff"]
    assert cell.key.tolist() == [0x8831AA4287FFFFF]
    assert (cell.lon[0], cell.lat[0]) == (pytest.approx(116.4, abs=0.01), pytest.approx(39.9, abs=0.01))


def test_an_outline_has_the_area_that_h3_gives_the_cell() -> None:
    keys = np.array(keys_of(H3(8), (116.4, 39.9), (0.1, 0.1), (-70.0, -33.0)))
    expected = pa.array(h3ronpy.cells_area_m2(keys.astype(np.uint64))).to_numpy()
    assert area_m2(shapely.from_wkb(H3(8).locations(keys).geometry)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("res", [0, 3, 8, 15])
def test_an_outline_across_the_antimeridian_is_cut_there(res: int) -> None:
    cell = H3(res).locations(np.array(keys_of(H3(res), (180.0, 0.0))))
    outline = shapely.from_wkb(cell.geometry[0] if cell.geometry else None)
    west, _, east, _ = outline.bounds
    assert (west, east) == (-180, 180)
    assert outline.is_valid
    assert len(shapely.get_parts(outline)) == 2
    assert shapely.intersects_xy(outline, cell.lon[0], cell.lat[0])
    assert outline.area < 2000


@pytest.mark.parametrize("res", [0, 3, 8])
@pytest.mark.parametrize("pole", [90.0, -90.0])
def test_an_outline_around_a_pole_reaches_the_pole(res: int, pole: float) -> None:
    cell = H3(res).locations(np.array(keys_of(H3(res), (0.0, pole))))
    outline = shapely.from_wkb(cell.geometry[0] if cell.geometry else None)
    assert outline.is_valid
    assert outline.bounds[0::2] == (-180, 180)
    assert pole in outline.bounds
    assert shapely.intersects_xy(outline, cell.lon[0], cell.lat[0])


def test_a_cell_of_another_resolution_is_refused() -> None:
    with pytest.raises(DataError, match="is no cell of h3:8"):
        H3(8).locations(np.array(keys_of(H3(7), (116.4, 39.9))))


@pytest.mark.parametrize("res", [-1, 16])
def test_a_resolution_out_of_range_is_refused(res: int) -> None:
    with pytest.raises(ConfigError, match="0 to 15"):
        H3(res)
