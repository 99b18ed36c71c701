"""Files of shapes: the forms that are read, and the faults that are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from attnmove.errors import DataError
from attnmove.space.polygons import read_polygons
from space.shapes import box, feature, keys_of, line, write_features

SQUARE = box(0, 0, 1, 1)
PROJECTED = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32650"}}


def write(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize(
    "document",
    [
        {"type": "FeatureCollection", "features": [feature(SQUARE)]},
        feature(SQUARE),
        SQUARE,
        {"type": "GeometryCollection", "geometries": [SQUARE]},
        {"type": "MultiPolygon", "coordinates": [SQUARE["coordinates"]]},
        {**feature(SQUARE), "properties": None},
        "\ufeff" + json.dumps(SQUARE),
        {"type": "Polygon", "coordinates": [[[0, 0, 55], [1, 0, 55], [1, 1, 55], [0, 1, 55], [0, 0, 55]]]},
    ],
)
def test_every_form_of_geojson_is_read(tmp_path: Path, document: Any) -> None:
    polygons = read_polygons(write(tmp_path / "p.geojson", document))
    assert keys_of(polygons, (0.5, 0.5), (5, 5)) == [0, -1]
    assert not shapely.has_z(shapely.from_wkb(polygons.cells.geometry)).any()


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\n\x1e"])
def test_one_feature_a_line_is_read(tmp_path: Path, separator: str) -> None:
    text = separator.join(json.dumps(feature(box(i, 0, i + 1, 1), name=f"n{i}")) for i in range(3)) + "\n"
    polygons = read_polygons(write(tmp_path / "p.geojsonl", text))
    assert polygons.cells.name.tolist() == ["n0", "n1", "n2"]


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326", "urn:ogc:def:crs:EPSG::4326"])
def test_a_crs_member_that_means_wgs84_is_fine(tmp_path: Path, name: str) -> None:
    crs = {"type": "name", "properties": {"name": name}}
    assert len(read_polygons(write_features(tmp_path / "p.geojson", feature(SQUARE), crs=crs)).cells) == 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "expected GeoJSON, but line 1, column 1"),
        ('{"type": "FeatureCollection",', "expected GeoJSON, but line 1"),
        (json.dumps(SQUARE) + "\n{oops\n", "line 2, column 2"),
        ([], "FeatureCollection, Feature or geometry, found list"),
        ({"kind": "map"}, "found type None"),
        ({"type": "Topology"}, "found type 'Topology'"),
        ({"type": "FeatureCollection"}, "found type 'FeatureCollection'"),
        ({"type": "FeatureCollection", "features": []}, "the file has no features"),
        ({"type": "FeatureCollection", "features": [3]}, "feature 0 .* is no GeoJSON feature"),
        ({"type": "FeatureCollection", "features": [{"type": "Feature"}]}, "feature 0 .* no geometry"),
        (feature(None), "feature 0 .* has no geometry"),
        ({**feature(SQUARE), "properties": [1]}, "properties that are no JSON object"),
        (feature({"type": "Polygon"}), "broken coordinates for a Polygon"),
        (feature({"type": "Polygon", "coordinates": "here"}), "broken coordinates for a Polygon"),
        (feature({"type": "Polygon", "coordinates": [[[0, 0], [1, None], [1, 1], [0, 0]]]}), "broken coordinates"),
        (feature({"type": "Polygon", "coordinates": [[[0, 0], [1, float("nan")], [1, 1], [0, 0]]]}), "feature 0"),
        (feature({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}), "feature 0"),
        (feature({"type": "Polygon", "coordinates": []}), "encloses no area"),
        (feature({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 2], [0, 0]]]}), "encloses no area"),
        (feature({"type": "Point", "coordinates": [0, 0]}), "feature 0 .* is a Point, expected a Polygon"),
        (feature(line((0, 0), (1, 1))), "is a LineString, .* use roads:FILE"),
        (feature({"type": "GeometryCollection", "geometries": [SQUARE]}), "is a GeometryCollection"),
        ({"type": "FeatureCollection", "features": [feature(SQUARE)], "crs": PROJECTED}, "EPSG::32650; reproject"),
        ({"type": "FeatureCollection", "features": [feature(SQUARE)], "crs": "EPSG:3857"}, "EPSG:3857; reproject"),
        (
            {"type": "FeatureCollection", "features": [feature(SQUARE), feature(box(448_000, 4.4e6, 449_000, 4.5e6))]},
            r"feature 1 .* reaches from \(448000, 4.4e\+06\) .* reproject",
        ),
    ],
)
def test_a_fault_in_geojson_is_named(tmp_path: Path, document: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_polygons(write(tmp_path / "p.geojson", document))
    assert str(tmp_path / "p.geojson") in str(caught.value)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.geojson").write_bytes(json.dumps(SQUARE).encode() + "é".encode("latin-1"))
    with pytest.raises(DataError, match="in UTF-8"):
        read_polygons(tmp_path / "p.geojson")


def test_a_missing_file_and_an_unknown_ending_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.geojson: there is no such file"):
        read_polygons(tmp_path / "nowhere.geojson")
    with pytest.raises(DataError, match=r"found \.shp; convert it to GeoJSON"):
        read_polygons(write(tmp_path / "p.shp", "x"))


def write_geoparquet(path: Path, column: dict[str, Any] | None, **columns: list[Any]) -> Path:
    geometry = shapely.to_wkb([shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)]).tolist()
    table = pa.table({"geom": geometry, **columns})
    if column is not None:
        geo = {"version": "1.1.0", "primary_column": "geom", "columns": {"geom": column}}
        table = table.replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    "crs",
    [
        {},
        {"crs": None},
        {"crs": {"id": {"authority": "OGC", "code": "CRS84"}}},
        {"crs": {"id": {"authority": "EPSG", "code": 4326}}},
    ],
)
def test_geoparquet_is_read_with_its_names(tmp_path: Path, crs: dict[str, Any]) -> None:
    path = write_geoparquet(
        tmp_path / "p.parquet", {"encoding": "WKB", **crs}, geoid=["x", "y"], box=[{"a": 1}, {"a": 2}]
    )
    polygons = read_polygons(path)
    assert polygons.cells.name.tolist() == ["x", "y"]
    assert keys_of(polygons, (1.5, 0.5)) == [1]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (None, "no valid `geo` metadata"),
        ({"encoding": "polygon"}, "found polygon; save it again as WKB"),
        ({"encoding": "WKB", "crs": {"id": {"authority": "EPSG", "code": 3857}}}, "found EPSG:3857; reproject"),
        ({"encoding": "WKB", "crs": {"name": "WGS 84 / UTM zone 50N"}}, "found WGS 84 / UTM zone 50N; reproject"),
        ({"encoding": "WKB", "crs": 'PROJCS["x",AUTHORITY["EPSG","4326"]]'}, "found PROJCS"),
    ],
)
def test_a_fault_in_geoparquet_is_named(tmp_path: Path, column: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_polygons(write_geoparquet(tmp_path / "p.parquet", column))


def test_a_parquet_file_that_is_none_or_holds_no_wkb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected a Parquet file"):
        read_polygons(write(tmp_path / "p.parquet", "PAR1 or not"))
    path = write_geoparquet(tmp_path / "q.parquet", {"encoding": "WKB"})
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "geom", pa.array([b"junk", None])), path)
    with pytest.raises(DataError, match=r"feature 0 .* not WKB"):
        read_polygons(path)
