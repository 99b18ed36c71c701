"""What only DuckDB does: sorted sources without sorting, its complaints in one sentence, nothing left behind."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnmove.engine.duckdb as module
from attnmove.engine import open_engine
from attnmove.engine.duckdb import DuckDBEngine
from attnmove.errors import ConfigError, DataError
from attnmove.prep.pipeline import prepare

COLUMNS = ["user", "time", "lat", "lon"]
SUMS = pa.schema([("user", pa.string()), ("n", pa.int64())])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where scratch folders go in this test."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def engine(home: Path) -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as opened:
        yield opened


def write_users(path: Path, users: list[str]) -> Path:
    pq.write_table(pa.table({"user": users, "x": np.arange(len(users))}), path, row_group_size=1000)
    return path


def count_users(table: pa.Table) -> pa.RecordBatch:
    users = table["user"].combine_chunks()
    users = users.cast(pa.string())
    counts = users.value_counts().to_pylist()
    return pa.RecordBatch.from_pylist([{"user": row["values"], "n": row["counts"]} for row in counts], schema=SUMS)


def counted(engine: DuckDBEngine, path: Path) -> list[tuple[str, int]]:
    table = engine.scan_parquet([path])
    result = engine.map_groups(table, count_users, order=["user", "x"], together=1, schema=SUMS)
    return [(row["user"], row["n"]) for batch in result for row in batch.to_pylist()]


def test_a_sorted_and_a_shuffled_source_give_the_same(engine: DuckDBEngine, tmp_path: Path) -> None:
    users = [f"u{i // 7:05}" for i in range(20_000)]
    rising = counted(engine, write_users(tmp_path / "a.parquet", users))
    order = np.random.default_rng(0).permutation(len(users))
    shuffled = counted(engine, write_users(tmp_path / "b.parquet", [users[i] for i in order]))
    almost = counted(engine, write_users(tmp_path / "c.parquet", [*users[1:], users[0]]))
    assert rising == shuffled == almost
    assert len(rising) == len(set(users))


def test_the_function_gets_a_bounded_number_of_rows(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROWS_TO_MAP", 4096)
    sizes: list[int] = []

    def noted(table: pa.Table) -> pa.RecordBatch:
        sizes.append(len(table))
        return count_users(table)

    table = engine.scan_parquet([write_users(tmp_path / "a.parquet", [f"u{i // 7:05}" for i in range(50_000)])])
    list(engine.map_groups(table, noted, order=["user", "x"], together=1, schema=SUMS))
    assert sum(sizes) == 50_000
    assert max(sizes) <= 4096 + 7


def test_an_error_of_the_function_comes_through_and_leaves_no_spool(engine: DuckDBEngine, tmp_path: Path) -> None:
    def fails(table: pa.Table) -> pa.RecordBatch:
        raise ZeroDivisionError

    path = write_users(tmp_path / "a.parquet", ["a", "b"])
    n_threads = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        list(engine.map_groups(engine.scan_parquet([path]), fails, order=["user", "x"], together=1, schema=SUMS))
    assert not list(engine.scratch.glob("mapped-*"))
    assert threading.active_count() <= n_threads
    assert counted(engine, path) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("rising", [True, False])
def test_a_reader_may_stop_early(
    engine: DuckDBEngine, tmp_path: Path, rising: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROWS_TO_MAP", 2048)
    users = [f"u{i:05}" for i in range(20_000)]
    path = write_users(tmp_path / "a.parquet", users if rising else users[::-1])
    result = engine.map_groups(engine.scan_parquet([path]), count_users, order=["user", "x"], together=1, schema=SUMS)
    assert len(next(result)) > 0
    result.close()  # type: ignore[attr-defined]
    assert not list(engine.scratch.glob("mapped-*"))
    assert len(counted(engine, path)) == 20_000


def test_the_scratch_folder_goes_with_the_engine(home: Path) -> None:
    with DuckDBEngine() as opened:
        assert opened.scratch.parent == home
        opened.keep(opened.scan_parquet([write_users(home.parent / "a.parquet", ["a"])]), "kept")
    assert list(home.iterdir()) == []


def test_the_scratch_folder_goes_when_prepare_fails(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "points.csv"
    source.write_text("user,time,lat,lon\nu,2024-01-01T00:00:00Z,1\n")
    with pytest.raises(DataError):
        prepare(source)
    assert list(home.iterdir()) == []


def test_the_scratch_folder_goes_when_connecting_is_interrupted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.ibis.duckdb, "connect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        DuckDBEngine()
    assert list(home.iterdir()) == []


def test_a_size_of_memory_that_is_none_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNMOVE_MEMORY", "lots")
    with pytest.raises(ConfigError, match="ATTNMOVE_MEMORY='lots' is not a size"):
        open_engine("duckdb")
    assert list(home.iterdir()) == []


def test_too_little_memory_is_named(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNMOVE_MEMORY", "1MB")
    users = [f"u{i % 999:05}" for i in range(200_000)]
    path = write_users(tmp_path / "a.parquet", users)
    with DuckDBEngine() as engine, pytest.raises(DataError, match="set ATTNMOVE_MEMORY"):
        list(engine.batches(engine.scan_parquet([path]).order_by("user")))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (b"a,1,2,3\nb,1,2\n", r"points\.csv, row 3: Expected Number of Columns: 4 Found: 3"),
        (b"a,1,2,3\nb,1,2,3,4,5\n", r"points\.csv, row 3: Expected Number of Columns: 4 Found: \d"),
        (b'a,1,2,3\n"b,1,2,3\n', r"points\.csv, row 3: Value with unterminated quote found"),
        (b"a,1,2,3\n\xff\xfe,1,2,3\n", r"points\.csv, row 3: Invalid unicode"),
        (b"a,1,2,3\r\nb,1,2,3\nc,1,2,3\r\n", r"points\.csv: its quotes do not match, or its lines end"),
    ],
)
def test_a_broken_csv_row_is_one_sentence_with_its_number(
    engine: DuckDBEngine, tmp_path: Path, rows: bytes, words: str
) -> None:
    path = tmp_path / "points.csv"
    path.write_bytes(b"user,time,lat,lon\n" + rows)
    with pytest.raises(DataError, match=words) as caught:
        engine.keep(engine.scan_csv([path], headers=[COLUMNS], delimiter=",", columns=COLUMNS), "kept")
    assert "\n" not in str(caught.value)


def test_a_broken_json_line_is_one_sentence(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "points.ndjson"
    path.write_text('{"user": "a"}\n{"user":\n')
    with pytest.raises(DataError, match=r"points\.ndjson, row \d: Malformed JSON"):
        engine.keep(engine.scan_ndjson([path], columns=["user"]), "kept")


def test_an_interrupt_inside_duckdb_is_an_interrupt() -> None:
    wrapped = RuntimeError("Query interrupted")
    wrapped.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), module._explained():
        raise wrapped
