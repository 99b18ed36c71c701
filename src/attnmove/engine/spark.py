"""Spark, on this machine or on a cluster: the same Ibis expressions, Python functions through `mapInArrow`."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ibis
import pyarrow as pa

from attnmove.engine.groups import by_header, in_whole_groups, read_batches
from attnmove.errors import ConfigError, DataError, MissingExtra

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from attnmove.engine import GroupFunction


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator,unused-ignore]
def unix_micros(timestamp: ibis.dtype("timestamp('UTC')")) -> ibis.dtype("int64"):  # type: ignore[valid-type]
    """Spark's own function."""


class SparkEngine:
    """A Spark session of our own; where one was already running, a child of it, and the parent is left as it was.

    Intermediate results go through files in the scratch folder: on a cluster of several machines TMPDIR must name a
    folder that all of them share.
    """

    def __init__(self, master: str) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise MissingExtra("pyspark", "spark", "the Spark engine") from error
        running = SparkSession.getActiveSession()
        self._owned = running is None
        self._scratch = Path(tempfile.mkdtemp(prefix="attnmove-spark-"))
        log = self._scratch / "spark.log"
        try:
            with _quiet():
                if running is not None:
                    self._session = running.newSession()
                else:
                    with _stderr_to(log):
                        self._session = _start(master, self._scratch)
                for key, value in _SETTINGS.items():
                    self._session.conf.set(key, value)
                self._con: Any = ibis.pyspark.connect(self._session)
        except BaseException as error:
            why = _reason(error)
            if "JAVA_GATEWAY" in why:  # Java is missing or too old, and only the log says which
                why = _last_line(log) or why
            shutil.rmtree(self._scratch, ignore_errors=True)
            if not isinstance(error, Exception):
                raise
            raise ConfigError(f"Spark did not start with master {master!r}: {why}") from error
        self._views = 0

    @property
    def scratch(self) -> Path:
        return self._scratch

    def scan_parquet(self, files: Sequence[Path]) -> ir.Table:
        from pyspark.sql.types import TimestampType

        with _explained():
            frame = self._session.read.option("mergeSchema", "true").parquet(*_paths(files))
        table = self._view(frame)
        # Ibis takes both of Spark's timestamps for ones without a zone.
        instants = [field.name for field in frame.schema if isinstance(field.dataType, TimestampType)]
        return table.mutate(**{name: table[name].cast("timestamp('UTC')") for name in instants})

    def scan_csv(
        self, files: Sequence[Path], *, headers: Sequence[Sequence[str]], delimiter: str, columns: Sequence[str]
    ) -> ir.Table:
        options = {"header": True, "sep": delimiter, "escape": '"', "mode": "FAILFAST", "columnPruning": False}
        with _explained():
            frames = [
                self._session.read.options(**options).schema(_texts(header)).csv(_paths(alike))
                for header, alike in by_header(files, headers)
            ]
            picked = [frame.select(*map(_quoted, columns)) for frame in frames]
            return self._view(reduce(lambda whole, frame: whole.union(frame), picked))

    def scan_ndjson(self, files: Sequence[Path], *, columns: Sequence[str]) -> ir.Table:
        with _explained():
            reader = self._session.read.schema(_texts(columns)).option("mode", "FAILFAST")
            return self._view(reader.json(_paths(files)))

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
        sorted_by: Sequence[str] | None = None,
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
        for batch in self.batches(kept.order_by(*(sorted_by or columns))):
            typed = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(typed, schema=schema)

    def keep(self, table: ir.Table, name: str) -> ir.Table:
        return self._save(self._frame(table), name)

    def batches(self, table: ir.Table, *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        # Through files, not the driver's memory. Sorted results are written range by range, in the order of the names.
        path = self._scratch / f"result-{self._next()}"
        try:
            with _explained():
                self._frame(table).write.parquet(str(path))
            for part in sorted(path.glob("part-*.parquet")):
                yield from read_batches(part, rows=rows)
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _save(self, frame: Any, name: str) -> ir.Table:
        path = self._scratch / f"{name}-{self._next()}"
        with _explained():
            frame.write.parquet(str(path))
        return self._view(self._session.read.parquet(str(path)))

    def close(self) -> None:
        try:
            if self._owned:
                self._session.stop()
        finally:
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


_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # Spark knows no nanoseconds; as whole numbers they can be read
}


def _start(master: str, scratch: Path) -> Any:
    from pyspark.sql import SparkSession

    # Workers must run the interpreter that has attnmove; nothing here may listen beyond this machine.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("attnmove").master(master)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", "8")  # the default of 200 is for clusters
    settings = {
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _paths(files: Sequence[Path]) -> list[str]:
    """Names with nothing in them that Spark would take for a pattern."""
    return [re.sub(r"([][{}*?\\])", r"\\\1", str(file.absolute())) for file in files]


def _texts(names: Sequence[str]) -> str:
    return ", ".join(f"{_quoted(name)} STRING" for name in names)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Standard error in a file: Spark inherits it when it starts, and keeps writing its remarks there."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with file.open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip() and not _is_noise(line)), "")


def _is_noise(line: str) -> bool:
    """True for what Spark and Java say at every start, and for where an error passed by instead of what it is."""
    start = ("WARNING: ", "Using Spark's default log4j", "Setting ", "To adjust logging level")
    way = ("at ", "... ", "An error occurred while calling")
    return line.strip().startswith(start + way) or " WARN " in line


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
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip() and not _is_noise(line)]
    # Of an error in a worker the first line says only that there was one; the last of its traceback says which.
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    if raised and "Python worker" in lines[0]:
        return raised[-1]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    what = " ".join(dict.fromkeys([*lines[:1], *causes[-1:]]))
    return re.sub(r"org\.apache\.spark\.(\w+\.)*", "", what) or type(error).__name__
