"""DuckDB inside this process: streams from disk, spills to disk, never holds the points in Python."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.engine.groups import OutOfOrderError, in_order, in_whole_groups
from attnmove.errors import ConfigError, DataError

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from attnmove.engine import GroupFunction

DEFAULT_MEMORY = "2GB"
"""DuckDB spills to disk beyond this; set ATTNMOVE_MEMORY to give it more."""


_ROWS_TO_MAP = 1 << 19


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator,unused-ignore]
def epoch_us(timestamp: ibis.dtype("timestamp")) -> ibis.dtype("int64"):  # type: ignore[valid-type]
    """DuckDB's own function."""


class DuckDBEngine:
    """An on-disk DuckDB database in a scratch folder of its own."""

    def __init__(self) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="attnmove-"))
        memory = os.environ.get("ATTNMOVE_MEMORY", DEFAULT_MEMORY)
        try:
            self._con: Any = ibis.duckdb.connect(
                self._scratch / "work.duckdb",
                memory_limit=memory,
                temp_directory=str(self._scratch / "spill"),
                preserve_insertion_order=False,
                autoinstall_known_extensions=False,
            )
        except Exception as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise ConfigError(f"ATTNMOVE_MEMORY={memory!r} is not a size DuckDB knows (try 2GB): {error}") from error
        self._numbers = count()

    @property
    def scratch(self) -> Path:
        return self._scratch

    def scan_parquet(self, files: Sequence[Path]) -> ir.Table:
        return self._scan(self._con.read_parquet, files, union_by_name=True)

    def scan_csv(self, files: Sequence[Path], *, delimiter: str, columns: Sequence[str]) -> ir.Table:
        return self._scan(
            self._con.read_csv,
            files,
            header=True,
            delim=delimiter,
            quote='"',
            escape='"',
            all_varchar=True,
            auto_detect=True,
            union_by_name=True,
            strict_mode=True,
        ).select(*columns)

    def scan_ndjson(self, files: Sequence[Path], *, columns: Sequence[str]) -> ir.Table:
        kinds = dict.fromkeys(columns, "VARCHAR")
        return self._scan(self._con.read_json, files, columns=kinds, format="newline_delimited")

    def _scan(self, read: Any, files: Sequence[Path], **options: Any) -> ir.Table:
        names = [str(file) for file in files]
        with _explained(names):
            return read(names, **options)

    def micros(self, timestamp: ir.TimestampValue) -> ir.IntegerValue:
        return epoch_us(timestamp)

    def map_groups(
        self,
        table: ir.Table,
        function: GroupFunction,
        *,
        order: Sequence[str],
        together: int,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        columns = order[:together]
        spool = self._scratch / f"mapped-{next(self._numbers)}.parquet"
        try:
            # Most sources are sorted already, and reading them is three times as fast as sorting them. The results are
            # a small part of the rows: they wait on disk until the order has proved right to the end.
            self._con.raw_sql("SET preserve_insertion_order = true")
            rows = in_order(self.batches(table, rows=_ROWS_TO_MAP), order)
            with pq.ParquetWriter(spool, schema, compression="none") as writer:
                for batch in _in_threads(function, in_whole_groups(rows, columns)):
                    writer.write_batch(batch)
        except OutOfOrderError:
            self._con.raw_sql("SET preserve_insertion_order = false")
            rows = self.batches(table.order_by(*order), rows=_ROWS_TO_MAP)
            yield from _in_threads(function, in_whole_groups(rows, columns))
        else:
            with pq.ParquetFile(spool) as file:
                yield from file.iter_batches(batch_size=_ROWS_TO_MAP >> 4)
        finally:
            spool.unlink(missing_ok=True)

    def keep(self, table: ir.Table, name: str) -> ir.Table:
        with _explained():
            return self._con.create_table(name, table, overwrite=True)

    def batches(self, table: ir.Table, *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        with _explained():
            result = self._con.raw_sql(self._con.compile(table))
            # DuckDB renamed the method in 1.5 and warns about the old name, which is all that 1.4 has.
            read = result.to_arrow_reader if hasattr(result, "to_arrow_reader") else result.fetch_record_batch
            yield from read(rows)

    def close(self) -> None:
        self._con.disconnect()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _in_threads(function: GroupFunction, groups: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The function's results in order; numpy lets go of the interpreter, so one thread folds while the next reads."""
    n_threads = max(1, min(4, os.cpu_count() or 1))
    with ThreadPoolExecutor(n_threads) as pool:
        ahead: deque[Future[pa.RecordBatch]] = deque()
        for group in groups:
            ahead.append(pool.submit(function, group))
            if len(ahead) > n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def _explained(files: Sequence[str] = ()) -> Iterator[None]:
    """Turns DuckDB's complaints about a file into one sentence of ours."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise DataError(
            "the query needs more memory than DuckDB was given: set ATTNMOVE_MEMORY, for example to 4GB"
        ) from error
    except duckdb.Error as error:
        text = str(error)
        file = _first(r'file "?([^"\n]+?)"?[\s,.:]', text) or (files[0] if len(files) == 1 else "the input")
        line = _first(r"[Ll]ine:? (\d+)", text)
        what = _first(r"Error(?: on Line: \d+)?[:\n]\s*(.+)", text) or text.splitlines()[0]
        detail = _first(r"(Expected Number of Columns: \d+ Found: \d+)", text)
        where = f"{file}, row {line}" if line else file
        raise DataError(f"{where}: {detail or what.strip()}; correct or remove that part of the file") from error


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found.group(1) if found else None
