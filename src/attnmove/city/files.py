"""The synthetic city on disk: streamed into Parquet, a file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.city.places import City
from attnmove.city.synthesis import BLOCK_USERS, DEFAULT_CITY, DEFAULT_START, POINTS_SCHEMA, TRUTH_SCHEMA, synthesize
from attnmove.errors import ConfigError, RunError

CHUNK_ROWS = 2_000_000
"""About how many points are held in memory."""


@dataclass(frozen=True)
class CityReport:
    """How much `write_city` wrote."""

    users: int
    user_days: int
    points: int
    truth_rows: int
    """0 where no truth was asked for."""


def write_city(
    out: Path | str,
    *,
    users: int,
    days: int,
    seed: int,
    truth: Path | str | None = None,
    start: date = DEFAULT_START,
    city: City = DEFAULT_CITY,
    points_per_day: float = 60.0,
    truth_minutes: int = 30,
    progress: Callable[[int, int], None] | None = None,
) -> CityReport:
    """Counts of what was written: the points as Parquet into `out`, the truth into `truth` where given.

    A file appears whole or not at all. `progress` is called with the users done and the users wanted. Raises
    ConfigError where an argument is out of range, RunError where a file cannot be written.
    """
    out, truth = Path(out), None if truth is None else Path(truth)
    if truth is not None and truth.resolve() == out.resolve():
        raise ConfigError(f"city: points and truth need two files; both are {out}")
    chunk_users = min(max(1, int(CHUNK_ROWS / max(1.0, days * points_per_day))), BLOCK_USERS)
    chunks = synthesize(
        users,
        days,
        seed=seed,
        start=start,
        city=city,
        points_per_day=points_per_day,
        truth_minutes=truth_minutes,
        chunk_users=chunk_users,
    )
    partial = {path: path.with_name(f".{path.name}.{os.getpid()}.partial") for path in (out, truth) if path is not None}
    n_points = n_truth = n_done = 0
    try:
        with ExitStack() as open_files:
            points_file = open_files.enter_context(_writer(partial[out], POINTS_SCHEMA))
            truth_file = None if truth is None else open_files.enter_context(_writer(partial[truth], TRUTH_SCHEMA))
            for chunk in chunks:
                points_file.write_table(chunk.points)
                n_points += chunk.points.num_rows
                if truth_file is not None:
                    truth_file.write_table(chunk.truth)
                    n_truth += chunk.truth.num_rows
                n_done = min(n_done + chunk_users, users)
                if progress is not None:
                    progress(n_done, users)
        for path, temporary in partial.items():
            temporary.replace(path)
    except OSError as error:
        raise RunError(f"city: cannot write {out}: {error}; name a file in a folder that can be written to") from error
    finally:
        for temporary in partial.values():
            temporary.unlink(missing_ok=True)
    return CityReport(users=users, user_days=users * days, points=n_points, truth_rows=n_truth)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A Parquet file to append tables to; only text is worth a dictionary, coordinates hardly ever repeat."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, use_dictionary=texts)
