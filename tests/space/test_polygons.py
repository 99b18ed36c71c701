"""Which polygon a point belongs to, and what polygons are called."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from attnmove.errors import ConfigError, RunError
from attnmove.nouns import Locations
from attnmove.space import NO_CELL, restore_tessellation
from attnmove.space.polygon_index import area_m2, perimeter_m
from attnmove.space.polygons import Polygons, read_polygons, unique_names
from space.shapes import METRES_PER_DEGREE, box, feature, keys_of, ring, write_features


def polygons(folder: Path, *geometries: dict[str, Any], snap_m: float = 0) -> Polygons:
    return read_polygons(write_features(folder / "p.geojson", *map(feature, geometries)), snap_m=snap_m)


def test_a_point_in_several_polygons_belongs_to_the_smallest(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 4, 4), box(1, 1, 2, 2), box(0, 0, 3, 3))
    assert keys_of(tessellation, (1.5, 1.5), (2.5, 2.5), (3.5, 3.5)) == [1, 2, 0]


def test_small_means_square_metres_not_square_degrees(tmp_path: Path) -> None:
    # 30 x 30 degrees from 60 north are 2.8 million km², 20 x 40 degrees up to 65 north 7.4 million.
    tessellation = polygons(tmp_path, box(0, 60, 30, 90), box(0, 25, 20, 65))
    assert keys_of(tessellation, (10, 62)) == [0]
    expected = 6_371_008.8**2 * np.radians(30) * (1 - np.sin(np.radians(60)))
    assert area_m2(shapely.from_wkb(tessellation.cells.geometry))[0] == pytest.approx(expected)


def test_of_equal_polygons_the_first_in_the_file_has_the_point(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(5, 5, 6, 6), box(0, 0, 1, 1), box(0, 0, 1, 1))
    assert keys_of(tessellation, (0.5, 0.5)) == [1]


def test_a_point_in_a_hole_is_not_in_the_polygon(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 3, 3, hole=ring(1, 1, 2, 2)))
    assert keys_of(tessellation, (1.5, 1.5), (0.5, 0.5)) == [NO_CELL, 0]


def test_a_point_on_an_edge_or_a_corner_is_inside(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 1, 1, hole=ring(0.4, 0.4, 0.6, 0.6)))
    assert keys_of(tessellation, (0, 0.5), (1, 1), (0.4, 0.5)) == [0, 0, 0]


@pytest.mark.parametrize("lat", [0.0, 40.0, -60.0])
def test_snapping_is_in_metres_to_the_east_and_to_the_north(tmp_path: Path, lat: float) -> None:
    tessellation = polygons(tmp_path, box(10, lat - 0.1, 10.1, lat), snap_m=100)
    north = 1 / METRES_PER_DEGREE
    east = north / np.cos(np.radians(lat - 0.05))
    inside = [(10.05, lat + 99 * north), (10.1 + 99 * east, lat - 0.05), (10 - 99 * east, lat - 0.05)]
    beyond = [(10.05, lat + 101 * north), (10.1 + 101 * east, lat - 0.05), (10 - 101 * east, lat - 0.05)]
    assert keys_of(tessellation, *inside) == [0, 0, 0]
    assert keys_of(tessellation, *beyond) == [NO_CELL] * 3


def test_nearest_is_by_metres_where_degrees_say_otherwise(tmp_path: Path) -> None:
    # At 60 degrees north, 0.0015 degrees of longitude are 83 m, 0.001 degrees of latitude are 111 m.
    tessellation = polygons(tmp_path, box(10, 60.001, 11, 61), box(10.0015, 59, 11, 60.0005), snap_m=200)
    assert keys_of(tessellation, (10.0, 60.0)) == [1]


def test_one_file_snaps_rightly_at_the_equator_and_in_the_north(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 1, 1), box(0, 79, 1, 80), snap_m=1000)
    east = 900 / METRES_PER_DEGREE
    assert keys_of(tessellation, (1 + east, 0.5)) == [0]
    stretched = east / np.cos(np.radians(79.5))
    assert keys_of(tessellation, (1 + stretched, 79.5), (1 + 1.2 * stretched, 79.5)) == [1, NO_CELL]


def test_a_wide_search_finds_what_a_narrow_one_leaves_over(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 1, 1), box(1.2, 0, 2, 1), snap_m=50_000)
    metres = np.array([50, 300, 5_000, 10_900, 11_400, 20_000])
    assert keys_of(tessellation, *[(1 + m / METRES_PER_DEGREE, 0.01) for m in metres]) == [0, 0, 0, 0, 1, 1]
    assert keys_of(tessellation, (0.5, -0.44), (0.5, -0.46)) == [0, NO_CELL]


def test_a_point_equally_near_to_two_polygons_goes_to_the_first(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(1, 0, 2, 1), box(0, 0, 1, 1), snap_m=1000)
    assert keys_of(tessellation, (1.0, 1.001)) == [0]


@pytest.mark.parametrize("snap_m", [80, 300, 2000])
def test_snapping_agrees_with_a_slow_search_along_the_edges(tmp_path: Path, snap_m: float) -> None:
    generator = np.random.default_rng(3)
    corners = generator.uniform([10, 59.9], [10.2, 60], (30, 2))
    boxes = [box(x, y, x + 0.004, y + 0.002) for x, y in corners.tolist()]
    tessellation = polygons(tmp_path, *boxes, snap_m=snap_m)
    lon, lat = generator.uniform([10, 59.9], [10.2, 60], (500, 2)).T
    for x, y, key in zip(lon, lat, tessellation.keys(lon, lat), strict=True):
        scale = METRES_PER_DEGREE * np.array([np.cos(np.radians(y)), 1])
        outlines = [shapely.polygons((np.array(b["coordinates"][0]) - [x, y]) * scale) for b in boxes]
        distance = shapely.distance(outlines, shapely.Point(0, 0))
        if distance.min() > snap_m:
            assert key == NO_CELL
        else:
            assert distance[key] == pytest.approx(distance.min(), abs=0.01)


def test_a_centre_outside_a_bent_polygon_is_moved_inside(tmp_path: Path) -> None:
    bent = {"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [3, 3], [2.9, 3], [2.9, 0.1], [0, 0.1], [0, 0]]]}
    tessellation = polygons(tmp_path, bent)
    cell = tessellation.cells
    assert keys_of(tessellation, (cell.lon[0], cell.lat[0])) == [0]


def test_a_centre_in_a_smaller_polygon_is_moved_out_of_it(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 3, 3), box(1, 1, 2, 2))
    assert tessellation.keys(tessellation.cells.lon, tessellation.cells.lat).tolist() == [0, 1]
    assert (tessellation.cells.lon[1], tessellation.cells.lat[1]) == (1.5, 1.5)


def test_a_polygon_under_smaller_ones_keeps_its_centroid(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 2, 1), box(0, 0, 1, 1), box(1, 0, 2, 1))
    assert (tessellation.cells.lon[0], tessellation.cells.lat[0]) == (1.0, 0.5)


def test_a_polygon_that_crosses_itself_is_repaired(tmp_path: Path) -> None:
    bow_tie = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
    tessellation = polygons(tmp_path, bow_tie)
    assert keys_of(tessellation, (0.2, 1), (1.8, 1), (1, 0.2)) == [0, 0, NO_CELL]


def test_a_spike_is_dropped_from_a_polygon(tmp_path: Path) -> None:
    spiked = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [1, 5], [1, 1], [0, 1], [0, 0]]]}
    tessellation = polygons(tmp_path, spiked)
    assert keys_of(tessellation, (0.5, 0.5), (1, 4)) == [0, NO_CELL]


def test_the_perimeter_counts_the_hole() -> None:
    square = shapely.Polygon(ring(0, 0, 0.1, 0.1), [ring(0.04, 0.04, 0.05, 0.05)])
    assert perimeter_m(np.array([square]))[0] == pytest.approx(0.44 * METRES_PER_DEGREE, rel=1e-5)


def test_names_come_from_the_named_property(tmp_path: Path) -> None:
    path = write_features(tmp_path / "p.geojson", feature(box(0, 0, 1, 1), id=9, id2="a", name="b"))
    assert read_polygons(path, name_property="id2").cells.name.tolist() == ["a"]


def test_a_property_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = write_features(tmp_path / "p.geojson", feature(box(0, 0, 1, 1), region="a", area=2))
    with pytest.raises(ConfigError, match="'regoin', found region, area; did you mean region"):
        read_polygons(path, name_property="regoin")


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ({"id": 12, "name": "b"}, "12"),
        ({"name": "b", "REGION_ID": 7.0}, "7"),
        ({"name": "b", "Code": "x"}, "b"),
        ({"name": None, "Code": "x"}, "x"),
        ({"height": 3}, "0"),
        ({}, "0"),
    ],
)
def test_names_come_from_the_id_else_a_usual_property_else_the_position(
    tmp_path: Path, members: dict[str, Any], name: str
) -> None:
    path = write_features(tmp_path / "p.geojson", feature(box(0, 0, 1, 1), **members))
    assert read_polygons(path).cells.name.tolist() == [name]


def test_a_name_that_occurs_again_gets_the_position() -> None:
    assert unique_names([-1, 5, -1, None, "5x", 2.5, 3.0]) == ["-1#0", "5", "-1#2", "#3", "5x", "2.5", "3"]


@given(st.lists(st.none() | st.sampled_from(["a", "a#1", "a#2", "#1", 1, 1.0, "1"]) | st.floats(), max_size=12))
def test_names_are_unique_whatever_the_values(values: list[Any]) -> None:
    names = unique_names(values)
    assert len(set(names)) == len(values)


@pytest.mark.parametrize("snap_m", [-1.0, float("nan"), float("inf")])
def test_a_senseless_snapping_distance_is_refused(tmp_path: Path, snap_m: float) -> None:
    with pytest.raises(ConfigError, match="snap_m must be 0"):
        polygons(tmp_path, box(0, 0, 1, 1), snap_m=snap_m)


def test_polygons_are_restored_from_some_of_their_locations(tmp_path: Path) -> None:
    tessellation = polygons(tmp_path, box(0, 0, 1, 1), box(1, 0, 2, 1), box(2, 0, 3, 1))
    restored = restore_tessellation(tessellation.to_json(), tessellation.locations(np.array([2, 0])))
    assert keys_of(restored, (0.5, 0.5), (1.5, 0.5), (2.5, 0.5)) == [0, NO_CELL, 2]
    assert restored.spec == "polygons:p.geojson"


def test_locations_without_polygons_cannot_be_restored(tmp_path: Path) -> None:
    meta = polygons(tmp_path, box(0, 0, 1, 1)).to_json()
    bare = Locations(np.array(["a"], dtype=object), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64))
    with pytest.raises(RunError, match="location a has no polygon"):
        restore_tessellation(meta, bare)


def test_fresh_polygons_answer_many_threads_at_once(tmp_path: Path) -> None:
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    corners = np.column_stack([np.cos(angle), np.sin(angle)]) * 0.006
    rounds = [(corners + np.array([x, y]) * 0.01).round(6).tolist() for x in range(40) for y in range(40)]
    tessellation = polygons(tmp_path, *[{"type": "Polygon", "coordinates": [[*r, r[0]]]} for r in rounds])
    lon, lat = np.random.default_rng(5).uniform(0, 0.4, (2, 60_000))
    expected = tessellation.keys(lon, lat)
    parts = [slice(start, start + 2048) for start in range(0, len(lon), 2048)]
    for _ in range(5):
        fresh = pickle.loads(pickle.dumps(tessellation))
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda part, asked=fresh: asked.keys(lon[part], lat[part]), parts))
        np.testing.assert_array_equal(np.concatenate(answers), expected)


DATA = Path(os.environ.get("ATTNMOVE_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.shared
@pytest.mark.skipif(not DATA.is_dir(), reason="the real data is not here")
def test_the_traced_blocks_of_beijing_are_read_with_unique_names() -> None:
    blocks = read_polygons(DATA / "geolife-released" / "blocks.geojson")
    names = blocks.cells.name.tolist()
    assert len(names) == len(set(names)) == 9145
    assert sum("#" not in name for name in names) == 1225
    assert names[0] == "-1#0"
    answered = blocks.keys(blocks.cells.lon, blocks.cells.lat)
    assert (answered == blocks.cells.key).mean() > 0.999
