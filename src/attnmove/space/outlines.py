"""Outlines of locations as GeoJSON geometries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from attnmove.nouns import Float64

_DIGITS = 6
"""Of degrees: a tenth of a metre."""


@dataclass(frozen=True)
class Outlines:
    """Geometries as text, and the box around each."""

    geojson: list[str | None] = field(repr=False)
    """(L,) GeoJSON; None where nothing is known."""
    bounds: Float64 = field(repr=False)
    """(L, 4) west, south, east, north in degrees; NaN where nothing is known."""


def outlines_of(geometry: Sequence[bytes | None]) -> Outlines:
    """The outlines of WKB geometries, rounded to a tenth of a metre."""
    import shapely

    shapes = shapely.from_wkb(np.array(geometry, dtype=object))
    rounded = shapely.transform(shapes, lambda places: places.round(_DIGITS))
    return Outlines(shapely.to_geojson(rounded).tolist(), shapely.bounds(rounded))
