"""Where locations lie: distances along the ground, and the nearest ones found by trying all."""

from __future__ import annotations

import numpy as np
import pytest

from attnmove.models.evidence.atlas import NEIGHBOURS, Atlas
from attnmove.nouns import MISSING, Locations
from builders import some_locations


def scattered(n: int, *, seed: int = 0, known: float = 1.0) -> Locations:
    """Locations at random places of a city, a share of them known."""
    rng = np.random.default_rng(seed)
    lon, lat = 116.3 + 0.3 * rng.random(n), 39.9 + 0.3 * rng.random(n)
    lon[rng.random(n) >= known] = np.nan
    return Locations(np.array([f"p{i}" for i in range(n)], dtype=object), lon, lat, np.arange(n))


def test_kilometres_are_those_of_the_sphere_over_the_distances_of_a_day() -> None:
    locations = scattered(40)
    atlas = Atlas.of(locations)
    i, j = (side.ravel() for side in np.meshgrid(np.arange(40), np.arange(40)))
    found = atlas.km(i, j)
    assert found.dtype == np.float32
    assert np.allclose(found, locations.distance_m(i, j) / 1000, atol=2e-3)
    assert np.array_equal(found, atlas.km(j, i))


def test_kilometres_to_what_is_not_known_are_not_known() -> None:
    atlas = Atlas.of(scattered(20, known=0.5))
    known = np.flatnonzero(atlas.known)
    unknown = np.flatnonzero(~atlas.known)
    assert len(known)
    assert len(unknown)
    assert np.isnan(atlas.km(np.full(len(unknown), known[0]), unknown)).all()
    assert np.isnan(atlas.km(np.array([known[0], MISSING]), np.array([MISSING, known[0]]))).all()
    point = atlas.position_km[known[:1]]
    assert atlas.km_to(known[:1], point).tolist() == [0]
    assert np.isnan(atlas.km_to(unknown[:1], point)).all()
    assert np.isnan(atlas.km_to(known[:1], np.full((1, 3), np.nan, dtype=np.float32))).all()


@pytest.mark.parametrize("known", [1.0, 0.4])
def test_neighbours_are_the_nearest_others_the_nearest_first(known: float) -> None:
    locations = scattered(60, known=known)
    atlas = Atlas.of(locations)
    places = np.flatnonzero(atlas.known)
    assert (atlas.neighbours[~atlas.known] == MISSING).all()
    for place in places.tolist():
        far = np.sort([float(locations.distance_m(place, other)) for other in places if other != place])
        found = atlas.neighbours[place]
        assert place not in found.tolist()
        assert len(set(found.tolist())) == NEIGHBOURS
        # Positions are kept to half a metre: of two that are as far, either may come first.
        assert np.allclose(locations.distance_m(np.full(NEIGHBOURS, place), found), far[:NEIGHBOURS], atol=2)


def test_few_locations_have_few_neighbours() -> None:
    assert Atlas.of(some_locations(3)).neighbours[:, :3].tolist() == [[1, 2, -1], [0, 2, -1], [1, 0, -1]]
    assert (Atlas.of(some_locations(1)).neighbours == MISSING).all()
    nowhere = Atlas.of(some_locations(5, centres=False))
    assert (nowhere.neighbours == MISSING).all()
    assert np.isnan(nowhere.spacing_km).all()
    assert nowhere.around(np.zeros((2, 3), dtype=np.float32)).shape == (2, 0)


def test_a_location_is_not_its_own_neighbour_though_many_are_at_one_point() -> None:
    n = 3 * NEIGHBOURS
    one = Locations(
        np.array([f"p{i}" for i in range(n)], dtype=object), np.full(n, 7.0), np.full(n, 50.0), np.arange(n)
    )
    near = Atlas.of(one).neighbours
    for place, others in enumerate(near.tolist()):
        assert place not in others
        assert MISSING not in others
        assert len(set(others)) == NEIGHBOURS
    assert Atlas.of(one).spacing_km.tolist() == [0] * n


def test_spacing_is_the_mean_distance_to_the_three_nearest() -> None:
    step = 1.7060  # kilometres between neighbours of the row
    spacing = Atlas.of(some_locations(6)).spacing_km
    assert spacing.tolist() == pytest.approx(
        [2 * step, 4 / 3 * step, *[4 / 3 * step] * 2, 4 / 3 * step, 2 * step], rel=1e-3
    )
    assert Atlas.of(some_locations(2)).spacing_km.tolist() == pytest.approx([step, step], rel=1e-3)


def test_around_a_point_are_the_ten_nearest() -> None:
    atlas = Atlas.of(scattered(50, known=0.7))
    point = atlas.position_km[np.flatnonzero(atlas.known)[:4]] + np.float32(0.3)
    places = np.flatnonzero(atlas.known)
    for row, found in zip(point, atlas.around(point).tolist(), strict=True):
        far = np.linalg.norm(atlas.position_km[places] - row, axis=1)
        assert found == places[np.argsort(far)][:10].tolist()
    assert atlas.around(point[:0]).shape[0] == 0
    assert Atlas.of(some_locations(1)).around(point).tolist() == [[0]] * 4


def test_the_date_line_and_the_poles_are_near() -> None:
    lon, lat = np.array([179.99, -179.99, 0.0, 180.0]), np.array([0.0, 0.0, 89.99, 89.99])
    atlas = Atlas.of(Locations(np.array(list("abcd"), dtype=object), lon, lat, np.arange(4)))
    assert atlas.km(np.array([0, 2]), np.array([1, 3])).tolist() == pytest.approx([2.224, 2.224], abs=2e-3)
