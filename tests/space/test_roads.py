"""Blocks between roads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from attnmove.errors import ConfigError, DataError, MissingExtra
from attnmove.space.polygon_index import area_m2
from attnmove.space.polygons import Polygons
from attnmove.space.roads import read_roads
from space.shapes import METRES_PER_DEGREE, feature, keys_of, line, street_lines, write_features


def outlines(roads: Polygons) -> Any:
    return shapely.from_wkb(roads.cells.geometry)


def write_streets(path: Path, *geometries: dict[str, Any], **properties: Any) -> Path:
    return write_features(path, *[feature(geometry, **properties) for geometry in geometries])


def test_streets_enclose_blocks_numbered_from_south_west_to_north_east(tmp_path: Path) -> None:
    roads = read_roads(write_streets(tmp_path / "streets.geojson", *street_lines(3)))
    assert roads.spec == "roads:streets.geojson"
    assert roads.cells.name.tolist() == [str(i) for i in range(9)]
    assert keys_of(roads, (116.4025, 39.9025), (116.4075, 39.9025), (116.4025, 39.9075)) == [0, 1, 3]
    expected = 0.005**2 * METRES_PER_DEGREE**2 * np.cos(np.radians(39.9075))
    assert area_m2(outlines(roads)) == pytest.approx(expected, rel=0.001)


def test_the_order_of_the_roads_does_not_change_the_blocks(tmp_path: Path) -> None:
    lines = street_lines(3)
    turned = [{**street, "coordinates": street["coordinates"][::-1]} for street in lines[::-1]]
    one = read_roads(write_streets(tmp_path / "one.geojson", *lines))
    other = read_roads(write_streets(tmp_path / "other.geojson", *turned))
    assert one.cells.geometry == other.cells.geometry


def test_lines_of_many_parts_are_read(tmp_path: Path) -> None:
    parts = {"type": "MultiLineString", "coordinates": [street["coordinates"] for street in street_lines(2)]}
    assert len(read_roads(write_streets(tmp_path / "streets.geojson", parts)).cells) == 4


def test_the_strip_between_two_carriageways_is_no_block_and_its_points_go_to_the_nearest(tmp_path: Path) -> None:
    second = 15 / METRES_PER_DEGREE  # a carriageway 15 m north of the middle street
    lines = [*street_lines(2), line((116.399, 39.905 + second), (116.411, 39.905 + second))]
    roads = read_roads(write_streets(tmp_path / "streets.geojson", *lines))
    assert len(roads.cells) == 4
    # The strip is 427 m long, so its 6,400 m² alone would not tell it from a block.
    south, north = (116.4025, 39.905 + 0.2 * second), (116.4025, 39.905 + 0.8 * second)
    assert keys_of(roads, south, north) == [0, 2]
    assert keys_of(read_roads(tmp_path / "streets.geojson", snap_m=0), south) == [-1]


def test_a_small_face_is_dropped_unless_asked_for(tmp_path: Path) -> None:
    west, south, side = 116.4025, 39.9025, 60 / METRES_PER_DEGREE
    square = line((west, south), (west + side, south), (west + side, south + side), (west, south + side), (west, south))
    path = write_streets(tmp_path / "streets.geojson", *street_lines(1), square)
    assert len(read_roads(path, min_block_m2=2500).cells) == 2
    assert len(read_roads(path, min_block_m2=3000).cells) == 1


def test_only_roads_of_the_chosen_classes_cut(tmp_path: Path) -> None:
    crossing = line((116.4025, 39.899), (116.4025, 39.906))
    features = [feature(street, highway="primary") for street in street_lines(1)]
    features += [feature(crossing, highway="residential"), feature({"type": "Point", "coordinates": [116.4, 39.9]})]
    path = write_features(tmp_path / "streets.geojson", *features)
    assert len(read_roads(path).cells) == 1
    assert len(read_roads(path, road_classes=["primary", "residential"]).cells) == 2
    assert read_roads(path, road_classes=["primary"]).to_json() == {
        "kind": "roads",
        "source": "streets.geojson",
        "snap_m": 100.0,
        "road_classes": ["primary"],
        "min_block_m2": 1000.0,
    }


def test_a_file_without_roads_of_the_classes_says_which_it_has(tmp_path: Path) -> None:
    path = write_streets(tmp_path / "streets.geojson", *street_lines(1), highway="footway")
    with pytest.raises(DataError, match="found only footway; name the classes"):
        read_roads(path)


def test_classes_cannot_choose_among_roads_that_have_none(tmp_path: Path) -> None:
    path = write_streets(tmp_path / "streets.geojson", *street_lines(1))
    with pytest.raises(ConfigError, match="no road has a property highway"):
        read_roads(path, road_classes=["primary"])


@pytest.mark.parametrize("classes", ["primary", []])
def test_classes_must_be_a_list(tmp_path: Path, classes: Any) -> None:
    with pytest.raises(ConfigError, match="road_classes must be a list"):
        read_roads(tmp_path / "streets.geojson", road_classes=classes)


def test_a_negative_block_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="min_block_m2 must be 0 or more"):
        read_roads(tmp_path / "streets.geojson", min_block_m2=-1)


def test_roads_that_enclose_nothing_are_refused(tmp_path: Path) -> None:
    path = write_streets(tmp_path / "streets.geojson", line((0, 0), (1, 1)), line((0, 1), (1, 0)))
    with pytest.raises(DataError, match="the 2 roads enclose no block"):
        read_roads(path)


def test_a_polygon_among_the_roads_is_refused(tmp_path: Path) -> None:
    path = write_streets(
        tmp_path / "streets.geojson", {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    )
    with pytest.raises(DataError, match=r"feature 0 .* is a Polygon, expected a LineString"):
        read_roads(path)


def write_osm(path: Path, lines: list[dict[str, Any]], highway: str = "primary", lost_node: bool = False) -> Path:
    osmium = pytest.importorskip("osmium")
    points = [[tuple(point) for point in street["coordinates"]] for street in lines]
    ids = {point: i for i, point in enumerate(dict.fromkeys(p for street in points for p in street), start=1)}
    with osmium.SimpleWriter(str(path)) as writer:
        for point, i in ids.items():
            writer.add_node(osmium.osm.mutable.Node(id=i, location=point, tags={"highway": "crossing"}))
        for i, street in enumerate(points, start=1):
            nodes = [ids[point] for point in street] + ([10_000] if lost_node else [])
            writer.add_way(osmium.osm.mutable.Way(id=i, nodes=nodes, tags={"highway": highway}))
        writer.add_way(osmium.osm.mutable.Way(id=900, nodes=[1, 2], tags={"building": "yes"}))
    return path


@pytest.mark.parametrize("name", ["streets.osm.pbf", "streets.osm", "streets.osm.gz"])
def test_an_osm_file_gives_the_blocks_of_the_same_roads_in_geojson(tmp_path: Path, name: str) -> None:
    from_osm = read_roads(write_osm(tmp_path / name, street_lines(3)))
    from_geojson = read_roads(write_streets(tmp_path / "streets.geojson", *street_lines(3)))
    assert len(from_osm.cells) == 9
    corners = [shapely.get_coordinates(outlines(roads)) for roads in (from_osm, from_geojson)]
    np.testing.assert_allclose(corners[0], corners[1], atol=2e-7)  # OSM keeps seven decimals


def test_a_way_that_leaves_the_extract_keeps_the_nodes_that_are_known(tmp_path: Path) -> None:
    assert len(read_roads(write_osm(tmp_path / "s.osm.pbf", street_lines(2), lost_node=True)).cells) == 4


def test_an_osm_file_without_such_roads_is_refused(tmp_path: Path) -> None:
    path = write_osm(tmp_path / "s.osm.pbf", street_lines(2), highway="footway")
    with pytest.raises(DataError, match="no way whose highway is motorway"):
        read_roads(path)


def test_a_broken_or_missing_osm_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("osmium")
    (tmp_path / "s.osm.pbf").write_bytes(b"not a PBF at all")
    with pytest.raises(DataError, match="expected an OSM file, but it cannot be read"):
        read_roads(tmp_path / "s.osm.pbf")
    with pytest.raises(DataError, match="there is no such file"):
        read_roads(tmp_path / "nowhere.osm.pbf")


def test_without_osmium_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "osmium", None)
    with pytest.raises(MissingExtra, match=r"attnmove\[osm\]"):
        read_roads(tmp_path / "s.osm.pbf")
