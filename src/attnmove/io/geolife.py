"""Geolife: a tree of `.plt` tracks (Data/USER/Trajectory/*.plt), or the zip as Microsoft distributes it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from attnmove.errors import DataError
from attnmove.io.texts import BROKEN, SCHEMA, open_bytes

MAX_MEMBER_BYTES = 512 * 1024**2
"""The largest track unpacked from a zip; Geolife's largest is below 10 MB."""
MAX_ZIP_BYTES = 64 * 1024**3
"""The most unpacked from one zip."""
_FIRST_LINE = b"Geolife trajectory"
_HEADER_LINES = 6
_COLUMNS = ["lat", "lon", "zero", "altitude_ft", "days", "date", "clock"]


def read_geolife(files: Sequence[Path], *, one_user: str | None = None) -> Iterator[pa.RecordBatch]:
    """The fixes of the tracks as text, times marked as UTC (Geolife's clock is GMT)."""
    for file in files:
        members = _members(file) if file.suffix.lower() == ".zip" else [(str(file), _read(file))]
        for name, data in members:
            yield from _track(name, data, one_user or _user_of(name))


def _read(file: Path) -> bytes:
    try:
        with open_bytes(file) as handle:
            return handle.read()
    except BROKEN as error:
        raise DataError(f"{file}: cannot be read ({error}); fetch the file again") from error


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    left = MAX_ZIP_BYTES
    try:
        with zipfile.ZipFile(file) as archive:
            for info in sorted(archive.infolist(), key=lambda member: member.filename):
                if not info.filename.lower().endswith(".plt"):
                    continue
                # Read one byte more than allowed: the size in the zip's directory may lie.
                limit = min(MAX_MEMBER_BYTES, left)
                with archive.open(info) as handle:
                    data = handle.read(limit + 1)
                if len(data) > limit:
                    raise DataError(
                        f"{file}, member {info.filename}: unpacks to more than {limit:,} bytes; not a Geolife track"
                    )
                left -= len(data)
                yield f"{file}/{info.filename}", data
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{file}: not a readable zip file ({error}); download it again") from error


def _user_of(name: str) -> str:
    name = name.removesuffix(".gz")
    parts = PurePosixPath(name).parts
    return parts[-3] if len(parts) >= 3 and parts[-2] == "Trajectory" else PurePosixPath(name).stem


def _track(name: str, data: bytes, user: str) -> Iterator[pa.RecordBatch]:
    if not data.startswith(_FIRST_LINE):
        found = data[:40].split(b"\n")[0].decode("utf-8", "replace")
        raise DataError(f"{name}, row 1: expected 'Geolife trajectory', found {found!r}; not a .plt track")
    torn: list[str] = []

    def keep_torn(row: pacsv.InvalidRow) -> str:
        torn.append(row.text)
        return "skip"

    if data.count(b"\n") <= _HEADER_LINES - 1 or not data.split(b"\n", _HEADER_LINES)[-1].strip():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        # The damaged rows are then refused one by one, not the track.
        data = data.decode("utf-8", "replace").encode()
    table = pacsv.read_csv(
        BytesIO(data),
        read_options=pacsv.ReadOptions(skip_rows=_HEADER_LINES, column_names=_COLUMNS, use_threads=False),
        parse_options=pacsv.ParseOptions(quote_char=False, invalid_row_handler=keep_torn),
        convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(_COLUMNS, pa.string())),
    )
    times = pc.binary_join_element_wise(table["date"], pc.binary_join_element_wise(table["clock"], "Z", ""), " ")
    users = pa.array([user] * len(table), pa.string())
    whole = pa.table({"user": users, "time": times, "lat": table["lat"], "lon": table["lon"]}, schema=SCHEMA)
    yield from whole.to_batches()
    if torn:
        nothing = pa.nulls(len(torn), pa.string())
        names = pa.array([user] * len(torn), pa.string())
        yield pa.record_batch([names, pa.array(torn, pa.string()), nothing, nothing], schema=SCHEMA)
