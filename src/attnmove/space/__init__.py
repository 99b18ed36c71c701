"""Where people are: tessellations, datums and the table of locations."""

from attnmove.space.datum import DATUMS, from_wgs84, to_wgs84
from attnmove.space.geoparquet import read_locations, write_locations
from attnmove.space.parse import parse_tessellation, restore_tessellation
from attnmove.space.tessellation import NO_CELL, Tessellation

__all__ = [
    "DATUMS",
    "NO_CELL",
    "Tessellation",
    "from_wgs84",
    "parse_tessellation",
    "read_locations",
    "restore_tessellation",
    "to_wgs84",
    "write_locations",
]
