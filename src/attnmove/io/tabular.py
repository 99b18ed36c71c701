"""CSV, TSV, Parquet and NDJSON: headers looked at here, rows read by the engine."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from uuid import uuid4

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.engine import Engine
from attnmove.errors import DataError
from attnmove.io.columns import Columns, find_columns
from attnmove.io.texts import BROKEN, open_bytes

if TYPE_CHECKING:
    import ibis.expr.types as ir

_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1_000_000
_LONGEST_ROW = 2_000_000
"""Bytes; DuckDB takes no longer row of CSV."""
_CHUNK = 1 << 20
_OBJECTS_TO_SEE = 100


@dataclass(frozen=True)
class _Header:
    names: tuple[str, ...]
    delimiter: str = ""
    """Of delimited text."""
    kinds: tuple[str, ...] = ()
    """Of Parquet: what each column holds."""


def scan_tabular(
    engine: Engine,
    format: str,
    files: Sequence[Path],
    told: Mapping[str, str] | None,
    *,
    one_user: str | None,
    source: str | None = None,
) -> tuple[ir.Table, Columns]:
    """The source's table with the columns found, and which they are; `source` is how to call it in errors."""
    headers = [_HEADERS[format](file) for file in files]
    columns = find_columns(headers[0].names, told, source=source or str(files[0]), one_user=one_user)
    names = columns.names()
    for file, header in zip(files[1:], headers[1:], strict=True):
        lost = [name for name in names if name not in header.names]
        if lost:
            raise DataError(f"{file}: no column {', '.join(map(repr, lost))}, which {files[0]} has; read them apart")
        _check_kinds(file, header, files[0], headers[0], names)
    if format == "parquet":
        return engine.scan_parquet(files).select(*names), columns
    if format == "ndjson":
        return engine.scan_ndjson(files, columns=names), columns
    tables = []
    for delimiter in sorted({header.delimiter for header in headers}):
        mine = [(f, h) for f, h in zip(files, headers, strict=True) if h.delimiter == delimiter]
        alike, plain = [file for file, _ in mine], [_plain(header, names) for _, header in mine]
        tables.append(engine.scan_csv(alike, headers=plain, delimiter=delimiter, columns=names))
    return tables[0] if len(tables) == 1 else ibis.union(*tables), columns


def _plain(header: _Header, names: Sequence[str]) -> list[str]:
    """The header with numbers instead of names nobody asks for: those may be empty, occur twice, or differ in case
    alone, which engines take for the same."""
    return [name if name in names else f"unused column {i}" for i, name in enumerate(header.names)]


def spool(engine: Engine, batches: Iterable[pa.RecordBatch], format: str, *, source: str) -> Path:
    """Batches written to a Parquet file in the engine's scratch folder, one at a time."""
    # A name of its own: DuckDB keeps pieces of files it has read, and trusts a name written twice.
    path = engine.scratch / f"points-{format}-{uuid4().hex}.parquet"
    iterator: Iterator[pa.RecordBatch] = iter(batches)
    first = next(iterator, None)
    if first is None:
        raise DataError(f"{source}: there is no point in it")
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in iterator:
            writer.write_batch(batch)
    return path


def explain_rows(format: str, files: Sequence[Path]) -> None:
    """Raise DataError for the first row that cannot be read.

    For after the engine has failed: engines name rows in their own ways, or not at all, and looking at each row here is
    slow.
    """
    for file in files:
        if format == "ndjson":
            for _ in _objects(file):
                pass
        elif format in ("csv", "tsv"):
            _explain_delimited(file, _HEADERS[format](file))


def _csv_header(file: Path) -> _Header:
    line = _first_line(file)
    return _delimited_header(file, line, max(_DELIMITERS, key=line.count))


def _tsv_header(file: Path) -> _Header:
    return _delimited_header(file, _first_line(file), "\t")


def _delimited_header(file: Path, line: str, delimiter: str) -> _Header:
    try:
        names = tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True), []))
    except csv.Error as error:
        raise DataError(f"{file}, row 1: expected column names, found {line[:60]!r} ({error})") from error
    if len(names) <= 1:
        expected = "tabs" if delimiter == "\t" else ", ; tab or |"
        found = f"one column {names[0][:40]!r}" if names else "a blank line"
        raise DataError(
            f"{file}, row 1: {found}; expected a header of at least user, time, lat, lon separated by {expected}"
        )
    if sum(_is_number(name) for name in names) * 2 >= len(names):
        raise DataError(f"{file}, row 1: expected column names, found data ({line[:60]!r}); add a header line")
    return _Header(names, delimiter)


