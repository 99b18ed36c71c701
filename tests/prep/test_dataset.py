"""Datasets on disk: whole or not there, equal bytes for equal input, and one sentence for a damaged one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnmove.city import write_city
from attnmove.errors import RunError
from attnmove.nouns import Days, Locations, Targets
from attnmove.prep.config import Preparation
from attnmove.prep.dataset import Dataset, check_writable, content_hash, read_dataset, write_dataset
from attnmove.prep.describe import describe
from attnmove.prep.hide import draw_targets
from attnmove.prep.pipeline import prepare
from builders import days_of


def small_dataset() -> Dataset:
    full = " ".join("AABB" * 12)
    days = days_of({"a": [full] * 3, "b": [full] * 2})
    locations = Locations(
        np.array(["é", "two"], dtype=object), np.array([116.3, np.nan]), np.array([39.9, np.nan]), np.array([7, 9])
    )
    targets = draw_targets(days, Preparation(draws=2))
    facts = {"format_version": 1, "slots_per_day": 48, "days": 5, "note": "é"}
    return Dataset(days, locations, targets, facts)


def equal(one: object, other: object) -> bool:
    """True when every array of two nouns is the same."""
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]  # type: ignore[arg-type]
    return all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f") if isinstance(a, np.ndarray) else a == b for a, b in pairs
    )


def test_a_dataset_reads_back_as_it_was_written(tmp_path: Path) -> None:
    written = small_dataset()
    write_dataset(tmp_path / "new" / "dataset", written)
    read = read_dataset(tmp_path / "new" / "dataset")
    assert equal(read.days, written.days)
    assert equal(read.targets, written.targets)
    assert read.locations.name.tolist() == ["é", "two"]
    assert np.array_equal(read.locations.centres, written.locations.centres, equal_nan=True)
    assert read.facts == written.facts
    assert read.days.loc.dtype == read.targets.slot.dtype == np.int32


def test_a_dataset_without_targets_reads_back(tmp_path: Path) -> None:
    days = days_of({"a": [" ".join("A" * 48)] * 3}, split="past")
    dataset = replace(small_dataset(), days=days, targets=draw_targets(days, Preparation()))
    write_dataset(tmp_path / "dataset", dataset)
    read = read_dataset(tmp_path / "dataset")
    assert len(read.targets) == 0
    assert read.targets.history.shape == (0, 48)
    assert (len(read.train), len(read.valid), len(read.test)) == (0, 0, 0)


def test_the_splits_are_cases_of_their_own() -> None:
    days = days_of({"a": ["A A", "B B", "C C", "A A"]})
    days = Days(days.user, days.date, days.loc, np.array(["past", "train", "valid", "test"], dtype=object))
    dataset = replace(small_dataset(), days=days, targets=draw_targets(days, Preparation(draws=2, hide=1)))
    for part, place in ((dataset.train, 1), (dataset.valid, 2), (dataset.test, 0)):
        assert part.loc.tolist() == [[place, place]] * 2
        assert part.hidden.sum(axis=1).tolist() == [1, 1]


def test_an_older_dataset_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_dataset(tmp_path / "dataset", small_dataset(), rejects=shutil.copy(__file__, tmp_path / "rejects"))
    write_dataset(tmp_path / "dataset", small_dataset())
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]
    assert not (tmp_path / "dataset" / "rejects.parquet").exists()


def test_a_dataset_with_a_file_of_the_users_is_not_replaced(tmp_path: Path) -> None:
    write_dataset(tmp_path / "dataset", small_dataset())
    (tmp_path / "dataset" / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"thesis\.tex"):
        write_dataset(tmp_path / "dataset", small_dataset())
    assert (tmp_path / "dataset" / "thesis.tex").exists()


@pytest.mark.parametrize("page", ["{}", "[]", "not json"])
def test_somebody_elses_dataset_json_is_not_replaced(tmp_path: Path, page: str) -> None:
    (tmp_path / "dataset.json").write_text(page)
    with pytest.raises(RunError, match="not a dataset of attnmove"):
        write_dataset(tmp_path, small_dataset())
    assert (tmp_path / "dataset.json").read_text() == page


@pytest.mark.parametrize("when", [1, 2])
def test_an_interrupt_at_a_rename_leaves_the_old_or_the_new_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    write_dataset(tmp_path / "dataset", small_dataset())
    rename, calls = Path.replace, []

    def interrupted(self: Path, target: Path) -> Path:
        calls.append(target)
        done = rename(self, target)
        if len(calls) == when:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_dataset(tmp_path / "dataset", small_dataset())
    monkeypatch.undo()
    assert len(read_dataset(tmp_path / "dataset").days) == len(small_dataset().days)
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_the_older_dataset_survives_when_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(tmp_path / "dataset", small_dataset())
    before = (tmp_path / "dataset" / "days.parquet").read_bytes()

    def full_disk(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attnmove.prep.dataset.write_locations", full_disk)
    with pytest.raises(RunError, match="No space left on device"):
        write_dataset(tmp_path / "dataset", small_dataset())
    assert (tmp_path / "dataset" / "days.parquet").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_the_older_dataset_comes_back_when_the_last_move_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path / "dataset", small_dataset())
    move = Path.replace

    def fails_for_the_new(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(5, "Input/output error")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", fails_for_the_new)
    with pytest.raises(RunError, match="Input/output error"):
        write_dataset(tmp_path / "dataset", small_dataset())
    assert len(read_dataset(tmp_path / "dataset").days) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_a_folder_with_other_things_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match="holds other things"):
        write_dataset(tmp_path, small_dataset())
    with pytest.raises(RunError, match="this is a file"):
        write_dataset(tmp_path / "thesis.tex", small_dataset())
    with pytest.raises(RunError, match="cannot be written"):
        write_dataset(tmp_path / "thesis.tex" / "dataset", small_dataset())


def test_a_folder_that_cannot_be_moved_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda self: True)
    with pytest.raises(RunError, match="cannot be replaced as a whole"):
        check_writable(tmp_path)


def test_an_empty_folder_may_become_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_dataset(Path(), small_dataset())
    assert len(read_dataset(tmp_path / "here").days) == 5


def rewrite(file: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    return lambda folder: pq.write_table(change(pq.read_table(folder / file)), folder / file)


def facts_with(**members: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        page = folder / "dataset.json"
        kept = {name: value for name, value in (json.loads(page.read_text()) | members).items() if value is not None}
        page.write_text(json.dumps(kept))

    return change


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "no folder": shutil.rmtree,
    "no page": lambda folder: (folder / "dataset.json").unlink(),
    "torn page": lambda folder: (folder / "dataset.json").write_text('{"format_version": 1,'),
    "page of bytes": lambda folder: (folder / "dataset.json").write_bytes(b"\xff\xfe\0"),
    "page of a list": lambda folder: (folder / "dataset.json").write_text("[]"),
    "other version": facts_with(format_version=99),
    "no slots a day": facts_with(slots_per_day=None),
    "slots a day in words": facts_with(slots_per_day="many"),
    "other slots a day": facts_with(slots_per_day=24),
    "no days": lambda folder: (folder / "days.parquet").unlink(),
    "torn days": lambda folder: os.truncate(folder / "days.parquet", 500),
    "empty days": lambda folder: (folder / "days.parquet").write_bytes(b""),
    "days without loc": rewrite("days.parquet", lambda table: table.drop_columns("loc")),
    "days without order": rewrite("days.parquet", lambda table: table.take(pa.array([1, 0, 2, 3, 4]))),
    "days of text": rewrite("days.parquet", lambda table: table.set_column(3, "loc", table["user"])),
    "days of no user": rewrite(
        "days.parquet", lambda table: table.set_column(0, "user", pa.nulls(len(table), pa.string()))
    ),
    "days of another split": rewrite("days.parquet", lambda table: table.set_column(2, "split", table["user"])),
    "locations that are not there": rewrite("locations.parquet", lambda table: table.slice(0, 1)),
    "no locations": lambda folder: (folder / "locations.parquet").unlink(),
    "no targets": lambda folder: (folder / "targets.parquet").unlink(),
    "targets of numbers": rewrite("targets.parquet", lambda table: table.set_column(3, "slots", table["draw"])),
    "targets after midnight": rewrite(
        "targets.parquet",
        lambda table: table.set_column(3, "slots", pa.array([[48]] * len(table), pa.list_(pa.int32()))),
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_dataset_is_one_sentence(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "dataset"
    write_dataset(folder, small_dataset())
    DAMAGES[damage](folder)
    with pytest.raises(RunError) as caught:
        read_dataset(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_describe_refuses_a_dataset_that_lost_days(tmp_path: Path) -> None:
    folder = tmp_path / "dataset"
    write_dataset(folder, small_dataset())
    assert describe(folder)["days"] == 5
    rewrite("days.parquet", lambda table: table.slice(0, 3))(folder)
    with pytest.raises(RunError, match=r"3 days, dataset\.json says 5"):
        describe(folder)


def test_the_hash_changes_when_anything_a_model_can_see_changes() -> None:
    base = small_dataset()

    def changed(array: Any) -> Any:
        other = array.copy()
        if other.dtype == object:
            other[0] = "Z"
        else:
            other.flat[0] += 1
        return other

    hashes = {content_hash(base.days, base.locations, base.targets)}
    for name in ("days", "locations", "targets"):
        noun = getattr(base, name)
        for member in ("user", "date", "loc", "split", "name", "lon", "lat", "draw", "start", "slot", "history"):
            if hasattr(noun, member):
                broken = _unchecked(noun, member, changed(getattr(noun, member)))
                parts = {"days": base.days, "locations": base.locations, "targets": base.targets, name: broken}
                hashes.add(content_hash(**parts))
    assert len(hashes) == 1 + 4 + 3 + 6


def _unchecked(noun: Days | Locations | Targets, member: str, value: Any) -> Any:
    """The noun with one member changed, without its checks: some changes make no sense, but must be noticed."""
    other = object.__new__(type(noun))
    for field in fields(noun):
        object.__setattr__(other, field.name, value if field.name == member else getattr(noun, field.name))
    return other


def test_the_hash_tells_apart_texts_that_join_to_the_same() -> None:
    base = small_dataset()
    one, other = (replace(base.locations, name=np.array(names, dtype=object)) for names in (["a", "\0b"], ["a\0", "b"]))
    assert content_hash(base.days, one, base.targets) != content_hash(base.days, other, base.targets)


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("city") / "points.parquet"
    write_city(path, users=6, days=9, seed=3)
    return path


def made(source: Any, out: Path, **options: Any) -> tuple[bytes, bytes, str]:
    dataset = prepare(source, "grid:500", out=out, timezone="Asia/Shanghai", **options)
    return (out / "days.parquet").read_bytes(), (out / "targets.parquet").read_bytes(), dataset.facts["hash"]


def test_two_runs_write_the_same_bytes(city: Path, tmp_path: Path) -> None:
    assert made(city, tmp_path / "one") == made(city, tmp_path / "two")


def test_the_order_of_the_rows_does_not_matter(city: Path, tmp_path: Path) -> None:
    table = pq.read_table(city)
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(len(table))))
    pq.write_table(shuffled, tmp_path / "shuffled.parquet")
    assert made(tmp_path / "shuffled.parquet", tmp_path / "one") == made(city, tmp_path / "two")


@pytest.mark.filterwarnings("ignore:fetch_record_batch:DeprecationWarning")  # in Ibis, of the caller's own table
def test_the_kind_of_source_does_not_matter(city: Path, tmp_path: Path) -> None:
    import ibis
    import polars as pl
    from pyarrow import csv

    table = pq.read_table(city)
    csv.write_csv(table, tmp_path / "points.csv")
    expected = made(city, tmp_path / "parquet")
    sources = {
        "csv": tmp_path / "points.csv",
        "pyarrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "ibis": ibis.memtable(table),
    }
    for name, source in sources.items():
        assert made(source, tmp_path / name) == expected, name


def test_a_seed_changes_the_targets_and_nothing_else(city: Path, tmp_path: Path) -> None:
    one, other = made(city, tmp_path / "one", seed=0), made(city, tmp_path / "other", seed=1)
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert one[2] != other[2]
