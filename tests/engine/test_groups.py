"""Batches that never cut a group, and the proof that rows are sorted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmove.engine.groups import OutOfOrderError, by_header, in_order, in_whole_groups

Row = tuple[str, int, int]
rows_of = st.lists(
    st.tuples(st.sampled_from(["a", "b", "ä", "u10", "u9", "😀"]), st.integers(-1, 2), st.integers(0, 3)), max_size=30
)
sizes_of = st.lists(st.integers(0, 6), max_size=20)
ORDER = ["user", "day", "time_us"]


def batches(rows: list[Row], sizes: list[int]) -> list[pa.RecordBatch]:
    """The rows in batches of these sizes (an empty one is an empty batch), the rest in one more."""
    out, start = [], 0
    for size in [*sizes, len(rows)]:
        part = rows[start : start + size]
        arrays = [
            pa.array([row[i] for row in part], kind) for i, kind in enumerate((pa.string(), pa.int32(), pa.int64()))
        ]
        out.append(pa.RecordBatch.from_arrays(arrays, names=ORDER))
        start += size
    return out


def rows_in(table: pa.Table | pa.RecordBatch) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


@given(rows=rows_of, sizes=sizes_of, together=st.integers(1, 3))
def test_groups_are_never_cut_and_no_row_is_lost(rows: list[Row], sizes: list[int], together: int) -> None:
    rows = sorted(rows)
    tables = list(in_whole_groups(batches(rows, sizes), ORDER[:together]))
    assert [row for table in tables for row in rows_in(table)] == rows
    assert all(len(table) for table in tables)
    for before, after in pairwise(tables):
        assert rows_in(before)[-1][:together] != rows_in(after)[0][:together]


@given(rows=rows_of, sizes=sizes_of)
def test_a_table_of_whole_groups_is_bounded_by_a_batch_and_the_group_before_it(
    rows: list[Row], sizes: list[int]
) -> None:
    rows = sorted(rows)
    parts = batches(rows, sizes)
    largest_batch = max(len(part) for part in parts)
    largest_group = max((sum(row[:2] == other[:2] for other in rows) for row in rows), default=0)
    for table in in_whole_groups(parts, ["user", "day"]):
        assert len(table) <= largest_batch + largest_group


@given(rows=rows_of, sizes=sizes_of)
def test_in_order_raises_exactly_when_the_rows_are_not_sorted(rows: list[Row], sizes: list[int]) -> None:
    for some in (rows, sorted(rows)):
        checked = in_order(batches(some, sizes), ORDER)
        if some == sorted(some):
            assert [row for batch in checked for row in rows_in(batch)] == some
        else:
            with pytest.raises(OutOfOrderError):
                list(checked)


@given(rows=rows_of, sizes=sizes_of)
def test_rows_in_order_can_be_cut_into_whole_groups(rows: list[Row], sizes: list[int]) -> None:
    rows = sorted(rows)
    tables = in_whole_groups(in_order(batches(rows, sizes), ORDER), ["user", "day"])
    assert [row for table in tables for row in rows_in(table)] == rows


def test_rows_are_handed_on_before_all_are_read() -> None:
    read = 0

    def one_after_the_other() -> object:
        nonlocal read
        for user in "abcdefgh":
            read += 1
            yield from batches([(user, 1, 1)], [1])[:1]

    first = next(in_whole_groups(in_order(one_after_the_other(), ORDER), ["user"]))  # type: ignore[arg-type]
    assert rows_in(first) == [("a", 1, 1)]
    assert read == 2


def test_files_with_one_header_are_read_together() -> None:
    files = [Path(name) for name in "abc"]
    together = list(by_header(files, [["x", "y"], ["y", "x"], ["x", "y"]]))
    assert together == [(["x", "y"], [Path("a"), Path("c")]), (["y", "x"], [Path("b")])]


def test_columns_without_a_name_of_their_own_get_one() -> None:
    [(header, _)] = by_header([Path("a")], [["user", "lat", "User", "", ""]])
    assert header == ["user", "lat", "User#2", "#3", "#4"]
