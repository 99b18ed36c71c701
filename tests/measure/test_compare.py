"""Comparisons: every model and seed once, results of record that survive a stop."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnmove.errors import ConfigError, DataError, RunError
from attnmove.measure import compare as module
from attnmove.measure.compare import compare
from attnmove.measure.record import COLUMNS, add_results, read_results, record, summarise
from attnmove.models.registry import MODELS, Entry
from attnmove.models.rules import Nearest
from measure.datasets import write_small


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small")


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The fits that were done, as they are done."""
    done: list[tuple[str, int]] = []
    fit: Callable[..., Any] = module.fit_model

    def counted(dataset: object, name: str, **how: Any) -> Any:
        done.append((name, how["seed"]))
        return fit(dataset, name, **how)

    monkeypatch.setattr(module, "fit_model", counted)
    return done


@pytest.fixture
def chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of another kind than a rule, so that it is fitted once a seed."""
    entry = Entry("nearest, thrice", lambda *, seed, device: Nearest(), kind="forest")
    monkeypatch.setitem(MODELS, "thrice", entry)


def test_every_row_says_where_it_comes_from(dataset: Path, tmp_path: Path) -> None:
    rows = compare(dataset, ["vote"], out=tmp_path / "results", by=["gap"]).rows
    assert {(row["split"], row["slice"]) for row in rows} >= {("valid", "all"), ("test", "all"), ("test", "gap=1")}
    row = rows[0]
    assert tuple(row) == COLUMNS
    assert (row["dataset"], row["protocol"], row["model"], row["seed"]) == ("small", "paper", "vote", 0)
    assert (row["device"], row["n"], row["settings"]) == ("cpu", 30, "")
    assert len(row["dataset_hash"]) == 64
    assert read_results(tmp_path / "results" / "results.csv") == rows


@pytest.mark.usefixtures("chance")
def test_rules_run_once_and_models_with_chance_once_a_seed(dataset: Path, fits: list[tuple[str, int]]) -> None:
    compare(dataset, ["nearest", "thrice", "nearest"], seeds=[4, 5])
    assert fits == [("nearest", 0), ("thrice", 4), ("thrice", 5)]


def test_what_is_there_already_is_not_done_again(dataset: Path, tmp_path: Path, fits: list[tuple[str, int]]) -> None:
    first = compare(dataset, ["nearest"], out=tmp_path)
    both = compare(dataset, ["top", "nearest"], out=tmp_path)
    assert fits == [("nearest", 0), ("top", 0)]
    assert [row for row in both.rows if row["model"] == "nearest"] == first.rows
    assert [row["model"] for row in both.rows] == ["top", "top", "nearest", "nearest"]


@pytest.mark.parametrize(
    "change", [{"by": ["hour"]}, {"protocol": "strict"}, {"splits": ["train"]}, {"settings": {"habit": "0.5"}}]
)
def test_what_was_not_asked_before_is_done(
    dataset: Path, tmp_path: Path, fits: list[tuple[str, int]], change: dict[str, Any]
) -> None:
    old = compare(dataset, ["vote"], out=tmp_path).rows
    new = compare(dataset, ["vote"], out=tmp_path, **change).rows
    assert len(fits) == 2
    assert new != old
    kept = read_results(tmp_path / "results.csv")
    assert {(row["protocol"], row["settings"], row["split"], row["slice"]) for row in kept} >= {
        (row["protocol"], row["settings"], row["split"], row["slice"]) for row in old
    }
    compare(dataset, ["vote"], out=tmp_path, **change)
    assert len(fits) == 2


def test_another_dataset_has_results_of_its_own_in_the_same_file(tmp_path: Path, fits: list[tuple[str, int]]) -> None:
    for name in ("one", "two"):
        folder = write_small(tmp_path / name, centres=name == "one")
        assert {row["dataset"] for row in compare(folder, ["top"], out=tmp_path / "results").rows} == {name}
    assert len(fits) == 2
    assert len(read_results(tmp_path / "results" / "results.csv")) == 4


def test_a_stopped_comparison_keeps_what_was_finished(dataset: Path, tmp_path: Path) -> None:
    def stop(what: str, done: int, of: int) -> None:
        assert (what, done, of) == ("top 0", 1, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(dataset, ["top", "nearest"], out=tmp_path / "results", progress=stop)
    assert {row["model"] for row in read_results(tmp_path / "results" / "results.csv")} == {"top"}
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["results.csv"]


def test_an_interrupted_training_is_no_result(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nearest, "outcome", SimpleNamespace(interrupted=True), raising=False)
    with pytest.raises(KeyboardInterrupt):
        compare(dataset, ["top", "nearest"], out=tmp_path / "results")
    assert {row["model"] for row in read_results(tmp_path / "results" / "results.csv")} == {"top"}


def test_several_processes_find_the_same_as_one(dataset: Path, tmp_path: Path) -> None:
    alone = compare(dataset, ["top", "nearest", "vote"], by=["gap"]).rows
    shared = compare(dataset, ["top", "nearest", "vote"], by=["gap"], jobs=2, out=tmp_path / "results").rows
    for row in [*alone, *shared]:
        del row["seconds_fit"]
    assert shared == alone


def test_a_model_that_cannot_be_used_here_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "opaque", centres=False)
    made = compare(folder, ["linear", "nearest"])
    assert {row["model"] for row in made.rows} == {"nearest"}
    assert made.rows[0]["distance_m"] is None
    assert "linear needs the centre" in made.refused["linear"]
    with pytest.raises(DataError, match="linear needs the centre"):
        compare(folder, ["linear"])


def test_an_empty_split_has_rows_with_n_zero(tmp_path: Path, fits: list[tuple[str, int]]) -> None:
    folder = write_small(tmp_path / "small", splits=("past", "train", "train", "train", "train", "test"))
    for _ in range(2):
        rows = compare(folder, ["top"], by=["gap"], out=tmp_path / "results").rows
        (empty,) = [row for row in rows if row["split"] == "valid"]
        assert empty["n"] == 0
        assert math.isnan(empty["recall"])
    assert len(fits) == 1


def test_a_dataset_without_any_target_is_refused(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small", splits=("past", "train", "train", "train", "train", "train"))
    with pytest.raises(DataError, match="no targets in valid or test"):
        compare(folder, ["top"])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"models": ["nearst"]}, "no model 'nearst'; did you mean nearest"),
        ({"models": ["vote"], "settings": {"habits": 1}}, "no setting 'habits'; did you mean habit"),
        ({"models": ["vote"], "settings": {"habit": "much"}}, "habit: expected a number"),
        ({"models": ["vote"], "by": ["hours"]}, "did you mean hour"),
        ({"models": ["vote"], "protocol": "papr"}, "did you mean paper"),
        ({"models": ["vote"], "seeds": []}, "seeds: expected 1 or more"),
        ({"models": ["vote"], "jobs": 0}, "jobs: expected 1 or more"),
        ({"models": []}, "models: expected 1 or more"),
    ],
)
def test_senseless_questions_are_refused_before_the_work(
    dataset: Path, wrong: dict[str, Any], sentence: str, fits: list[tuple[str, int]]
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        compare(dataset, **wrong)
    assert not fits


def test_a_setting_goes_to_the_models_that_have_it(dataset: Path) -> None:
    rows = compare(dataset, ["top", "vote"], settings={"habit": "0.9"}).rows
    assert {(row["model"], row["settings"]) for row in rows} == {("top", ""), ("vote", "habit=0.9")}


def a_row(**changes: Any) -> dict[str, Any]:
    numbers = dict.fromkeys(COLUMNS, 0.5)
    words = {
        "dataset": "d",
        "dataset_hash": "h",
        "protocol": "paper",
        "model": "top",
        "settings": "",
        "seed": 0,
        "n": 9,
    }
    return record({**numbers, **words, "split": "test", "slice": "all", "version": "1", "device": "cpu", **changes})


def test_results_read_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [a_row(recall=1 / 3, distance_m=None, nll=float("inf")), a_row(seed=1)]
    add_results(tmp_path / "results.csv", rows)
    assert read_results(tmp_path / "results.csv") == rows
    assert rows[0]["recall"] == 0.333333
    with (tmp_path / "results.csv").open() as file:
        assert next(csv.reader(file)) == list(COLUMNS)


def test_results_are_sorted_as_the_models_and_the_labels_are(tmp_path: Path) -> None:
    slices = ["hour=10", "all", "places=10+", "places=2", "hour=09"]
    mixed = [a_row(model=model, slice=part) for model in ("vote", "top", "own") for part in slices]
    found = add_results(tmp_path / "results.csv", mixed)
    assert list(dict.fromkeys(row["model"] for row in found)) == ["top", "vote", "own"]
    assert [row["slice"] for row in found[:5]] == ["all", "hour=09", "hour=10", "places=2", "places=10+"]


def test_a_newer_row_takes_the_place_of_the_older_one(tmp_path: Path) -> None:
    add_results(tmp_path / "results.csv", [a_row(recall=0.1), a_row(seed=1)])
    found = add_results(tmp_path / "results.csv", [a_row(recall=0.2)])
    assert [(row["seed"], row["recall"]) for row in found] == [(0, 0.2), (1, 0.5)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "not a results file, no column dataset"),
        ("", "not a results file"),
        (",".join(COLUMNS) + "\n" + "x," * 5 + "\n", "a row is broken"),
    ],
)
def test_another_file_in_the_place_of_the_results_is_not_touched(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text)
    with pytest.raises(RunError, match=sentence):
        add_results(path, [a_row()])
    assert path.read_text() == text


def test_a_cut_or_surplus_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    add_results(path, [a_row(), a_row(seed=1)])
    whole = path.read_text()
    for text, sentence in (
        (whole[:-30], "line 3: a row is broken .too few fields"),
        (whole.rstrip("\n") + ",more\n", "line 3: a row is broken .too many fields"),
        (whole.replace(",9,", ",-9,", 1), "line 2: a row is broken .expected a count"),
        (whole.replace(",9,", f",1{'0' * 400},", 1), "line 2: a row is broken .expected a count"),
    ):
        path.write_text(text)
        with pytest.raises(RunError, match=rf"results\.csv, {sentence}"):
            read_results(path)
        with pytest.raises(RunError, match=sentence):
            add_results(path, [a_row()])
        assert path.read_text() == text
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match="UTF-8"):
        read_results(path)


@pytest.mark.parametrize("mark", ["dataset.json", "model.safetensors", "checkpoint.safetensors"])
def test_results_do_not_go_into_the_folder_of_a_dataset_or_a_run(
    dataset: Path, tmp_path: Path, fits: list[tuple[str, int]], mark: str
) -> None:
    out = dataset if mark == "dataset.json" else tmp_path / "run"
    out.mkdir(exist_ok=True)
    if mark != "dataset.json":
        (out / mark).touch()
    with pytest.raises(RunError, match=r"the folder of an? .*; name another one for the results"):
        compare(dataset, ["top"], out=out)
    assert not (out / "results.csv").exists()
    assert not fits


def test_a_summary_is_the_mean_and_the_deviation_over_seeds() -> None:
    rows = [a_row(seed=seed, recall=recall, distance_m=None) for seed, recall in enumerate((0.2, 0.4, 0.6))]
    (found,) = summarise(rows)
    assert (found["model"], found["seeds"], found["n"]) == ("top", 3, 9)
    assert (found["recall"], found["recall_sd"]) == pytest.approx((0.4, 0.2))
    assert found["distance_m"] is found["distance_m_sd"] is None


def test_one_seed_has_no_deviation() -> None:
    (found,) = summarise([a_row()])
    assert found["recall"] == 0.5
    assert found["recall_sd"] is None
