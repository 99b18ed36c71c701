"""Sorted rows in batches that never cut a group, the proof that they are sorted, and files of one header together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq


class OutOfOrderError(Exception):
    """Rows that were hoped to be sorted are not; it never leaves the engine."""


def in_order(batches: Iterable[pa.RecordBatch], order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The same rows, the first column (text) as a dictionary; raises OutOfOrderError where one comes before its
    neighbour."""
    last: list[Any] | None = None
    for batch in batches:
        if len(batch) == 0:
            continue
        text = batch.column(order[0]).dictionary_encode()
        names = text.dictionary.to_pylist()
        columns = [text.indices.to_numpy(), *(batch.column(name).to_numpy() for name in order[1:])]
        first = [batch.column(name)[0].as_py() for name in order]
        if (last is not None and first < last) or names != sorted(names) or not _rises(columns):
            raise OutOfOrderError
        last = [batch.column(name)[-1].as_py() for name in order]
        yield batch.set_column(batch.schema.get_field_index(order[0]), order[0], text)


def _rises(columns: list[npt.NDArray[Any]]) -> bool:
    """True when each row is at least the one before it, column after column."""
    tied = np.ones(len(columns[0]) - 1, dtype=np.bool_)
    for column in columns:
        if np.any(tied & (column[1:] < column[:-1])):
            return False
        tied &= column[1:] == column[:-1]
    return True


def in_whole_groups(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.Table]:
    """The same sorted rows, cut only where one of the columns changes.

    A group larger than a batch is held whole: memory is bounded by the largest group, not by the number of rows.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if len(batch) == 0:
            continue
        cut = _last_change(batch, columns)
        if cut == 0 and held and not _continues(held[-1], batch, columns):
            yield pa.Table.from_batches(held)
            held = []
        if cut:
            yield pa.Table.from_batches([*held, batch.slice(0, cut)])
            held = []
        held.append(batch.slice(cut))
    if held:
        yield pa.Table.from_batches(held)


def _last_change(batch: pa.RecordBatch, columns: Sequence[str]) -> int:
    """Where the last group of the batch begins, found by halving: in sorted rows a group is one run at the end."""
    last = [batch.column(name)[-1].as_py() for name in columns]
    low, high = 0, len(batch) - 1
    while low < high:
        middle = (low + high) // 2
        if [batch.column(name)[middle].as_py() for name in columns] == last:
            high = middle
        else:
            low = middle + 1
    return low


def _continues(before: pa.RecordBatch, batch: pa.RecordBatch, columns: Sequence[str]) -> bool:
    return all(before.column(name)[-1].as_py() == batch.column(name)[0].as_py() for name in columns)


def by_header(files: Sequence[Path], headers: Sequence[Sequence[str]]) -> Iterator[tuple[list[str], list[Path]]]:
    """Each distinct header with its files. A column without a name, or with that of an earlier one (engines do not tell
    upper from lower case), gets a name of its own."""
    alike: dict[tuple[str, ...], list[Path]] = {}
    for file, header in zip(files, headers, strict=True):
        alike.setdefault(tuple(header), []).append(file)
    for header, some in alike.items():
        seen = {"": -1}
        for i, name in enumerate(header):
            seen.setdefault(name.lower(), i)
        yield [name if seen[name.lower()] == i else f"{name}#{i}" for i, name in enumerate(header)], some


def read_batches(file: Path, *, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, so many at a time."""
    with pq.ParquetFile(file) as opened:
        if opened.num_row_groups:  # older pyarrow stumbles over a file that has none
            yield from opened.iter_batches(batch_size=rows)
