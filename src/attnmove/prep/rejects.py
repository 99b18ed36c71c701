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


def count_rows(engine: Engine, points: Points) -> tuple[int, Counter[str]]:
    """How many rows there are, and how many of them were refused on reading, by reason."""
    by_reason = points.table.group_by("reason").agg(n=points.table.count()).order_by("reason")
    found = {row["reason"]: row["n"] for batch in engine.batches(by_reason) for row in batch.to_pylist()}
    return sum(found.values()), Counter({reason: n for reason, n in found.items() if reason is not None})


def count_folded(folded: pa.RecordBatch) -> Counter[str]:
    """How many fixes the fold set aside, by reason."""
    return _count(pc.struct_field(folded.column("refused").flatten(), "reason"))


def in_order(counts: Counter[str]) -> dict[str, int]:
    """Reason -> rows, in the order of `REASONS`."""
    return {reason: counts[reason] for reason in REASONS if counts[reason]}


def _count(reasons: pa.Array) -> Counter[str]:
    return Counter({pair["values"]: pair["counts"] for pair in pc.value_counts(reasons).to_pylist()})


class Rejects:
    """A growing file of refused rows, and how many there are of each reason."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._counts: Counter[str] = Counter()
        self._writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")

    @property
    def counts(self) -> dict[str, int]:
        """Reason -> rows, in the order of `REASONS`."""
        return in_order(self._counts)

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
        self._counts += _count(batch.column("reason"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
