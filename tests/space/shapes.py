"""Small builders of GeoJSON for the tests of space."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

METRES_PER_DEGREE = 111_195.08  # of latitude, on the sphere of EARTH_RADIUS_M


def ring(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def box(west: float, south: float, east: float, north: float, hole: list[list[float]] | None = None) -> dict[str, Any]:
    rings = [ring(west, south, east, north)] + ([hole] if hole else [])
    return {"type": "Polygon", "coordinates": rings}


def line(*points: tuple[float, float]) -> dict[str, Any]:
    return {"type": "LineString", "coordinates": [list(point) for point in points]}


def feature(geometry: Any, *, id: Any = None, **properties: Any) -> dict[str, Any]:
    member = {"type": "Feature", "properties": properties, "geometry": geometry}
    return member if id is None else {**member, "id": id}


def write_features(path: Path, *features: dict[str, Any], **members: Any) -> Path:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features), **members}))
    return path


def street_lines(n: int = 3, west: float = 116.4, south: float = 39.9, step: float = 0.005) -> list[dict[str, Any]]:
    """n + 1 streets each way, which enclose n x n blocks of about 427 by 556 metres."""
    at = [i * step for i in range(n + 1)]
    along = [line((west - 0.001, south + y), (west + at[-1] + 0.001, south + y)) for y in at]
    across = [line((west + x, south - 0.001), (west + x, south + at[-1] + 0.001)) for x in at]
    return along + across


def keys_of(tessellation: Any, *points: tuple[float, float]) -> list[int]:
    lon, lat = np.array(points, dtype=np.float64).reshape(-1, 2).T
    return tessellation.keys(lon, lat).tolist()  # type: ignore[no-any-return]
