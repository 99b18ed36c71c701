"""Shapes with their properties, read from GeoJSON and GeoParquet and checked to be WGS-84 degrees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from attnmove.errors import DataError
from attnmove.space import endings

REPROJECT = "reproject the file to WGS-84 longitude and latitude (EPSG:4326)"

_GEOMETRY_TYPES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon")

Shapes = npt.NDArray[np.object_]
"""An array of shapely geometries."""


@dataclass(frozen=True)
class Features:
    """The features of a file in its order."""

    shape: Shapes
    ids: list[Any]
    """The `id` member of each GeoJSON feature, None where it has none."""
    properties: Mapping[str, list[Any]]
    """The values of each property, None where a feature lacks it."""


def read_features(path: Path) -> Features:
    """The features of a GeoJSON or GeoParquet file, in two dimensions.

    Raises DataError when the file cannot be read, a feature has no shape, or coordinates are not degrees.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    suffix = path.suffix.lower()
    if suffix in endings.GEOJSON:
        features = _read_geojson(path)
    elif suffix in endings.GEOPARQUET:
        features = _read_geoparquet(path)
    else:
        raise DataError(
            f"{path}: expected a file that ends in {', '.join(endings.GEOJSON + endings.GEOPARQUET)}, "
            f"found {suffix or 'no ending'}; convert it to GeoJSON"
        )
    if len(features.shape) == 0:
        raise DataError(f"{path}: the file has no features")
    _check_degrees(path, features.shape)
    return features


def refuse_feature(path: Path, position: int, problem: str) -> NoReturn:
    """Raise DataError about the feature at `position`."""
    raise DataError(f"{path}: feature {position} (the first is 0) {problem}")


def _read_geojson(path: Path) -> Features:
    members = [member for document in _documents(path) for member in _members(path, document)]
    geometries = [member["geometry"] for member in members]
    texts = np.array([json.dumps(geometry) for geometry in geometries], dtype=object)
    shape = shapely.force_2d(shapely.from_geojson(texts, on_invalid="ignore"))
    for i in np.flatnonzero(shapely.is_missing(shape)).tolist():
        kind = geometries[i].get("type") if isinstance(geometries[i], dict) else None
        if kind is None:
            refuse_feature(path, i, "has no geometry: remove it or give it one")
        refuse_feature(path, i, f"has broken coordinates for a {kind}: expected the coordinates of RFC 7946")
    rows = [member.get("properties") or {} for member in members]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Features(
        shape=shape,
        ids=[member.get("id") for member in members],
        properties={name: [row.get(name) for row in rows] for name in names},
    )


def _documents(path: Path) -> list[Any]:
    """The JSON values in the file: one, or one a line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected GeoJSON in UTF-8, found a byte that is not at {error.start}") from None
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            _refuse_json(path, error, error.lineno)
    documents = []
    # Not splitlines: a text in a property may hold a line separator of Unicode.
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip("\x1e \t\r")  # RFC 8142 begins each text with a record separator
        if line:
            try:
                documents.append(json.loads(line))
            except json.JSONDecodeError as error:
                _refuse_json(path, error, number)
    return documents


def _refuse_json(path: Path, error: json.JSONDecodeError, line: int) -> NoReturn:
    raise DataError(f"{path}: expected GeoJSON, but line {line}, column {error.colno}: {error.msg}") from None


def _members(path: Path, document: Any) -> list[dict[str, Any]]:
    """The features of one JSON value, each a dict with a `geometry`."""
    members: list[dict[str, Any]]
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "FeatureCollection" and isinstance(document.get("features"), list):
        members = document["features"]
    elif kind == "Feature":
        members = [document]
    elif kind == "GeometryCollection" and isinstance(document.get("geometries"), list):
        members = [{"geometry": geometry} for geometry in document["geometries"]]
    elif kind in _GEOMETRY_TYPES:
        members = [{"geometry": document}]
    else:
        found = f"type {kind!r}" if isinstance(document, dict) else type(document).__name__
        raise DataError(f"{path}: expected a GeoJSON FeatureCollection, Feature or geometry, found {found}")
    for i, member in enumerate(members):
        if not isinstance(member, dict) or "geometry" not in member:
            refuse_feature(path, i, "is no GeoJSON feature: it has no geometry member")
        if not isinstance(member.get("properties") or {}, dict):
            refuse_feature(path, i, "has properties that are no JSON object")
    if document.get("crs") is not None:
        _check_crs(path, _crs_name(document["crs"]))
    return members


def _read_geoparquet(path: Path) -> Features:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: expected a Parquet file, but {str(error).splitlines()[0]}") from None
    metadata = (table.schema.metadata or {}).get(b"geo")
    try:
        geo = json.loads(metadata or b"")
        primary = geo["primary_column"]
        column = geo["columns"][primary]
        values = table[primary]
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path}: this Parquet file has no valid `geo` metadata; save it as GeoParquet") from None
    if column.get("encoding") != "WKB":
        raise DataError(
            f"{path}: expected geometries encoded as WKB, found {column.get('encoding')}; save it again as WKB"
        )
    if column.get("crs") is not None:
        _check_crs(path, _crs_name(column["crs"]))
    shape = shapely.force_2d(shapely.from_wkb(np.array(values.to_pylist(), dtype=object), on_invalid="ignore"))
    for i in np.flatnonzero(shapely.is_missing(shape)).tolist():
        refuse_feature(path, i, "has no geometry, or one that is not WKB: remove it or give it one")
    plain = [field.name for field in table.schema if field.name != primary and not pa.types.is_nested(field.type)]
    return Features(shape, [None] * len(shape), {name: table[name].to_pylist() for name in plain})


def _crs_name(crs: Any) -> str:
    """What a PROJJSON object, a GeoJSON `crs` member or a text calls the coordinate system."""
    match crs:
        case {"id": {"authority": authority, "code": code}}:
            return f"{authority}:{code}"
        case {"properties": {"name": name}} | {"name": name}:
            return str(name)
    return str(crs)[:80]


def _check_crs(path: Path, name: str) -> None:
    parts = re.split("[:/]+", name.upper())
    if not (parts[-1] == "CRS84" or (parts[-1] == "4326" and "EPSG" in parts)):
        raise DataError(f"{path}: expected the coordinate system OGC:CRS84 or EPSG:4326, found {name}; {REPROJECT}")


def _check_degrees(path: Path, shape: Shapes) -> None:
    extreme = np.abs(shapely.bounds(shape))  # west, south, east, north; NaN where the shape is empty
    for i in np.flatnonzero((extreme > [180, 90, 180, 90]).any(axis=1)).tolist():
        west, south, east, north = shapely.bounds(shape[i]).tolist()
        refuse_feature(
            path,
            i,
            f"reaches from ({west:g}, {south:g}) to ({east:g}, {north:g}), "
            f"but degrees lie within ±180 and ±90; {REPROJECT}",
        )
