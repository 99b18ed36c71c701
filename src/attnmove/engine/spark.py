"""Spark, on this machine or on a cluster: the same Ibis expressions, Python functions through `mapInArrow`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ibis
import numpy as np
import pyarrow as pa

from attnmove.engine import KeyFunction
from attnmove.errors import ConfigError, DataError, MissingExtra

if TYPE_CHECKING:
    import ibis.expr.types as ir


@ibis.udf.scalar.builtin
def unix_micros(timestamp: ibis.dtype("timestamp('UTC')")) -> ibis.dtype("int64"):  # type: ignore[empty-body,valid-type]
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

    def with_key(self, table: ir.Table, function: KeyFunction) -> ir.Table:
        from pyspark.sql.types import LongType, StructType

        def add_key(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                lon, lat = (np.asarray(batch.column(name), dtype=np.float64) for name in ("lon", "lat"))
                yield batch.append_column("key", pa.array(function(lon, lat), pa.int64()))

        frame = self._frame(table)
        return self._view(frame.mapInArrow(add_key, StructType(list(frame.schema.fields)).add("key", LongType())))

    def keep(self, table: ir.Table, name: str) -> ir.Table:
        path = self._scratch / name
        with _explained():
            self._frame(table).write.mode("overwrite").parquet(str(path))
        return self._view(self._session.read.parquet(str(path)))

    def batches(self, table: ir.Table, *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        # Collected through Parquet files: a result larger than the driver's memory streams from them in order.
        path = self._scratch / f"result-{self._next()}"
        with _explained():
            self._frame(table).coalesce(1).write.parquet(str(path))
        import pyarrow.parquet as pq

        for part in sorted(path.glob("part-*.parquet")):
            yield from pq.ParquetFile(part).iter_batches(batch_size=rows)
        shutil.rmtree(path)

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
