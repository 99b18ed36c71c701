"""Models by name and runs by folder on one split."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnmove.errors import ConfigError, DataError
from attnmove.measure.confidence import confidence_for
from attnmove.measure.named import evaluate_named
from attnmove.models.registry import make_model
from attnmove.models.runs import train_run
from attnmove.prep.dataset import read_dataset
from measure.datasets import write_small


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small")


def test_models_are_fitted_and_measured_in_the_order_asked(dataset: Path) -> None:
    told: list[tuple[str, int, int]] = []
    rows = evaluate_named(dataset, ["vote", "top"], seed=3, progress=lambda *what: told.append(what)).rows
    assert [(row["model"], row["slice"], row["split"], row["n"]) for row in rows] == [
        ("vote", "all", "test", 30),
        ("top", "all", "test", 30),
    ]
    assert (rows[0]["seed"], rows[0]["protocol"], rows[0]["run"]) == (3, "paper", None)
    assert told == [("vote", 0, 2), ("top", 1, 2)]


def test_a_folder_is_a_run(dataset: Path, tmp_path: Path) -> None:
    train_run(read_dataset(dataset), "nearest", tmp_path / "run", seed=7)
    by_folder, by_name = evaluate_named(dataset, [str(tmp_path / "run"), "nearest"], seed=7).rows
    assert by_folder["run"] == str(tmp_path / "run")
    assert {**by_folder, "run": None} == by_name


def test_a_run_may_come_from_other_days_of_the_same_locations_only(dataset: Path, tmp_path: Path) -> None:
    train_run(read_dataset(dataset), "nearest", tmp_path / "run")
    fewer = write_small(tmp_path / "fewer", splits=("past", "train", "train", "test"))
    (row,) = evaluate_named(fewer, [str(tmp_path / "run")]).rows
    assert row["trained_on"] != row["dataset_hash"]
    elsewhere = write_small(tmp_path / "elsewhere", centres=False)
    with pytest.raises(DataError, match="its locations are not those of the dataset"):
        evaluate_named(elsewhere, [str(tmp_path / "run")])


def test_a_name_that_is_neither_a_model_nor_a_run_is_refused_first(dataset: Path) -> None:
    with pytest.raises(ConfigError, match="no model or run 'nearst'; did you mean nearest"):
        evaluate_named(dataset, ["top", "nearst"])


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small", splits=("past", "train", "train", "train", "train", "test"))
    with pytest.raises(DataError, match="no targets in its valid split"):
        evaluate_named(folder, ["top"], split="valid")


def test_the_strict_protocol_shows_less_of_earlier_days(dataset: Path) -> None:
    paper, strict = (evaluate_named(dataset, ["history"], protocol=name).rows[0] for name in ("paper", "strict"))
    assert paper["n"] == strict["n"]
    assert strict["protocol"] == "strict"


def test_a_precision_chooses_the_confidence_of_each_model_on_the_validation_days(dataset: Path) -> None:
    made = evaluate_named(dataset, ["vote", "nearest"], precision=0.5)
    data = read_dataset(dataset)
    valid = data.cases("valid")
    for row in made.rows:
        model = make_model(row["model"]).fit(data.cases("train"), valid)
        assert row["min_confidence"] == confidence_for(model, valid, 0.5)
        assert 0 < row["coverage"] <= 1
    assert not made.refused


def test_a_model_that_cannot_keep_the_precision_answers_nothing_and_the_others_go_on(dataset: Path) -> None:
    best = {name: precision_of_all(dataset, name) for name in ("vote", "top")}
    assert best["top"] < best["vote"]
    made = evaluate_named(dataset, ["top", "vote"], precision=best["vote"])
    top, vote = made.rows
    assert list(made.refused) == ["top"]
    assert (top["min_confidence"], top["coverage"], top["precision"]) == (None, 0.0, None)
    assert vote["coverage"] > 0
    with pytest.raises(ConfigError, match="top: precision 1 is not reached on the 30 validation targets"):
        evaluate_named(dataset, ["top"], precision=1.0)


def test_without_validation_days_no_confidence_is_chosen(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small", splits=("past", "train", "train", "train", "train", "test"))
    with pytest.raises(DataError, match="expected 30 validation targets or more to choose a confidence on, found 0"):
        evaluate_named(folder, ["top"], precision=0.5)


def test_a_confidence_and_a_precision_are_not_asked_together(dataset: Path) -> None:
    with pytest.raises(ConfigError, match="found both"):
        evaluate_named(dataset, ["top"], min_confidence=0.5, precision=0.5)


def test_the_curves_are_those_of_every_model_on_all_targets(dataset: Path) -> None:
    made = evaluate_named(dataset, ["top", "vote"], by=["gap"])
    assert {(row["model"], row["run"], row["split"]) for row in made.curves} == {
        ("top", None, "test"),
        ("vote", None, "test"),
    }
    recall = {row["model"]: row["recall"] for row in made.rows if row["slice"] == "all"}
    last = {row["model"]: row for row in made.curves if row["curve"] == "risk_coverage"}
    assert {name: row["precision"] for name, row in last.items()} == pytest.approx(recall)
    assert last["vote"]["n"] == 30


def precision_of_all(dataset: Path, name: str) -> float:
    """With 30 validation targets there is one threshold to choose, that of all answers."""
    return float(evaluate_named(dataset, [name], split="valid").rows[0]["recall"])
