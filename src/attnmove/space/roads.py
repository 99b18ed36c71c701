"""Cells between roads: the blocks that a road network encloses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from attnmove.errors import ConfigError, DataError, MissingExtra
from attnmove.space import endings
from attnmove.space.features import Features, Shapes, read_features, refuse_feature
from attnmove.space.polygon_index import area_m2, perimeter_m
from attnmove.space.polygons import DEFAULT_SNAP_M, Polygons, check_snap, polygons_of

DEFAULT_ROAD_CLASSES = (
    "motorway",
    "motorway_link",
    "trunk",
    "trunk_link",
    "primary",
    "primary_link",
    "secondary",
    "secondary_link",
    "tertiary",
    "tertiary_link",
)
"""Values of OSM's `highway`: the roads a city is crossed by. Residential streets would cut it into single houses."""

DEFAULT_MIN_BLOCK_M2 = 1_000.0
MIN_BLOCK_WIDTH_M = 20.0
"""Narrower faces are the strips between the two carriageways of one road."""


def read_roads(
    path: Path,
    *,
    road_classes: Sequence[str] | None = None,
    min_block_m2: float = DEFAULT_MIN_BLOCK_M2,
    snap_m: float = DEFAULT_SNAP_M,
) -> Polygons:
    """The blocks enclosed by the roads of an OSM, GeoJSON or GeoParquet file, from south-west to north-east.

    Roads are those whose `highway` is one of `road_classes`; in a file where no line has a `highway`, all lines.
    Wherever two roads cross they cut, bridges and tunnels too. Faces under `min_block_m2` square metres or less than
    MIN_BLOCK_WIDTH_M wide (twice the area by the perimeter) are dropped; points there go to the nearest block.
    Raises DataError when no block remains.
    """
    check_snap(snap_m)
    if not min_block_m2 >= 0:
        raise ConfigError(f"min_block_m2 must be 0 or more square metres, found {min_block_m2:g}")
    if isinstance(road_classes, str) or (road_classes is not None and not road_classes):
        raise ConfigError(f"road_classes must be a list of values of highway, such as primary; found {road_classes!r}")
    classes = DEFAULT_ROAD_CLASSES if road_classes is None else tuple(road_classes)
    if path.name.lower().endswith(endings.OSM):
        lines = _osm_lines(path, classes)
    else:
        lines = _feature_lines(path, read_features(path), classes, chosen=road_classes is not None)
    blocks = _blocks(lines, min_block_m2)
    if len(blocks) == 0:
        raise DataError(
            f"{path}: the {len(lines)} roads enclose no block of {min_block_m2:g} m² or more; "
            f"expected roads that meet in closed loops, of the classes {', '.join(classes)}"
        )
    settings = {"road_classes": list(classes), "min_block_m2": min_block_m2}
    return polygons_of(path.name, blocks, [str(i) for i in range(len(blocks))], snap_m, "roads", settings)


def _blocks(lines: Shapes, min_block_m2: float) -> Shapes:
    """The faces between the lines that are large and wide enough, in an order that does not depend on the lines'."""
    faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(shapely.union_all(lines))))
    if len(faces) == 0:
        return np.empty(0, dtype=object)
    area = area_m2(faces)
    faces = faces[(area >= min_block_m2) & (2 * area / perimeter_m(faces) >= MIN_BLOCK_WIDTH_M)]
    # The ring of a face may start at any corner; the smallest comes first so that equal roads give equal blocks.
    faces = shapely.normalize(faces)
    lon, lat = np.round(shapely.get_coordinates(shapely.centroid(faces)), 7).T
    ordered: Shapes = faces[np.lexsort((shapely.area(faces), lon, lat))]
    return ordered


def _feature_lines(path: Path, features: Features, classes: Sequence[str], *, chosen: bool) -> Shapes:
    highway = features.properties.get("highway")
    if highway is None:
        if chosen:
            raise ConfigError(f"{path}: no road has a property highway, so road_classes cannot choose among them")
        rows = list(range(len(features.shape)))
    else:
        rows = [i for i, value in enumerate(highway) if value in classes]
        if not rows:
            found = sorted({str(value) for value in highway if value is not None})
            raise DataError(
                f"{path}: expected roads of the classes {', '.join(classes)}, found only {', '.join(found[:20])}; "
                "name the classes to use with road_classes"
            )
    for i in rows:
        if features.shape[i].geom_type not in ("LineString", "MultiLineString"):
            refuse_feature(path, i, f"is a {features.shape[i].geom_type}, expected a LineString or MultiLineString")
    return features.shape[rows]


def _osm_lines(path: Path, classes: Sequence[str]) -> Shapes:
    try:
        import osmium
    except ImportError:
        raise MissingExtra("osmium", "osm", "reading OSM road files") from None
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        lines = [shapely.linestrings(line) for line in _osm_ways(osmium, path, frozenset(classes))]
    except (RuntimeError, ValueError) as error:
        raise DataError(f"{path}: expected an OSM file, but it cannot be read ({error})") from None
    if not lines:
        raise DataError(f"{path}: the file has no way whose highway is {', '.join(classes)}")
    return np.array(lines, dtype=object)


def _osm_ways(osmium: Any, path: Path, classes: frozenset[str]) -> Iterator[list[tuple[float, float]]]:
    """The nodes of each road; an extract cuts ways at its border, so nodes without a place are left out."""
    ways = osmium.FileProcessor(str(path)).with_locations()
    ways.with_filter(osmium.filter.EntityFilter(osmium.osm.WAY)).with_filter(osmium.filter.KeyFilter("highway"))
    for way in ways:
        if way.tags["highway"] in classes:
            line = [(node.lon, node.lat) for node in way.nodes if node.location.valid()]
            if len(line) > 1:
                yield line
