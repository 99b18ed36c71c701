"""DuckDB inside this process: streams from disk, spills to disk, never holds the points in Python."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ibis
import numpy as np
import pyarrow as pa

from attnmove.engine import KeyFunction
from attnmove.errors import ConfigError, DataError

if TYPE_CHECKING:
    import ibis.expr.types as ir

DEFAULT_MEMORY = "2GB"
"""DuckDB spills to disk beyond this; set ATTNMOVE_MEMORY to give it more."""


@ibis.udf.scalar.builtin
def epoch_us(timestamp: ibis.dtype("timestamp")) -> ibis.dtype("int64"):  # type: ignore[empty-body,valid-type]
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
        self._functions = 0

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

    def with_key(self, table: ir.Table, function: KeyFunction) -> ir.Table:
        def key_of(lon: float, lat: float) -> int:
            return pa.array(function(_numpy(lon), _numpy(lat)), pa.int64())  # type: ignore[return-value]

        # Ibis registers a function under its name once a connection: each needs a name of its own.
        self._functions += 1
        key_of.__name__ = f"key_of_{self._functions}"
        udf = ibis.udf.scalar.pyarrow(key_of, signature=((float, float), int))
        return table.mutate(key=udf(table.lon, table.lat))

    def keep(self, table: ir.Table, name: str) -> ir.Table:
        with _explained():
            return self._con.create_table(name, table, overwrite=True)

    def batches(self, table: ir.Table, *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        with _explained():
            yield from self._con.to_pyarrow_batches(table, chunk_size=rows)

    def close(self) -> None:
        self._con.disconnect()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _numpy(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


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
