"""The locations of a run as GeoJSON: all of them, packed once, or those in a box."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from functools import cached_property

import numpy as np

from attnmove.errors import ConfigError
from attnmove.nouns import Bool, Locations
from attnmove.space.outlines import outlines_of


class LocationsMap:
    """Features of the locations whose places are known."""

    def __init__(self, locations: Locations) -> None:
        shapes = outlines_of(locations.geometry or [None] * len(locations))
        known: Bool = np.asarray(np.isfinite(locations.centres).all(axis=1))
        centres = np.column_stack([locations.lon, locations.lat, locations.lon, locations.lat])
        drawn: Bool = np.asarray(np.isfinite(shapes.bounds).all(axis=1))
        self._bounds = np.where(drawn[:, None], shapes.bounds, centres)[known]
        self._features = [
            _feature(locations, i, shapes.geojson[i] if drawn[i] else None) for i in np.flatnonzero(known).tolist()
        ]

    @cached_property
    def whole(self) -> bytes:
        """All features."""
        return _collection(self._features)

    @cached_property
    def packed(self) -> bytes:
        """The same, gzipped."""
        return gzip.compress(self.whole, 6, mtime=0)

    @cached_property
    def tag(self) -> str:
        """What changes when the locations do."""
        return f'"{hashlib.sha256(self.whole).hexdigest()[:32]}"'

    def inside(self, box: str) -> bytes:
        """The features that touch `west,south,east,north`. Raises ConfigError for anything else."""
        west, south, east, north = _parse(box)
        b = self._bounds
        touches = (b[:, 0] <= east) & (b[:, 2] >= west) & (b[:, 1] <= north) & (b[:, 3] >= south)
        return _collection([self._features[i] for i in np.flatnonzero(touches).tolist()])


def _parse(box: str) -> tuple[float, float, float, float]:
    try:
        west, south, east, north = (float(part) for part in box.split(","))
    except ValueError:
        west = math.nan
    if not math.isfinite(west) or not all(map(math.isfinite, (south, east, north))) or west > east or south > north:
        raise ConfigError("bbox: expected four numbers west,south,east,north, such as 116.2,39.8,116.5,40.0")
    return west, south, east, north


def _feature(locations: Locations, i: int, outline: str | None) -> str:
    lon, lat = round(float(locations.lon[i]), 6), round(float(locations.lat[i]), 6)
    geometry = outline or json.dumps({"type": "Point", "coordinates": [lon, lat]})
    about = json.dumps({"id": i, "name": locations.name[i], "lon": lon, "lat": lat}, ensure_ascii=False)
    return f'{{"type":"Feature","id":{i},"properties":{about},"geometry":{geometry}}}'


def _collection(features: list[str]) -> bytes:
    return f'{{"type":"FeatureCollection","features":[{",".join(features)}]}}'.encode()
