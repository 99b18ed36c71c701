"""Where relational work runs: DuckDB in this process, or Spark. One protocol; the expressions above it are the same.

The engines differ in four things only: how a file is scanned, how a Python function is mapped over sorted rows, how a
timestamp becomes an integer, and how an intermediate table is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from attnmove.errors import ConfigError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    GroupFunction = Callable[[pa.Table], pa.RecordBatch]


class Engine(Protocol):
    """A place where Ibis expressions are evaluated, with a private scratch folder."""

    @property
    def scratch(self) -> Path:
        """A folder that lives as long as the engine."""

    def scan_parquet(self, files: Sequence[Path]) -> ir.Table:
        """The rows of Parquet files, in the files' own types."""

    def scan_csv(
        self, files: Sequence[Path], *, headers: Sequence[Sequence[str]], delimiter: str, columns: Sequence[str]
    ) -> ir.Table:
        """The named columns of delimited text files, every one text; `headers` are the files' header lines."""

    def scan_ndjson(self, files: Sequence[Path], *, columns: Sequence[str]) -> ir.Table:
        """The named members of newline-delimited JSON objects, as text."""

    def micros(self, timestamp: ir.TimestampValue) -> ir.IntegerValue:
        """Microseconds since 1970 of a timestamp, read as UTC where it has no zone."""

    def map_groups(
        self,
        table: ir.Table,
        function: GroupFunction,
        *,
        order: Sequence[str],
        together: int,
        schema: pa.Schema,
        sorted_by: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """What `function` makes of the rows sorted by `order`, a bounded number at a time, in that order.

        Rows that agree in the first `together` columns of `order` go into one call, usually with their neighbours; the
        function's own rows have the given schema, which begins with those columns, and are sorted by `sorted_by`, which
        also does; None: they are sorted by those columns alone.
        """

    def keep(self, table: ir.Table, name: str) -> ir.Table:
        """The table, evaluated once and held outside Python for several readers."""

    def batches(self, table: ir.Table, *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The evaluated rows, a bounded number at a time."""

    def close(self) -> None:
        """Give back memory, processes and the scratch folder."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


def open_engine(name: str = "duckdb") -> Engine:
    """The engine called `duckdb`, or `spark[:MASTER]` (as Spark writes it: local[*], spark://host:7077, yarn)."""
    kind, _, master = name.partition(":")
    if kind == "duckdb" and not master:
        from attnmove.engine.duckdb import DuckDBEngine

        return DuckDBEngine()
    if kind == "spark":
        from attnmove.engine.spark import SparkEngine

        return SparkEngine(master or "local[*]")
    raise ConfigError(f"there is no engine {name!r}: use duckdb, spark or spark:MASTER (for example spark:local[4])")
