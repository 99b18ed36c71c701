"""DuckDB inside this process: streams from disk, spills to disk, never holds the points in Python."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.engine.groups import OutOfOrderError, by_header, in_order, in_whole_groups, read_batches
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
        import duckdb

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
        except BaseException as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            if isinstance(error, duckdb.ParserException):
                raise ConfigError(f"ATTNMOVE_MEMORY={memory!r} is not a size DuckDB knows: try 2GB") from error
            raise
        self._numbers = count()
        self._files: list[str] = []

    @property
    def scratch(self) -> Path:
        return self._scratch

    def scan_parquet(self, files: Sequence[Path]) -> ir.Table:
        return self._scan(self._con.read_parquet, files, union_by_name=True)

    def scan_csv(
        self, files: Sequence[Path], *, headers: Sequence[Sequence[str]], delimiter: str, columns: Sequence[str]
    ) -> ir.Table:
        # DuckDB must guess nothing: to make sense of a file it would skip the lines before one it cannot explain.
        tables = [
            self._scan(
                self._con.read_csv,
                alike,
                columns=dict.fromkeys(header, "VARCHAR"),
                auto_detect=False,
                header=True,
                delim=delimiter,
                quote='"',
                escape='"',
                strict_mode=True,
            ).select(*columns)
            for header, alike in by_header(files, headers)
        ]
        return tables[0] if len(tables) == 1 else ibis.union(*tables)

    def scan_ndjson(self, files: Sequence[Path], *, columns: Sequence[str]) -> ir.Table:
        kinds = dict.fromkeys(columns, "VARCHAR")
        return self._scan(self._con.read_json, files, columns=kinds, format="newline_delimited")

    def _scan(self, read: Any, files: Sequence[Path], **options: Any) -> ir.Table:
        names = [str(file) for file in files]
        self._files.extend(names)
        with _explained(names):
            return read([_literal(name) for name in names], **options)

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
        sorted_by: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        columns = order[:together]
        spool = self._scratch / f"mapped-{next(self._numbers)}.parquet"
        try:
            # Most sources are sorted already, and reading them is faster than sorting them. The results are
            # a small part of the rows: they wait on disk until the order has proved right to the end.
            writer = pq.ParquetWriter(spool, schema, compression="none")
            if self._mapped_as_they_come(table, function, order, columns, writer):
                yield from read_batches(spool, rows=_ROWS_TO_MAP >> 4)
            else:
                rows = self.batches(table.order_by(*order), rows=_ROWS_TO_MAP)
                yield from _in_threads(function, in_whole_groups(rows, columns))
        finally:
            spool.unlink(missing_ok=True)

    def _mapped_as_they_come(
        self,
        table: ir.Table,
        function: GroupFunction,
        order: Sequence[str],
        columns: Sequence[str],
        spool: pq.ParquetWriter,
    ) -> bool:
        """Write the results for the rows as the source has them; False when they turn out not to be sorted."""
        self._con.raw_sql("SET preserve_insertion_order = true")
        try:
            with spool, closing(self.batches(table, rows=_ROWS_TO_MAP)) as batches:
                for result in _in_threads(function, in_whole_groups(in_order(batches, order), columns)):
                    spool.write_batch(result)
        except OutOfOrderError:
            return False
        finally:
            self._con.raw_sql("SET preserve_insertion_order = false")
        return True

    def keep(self, table: ir.Table, name: str) -> ir.Table:
        # In the source's order, which is most often the one that is wanted later.
        self._con.raw_sql("SET preserve_insertion_order = true")
        try:
            with _explained(self._files):
                return self._con.create_table(name, table, overwrite=True)
        finally:
            self._con.raw_sql("SET preserve_insertion_order = false")

    def batches(self, table: ir.Table, *, rows: int = 65_536) -> Generator[pa.RecordBatch, None, None]:
        with _explained(self._files):
            result = self._con.raw_sql(self._con.compile(table))
            # DuckDB renamed the method in 1.5 and warns about the old name, which is all that 1.4 has.
            read = result.to_arrow_reader if hasattr(result, "to_arrow_reader") else result.fetch_record_batch
            yield from read(rows)

    def close(self) -> None:
        try:
            self._con.disconnect()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _literal(name: str) -> str:
    """A name with nothing in it that DuckDB would take for a pattern."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _in_threads(function: GroupFunction, groups: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The function's results in order; numpy lets go of the interpreter, so one thread folds while the next reads."""
    n_threads = max(1, min(4, os.cpu_count() or 1))
    # pyarrow looks for pandas at its first conversion; in two threads at once, or stopped there, that import breaks.
    pa.array(np.zeros(1))
    pool = ThreadPoolExecutor(n_threads)
    try:
        ahead: deque[Future[pa.RecordBatch]] = deque()
        for group in groups:
            ahead.append(pool.submit(function, group))
            if len(ahead) > n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        # After an error, or when the reader stops early, what has not begun is not wanted.
        pool.shutdown(cancel_futures=True)


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
        raise DataError(_sentence(str(error), files)) from error
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # DuckDB wraps Ctrl-C
            raise error.__cause__ from None
        raise


def _sentence(text: str, files: Sequence[str]) -> str:
    """Where and what, from DuckDB's several lines."""
    file = _first(r"^\s*file = (.+)$", text) or _first(r"\bfile [\"']([^\"']+)[\"']", text)
    file = file or (files[0] if len(files) == 1 else "the input")
    line = _first(r"\b[Ll]ine:? (\d+)", text)
    lines = [line.strip() for line in text.splitlines()]
    # Of a CSV file it says "CSV Error on Line: 3", then "Original Line: …", then what is wrong with it.
    after = next((i + 1 for i, line in enumerate(lines) if line.startswith("Original Line:")), 0)
    what = next((line for line in lines[after:] if line), text)
    what = re.sub(r"^[A-Z][\w/ ]* Error: ", "", what)
    what = re.sub(r",? (in|from|of) file [\"'][^\"']+[\"'],?", "", what).rstrip(" .")
    if "state machine" in what:
        what = "its quotes do not match, or its lines end in several ways"
    where = f"{file}, row {line}" if line else file
    todo = "correct or remove that part of the file" if line else "the file is damaged: write or fetch it again"
    return f"{where}: {what}; {todo}"


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, flags=re.MULTILINE)
    return found.group(1) if found else None
