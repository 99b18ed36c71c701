"""The scripts of the paper's tables: plans that can be run, results of record, and a page that says what they say."""

from __future__ import annotations

import csv
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnmove.errors import RunError
from attnmove.measure.downstream import MEASURES
from attnmove.measure.record import COLUMNS, add_results, read_results
from attnmove.measure.slices import SLICES
from attnmove.models.networks import ATTNMOVE
from attnmove.models.registry import MODELS
from attnmove.models.settings import configure
from attnmove.nouns import MISSING
from attnmove.prep.cases import PROTOCOLS
from attnmove.prep.dataset import read_dataset
from measure.datasets import write_small

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
SCRIPTS = {"table2": 3, "table3": 3, "figure5": 3, "own": 5, "paired": 3, "often": 3, "sure": 5, "downstream": 1}
"""The scripts that fit, and their seeds."""


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts find each other as they do when one of them is run."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


@pytest.fixture
def city(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small")


def script(name: str) -> Any:
    return importlib.import_module(name)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def result(**parts: Any) -> dict[str, Any]:
    """A row of record with numbers that are easy to tell apart."""
    numbers = dict.fromkeys(("recall_at_3", "recall_at_5", "nll", "ece", "seconds_fit"), 0.5)
    texts = {"dataset": "geolife", "dataset_hash": "ab" * 32, "protocol": "paper", "model": "attnmove", "settings": ""}
    where = {"seed": 0, "split": "test", "slice": "all", "n": 100, "version": "0.1.0", "device": "cpu"}
    row = {**texts, **where, **numbers, "recall": 0.25, "map": 0.375, "distance_m": 1500.0, **parts}
    return {name: row[name] for name in COLUMNS}


def test_the_page_says_what_the_results_of_record_say() -> None:
    assert script("render").main(["--check"]) == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_asks_for_models_protocols_slicings_and_settings_that_exist(name: str) -> None:
    module = script(name)
    assert SCRIPTS[name] == module.SEEDS
    for task in module.PLAN:
        assert set(task.models) <= set(MODELS)
        assert task.protocol in PROTOCOLS
        assert set(task.by) <= set(SLICES)
        for model in task.models:
            configure(MODELS[model].defaults, task.settings)


def test_a_stopped_script_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> int:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as stop:
        script("records").run(stopped)
    assert stop.value.code == 130
    assert capsys.readouterr().err == "stopped; the same command goes on after the last fit that ended\n"


def test_every_model_of_the_page_is_fitted_under_both_protocols() -> None:
    tables, table2, table3 = script("tables"), script("table2"), script("table3")
    for protocol in PROTOCOLS:
        fitted = [model for task in table2.PLAN if task.protocol == protocol for model in task.models]
        assert sorted(fitted) == sorted(tables.TABLE2)
    assert set(tables.TABLE4) | set(tables.FIGURE4) == set(table2.SLICED)
    assert set(tables.TABLE3) == set(table3.PLAN[0].models)


def test_the_default_is_compared_with_every_model_of_table_2() -> None:
    tables, paired = script("tables"), script("paired")
    assert set(paired.OTHERS) == set(tables.TABLE2) - {"attnmove-relu", "attnmove-missing"}
    assert paired.DEFAULT == tables.OURS[0] == "boost"
    assert set(tables.OWN) <= {*tables.OURS, *tables.TABLE2}


def test_a_difference_in_a_slice_is_the_mean_over_seeds_and_its_interval_over_users(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paired, kept = script("paired"), script("kept")
    monkeypatch.setattr(paired, "PLAN", (script("records").Task(("nearest",)),))
    monkeypatch.setattr(paired, "OTHERS", ("nearest",))
    assert paired.main([f"city={city}", "--results", str(tmp_path)]) == 0
    assert rows_of(tmp_path / "paired.csv") == []  # nothing of the default yet
    (file,) = (tmp_path / "outcomes").iterdir()
    nearest = np.load(file)
    for seed, ahead in ((0, 0.25), (1, 0.75)):
        np.save(str(file).replace("nearest-0", f"boost-{seed}"), nearest + ahead)
    assert paired.main([f"city={city}", "--results", str(tmp_path)]) == 0
    rows = rows_of(tmp_path / "paired.csv")
    assert {(row["model"], row["seeds"]) for row in rows} == {("nearest", "2-1")}
    assert {row["slice"].partition("=")[0] for row in rows} == {"all", "missing_rate", "hour", "places", "gap"}
    assert all(float(row["difference"]) == pytest.approx(0.5) for row in rows)
    assert kept.mean_answers(tmp_path, "city", "ab" * 32, "boost") is None


def test_days_that_are_asked_about_often_hide_as_much_as_before_and_never_the_same(city: Path) -> None:
    often, cases = script("often"), read_dataset(city).cases("test")
    drawn = often.drawn_often(cases, 6)
    days = len({*zip(cases.user, cases.date.tolist(), strict=True)})
    assert len(drawn) == 6 * days
    assert np.array_equal(drawn.hidden, often.drawn_often(cases, 6).hidden)
    assert (drawn.loc[drawn.hidden] != MISSING).all()
    assert len({mask.tobytes() for mask in drawn.hidden[:6]}) > 1
    of_day = zip(cases.user, cases.date.tolist(), cases.hidden.sum(axis=1).tolist(), strict=True)
    hides = {(user, date): n for user, date, n in of_day}
    for user, date, mask in zip(drawn.user, drawn.date.tolist(), drawn.hidden, strict=True):
        assert mask.sum() == hides[user, date]


def test_what_is_asked_often_is_compared_and_shown_by_model(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    often, tables = script("often"), script("tables")
    assert tables.often(tmp_path, "city") == tables.NOT_YET
    monkeypatch.setattr(often, "PLAN", (script("records").Task(("nearest", "vote")),))
    assert often.main([f"city={city}", "--results", str(tmp_path)]) == 0
    folder = tmp_path / "outcomes" / "often"
    (vote,) = folder.glob("*-vote-0.npy")
    better = np.load(vote) + np.array([0.25, 0.5])
    better[0] -= 9
    np.save(str(vote).replace("vote", "boost"), better)
    assert often.main([f"city={city}", "--results", str(tmp_path)]) == 0
    rows = {(row["model"], row["slice"], row["metric"]): row for row in rows_of(tmp_path / "often.csv")}
    n = len(better)
    assert float(rows["vote", "all", "recall"]["difference"]) == pytest.approx(0.25 - 9 / n, abs=1e-5)
    assert int(rows["vote", "all", "recall"]["n"]) == n
    shown = tables.often(tmp_path, "city")
    assert f"Test: {n:,} targets" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("| vote |"))
    assert "hour 0" in line or "hour 1" in line or "hour 2" in line
    assert "places" not in line


def test_what_recovery_is_good_for_is_measured_once_and_shown(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downstream, tables = script("downstream"), script("tables")
    assert list(tables.DOWNSTREAM) == list(MEASURES)
    assert tables.downstream(tmp_path, "city") == tables.NOT_YET
    monkeypatch.setattr(downstream, "PLAN", (downstream.Task(("vote", "rf"), protocol="strict"),))
    command = [f"city={city}", "--results", str(tmp_path), "--runs", str(tmp_path / "runs")]
    assert downstream.main(command) == 0
    rows = rows_of(tmp_path / "downstream.csv")
    assert [row["measure"] for row in rows] == [*MEASURES, *MEASURES]
    assert {(row["protocol"], row["split"], row["seed"]) for row in rows} == {("strict", "test", "0")}
    assert (tmp_path / "runs" / "city-strict-rf-0" / "config.json").exists()
    monkeypatch.setattr(downstream, "evaluate_downstream", None)
    assert downstream.main(command) == 0
    page = tables.downstream(tmp_path, "city")
    assert "| radius of gyration of a day, m | vote | " in page
    assert "Test: 3 user-days, one a draw; 1 seed; strict protocol;" in page
    assert tables.downstream(tmp_path, "geolife") == tables.NOT_YET


def test_how_sure_the_default_is_is_measured_once_and_shown(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sure, tables = script("sure"), script("tables")
    assert sure.PRECISIONS == tables.SURE_OF
    assert tables.sure(tmp_path) == tables.NOT_YET
    monkeypatch.setattr(sure, "PLAN", (sure.Task(("vote",)),))
    monkeypatch.setattr(sure, "confidence_for", lambda model, cases, precision: precision / 10)
    assert sure.main([f"city={city}", "--results", str(tmp_path)]) == 0
    (row,) = rows_of(tmp_path / "sure.csv")
    assert (row["dataset"], row["model"], row["split"]) == ("city", "vote", "test")
    assert 0 <= float(row["ece"]) <= 1
    assert float(row["coverage_0.7"]) >= float(row["coverage_0.9"])
    monkeypatch.setattr(sure, "fitted", None)
    assert sure.main([f"city={city}", "--results", str(tmp_path)]) == 0
    assert "| city | 1 | " in tables.sure(tmp_path)


def test_a_run_that_learnt_otherwise_is_not_taken_for_the_one_that_is_asked_for(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    downstream = script("downstream")
    for protocol, status in (("strict", 0), ("paper", 1)):
        monkeypatch.setattr(downstream, "PLAN", (downstream.Task(("rf",), protocol=protocol),))
        command = [f"city={city}", "--results", str(tmp_path / protocol), "--runs", str(tmp_path / "runs")]
        assert downstream.main(command) == status
        (run,) = (tmp_path / "runs").iterdir()
        run.rename(tmp_path / "runs" / "city-paper-rf-0")
    assert (
        "a run of other days, protocol, seed, settings or version than are asked for; remove it"
        in capsys.readouterr().err
    )


def test_a_fit_that_was_interrupted_is_made_again(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downstream = script("downstream")
    monkeypatch.setattr(downstream, "PLAN", (downstream.Task(("rf",), protocol="strict"),))
    left = tmp_path / "runs" / "city-strict-rf-0" / "checkpoint.safetensors"
    left.parent.mkdir(parents=True)
    left.touch()
    assert downstream.main([f"city={city}", "--results", str(tmp_path), "--runs", str(tmp_path / "runs")]) == 0
    assert (left.parent / "config.json").exists()
    assert not left.exists()


def test_a_kept_run_answers_like_a_new_fit(city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downstream = script("downstream")
    monkeypatch.setattr(downstream, "PLAN", (downstream.Task(("rf",), protocol="strict"),))
    runs, found = ["--runs", str(tmp_path / "runs")], []
    for results, more in (("a", []), ("b", runs), ("c", runs)):
        assert downstream.main([f"city={city}", "--results", str(tmp_path / results), *more]) == 0
        found.append(rows_of(tmp_path / results / "downstream.csv"))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("what", [{"unseen": 3}, {"users": 0.5}, {"days": 0.5}, {"gaps": "burst"}])
def test_a_variant_is_measured_on_all_test_targets(
    what: dict[str, object], city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beyond = script("beyond")
    monkeypatch.setattr(beyond, "PLAN", (script("records").Task(("vote",), settings=what),))
    assert beyond.main([f"city={city}", "--results", str(tmp_path)]) == 0
    (row,) = read_results(tmp_path / "beyond.csv")
    assert row["n"] == read_dataset(city).test.hidden.sum()
    assert row["settings"] == "=".join(str(part) for part in next(iter(what.items())))
    assert beyond.main([f"city={city}", "--results", str(tmp_path)]) == 0


def test_nobody_is_asked_who_was_learnt_from(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beyond, dataset = script("beyond"), read_dataset(city)
    job = script("records").jobs_of([script("records").Task(("vote",), settings={"unseen": 3})], _asked(city))[0]
    parts = list(beyond.variants(dataset, job))
    assert len(parts) == 3
    for part in parts:
        assert not set(part.test.user) & {*part.train.user, *part.valid.user}
    assert sorted(user for part in parts for user in set(part.test.user)) == sorted(set(dataset.test.user))


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_a_share_of_what_is_known_of_each_test_day_is_hidden(share: float, city: Path) -> None:
    beyond, dataset = script("beyond"), read_dataset(city)
    job = script("records").jobs_of([script("records").Task(("vote",), settings={"hide": share})], _asked(city))[0]
    (part,) = beyond.variants(dataset, job)
    known = (dataset.test.loc != MISSING).sum(axis=1)
    assert np.abs(part.test.hidden.sum(axis=1) - share * known).max() <= 0.5
    assert not part.test.hidden[dataset.test.loc == MISSING].any()
    assert np.array_equal(part.train.hidden, dataset.train.hidden)
    assert np.array_equal(part.valid.hidden, dataset.valid.hidden)


def _asked(city: Path) -> Any:
    return script("records").Asked({"city": city}, 1, 1, "cpu", Path())


def test_figure_5_sweeps_width_heads_and_layers_one_at_a_time() -> None:
    figure5 = script("figure5")
    shapes = [tuple(task.settings.values()) for task in figure5.PLAN]
    assert len(shapes) == len(set(shapes)) == 10
    assert {width for width, _, _ in shapes} == {16, 32, 64, 128, 256}
    assert {heads for _, heads, _ in shapes} == {1, 2, 4, 8}
    assert {layers for _, _, layers in shapes} == {1, 2, 4}


@pytest.mark.parametrize(
    ("table", "dataset", "model", "slice", "numbers"),
    [
        ("2", "Geolife", "attnmove", "all", ("0.3982", "0.4691", "3886")),
        ("2", "Geolife", "rf", "all", ("0.2551", "0.2540", "6144")),
        ("2", "Tencent", "bi-stddp", "all", ("0.7037", "0.7831", "1168")),
        ("3", "Tencent", "attnmove-no-current", "all", ("0.7002", "0.7793", "1636")),
        ("4", "Tencent", "attnmove", "missing_rate=90-100%", ("0.6993", "", "1294")),
    ],
)
def test_the_published_numbers_are_those_of_the_paper(
    table: str, dataset: str, model: str, slice: str, numbers: tuple[str, ...]
) -> None:
    rows = rows_of(EXPERIMENTS / "paper.csv")
    assert [sum(row["table"] == name for row in rows) for name in "234"] == [20, 4, 8]
    (row,) = [
        row
        for row in rows
        if (row["table"], row["dataset"], row["model"], row["slice"]) == (table, dataset, model, slice)
    ]
    assert (row["recall"], row["map"], row["distance_m"]) == numbers


RUN = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ('ibis', 'duckdb', 'shapely', 'h3ronpy', 'pyspark', 'osmium', 'pandas', 'torch'):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, {experiments!r})
import table2
table2.PLAN = (table2.Task(('nearest',), by=('gap',)), table2.Task(('top', 'nearest'), protocol='strict'))
sys.exit(table2.main(['city={city}', '--results', {results!r}]))
"""


def test_table_2_is_measured_without_the_relational_libraries_and_not_twice(city: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    code = RUN.format(experiments=str(EXPERIMENTS), city=city, results=str(results))
    for done_before in (0, 3):
        ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        assert f"3 fits, {done_before} done before" in ran.stderr
    rows = read_results(results / "table2.csv")
    assert {row["dataset"] for row in rows} == {"city"}
    assert {(row["protocol"], row["model"]) for row in rows} == {
        ("paper", "nearest"),
        ("strict", "nearest"),
        ("strict", "top"),
    }
    assert {row["split"] for row in rows} == {"valid", "test"}
    assert any(row["slice"].startswith("gap=") for row in rows)
    tables = script("tables")
    assert "| nearest | **" in tables.table2(results, "city")
    assert tables.table2(results, "geolife") == tables.NOT_YET


def test_several_processes_leave_the_same_results_as_one(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table2 = script("table2")
    monkeypatch.setattr(table2, "PLAN", (table2.Task(("top", "vote")),))
    found = []
    for jobs in ("1", "2"):
        assert table2.main([f"city={city}", "--results", str(tmp_path / jobs), "--jobs", jobs]) == 0
        found.append([row | {"seconds_fit": None} for row in read_results(tmp_path / jobs / "table2.csv")])
    assert len(found[0]) == 4
    assert found[0] == found[1]


def test_a_fit_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table2 = script("table2")
    monkeypatch.setattr(table2, "PLAN", (table2.Task(("linear", "top")),))
    nowhere = write_small(tmp_path / "nowhere", centres=False)
    assert table2.main([f"city={nowhere}", "--results", str(tmp_path)]) == 1
    assert "linear seed 0 failed:" in capsys.readouterr().err
    assert {row["model"] for row in read_results(tmp_path / "table2.csv")} == {"top"}


def test_run_all_runs_every_script_and_leaves_the_page_alone_when_results_go_elsewhere(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SCRIPTS:
        monkeypatch.setattr(script(name), "PLAN", (script(name).Task(("top",)),))
    monkeypatch.setattr(script("beyond"), "PLAN", (script("beyond").Task(("top",), settings={"gaps": "night"}),))
    monkeypatch.setattr(script("render"), "main", None)
    other = write_small(tmp_path / "other", centres=False)
    assert script("run_all").main([f"city={city}", f"geolife={other}", "--results", str(tmp_path)]) == 0
    names = ("table2", "table3", "figure5", "own", "beyond")
    found = {name: {row["dataset"] for row in read_results(tmp_path / f"{name}.csv")} for name in names}
    assert found == {name: {"city", "geolife"} for name in names} | {"figure5": {"geolife"}}
    for folder in (tmp_path / "outcomes", tmp_path / "outcomes" / "often"):
        assert len(list(folder.glob("*.npy"))) == 2


@pytest.mark.parametrize("wrong", [["town=x"], ["city="], ["city"], [], ["city=x", "--jobs", "0"]])
def test_wrong_usage_ends_with_status_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        script("table2").main(wrong)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_table_3_keeps_sums_of_nameless_users_and_differences_to_the_full_model(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table3, results = script("table3"), tmp_path / "results"
    monkeypatch.setattr(table3, "FULL", "vote")
    monkeypatch.setattr(table3, "PLAN", (table3.Task(("vote", "top")),))
    assert table3.main([f"city={city}", "--results", str(results)]) == 0
    users = rows_of(results / "table3_users.csv")
    assert [(row["model"], row["user"]) for row in users] == [(m, u) for m in ("top", "vote") for u in "012"]
    test = {row["model"]: row for row in read_results(results / "table3.csv") if row["split"] == "test"}
    paired = {row["metric"]: row for row in rows_of(results / "table3_paired.csv")}
    for metric in ("recall", "map", "distance_m"):
        for model, row in test.items():
            mine = [user for user in users if user["model"] == model]
            mean = sum(float(user[metric]) for user in mine) / sum(int(user["n"]) for user in mine)
            assert mean == pytest.approx(row[metric], abs=1e-6)
        gained = test["top"][metric] - test["vote"][metric]
        assert float(paired[metric]["difference"]) == pytest.approx(gained, abs=2e-6)
        assert float(paired[metric]["low"]) <= gained + 2e-6
        assert float(paired[metric]["high"]) >= gained - 2e-6
    monkeypatch.setattr(table3, "fit_and_sum", None)
    assert table3.main([f"city={city}", "--results", str(results)]) == 0


def test_a_difference_takes_each_users_mean_over_the_seeds_both_models_have() -> None:
    def sums(model: str, seed: int, *hits: int) -> list[dict[str, Any]]:
        where = {"dataset": "city", "dataset_hash": "ab", "model": model, "seed": seed}
        return [{**where, "user": u, "n": 10, "recall": h, "map": h, "distance_m": 0} for u, h in enumerate(hits)]

    rows = script("table3").paired_rows(
        sums("attnmove", 0, 6, 8)
        + sums("attnmove", 1, 4, 8)
        + sums("other", 0, 5, 5)
        + sums("other", 1, 1, 7)
        # Seed 2 of one model alone has nothing to be paired with.
        + sums("other", 2, 0, 0)
    )
    recall = rows[0]
    # Users differ by (-1 - 3) / 2 = -2 and (-3 - 1) / 2 = -2 of 10, whoever is drawn.
    assert (recall["model"], recall["metric"], recall["seeds"]) == ("other", "recall", 2)
    assert np.allclose([recall["difference"], recall["low"], recall["high"]], -0.2)
    assert len(rows) == 3


def test_a_cell_is_mean_and_deviation_over_seeds_beside_the_paper(tmp_path: Path) -> None:
    rows = [result(seed=seed, recall=recall) for seed, recall in enumerate((0.39, 0.40, 0.41))]
    add_results(tmp_path / "table2.csv", [*rows, result(model="vote", recall=0.2, distance_m=900.0)])
    page = script("tables").table2(tmp_path, "geolife").splitlines()
    (line,) = [line for line in page if line.startswith("| attnmove |")]
    assert line == (
        "| attnmove | **0.4000 ± 0.0100** | **0.3750 ± 0.0000** | 1,500 ± 0 | **0.3982** | **0.4691** | 3,886 |"
    )
    assert "| vote | 0.2000 | **0.3750** | **900** | – | – | – |" in page
    assert page[-1] == (
        "Test: 100 targets; 3 seeds; paper protocol; dataset `abababababab`; attnmove 0.1.0; computed on cpu."
    )


def test_two_makings_of_a_dataset_are_not_mixed_in_a_table(tmp_path: Path) -> None:
    add_results(tmp_path / "table2.csv", [result(), result(dataset_hash="cd" * 32)])
    with pytest.raises(RunError, match="two different datasets called geolife"):
        script("tables").table2(tmp_path, "geolife")


def test_the_parts_of_figure_5_go_through_the_usual_shape(tmp_path: Path) -> None:
    tables, plan = script("tables"), script("figure5").PLAN
    texts = [" ".join(f"{name}={task.settings[name]}" for name in sorted(task.settings)) for task in plan]
    rows = [result(settings=text, split=split) for text in texts for split in ("valid", "test")]
    add_results(tmp_path / "figure5.csv", rows)
    width, grid = (tables.figure5(tmp_path, "geolife", part).splitlines() for part in ("width", "grid"))
    assert [line.split()[1] for line in width[2:7]] == ["16", "32", "64", "128", "256"]
    assert width[-1].endswith(f"Heads {ATTNMOVE.heads}, layers {ATTNMOVE.layers}.")
    assert len(grid) == 2 + 6 + 2
    assert grid[2].startswith("| 1 | 2 | **0.2500** |")


def test_a_page_that_is_not_what_the_results_say_is_found_and_mended(tmp_path: Path) -> None:
    render, page = script("render"), tmp_path / "results.md"
    page.write_text((ROOT / "docs" / "results.md").read_text())
    results = tmp_path / "results"
    slices = [result(slice=name, n=10) for name in ("all", "missing_rate=60-70%", "hour=09", "places=3", "gap=1")]
    add_results(results / "table2.csv", [*slices, result(protocol="strict")])
    add_results(results / "table3.csv", [result()])
    where = ["--page", str(page), "--results", str(results)]
    assert render.main([*where, "--check"]) == 1
    assert render.main(where) == 0
    assert render.main([*where, "--check"]) == 0
    text = page.read_text()
    assert "| 60-70% | 10 | 100.0% | – | **0.2500** / **1,500** | – | – | 0.7637 / 755 | 0.8064 / 651 |" in text
    assert "| 09 | 10 | 100.0% | – | – | **0.2500** | – | – |" in text
    page.write_text(text.replace("<!-- table3:city -->", ""))
    with pytest.raises(RunError, match="table3:city"):
        render.main(where)
