"""Nothing is dropped silently: every refused row, with its reason, in `rejects.parquet`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attnmove.engine import Engine
from attnmove.io.normal import REASONS
from attnmove.nouns import Points

SCHEMA = pa.schema([(name, pa.string()) for name in ("reason", "user", "time", "lat", "lon")])


class Rejects:
    """A growing file of refused rows, and how many there are of each reason."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._counts: Counter[str] = Counter()
        self._writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")

    @property
    def counts(self) -> dict[str, int]:
        """Reason -> rows, in the order of `REASONS`."""
        return {reason: self._counts[reason] for reason in REASONS if self._counts[reason]}

    def add_unreadable(self, engine: Engine, points: Points) -> None:
        """The rows that were refused on reading, as the source writes them."""
        t = points.table
        refused = t.filter(t.reason.notnull()).select(
            "reason", user="raw_user", time="raw_time", lat="raw_lat", lon="raw_lon"
        )
        for batch in engine.batches(refused.order_by("reason", "user", "time", "lat", "lon")):
            self._add(batch.columns)

    def add_folded(self, folded: pa.RecordBatch) -> None:
        """The duplicates, and the fixes in no location, that the fold set aside; their times in UTC."""
        lists = folded.column("refused")
        rows = lists.flatten()
        if len(rows) == 0:
            return
        times = pc.struct_field(rows, "time_us").cast(pa.timestamp("us")).cast(pa.string())
        self._add(
            [
                pc.struct_field(rows, "reason"),
                folded.column("user").take(pc.list_parent_indices(lists)),
                pc.binary_join_element_wise(times, "Z", ""),
                pc.struct_field(rows, "lat"),
                pc.struct_field(rows, "lon"),
            ]
        )

    def _add(self, columns: list[pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays([column.cast(pa.string()) for column in columns], schema=SCHEMA)
        self._writer.write_batch(batch)
        for pair in pc.value_counts(batch.column("reason")).to_pylist():
            self._counts[pair["values"]] += pair["counts"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
