"""From a word such as grid:500, h3:8, blocks.geojson or roads:city.osm.pbf to a tessellation."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnmove.errors import ConfigError, RunError
from attnmove.nouns import Locations
from attnmove.space import endings
from attnmove.space.tessellation import Tessellation

_KINDS = ("grid", "h3", "polygons", "roads")
_POSSIBLE = "grid:METRES, h3:RESOLUTION, a .geojson or .parquet file of polygons, or roads:FILE"


def parse_tessellation(
    spec: str | Tessellation,
    *,
    name_property: str | None = None,
    snap_m: float | None = None,
    road_classes: Sequence[str] | None = None,
) -> Tessellation:
    """The tessellation that `spec` describes: grid:METRES, h3:RESOLUTION, FILE or polygons:FILE, roads:FILE.

    `name_property` is the property that names polygons, `snap_m` how many metres outside a polygon or block a point
    may lie, `road_classes` the values of OSM's `highway` that count as roads; None means the usual.
    Raises ConfigError for a spec or an option that makes no sense, DataError for a file that is missing or broken.
    """
    options = {"name_property": name_property, "snap_m": snap_m, "road_classes": road_classes}
    given = [name for name, value in options.items() if value is not None]
    if not isinstance(spec, str):
        _refuse_options(given, (), "a tessellation that is already made")
        return spec
    kind, value = _split(spec)
    # shapely and h3ronpy are imported only now: a machine that trains on a prepared dataset has neither.
    if kind == "grid":
        from attnmove.space.grid import Grid

        _refuse_options(given, (), spec)
        return Grid(_number(spec, value, "the side of a cell in metres, such as grid:500"))
    if kind == "h3":
        from attnmove.space.hexagons import H3

        _refuse_options(given, (), spec)
        res = _number(spec, value, "a resolution from 0 to 15, such as h3:8")
        if res != int(res):
            raise ConfigError(f"{spec}: the resolution must be a whole number")
        return H3(int(res))
    if kind == "polygons":
        from attnmove.space.polygons import DEFAULT_SNAP_M, read_polygons

        _refuse_options(given, ("name_property", "snap_m"), spec)
        snap_m = DEFAULT_SNAP_M if snap_m is None else snap_m
        return read_polygons(Path(value), name_property=name_property, snap_m=snap_m)
    from attnmove.space.polygons import DEFAULT_SNAP_M
    from attnmove.space.roads import read_roads

    _refuse_options(given, ("snap_m", "road_classes"), spec)
    return read_roads(Path(value), road_classes=road_classes, snap_m=DEFAULT_SNAP_M if snap_m is None else snap_m)


def restore_tessellation(meta: Mapping[str, Any], locations: Locations) -> Tessellation:
    """The tessellation whose `to_json` gave `meta`, with the polygons of `locations` where it has any.

    Raises RunError when `meta` describes none.
    """
    meta = dict(meta)
    kind = meta.pop("kind", None)
    try:
        if kind == "grid":
            from attnmove.space.grid import Grid

            return Grid(**meta)
        if kind == "h3":
            from attnmove.space.hexagons import H3

            return H3(**meta)
        if kind in ("polygons", "roads"):
            from attnmove.space.polygons import restore_polygons

            return restore_polygons(meta.pop("source"), locations, meta.pop("snap_m"), kind, meta)
    except (KeyError, TypeError) as error:
        raise RunError(f"tessellation: {kind} has other settings than {', '.join(meta) or 'none'} ({error})") from None
    raise RunError(f"tessellation: expected the kind {', '.join(_KINDS)}; found {kind!r}")


def _split(spec: str) -> tuple[str, str]:
    """The kind and what follows it; the ending of a bare file name tells that it holds polygons."""
    kind, colon, value = spec.partition(":")
    if colon and kind in _KINDS:
        if not value:
            raise ConfigError(f"{spec}: nothing follows the colon; expected {_POSSIBLE}")
        return kind, value
    if spec.lower().endswith(endings.GEOJSON + endings.GEOPARQUET):
        return "polygons", spec
    close = difflib.get_close_matches(kind.lower(), _KINDS, n=1)
    if spec.lower().endswith(endings.OSM):
        hint = f"; did you mean roads:{spec}?"
    elif close:
        hint = f"; did you mean {close[0]}:{value or '…'}?"
    else:
        hint = ""
    raise ConfigError(f"tessellation: expected {_POSSIBLE}; found {spec!r}{hint}")


def _number(spec: str, text: str, expected: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{spec}: expected {expected}, found {text!r}")
    return value


def _refuse_options(given: Sequence[str], allowed: Sequence[str], spec: str) -> None:
    for name in given:
        if name not in allowed:
            raise ConfigError(f"{name} says nothing about {spec}: leave it out")
