"""The table of locations on disk: GeoParquet 1.1, read back with numpy and pyarrow alone."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.errors import DataError, RunError
from attnmove.nouns import Locations

_SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("key", pa.int64()),
        ("geometry", pa.binary()),
    ]
)


def write_locations(path: Path, locations: Locations) -> None:
    """Write the locations; one without an outline gets the point of its centre, one without a place gets null."""
    outlines = locations.geometry or [None] * len(locations)
    centres = zip(locations.lon.tolist(), locations.lat.tolist(), strict=True)
    geometry = [
        _wkb_point(lon, lat) if outline is None else outline
        for outline, (lon, lat) in zip(outlines, centres, strict=True)
    ]
    columns = [
        pa.array(np.arange(len(locations)), pa.int32()),
        pa.array(locations.name.tolist(), pa.string()),
        pa.array(locations.lon, pa.float64(), from_pandas=True),
        pa.array(locations.lat, pa.float64(), from_pandas=True),
        pa.array(locations.key, pa.int64()),
        pa.array(geometry, pa.binary()),
    ]
    schema = _SCHEMA.with_metadata({"geo": json.dumps(_geo_metadata(geometry))})
    try:
        pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, compression="zstd")
    except OSError as error:
        raise RunError(f"{path}: the locations cannot be written ({error})") from None


def read_locations(path: Path) -> Locations:
    """The locations that `write_locations` wrote; raises RunError when the file is missing or no such table."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except FileNotFoundError:
        raise RunError(f"{path}: there is no such file; expected a table of locations") from None
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"{path}: expected a Parquet table of locations, but it cannot be read ({reason})") from None
    missing = [name for name in _SCHEMA.names if name not in table.column_names]
    if missing:
        raise RunError(f"{path}: a table of locations has a column {missing[0]}, found {', '.join(table.column_names)}")
    try:
        table = table.select(_SCHEMA.names).cast(_SCHEMA)
        if table["id"].to_pylist() != list(range(len(table))):
            raise RunError(f"{path}: the ids of a table of locations must be 0, 1, 2, … in this order")
        geometry = table["geometry"].to_pylist()
        return Locations(
            name=np.array(table["name"].to_pylist(), dtype=object),
            lon=table["lon"].to_numpy(),
            lat=table["lat"].to_numpy(),
            key=table["key"].to_numpy(),
            geometry=None if table["geometry"].null_count == len(table) else geometry,
        )
    except (pa.ArrowException, DataError) as error:
        raise RunError(f"{path}: this is no table of locations ({error})") from None


def _wkb_point(lon: float, lat: float) -> bytes | None:
    if np.isnan(lon) or np.isnan(lat):
        return None
    return struct.pack("<BIdd", 1, 1, lon, lat)


def _geo_metadata(geometry: list[bytes | None]) -> dict[str, Any]:
    """The `geo` metadata; without a `crs` member it means OGC:CRS84, longitude and latitude on WGS-84."""
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": []}
    known = [wkb for wkb in geometry if wkb is not None]
    if known:
        try:
            import shapely
        except ImportError:  # a machine that only trains; its runs do without the two members, which are optional
            return _page(column)
        shapes = shapely.from_wkb(known)
        column["geometry_types"] = sorted({shape.geom_type for shape in shapes})
        column["bbox"] = shapely.total_bounds(shapes).tolist()
    return _page(column)


def _page(column: dict[str, Any]) -> dict[str, Any]:
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
