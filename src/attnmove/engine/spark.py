"""Spark, on this machine or on a cluster: the same Ibis expressions, Python functions through `mapInArrow`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.engine.groups import in_whole_groups
from attnmove.errors import ConfigError, DataError, MissingExtra

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from attnmove.engine import GroupFunction


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator,unused-ignore]
def unix_micros(timestamp: ibis.dtype("timestamp('UTC')")) -> ibis.dtype("int64"):  # type: ignore[valid-type]
    """Spark's own function."""


class SparkEngine:
    """A Spark session of our own; a session that was already running is used and left running."""

    def __init__(self, master: str) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise MissingExtra("pyspark", "spark", "the Spark engine") from error
        self._owned = SparkSession.getActiveSession() is None
        self._scratch = Path(tempfile.mkdtemp(prefix="attnmove-spark-"))
        try:
            self._session = _connect(master, self._scratch)
        except Exception as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise ConfigError(f"Spark did not start with master {master!r}: {_reason(error)}") from error
        with _quiet():
            self._con: Any = ibis.pyspark.connect(self._session)
        self._views = 0

    @property
    def scratch(self) -> Path:
        return self._scratch

    def scan_parquet(self, files: Sequence[Path]) -> ir.Table:
        return self._view(self._session.read.option("mergeSchema", "true").parquet(*map(str, files)))

    def scan_csv(self, files: Sequence[Path], *, delimiter: str, columns: Sequence[str]) -> ir.Table:
        reader = self._session.read.option("header", "true").option("sep", delimiter).option("escape", '"')
        frames = [reader.csv(str(file)) for file in files]
        return self._view(_union(frames).select(*[f"`{name}`" for name in columns]))

    def scan_ndjson(self, files: Sequence[Path], *, columns: Sequence[str]) -> ir.Table:
        schema = ", ".join(f"`{name}` STRING" for name in columns)
        reader = self._session.read.schema(schema).option("mode", "FAILFAST")
        return self._view(reader.json([str(file) for file in files]))

    def micros(self, timestamp: ir.TimestampValue) -> ir.IntegerValue:
        return unix_micros(timestamp.cast("timestamp('UTC')"))

    def map_groups(
        self,
        table: ir.Table,
        function: GroupFunction,
        *,
        order: Sequence[str],
        together: int,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import from_arrow_schema

        columns = list(order[:together])

        def over_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(function, in_whole_groups(batches, columns))

        with _quiet():
            frame = self._frame(table).repartition(order[0]).sortWithinPartitions(*order)
            mapped = frame.mapInArrow(over_partition, from_arrow_schema(schema))
        # Evaluated before the global sort, which would otherwise run the function twice to sample its ranges.
        kept = self._save(mapped, "mapped")
        for batch in self.batches(kept.order_by(*columns)):
            typed = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(typed, schema=schema)

    def keep(self, table: ir.Table, name: str) -> ir.Table:
        return self._save(self._frame(table), name)

    def batches(self, table: ir.Table, *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        # Through files, not the driver's memory. Sorted results are written range by range, in the order of the names.
        path = self._scratch / f"result-{self._next()}"
        with _explained():
            self._frame(table).write.parquet(str(path))
        for part in sorted(path.glob("part-*.parquet")):
            yield from pq.ParquetFile(part).iter_batches(batch_size=rows)
        shutil.rmtree(path)

    def _save(self, frame: Any, name: str) -> ir.Table:
        path = self._scratch / f"{name}-{self._next()}"
        with _explained():
            frame.write.parquet(str(path))
        return self._view(self._session.read.parquet(str(path)))

    def close(self) -> None:
        if self._owned:
            self._session.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _next(self) -> int:
        self._views += 1
        return self._views

    def _view(self, frame: Any) -> ir.Table:
        name = f"attnmove_{self._next()}"
        frame.createOrReplaceTempView(name)
        return self._con.table(name)

    def _frame(self, table: ir.Table) -> Any:
        with _quiet():
            return self._session.sql(self._con.compile(table))


def _connect(master: str, scratch: Path) -> Any:
    from pyspark.sql import SparkSession

    # Workers must run the interpreter that has attnmove; nothing here may listen beyond this machine.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("attnmove").master(master)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", "8")  # the default of 200 is for clusters
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _quiet():
        return builder.getOrCreate()


def _union(frames: list[Any]) -> Any:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides pyspark's remarks about other libraries' versions, which are not the user's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _explained() -> Iterator[None]:
    """Turns a failed Spark job into one sentence."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise DataError(f"Spark could not finish: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