def _first_line(file: Path) -> str:
    if file.suffix != ".gz" and file.suffix.lower() == ".gz":
        raise DataError(f"{file}: engines know packed files by the ending .gz in small letters; rename the file")
    try:
        with open_bytes(file) as handle:
            data = handle.readline(_LONGEST_HEADER)
            sample = data + handle.read(4096)
            if file.suffix.lower() == ".gz":
                # Engines take a packed file that was cut off for a whole one.
                while handle.read(_CHUNK):
                    pass
    except BROKEN as error:
        raise DataError(f"{file}: cannot be read ({error}); fetch the file again") from error
    if not sample.strip():
        raise DataError(f"{file}: the file is empty")
    if b"\0" in sample:
        raise DataError(f"{file}: binary content (or UTF-16), expected UTF-8 text; check the format or save as UTF-8")
    try:
        # Not to its end: the sample's last character may be torn by the cut.
        codecs.getincrementaldecoder("utf-8-sig")().decode(sample)
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        row = sample.count(b"\n", 0, error.start) + 1
        raise DataError(f"{file}, row {row}: not UTF-8 text; save the file as UTF-8") from error
    return lines[0] if lines else ""


def _explain_delimited(file: Path, header: _Header) -> None:
    endings: dict[bool, int] = {}
    rows = csv.reader(_lines(file, endings), delimiter=header.delimiter, strict=True)
    began = 1
    try:
        for row in rows:
            if row and len(row) != len(header.names):
                raise DataError(
                    f"{file}, row {began}: {len(row)} columns, but the header has {len(header.names)}; "
                    "correct or remove that row"
                )
            began = rows.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{file}, row {began}: broken quotes or too long a value ({error}); correct that row"
        ) from error
    if len(endings) > 1:
        raise DataError(
            f"{file}, row {max(endings.values())}: lines end in CR LF and in LF alone; save the file with one of them"
        )


def _lines(file: Path, endings: dict[bool, int]) -> Iterator[str]:
    """The lines as text; `endings` gets the first row that ends in CR LF, and the first that does not."""
    with open_bytes(file) as handle:
        for number, line in enumerate(handle, start=1):
            if len(line) > _LONGEST_ROW:
                raise DataError(f"{file}, row {number}: longer than {_LONGEST_ROW:,} bytes; is a line end missing?")
            if line.endswith(b"\n"):
                endings.setdefault(line.endswith(b"\r\n"), number)
            yield _decode(file, number, line)


def _decode(file: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}, row {number}: not UTF-8 text; save the file as UTF-8") from error


def _parquet_header(file: Path) -> _Header:
    try:
        schema = pq.read_schema(file)
    except PermissionError as error:
        raise DataError(f"{file}: may not be read; ask its owner for the right to") from error
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{file}: not a Parquet file, or cut off ({reason}); fetch or write it again") from error
    return _Header(tuple(schema.names), kinds=tuple(_kind(field.type) for field in schema))


def _kind(type: pa.DataType) -> str:
    if pa.types.is_dictionary(type):
        return _kind(type.value_type)
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return "text"
    if pa.types.is_timestamp(type):
        return "timestamps without a zone" if type.tz is None else "timestamps"
    if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type):
        return "numbers"
    return str(type)


def _check_kinds(file: Path, header: _Header, first_file: Path, first: _Header, names: Sequence[str]) -> None:
    """Raise DataError where files disagree: an engine would make text of both, and lose what it read before."""
    mine, others = (dict(zip(part.names, part.kinds, strict=False)) for part in (header, first))
    for name in names:
        if mine.get(name) != others.get(name) and "null" not in (mine[name], others[name]):
            raise DataError(
                f"{file}: column {name!r} holds {mine[name]}, but {others[name]} in {first_file}; read them apart"
            )


def _ndjson_header(file: Path) -> _Header:
    """The members of the first hundred objects, in order of appearance."""
    _first_line(file)
    with open_bytes(file) as handle:
        if handle.read(3) == b"\xef\xbb\xbf":
            raise DataError(f"{file}: begins with a byte order mark, which JSON forbids; save as UTF-8 without it")
    names: dict[str, None] = {}
    for row in islice(_objects(file), _OBJECTS_TO_SEE):
        names.update(dict.fromkeys(row))
    return _Header(tuple(names))


def _objects(file: Path) -> Iterator[dict[str, object]]:
    with open_bytes(file) as handle:
        for number, line in enumerate(handle, start=1):
            text = _decode(file, number, line)
            if not text.strip():
                continue
            try:
                row = json.loads(text, parse_constant=_refuse_constant)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                raise DataError(f"{file}, row {number}: expected one JSON object a line ({reason})") from error
            if not isinstance(row, dict):
                found = _JSON_WORDS.get(type(row), "a value")
                raise DataError(f"{file}, row {number}: expected one JSON object a line, found {found}")
            yield row


_JSON_WORDS: Mapping[type, str] = {list: "an array", str: "a string", int: "a number", float: "a number"}


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON; write null")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_HEADERS = {"csv": _csv_header, "tsv": _tsv_header, "parquet": _parquet_header, "ndjson": _ndjson_header}
