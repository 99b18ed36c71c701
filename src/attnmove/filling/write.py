"""Recoveries in files: Parquet, CSV, NDJSON, GeoJSON; table after table, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from attnmove.errors import ConfigError
from attnmove.filling.fill import Filler
from attnmove.filling.geojson import features
from attnmove.filling.texts import csv_rows, json_lines

Write = Callable[[Path, Iterable[pa.Table], Filler], None]


def writer_for(path: Path) -> Write:
    """What writes the format of the name's ending. Raises ConfigError for one there is not."""
    if path.suffix.lower() not in _WRITERS:
        raise ConfigError(f"{path}: expected a file that ends in {', '.join(_WRITERS)}, or - for standard output")
    return _WRITERS[path.suffix.lower()]


def check_drawable(path: Path, filler: Filler) -> None:
    """Raise ConfigError where lines are wanted of locations whose places are not known."""
    locations = filler.setting.locations
    if path.suffix.lower() == ".geojson" and (locations.lon != locations.lon).all():
        raise ConfigError(f"{path}: the run's locations have no coordinates to draw; write Parquet, CSV or NDJSON")


def write_parquet(path: Path, tables: Iterable[pa.Table], filler: Filler) -> None:
    """A row group a table."""
    with pq.ParquetWriter(path, filler.schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table, row_group_size=len(table))


def write_csv(path: Path, tables: Iterable[pa.Table], filler: Filler) -> None:
    """A header and a line a slot."""
    empty = csv_rows(filler.schema.empty_table(), filler.setting.zone)
    with csv.CSVWriter(path, empty.schema) as writer:
        for table in tables:
            writer.write_table(csv_rows(table, filler.setting.zone))


def write_ndjson(path: Path, tables: Iterable[pa.Table], filler: Filler) -> None:
    """A JSON object a line and slot."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for table in tables:
            write_lines(file, table, filler)


def write_lines(file: IO[str], table: pa.Table, filler: Filler) -> None:
    """The lines of one table."""
    file.write(json_lines(table, filler.setting.zone))


def write_geojson(path: Path, tables: Iterable[pa.Table], filler: Filler) -> None:
    """One FeatureCollection, a feature a line."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write('{"type": "FeatureCollection", "features": [')
        separator = "\n"
        for table in tables:
            for feature in features(table, filler.setting.n_slots):
                file.write(separator + feature)
                separator = ",\n"
        file.write("\n]}\n")


_WRITERS: dict[str, Write] = {
    ".parquet": write_parquet,
    ".pq": write_parquet,
    ".csv": write_csv,
    ".ndjson": write_ndjson,
    ".jsonl": write_ndjson,
    ".geojson": write_geojson,
}
