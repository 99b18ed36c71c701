"""Rows of text on their way from a parser to the engine, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

SCHEMA = pa.schema([("user", pa.string()), ("time", pa.string()), ("lat", pa.string()), ("lon", pa.string())])
_BATCH = 50_000


class Fix(NamedTuple):
    """One fix as its file writes it; the engine reads and checks the text."""

    user: str
    time: str | None
    lat: str | None
    lon: str | None


def in_batches(fixes: Iterable[Fix]) -> Iterator[pa.RecordBatch]:
    """The fixes as Arrow batches of text."""
    iterator = iter(fixes)
    while chunk := list(islice(iterator, _BATCH)):
        yield pa.record_batch([pa.array(column, pa.string()) for column in zip(*chunk, strict=True)], schema=SCHEMA)
