from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmove.errors import ConfigError
from attnmove.nouns import distance_m
from attnmove.space import DATUMS, from_wgs84, to_wgs84

# Longitude and latitude in WGS-84 and in GCJ-02: the public test values of the eviltransform library.
PUBLISHED = np.array(
    [
        [121.5272106, 31.1774276, 121.531541859215, 31.17530398364597],
        [113.912316, 22.543847, 113.9171764808363, 22.540796131694766],
        [116.377817, 39.911954, 116.38404722455657, 39.91334545536069],
    ]
)


def test_gcj02_has_the_published_values() -> None:
    lon, lat, gcj_lon, gcj_lat = PUBLISHED.T
    np.testing.assert_allclose(from_wgs84(lon, lat, "gcj02"), (gcj_lon, gcj_lat), atol=1e-9, rtol=0)
    np.testing.assert_allclose(to_wgs84(gcj_lon, gcj_lat, "gcj02"), (lon, lat), atol=1e-9, rtol=0)


def test_bd09_has_the_published_value_of_the_gcj02_point_116_404_39_915() -> None:
    lon, lat = to_wgs84(np.array([116.404]), np.array([39.915]), "gcj02")
    bd_lon, bd_lat = from_wgs84(lon, lat, "bd09")
    assert bd_lon[0] == pytest.approx(116.41036949371029, abs=1e-9)
    assert bd_lat[0] == pytest.approx(39.92133699351021, abs=1e-9)


@pytest.mark.parametrize("datum", DATUMS)
@given(lon=st.floats(73, 137), lat=st.floats(1, 55))
def test_there_and_back_is_the_same_place_to_a_ten_millionth_degree(datum: str, lon: float, lat: float) -> None:
    there = from_wgs84(np.array([lon]), np.array([lat]), datum)
    back = to_wgs84(*there, datum)
    assert back[0][0] == pytest.approx(lon, abs=1e-7)
    assert back[1][0] == pytest.approx(lat, abs=1e-7)


def test_beijing_is_shifted_by_about_545_metres() -> None:
    lon, lat = np.array([116.3974]), np.array([39.9087])
    assert distance_m(lon, lat, *from_wgs84(lon, lat, "gcj02"))[0] == pytest.approx(545, abs=30)


@pytest.mark.parametrize("datum", DATUMS)
def test_places_outside_china_and_nan_stay_as_they_are(datum: str) -> None:
    lon, lat = np.array([-0.1276, 151.2, np.nan, 116.4]), np.array([51.5072, -33.9, 39.9, np.nan])
    np.testing.assert_array_equal(to_wgs84(lon, lat, datum), (lon, lat))
    np.testing.assert_array_equal(from_wgs84(lon, lat, datum), (lon, lat))


def test_the_arrays_given_are_not_changed() -> None:
    lon, lat = np.array([116.4]), np.array([39.9])
    to_wgs84(lon, lat, "gcj02")
    assert (lon[0], lat[0]) == (116.4, 39.9)


def test_no_points_stay_none() -> None:
    assert [len(part) for part in to_wgs84(np.zeros(0), np.zeros(0), "bd09")] == [0, 0]


def test_an_unknown_datum_is_refused() -> None:
    with pytest.raises(ConfigError, match="wgs84, gcj02, bd09; found 'cgcs2000'"):
        to_wgs84(np.zeros(1), np.zeros(1), "cgcs2000")
