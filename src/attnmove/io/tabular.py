"""CSV, TSV, Parquet and NDJSON: headers looked at here, rows read by the engine."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.engine import Engine
from attnmove.errors import DataError
from attnmove.io.columns import Columns, find_columns

if TYPE_CHECKING:
    import ibis.expr.types as ir

_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1_000_000


def scan_tabular(
    engine: Engine, format: str, files: Sequence[Path], told: Mapping[str, str] | None, *, one_user: str | None
) -> tuple[ir.Table, Columns]:
    """The source's table with at least the columns found, and which they are."""
    headers = [_HEADERS[format](file) for file in files]
    columns = find_columns(headers[0], told, source=str(files[0]), one_user=one_user)
    for file, header in zip(files[1:], headers[1:], strict=True):
        lost = [name for name in columns.names() if name not in header]
        if lost:
            raise DataError(f"{file}: no column {', '.join(map(repr, lost))}, which {files[0]} has; read them apart")
    names = columns.names()
    if format == "parquet":
        return engine.scan_parquet(files).select(*names), columns
    if format == "ndjson":
        return engine.scan_ndjson(files, columns=names), columns
    return engine.scan_csv(files, delimiter=_delimiter(files[0], format), columns=names), columns


def spool(engine: Engine, batches: Iterable[pa.RecordBatch], name: str) -> Path:
    """Batches written to a Parquet file in the engine's scratch folder, one at a time."""
    path = engine.scratch / f"{name}.parquet"
    iterator: Iterator[pa.RecordBatch] = iter(batches)
    first = next(iterator, None)
    if first is None:
        raise DataError(f"{name}: no point in it")
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in iterator:
            writer.write_batch(batch)
    return path


def _csv_header(file: Path) -> list[str]:
    line = _first_line(file)
    header = [name.strip() for name in next(csv.reader([line], delimiter=_delimiter_of(line)))]
    if len(header) == 1:
        raise DataError(
            f"{file}, row 1: one column {header[0][:40]!r}; expected at least user, time, lat, lon separated by "
            ", ; tab or |"
        )
    if sum(_is_number(name) for name in header) * 2 >= len(header):
        raise DataError(f"{file}, row 1: expected column names, found data ({line[:60]!r}); add a header line")
    return header


def _first_line(file: Path) -> str:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as handle:
            data = handle.readline(_LONGEST_HEADER)
            sample = data + handle.read(4096)
    except (OSError, EOFError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from error
    if not sample.strip():
        raise DataError(f"{file}: the file is empty")
    if b"\0" in sample:
        raise DataError(f"{file}: binary content (or UTF-16), expected UTF-8 text; check the format or save as UTF-8")
    try:
        # Only the sample's last character may be torn by the cut.
        sample[:-4].decode("utf-8-sig")
        return data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def _delimiter_of(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _delimiter(file: Path, format: str) -> str:
    return "\t" if format == "tsv" else _delimiter_of(_first_line(file))


def _tsv_header(file: Path) -> list[str]:
    return [name.strip() for name in _first_line(file).split("\t")]


def _parquet_header(file: Path) -> list[str]:
    try:
        return list(pq.read_schema(file).names)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file}: not a Parquet file, or cut off ({str(error).splitlines()[0]})") from error


def _ndjson_header(file: Path) -> list[str]:
    """The members of the first hundred objects, in order of appearance."""
    _first_line(file)
    names: dict[str, None] = {}
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as handle:
        for number, line in enumerate(islice(io.TextIOWrapper(handle, encoding="utf-8-sig"), 100), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"{file}, row {number}: expected one JSON object a line ({error.msg})") from error
            if not isinstance(row, dict):
                raise DataError(f"{file}, row {number}: expected a JSON object, found {type(row).__name__}")
            names.update(dict.fromkeys(row))
    return list(names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_HEADERS = {"csv": _csv_header, "tsv": _tsv_header, "parquet": _parquet_header, "ndjson": _ndjson_header}
