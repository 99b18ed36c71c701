"""The commands that measure: tables for people, JSON for machines, one sentence for a mistake."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from attnmove import cli
from attnmove.measure.downstream import MEASURES
from attnmove.models.registry import MODELS
from attnmove.models.runs import train_run
from attnmove.prep.dataset import read_dataset
from measure.datasets import write_small


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small")


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli.app, [str(part) for part in arguments])
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return result


def test_models_lists_every_model() -> None:
    shown = run("models").stdout
    listed = json.loads(run("models", "--json").stdout)
    assert [row["name"] for row in listed] == list(MODELS)
    assert all(name in shown for name in ("nearest", "rule", "visible slots vote"))


@pytest.mark.parametrize(("practice", "said"), [(400, True), (0, False)])
def test_train_says_when_made_up_people_helped(dataset: Path, tmp_path: Path, practice: int, said: bool) -> None:
    small = ("--set", "rounds=2", "--set", "rankers=1", "--set", "draws=0")
    made = run("train", dataset, "-o", tmp_path / "run", *small, "--set", f"practice={practice}")
    assert ("days of made-up people helped" in made.stderr) == said
    kept = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (kept["made_up_lessons"] > 0) == said


def test_evaluate_prints_a_row_for_each_model_and_slice(dataset: Path) -> None:
    shown = run("evaluate", dataset, "nearest", "vote", "--by", "gap,hour", "--intervals").stdout
    assert "…" not in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith(" nearest")][:2] == ["all", "gap=1"]
    assert "hour=23" in shown
    for head in ("recall", "@3", "@5", "MAP", "metres", "NLL", "ECE"):
        assert head in shown


def test_evaluate_json_is_a_list_of_rows(dataset: Path) -> None:
    rows = json.loads(run("evaluate", dataset, "top", "vote", "--json").stdout)
    assert [row["model"] for row in rows] == ["top", "vote"]
    wanted = {"model", "split", "slice", "n", "recall", "recall_at_3", "recall_at_5", "map", "distance_m", "nll", "ece"}
    assert set(rows[0]) >= wanted
    assert rows[0]["n"] == 30


def test_evaluate_json_with_a_file_writes_it_and_shows_the_table(dataset: Path, tmp_path: Path) -> None:
    shown = run("evaluate", dataset, "top", "--json", tmp_path / "out.json").stdout
    assert "recall" in shown
    assert "wrote" in shown
    assert json.loads((tmp_path / "out.json").read_text())[0]["model"] == "top"


def test_evaluate_writes_over_nothing_it_reads_and_no_output_over_another(dataset: Path, tmp_path: Path) -> None:
    train_run(read_dataset(dataset), "vote", tmp_path / "run")
    before = {file: file.read_bytes() for folder in (dataset, tmp_path / "run") for file in folder.iterdir()}
    for outputs, said in (
        (["--answers", dataset / "days.parquet"], "is among the files that are read"),
        (["--json", dataset / "dataset.json"], "is among the files that are read"),
        (["--curves", tmp_path / "run" / "thresholds.csv"], "is among the files that are read"),
        (["--curves", tmp_path / "a.csv", "--answers", tmp_path / "a.csv"], "named for two things"),
        (["--answers", tmp_path / "a\udcff.csv"], "expected text in UTF-8"),
        (["--curves", tmp_path / f"{'a' * 248}.csv"], "the name is too long"),
    ):
        told = CliRunner().invoke(cli.app, ["evaluate", str(dataset), str(tmp_path / "run"), *map(str, outputs)])
        assert said in str(told.exception)
    assert before == {file: file.read_bytes() for folder in (dataset, tmp_path / "run") for file in folder.iterdir()}


def test_evaluate_leaves_out_what_is_not_sure_enough(dataset: Path) -> None:
    shown = run("evaluate", dataset, "vote", "--min-confidence", "0.6").stdout
    assert all(head in shown for head in ("from", "coverage", "precision", "0.6000", "least confidence answered"))
    (row,) = json.loads(run("evaluate", dataset, "vote", "--min-confidence", "0.6", "--json").stdout)
    assert row["min_confidence"] == 0.6
    assert 0 <= row["coverage"] <= 1
    assert "coverage" not in run("evaluate", dataset, "vote").stdout


def test_evaluate_chooses_the_confidence_for_a_precision_and_says_so(dataset: Path) -> None:
    result = run("evaluate", dataset, "top", "vote", "--precision", "0.6")
    assert "for 0.6 right on valid" in result.stdout
    assert "note: top answers nothing: precision 0.6 is not reached on the 30 validation targets" in result.stderr
    top, vote = json.loads(run("evaluate", dataset, "top", "vote", "--precision", "0.6", "--json").stdout)
    assert top["min_confidence"] is top["precision"] is None
    assert 0 < vote["min_confidence"] < 1


def test_a_table_with_abstention_intervals_and_slices_fits_eighty_columns(dataset: Path) -> None:
    shown = run("evaluate", dataset, "vote", "--precision", "0.6", "--by", "gap", "--intervals").stdout
    assert "vote  gap=after last" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_evaluate_downstream_shows_the_errors_of_sparse_and_recovered_days(dataset: Path) -> None:
    shown = run("evaluate", dataset, "vote", "nearest", "--downstream", "--intervals").stdout
    assert all(head in shown for head in ("sparse", "scaled", "most likely", "expected", "less"))
    assert all(title in shown for title in ("vote: errors downstream", "nearest: errors downstream"))
    assert all(f"\n {name}" in shown for name in ("crowd by hour", "radius, metres", "places a day", "flows"))
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "errors downstream" not in run("evaluate", dataset, "vote").stdout


def test_evaluate_json_has_the_downstream_errors_in_the_row_of_all_targets(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    run("evaluate", dataset, "vote", "--downstream", "--by", "gap", "--json", file)
    first, *slices = json.loads(file.read_text())
    assert {row["measure"] for row in first["downstream"]} == set(MEASURES)
    assert set(first["downstream"][0]) == {
        *("measure", "n", "sparse", "sparse_scaled", "most_likely", "expected"),
        *("most_likely_reduction", "expected_reduction"),
    }
    assert not any("downstream" in row for row in slices)
    run("report", file, "-o", tmp_path / "report.html")


def test_evaluate_writes_the_curves_of_each_model(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "curves.csv"
    assert "wrote" in run("evaluate", dataset, "top", "vote", "--curves", file).stdout
    with file.open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert list(rows[0]) == ["model", "run", "split", "curve", "confidence", "coverage", "precision", "n"]
    assert {(row["model"], row["curve"]) for row in rows} == {
        (model, curve) for model in ("top", "vote") for curve in ("risk_coverage", "reliability")
    }
    file.unlink()
    json.loads(run("evaluate", dataset, "top", "--curves", file, "--json").stdout)
    assert file.exists()


def test_evaluate_says_when_a_run_learnt_elsewhere(dataset: Path, tmp_path: Path) -> None:
    train_run(read_dataset(dataset), "top", tmp_path / "run")
    fewer = write_small(tmp_path / "fewer", splits=("past", "train", "train", "test"))
    assert "note" not in run("evaluate", dataset, tmp_path / "run").stderr
    assert "learnt from another dataset" in " ".join(run("evaluate", fewer, tmp_path / "run").stderr.split())


def test_an_unknown_distance_is_null(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "opaque", centres=False)
    (row,) = json.loads(run("evaluate", folder, "top", "--json").stdout)
    assert row["distance_m"] is None


def test_compare_writes_the_results_and_prints_the_means(dataset: Path, tmp_path: Path) -> None:
    command = ("compare", dataset, "-o", tmp_path / "results", "--models", "vote,top", "--set", "habit=0.5")
    shown = run(*command).stdout
    lines = [line.split() for line in shown.splitlines() if line.startswith((" top", " vote"))]
    assert [line[:3] for line in lines] == [["top", "1", "30"], ["vote", "1", "30"]]
    with (tmp_path / "results" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["model"], row["split"]) for row in rows] == [
        ("top", "test"),
        ("top", "valid"),
        ("vote", "test"),
        ("vote", "valid"),
    ]
    summary = json.loads(run(*command, "--json").stdout)
    assert summary[0]["seeds"] == 1
    assert summary[0]["recall_sd"] is None


def test_compare_says_which_model_it_left_out(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "opaque", centres=False)
    result = run("compare", folder, "-o", tmp_path / "results", "--models", "linear,top")
    assert "linear was left out" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["evaluate", "{}", "nearst"], "no model or run 'nearst'; did you mean nearest?"),
        (["evaluate", "{}", "top", "--by", "hours"], "no slicing 'hours'; did you mean hour?"),
        (["evaluate", "{}", "top", "--split", "tst"], "did you mean test?"),
        (["evaluate", "{}", "top", "--protocol", "strct"], "did you mean strict?"),
        (["evaluate", "{}", "--json", "out.json"], "expected one model or more"),
        (["evaluate", "{}", "top", "--json", "a.json", "b.json"], "one file at most"),
        (["evaluate", "{}", "out.json"], "no model or run 'out.json'"),
        (["evaluate", "{}", "top", "--json", "{}/days.parquet/out.json"], "cannot be written"),
        (["evaluate", "{}", "top", "--curves", "{}"], "cannot be written"),
        (
            ["evaluate", "{}", "top", "--min-confidence", "1.5"],
            "min_confidence: expected a number from 0 to 1, found 1.5",
        ),
        (["evaluate", "{}", "top", "--precision", "-1"], "precision: expected a number from 0 to 1, found -1"),
        (["evaluate", "{}", "top", "--precision", "0.9", "--min-confidence", "0.9"], "found both"),
        (["evaluate", "{}", "top", "--precision", "1"], "top: precision 1 is not reached"),
        (["evaluate", "{}/days.parquet", "top"], "not a dataset"),
        (["compare", "{}", "-o", "r", "--models", "votes"], "no model 'votes'; did you mean vote?"),
        (["compare", "{}", "-o", "r", "--set", "habit"], "expected key=value"),
        (["compare", "{}", "-o", "r", "--models", "vote", "--seeds", "0"], "seeds: expected 1 or more"),
        (["compare", "{}", "-o", "{}/days.parquet", "--models", "top"], "cannot be written"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["attnmove", *(part.replace("{}", str(dataset)) for part in arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_the_command_line_can_be_run_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "attnmove.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("attnmove ")
