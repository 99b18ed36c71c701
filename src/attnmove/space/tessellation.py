"""What every tessellation answers: which cell a point lies in, and what and where that cell is."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from attnmove.errors import DataError
from attnmove.nouns import Bool, Float64, Int64, Locations

NO_CELL = -1
"""The key of a point that lies in no cell."""


class Tessellation(Protocol):
    """A rule that cuts space into cells; it can be pickled and asked from several threads at once."""

    @property
    def spec(self) -> str:
        """The rule in one word, as `parse_tessellation` reads it; of a file only the name."""
        ...

    def keys(self, lon: Float64, lat: Float64) -> Int64:
        """The cell of each point, NO_CELL where there is none; WGS-84 degrees."""
        ...

    def all_keys(self) -> Int64 | None:
        """Every key, ascending; None where the cells have no list."""
        ...

    def locations(self, keys: Int64) -> Locations:
        """Names, centres and outlines (WKB) of the cells `keys`, in this order."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What `restore_tessellation` needs beside the table of locations."""
        ...


def on_earth(lon: Float64, lat: Float64) -> Bool:
    """True where longitude is within ±180 and latitude within ±90 degrees; False for NaN."""
    inside: Bool = (np.abs(lon) <= 180) & (np.abs(lat) <= 90)
    return inside


def refuse_unknown(keys: Int64, known: Bool, spec: str) -> None:
    """Raise DataError when a key names no cell of the tessellation `spec`."""
    if not known.all():
        raise DataError(f"key {keys[~known][0]} is no cell of {spec}: ask only for keys that keys() gave")
