"""From a word to a tessellation, and from its description back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnmove.errors import ConfigError, DataError, RunError
from attnmove.nouns import Locations
from attnmove.space import parse_tessellation, restore_tessellation
from space.shapes import box, feature, keys_of, street_lines, write_features

NOTHING = Locations(np.zeros(0, dtype=object), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))


@pytest.mark.parametrize("spec", ["grid:500", "grid:12.5", "h3:0", "h3:15"])
def test_a_rule_is_parsed_and_says_its_own_name(spec: str) -> None:
    tessellation = parse_tessellation(spec)
    assert tessellation.spec == spec
    assert restore_tessellation(tessellation.to_json(), NOTHING) == tessellation


def test_a_bare_file_and_one_after_polygons_are_the_same(tmp_path: Path) -> None:
    path = write_features(tmp_path / "areas.geojson", feature(box(0, 0, 1, 1), code="x", label="y"))
    for spec in (str(path), f"polygons:{path}"):
        tessellation = parse_tessellation(spec, name_property="label", snap_m=0)
        assert tessellation.spec == "polygons:areas.geojson"
        assert tessellation.locations(np.array([0])).name.tolist() == ["y"]
        assert keys_of(tessellation, (1.0001, 0.5)) == [-1]
        assert tessellation.to_json() == {"kind": "polygons", "source": "areas.geojson", "snap_m": 0}


def test_roads_take_classes_and_a_snapping_distance(tmp_path: Path) -> None:
    streets = [feature(street, highway="residential") for street in street_lines(2)]
    path = write_features(tmp_path / "streets.json", *streets)
    tessellation = parse_tessellation(f"roads:{path}", road_classes=["residential"], snap_m=5)
    assert tessellation.to_json()["snap_m"] == 5
    keys = tessellation.all_keys()
    assert keys is not None
    assert keys.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "expected grid:METRES, h3:RESOLUTION, .* found ''"),
        ("gird:500", r"did you mean grid:500\?"),
        ("H3:8", r"did you mean h3:8\?"),
        ("grid", "did you mean grid:…"),
        ("beijing.osm.pbf", r"did you mean roads:beijing.osm.pbf\?"),
        ("voronoi", "found 'voronoi'$"),
        ("grid:", "nothing follows the colon"),
        ("grid:wide", "the side of a cell in metres, such as grid:500, found 'wide'"),
        ("grid:nan", "found 'nan'"),
        ("grid:inf", "found 'inf'"),
        ("grid:5", "10 to 100000 metres wide, found 5"),
        ("h3:8.5", "must be a whole number"),
        ("h3:16", "0 to 15, found 16"),
        ("h3:eight", "a resolution from 0 to 15"),
    ],
)
def test_a_senseless_word_is_refused_with_what_is_possible(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_tessellation(spec)


@pytest.mark.parametrize(
    ("spec", "option"),
    [
        ("grid:500", {"snap_m": 5.0}),
        ("h3:8", {"name_property": "x"}),
        ("areas.geojson", {"road_classes": ["primary"]}),
        ("roads:s.geojson", {"name_property": "x"}),
    ],
)
def test_an_option_that_says_nothing_about_the_kind_is_refused(spec: str, option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(option))} says nothing about {spec}"):
        parse_tessellation(spec, **option)


def test_a_ready_tessellation_takes_no_options() -> None:
    with pytest.raises(ConfigError, match="already made"):
        parse_tessellation(parse_tessellation("grid:500"), snap_m=5)


@pytest.mark.parametrize("spec", ["nowhere.geojson", "polygons:nowhere.parquet", "roads:nowhere.geojson"])
def test_a_missing_file_is_named(spec: str) -> None:
    with pytest.raises(DataError, match=r"nowhere\.\w+: there is no such file"):
        parse_tessellation(spec)


@pytest.mark.parametrize(
    "meta", [{}, {"kind": "voronoi"}, {"kind": "grid"}, {"kind": "h3", "size": 3}, {"kind": "polygons"}]
)
def test_a_description_of_no_tessellation_is_refused(meta: dict[str, Any]) -> None:
    with pytest.raises(RunError, match="tessellation: "):
        restore_tessellation(meta, NOTHING)
