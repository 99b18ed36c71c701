"""Cells from a file of polygons."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from attnmove.errors import ConfigError, RunError
from attnmove.nouns import Float64, Int64, Locations
from attnmove.space.features import Features, Shapes, read_features, refuse_feature
from attnmove.space.polygon_index import NONE, PolygonIndex
from attnmove.space.tessellation import NO_CELL, on_earth, refuse_unknown

DEFAULT_SNAP_M = 100.0
MAX_SNAP_M = 100_000.0

NAME_PROPERTIES = ("region_id", "id", "name", "osm_id", "fid", "gid", "geoid", "code")
"""Properties that name a polygon where the features have no id, tried in this order, in capitals or not."""


@dataclass(frozen=True, eq=False)
class Polygons:
    """Polygons as cells; the key is the position in the file.

    * A point in several polygons belongs to the smallest of them in area; of equal ones to the first in the file.
    * A point in a hole of a polygon is not in it; a point on an edge is.
    * A point in no polygon belongs to the nearest within `snap_m` metres on the ground, else it has no cell.
    * A centre is the centroid where that lies in the cell, else a point that does.
    """

    source: str
    """The name of the file."""
    cells: Locations
    """Every cell with its outline, keys ascending."""
    index: PolygonIndex = field(repr=False)
    snap_m: float = DEFAULT_SNAP_M
    """How far outside a point may lie, in metres, 0 to 100,000."""
    kind: str = "polygons"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """How the polygons were made from the file, for the record."""

    @property
    def spec(self) -> str:
        """The rule in one word, such as polygons:blocks.geojson."""
        return f"{self.kind}:{self.source}"

    def keys(self, lon: Float64, lat: Float64) -> Int64:
        """The cell of each point, NO_CELL where there is none."""
        lon, lat = np.asarray(lon, dtype=np.float64), np.asarray(lat, dtype=np.float64)
        valid = on_earth(lon, lat)
        if not valid.all():
            keys = np.full(len(lon), NO_CELL, dtype=np.int64)
            keys[valid] = self.keys(lon[valid], lat[valid])
            return keys
        found = self.index.find(lon, lat, self.snap_m)
        return np.where(found == NONE, NO_CELL, self.cells.key[found])

    def all_keys(self) -> Int64 | None:
        """The keys of all polygons."""
        return self.cells.key.copy()

    def locations(self, keys: Int64) -> Locations:
        """Names, centres and outlines of the cells `keys`; raises DataError for an unknown key."""
        keys = np.asarray(keys, dtype=np.int64)
        row = np.minimum(np.searchsorted(self.cells.key, keys), len(self.cells) - 1)
        refuse_unknown(keys, self.cells.key[row] == keys, self.spec)
        cells, geometry = self.cells, self.cells.geometry or []
        return Locations(cells.name[row], cells.lon[row], cells.lat[row], keys, [geometry[i] for i in row.tolist()])

    def to_json(self) -> dict[str, Any]:
        """The kind, the name of the file and the settings; the polygons themselves are in the locations."""
        return {"kind": self.kind, "source": self.source, "snap_m": self.snap_m, **self.settings}

    def __reduce__(self) -> tuple[Any, ...]:
        # Search trees cannot be sent to another process as they are; they are made again there.
        return restore_polygons, (self.source, self.cells, self.snap_m, self.kind, dict(self.settings))


def read_polygons(path: Path, *, name_property: str | None = None, snap_m: float = DEFAULT_SNAP_M) -> Polygons:
    """The tessellation of a GeoJSON or GeoParquet file of polygons.

    Invalid polygons are repaired. Names come from `name_property`, else the features' ids, else the first of
    NAME_PROPERTIES there is, else the position; a name that occurs more than once becomes `name#position`.
    Raises DataError when the file cannot be read or a feature is no polygon, ConfigError when there is no such
    property.
    """
    check_snap(snap_m)
    features = read_features(path)
    names = unique_names(_name_values(path, features, name_property))
    return polygons_of(path.name, _repaired(path, features.shape), names, snap_m)


def polygons_of(
    source: str,
    shapes: Shapes,
    names: list[str],
    snap_m: float,
    kind: str = "polygons",
    settings: Mapping[str, Any] | None = None,
) -> Polygons:
    """The tessellation of valid polygons, keyed by their position."""
    index = PolygonIndex(shapes)
    lon, lat = index.centres().T.copy()
    key = np.arange(len(shapes), dtype=np.int64)
    cells = Locations(np.array(names, dtype=object), lon, lat, key, shapely.to_wkb(shapes).tolist())
    return Polygons(source, cells, index, snap_m, kind, settings or {})


def restore_polygons(
    source: str, locations: Locations, snap_m: float, kind: str = "polygons", settings: Mapping[str, Any] | None = None
) -> Polygons:
    """The tessellation whose cells are `locations`, in any order.

    Where these are only some of the cells of the file, points of the others are answered as if those did not exist.
    Raises RunError when a location has no polygon.
    """
    order = np.argsort(locations.key, kind="stable")
    stored = locations.geometry or [None] * len(locations)
    geometry = [stored[i] for i in order.tolist()]
    shapes = shapely.from_wkb(np.array(geometry, dtype=object))
    missing = np.flatnonzero(~np.isin(shapely.get_type_id(shapes), (3, 6)))  # Polygon, MultiPolygon
    if len(missing) or len(shapes) == 0:
        name = locations.name[order[missing[0]]] if len(missing) else "0 of 0"
        raise RunError(f"{kind}:{source}: location {name} has no polygon; prepare the dataset again")
    cells = Locations(locations.name[order], locations.lon[order], locations.lat[order], locations.key[order], geometry)
    return Polygons(source, cells, PolygonIndex(shapes), snap_m, kind, settings or {})


def check_snap(snap_m: float) -> None:
    """Raise ConfigError when `snap_m` is no sensible distance."""
    if not 0 <= snap_m <= MAX_SNAP_M:
        raise ConfigError(f"snap_m must be 0 (off) to {MAX_SNAP_M:.0f} metres, found {snap_m:g}")


def unique_names(values: list[Any]) -> list[str]:
    """The values as text, each once: one that occurs more than once becomes `value#position`, no value `#position`."""
    names = [_text(value, i) for i, value in enumerate(values)]
    while True:
        count = Counter(names)
        if len(count) == len(names):
            return names
        names = [f"{name}#{i}" if count[name] > 1 else name for i, name in enumerate(names)]


def _text(value: Any, position: int) -> str:
    if value is None:
        return f"#{position}"
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    return str(value)


def _name_values(path: Path, features: Features, name_property: str | None) -> list[Any]:
    properties = features.properties
    if name_property is not None:
        if name_property in properties:
            return properties[name_property]
        close = difflib.get_close_matches(name_property, properties, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(
            f"{path}: no polygon has a property {name_property!r}, found {', '.join(properties) or 'none'}{hint}"
        )
    if any(value is not None for value in features.ids):
        return features.ids
    present = {name.lower(): values for name, values in properties.items()}
    for name in NAME_PROPERTIES:
        if any(value is not None for value in present.get(name, [])):
            return present[name]
    return list(range(len(features.shape)))


def _repaired(path: Path, shapes: Shapes) -> Shapes:
    """Valid polygons; raises DataError for a feature that is none or encloses nothing."""
    for i, shape in enumerate(shapes):
        if shape.geom_type not in ("Polygon", "MultiPolygon"):
            hint = "; for the blocks between roads use roads:FILE" if "Line" in shape.geom_type else ""
            refuse_feature(path, i, f"is a {shape.geom_type}, expected a Polygon or MultiPolygon{hint}")
    shapes = shapes.copy()
    for i in np.flatnonzero(~shapely.is_valid(shapes)).tolist():
        # The repair of a polygon that touches itself may leave lines and points beside the polygons.
        pieces = shapely.get_parts(shapely.get_parts(shapely.make_valid(shapes[i])))
        shapes[i] = shapely.union_all(pieces[shapely.get_dimensions(pieces) == 2])
    for i in np.flatnonzero(shapely.area(shapes) == 0).tolist():
        refuse_feature(path, i, "encloses no area: remove it or repair it")
    return shapes
