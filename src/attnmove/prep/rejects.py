"""Nothing is dropped silently: every refused row, with its reason, in `rejects.parquet`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attnmove.engine import Engine
from attnmove.io.normal import REASONS
from attnmove.nouns import Points
from attnmove.prep.fold import distinct_fixes, with_keys
from attnmove.space.tessellation import NO_CELL, Tessellation

if TYPE_CHECKING:
    import ibis.expr.types as ir

SCHEMA = pa.schema([(name, pa.string()) for name in ("reason", "user", "time", "lat", "lon")])


def write_rejects(
    path: Path,
    engine: Engine,
    points: Points,
    *,
    tessellation: Tessellation,
    datum: str,
    n_duplicates: int,
    n_outside: int,
) -> dict[str, int]:
    """Write the refused rows, in the source's own words where it is still known, and count them by reason."""
    counts: Counter[str] = Counter()
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for batch in _rows(engine, points, tessellation, datum, n_duplicates=n_duplicates, n_outside=n_outside):
            if len(batch):
                writer.write_batch(batch)
                for pair in pc.value_counts(batch.column("reason")).to_pylist():
                    counts[pair["values"]] += pair["counts"]
    return {reason: counts[reason] for reason in REASONS if counts[reason]}


def _rows(
    engine: Engine, points: Points, tessellation: Tessellation, datum: str, *, n_duplicates: int, n_outside: int
) -> Iterator[pa.RecordBatch]:
    t = points.table
    refused = t.filter(t.reason.notnull()).select(
        "reason", user="raw_user", time="raw_time", lat="raw_lat", lon="raw_lon"
    )
    for batch in engine.batches(refused.order_by("reason", "user", "time", "lat", "lon")):
        yield pa.RecordBatch.from_arrays([column.cast(pa.string()) for column in batch.columns], schema=SCHEMA)
    fixes = distinct_fixes(points)
    if n_duplicates:
        yield from _as_text(engine, fixes.filter(fixes.copies > 1), "duplicate")
    if n_outside:
        keyed = with_keys(engine, fixes, tessellation, datum)
        yield from _as_text(engine, keyed.filter(keyed.key == NO_CELL), "outside")


def _as_text(engine: Engine, fixes: ir.Table, reason: str) -> Iterator[pa.RecordBatch]:
    """Accepted fixes that were refused later: all copies but one of a duplicate, or one that lies in no location."""
    for batch in engine.batches(fixes.order_by("user", "time_us", "lon", "lat")):
        times = batch.column("time_us").cast(pa.timestamp("us")).cast(pa.string())
        extra = batch.column("copies").to_numpy() - 1 if reason == "duplicate" else np.ones(len(batch), dtype=np.int64)
        rows = pa.array(np.repeat(np.arange(len(batch)), extra))
        columns = [
            pa.array([reason] * len(batch)),
            batch.column("user").cast(pa.string()),
            pc.binary_join_element_wise(times, "Z", ""),
            batch.column("lat").cast(pa.string()),
            batch.column("lon").cast(pa.string()),
        ]
        yield pa.RecordBatch.from_arrays([column.take(rows) for column in columns], schema=SCHEMA)
