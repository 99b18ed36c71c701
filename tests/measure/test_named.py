"""Models by name and runs by folder on one split."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnmove.errors import ConfigError, DataError
from attnmove.measure.named import evaluate_named
from attnmove.models.runs import train_run
from attnmove.prep.dataset import read_dataset
from measure.datasets import write_small


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small")


def test_models_are_fitted_and_measured_in_the_order_asked(dataset: Path) -> None:
    told: list[tuple[str, int, int]] = []
    rows = evaluate_named(dataset, ["vote", "top"], seed=3, progress=lambda *what: told.append(what))
    assert [(row["model"], row["slice"], row["split"], row["n"]) for row in rows] == [
        ("vote", "all", "test", 30),
        ("top", "all", "test", 30),
    ]
    assert (rows[0]["seed"], rows[0]["protocol"], rows[0]["run"]) == (3, "paper", None)
    assert told == [("vote", 0, 2), ("top", 1, 2)]


def test_a_folder_is_a_run(dataset: Path, tmp_path: Path) -> None:
    train_run(read_dataset(dataset), "nearest", tmp_path / "run", seed=7)
    by_folder, by_name = evaluate_named(dataset, [str(tmp_path / "run"), "nearest"], seed=7)
    assert by_folder["run"] == str(tmp_path / "run")
    assert {**by_folder, "run": None} == by_name


def test_a_run_may_come_from_other_days_of_the_same_locations_only(dataset: Path, tmp_path: Path) -> None:
    train_run(read_dataset(dataset), "nearest", tmp_path / "run")
    fewer = write_small(tmp_path / "fewer", splits=("past", "train", "train", "test"))
    (row,) = evaluate_named(fewer, [str(tmp_path / "run")])
    assert row["trained_on"] != row["dataset_hash"]
    elsewhere = write_small(tmp_path / "elsewhere", centres=False)
    with pytest.raises(DataError, match="other locations"):
        evaluate_named(elsewhere, [str(tmp_path / "run")])


def test_a_name_that_is_neither_a_model_nor_a_run_is_refused_first(dataset: Path) -> None:
    with pytest.raises(ConfigError, match="no model or run 'nearst'; did you mean nearest"):
        evaluate_named(dataset, ["top", "nearst"])


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small", splits=("past", "train", "train", "train", "train", "test"))
    with pytest.raises(DataError, match="no targets in its valid split"):
        evaluate_named(folder, ["top"], split="valid")


def test_the_strict_protocol_shows_less_of_earlier_days(dataset: Path) -> None:
    paper, strict = (evaluate_named(dataset, ["history"], protocol=name)[0] for name in ("paper", "strict"))
    assert paper["n"] == strict["n"]
    assert strict["protocol"] == "strict"
