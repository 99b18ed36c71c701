"""What every tessellation must do, checked on all four kinds."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import shapely

from attnmove.errors import DataError
from attnmove.nouns import Float64
from attnmove.space import (
    NO_CELL,
    Tessellation,
    parse_tessellation,
    read_locations,
    restore_tessellation,
    write_locations,
)
from space.shapes import box, feature, ring, street_lines, write_features


@pytest.fixture(params=["grid", "h3", "polygons", "roads"])
def tessellation(request: pytest.FixtureRequest, tmp_path: Path) -> Tessellation:
    if request.param == "grid":
        return parse_tessellation("grid:500")
    if request.param == "h3":
        return parse_tessellation("h3:8")
    if request.param == "roads":
        lines = [feature(geometry) for geometry in street_lines()]
        return parse_tessellation(f"roads:{write_features(tmp_path / 'streets.geojson', *lines)}")
    polygons = [
        feature(box(116.40, 39.90, 116.42, 39.92), name="large"),
        feature(box(116.408, 39.908, 116.412, 39.912), name="inside"),
        feature(box(116.42, 39.90, 116.44, 39.92, hole=ring(116.425, 39.905, 116.435, 39.915)), name="holed"),
        feature(
            {
                "type": "MultiPolygon",
                "coordinates": [[ring(116.45, 39.9, 116.46, 39.91)], [ring(116.47, 39.9, 116.48, 39.91)]],
            },
            name="two",
        ),
    ]
    return parse_tessellation(str(write_features(tmp_path / "areas.geojson", *polygons)))


def points_around_beijing(n: int = 3000) -> tuple[Float64, Float64]:
    generator = np.random.default_rng(7)
    return generator.uniform(116.39, 116.49, n), generator.uniform(39.89, 39.93, n)


def test_keys_are_int64_and_some_points_have_one(tessellation: Tessellation) -> None:
    keys = tessellation.keys(*points_around_beijing())
    assert keys.dtype == np.int64
    assert keys.shape == (3000,)
    assert len(np.unique(keys)) > 4
    keys[0] = NO_CELL  # the caller's own array, to be written to


def test_many_points_have_the_keys_they_have_one_by_one(tessellation: Tessellation) -> None:
    lon, lat = points_around_beijing(300)
    one_by_one = [tessellation.keys(lon[i : i + 1], lat[i : i + 1])[0] for i in range(len(lon))]
    np.testing.assert_array_equal(tessellation.keys(lon, lat), one_by_one)


def test_a_point_that_is_nowhere_has_no_cell_and_spoils_no_other(tessellation: Tessellation) -> None:
    lon = np.array([np.nan, 116.411, 180.1, -181.0, 116.411, 116.411, np.inf, 116.411, 116.411])
    lat = np.array([39.911, np.nan, 39.911, 39.911, 90.1, -91.0, 39.911, -np.inf, 39.911])
    keys = tessellation.keys(lon, lat)
    assert keys[:-1].tolist() == [NO_CELL] * 8
    assert keys[-1] == tessellation.keys(lon[-1:], lat[-1:])[0] != NO_CELL


def test_no_points_have_no_keys(tessellation: Tessellation) -> None:
    keys = tessellation.keys(np.zeros(0), np.zeros(0))
    assert (keys.dtype, keys.shape) == (np.int64, (0,))
    assert len(tessellation.locations(keys)) == 0


def test_the_centre_of_a_location_has_its_own_key(tessellation: Tessellation) -> None:
    keys = met_keys(tessellation)
    locations = tessellation.locations(keys)
    np.testing.assert_array_equal(locations.key, keys)
    np.testing.assert_array_equal(tessellation.keys(locations.lon, locations.lat), keys)


def test_a_point_lies_in_the_outline_of_its_cell(tessellation: Tessellation) -> None:
    lon, lat = points_around_beijing()
    keys = tessellation.keys(lon, lat)
    lon, lat, keys = lon[keys != NO_CELL], lat[keys != NO_CELL], keys[keys != NO_CELL]
    locations = tessellation.locations(np.unique(keys))
    outlines = shapely.from_wkb(locations.geometry)[locations.ids_of(keys)]
    degrees = shapely.distance(outlines, shapely.points(lon, lat))
    snapped = 0.0013 if tessellation.all_keys() is not None else 1e-6  # 100 m of longitude at 40 degrees north
    assert degrees.max() <= snapped


def test_names_are_unique_texts(tessellation: Tessellation) -> None:
    names = tessellation.locations(met_keys(tessellation)).name.tolist()
    assert all(isinstance(name, str) and name for name in names)
    assert len(set(names)) == len(names)


def test_locations_come_in_the_order_of_the_keys(tessellation: Tessellation) -> None:
    keys = met_keys(tessellation)
    forwards, backwards = tessellation.locations(keys), tessellation.locations(keys[::-1])
    assert backwards.name.tolist() == forwards.name.tolist()[::-1]
    assert backwards.geometry == (forwards.geometry or [])[::-1]


def test_the_list_of_all_keys_is_ascending_and_holds_every_key(tessellation: Tessellation) -> None:
    every = tessellation.all_keys()
    if every is not None:
        assert every.tolist() == sorted(set(every.tolist()))
        assert set(met_keys(tessellation).tolist()) <= set(every.tolist())


def test_a_key_of_no_cell_is_refused(tessellation: Tessellation) -> None:
    with pytest.raises(DataError, match=r"key -1 is no cell of"):
        tessellation.locations(np.array([NO_CELL]))


def test_a_pickled_copy_answers_the_same(tessellation: Tessellation) -> None:
    lon, lat = points_around_beijing()
    copy = pickle.loads(pickle.dumps(tessellation))
    assert copy.spec == tessellation.spec
    np.testing.assert_array_equal(copy.keys(lon, lat), tessellation.keys(lon, lat))


def test_a_tessellation_is_restored_from_its_locations_on_disk(tessellation: Tessellation, tmp_path: Path) -> None:
    every = tessellation.all_keys()
    keys = met_keys(tessellation) if every is None else every
    write_locations(tmp_path / "locations.parquet", tessellation.locations(keys[::-1]))
    restored = restore_tessellation(tessellation.to_json(), read_locations(tmp_path / "locations.parquet"))
    lon, lat = points_around_beijing()
    np.testing.assert_array_equal(restored.keys(lon, lat), tessellation.keys(lon, lat))
    assert restored.to_json() == tessellation.to_json()
    assert restored.locations(keys).name.tolist() == tessellation.locations(keys).name.tolist()
    np.testing.assert_array_equal(restored.locations(keys).centres, tessellation.locations(keys).centres)


def test_a_tessellation_passes_through_parse_as_it_is(tessellation: Tessellation) -> None:
    assert parse_tessellation(tessellation) is tessellation


def test_threads_get_the_answers_of_one(tessellation: Tessellation) -> None:
    lon, lat = points_around_beijing(20_000)
    expected = tessellation.keys(lon, lat)
    fresh = pickle.loads(pickle.dumps(tessellation))
    parts = [slice(start, start + 512) for start in range(0, len(lon), 512)]
    with ThreadPoolExecutor(8) as pool:
        keys = np.concatenate(list(pool.map(lambda part: fresh.keys(lon[part], lat[part]), parts)))
    np.testing.assert_array_equal(keys, expected)


def met_keys(tessellation: Tessellation) -> np.ndarray:
    keys = np.unique(tessellation.keys(*points_around_beijing()))
    return keys[keys != NO_CELL]
