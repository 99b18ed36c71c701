"""Rows of text on their way from a parser to the engine, in batches of bounded size."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa

SCHEMA = pa.schema([("user", pa.string()), ("time", pa.string()), ("lat", pa.string()), ("lon", pa.string())])
BROKEN = (OSError, EOFError, zlib.error)
"""What reading a file, packed or not, can raise."""
_BATCH = 50_000


class Fix(NamedTuple):
    """One fix as its file writes it; the engine reads and checks the text."""

    user: str
    time: str | None
    lat: str | None
    lon: str | None


def open_bytes(file: Path) -> IO[bytes]:
    """The bytes of a file, unpacked when its name ends in .gz."""
    return gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb")  # type: ignore[return-value]


def person_of(file: Path) -> str:
    """The file's name without its endings, which stands for the user where a file is one person's."""
    return Path(file.stem).stem if file.suffix.lower() == ".gz" else file.stem


def in_batches(fixes: Iterable[Fix]) -> Iterator[pa.RecordBatch]:
    """The fixes as Arrow batches of text."""
    iterator = iter(fixes)
    while chunk := list(islice(iterator, _BATCH)):
        yield pa.record_batch([pa.array(column, pa.string()) for column in zip(*chunk, strict=True)], schema=SCHEMA)
