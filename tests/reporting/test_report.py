"""The report: what it holds for each kind of input, that its numbers are those of the results, that nothing gets in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import attnmove
from attnmove import cli
from attnmove.errors import AttnMoveError, ConfigError, RunError
from attnmove.measure.compare import compare
from attnmove.measure.named import evaluate_named
from attnmove.measure.record import read_results
from attnmove.models.runs import train_run
from attnmove.nouns import Days
from attnmove.prep.config import Preparation
from attnmove.prep.dataset import Dataset, content_hash, read_dataset, write_dataset
from attnmove.prep.hide import draw_targets
from attnmove.reporting.report import report
from measure.datasets import write_small
from reporting.pages import check_page, read_page, rows_of, section

SLICINGS = ("missing_rate", "hour", "places", "gap")
SMALL = {"epochs": 2, "width": 8, "heads": 2, "layers": 1}
EVIL = "<script>alert(1)</script>\"'&\x00\ud800"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, results of two rules with slices, and the runs of a network and a rule."""
    home = tmp_path_factory.mktemp("made")
    dataset = write_small(home / "small")
    compare(dataset, ["top", "vote"], out=home / "results", by=SLICINGS)
    train_run(read_dataset(dataset), "attnmove", home / "net", settings=SMALL)
    train_run(read_dataset(dataset), "history", home / "rule")
    return home


def test_results_alone_give_the_table_and_the_slices_and_say_what_is_missing(made: Path, tmp_path: Path) -> None:
    written = report(made / "results", tmp_path / "report.html")
    page = read_page(tmp_path / "report.html")
    check_page(page)
    assert written.sections == ["The models", "When it is hard"]
    assert [found.attributes["id"] for found in page.all("section")] == ["models", "slices", "left-out"]
    said = section(page, "left-out").text
    for what in (
        "The data:",
        "Calibration",
        "Example days:",
        "Training curves:",
        "Figure 3",
        "Figure 5",
        "no nearest",
        "Intervals over users",
    ):
        assert what in said
    assert written.n_bytes == (tmp_path / "report.html").stat().st_size


def test_a_number_of_the_table_is_that_of_the_results(made: Path, tmp_path: Path) -> None:
    report(made / "results", tmp_path / "report.html")
    rows = rows_of(section(read_page(tmp_path / "report.html"), "models").one("table"))
    results = {
        row["model"]: row
        for row in read_results(made / "results" / "results.csv")
        if row["split"] == "test" and row["slice"] == "all"
    }
    assert {row[0].split()[0] for row in rows} == set(results) == {"top", "vote"}
    for row in rows:
        expected = results[row[0].split()[0]]
        assert row[2:] == [
            f"{expected['recall']:.4f}",
            f"{expected['map']:.4f}",
            f"{expected['distance_m']:,.0f}",
            f"{expected['recall_at_3']:.4f}",
            f"{expected['recall_at_5']:.4f}",
            f"{expected['nll']:.3f}",
            f"{expected['ece']:.4f}",
            "30",
            "1",
        ]


def test_runs_and_a_dataset_give_every_section_but_the_study(made: Path, tmp_path: Path) -> None:
    inputs = [made / "results", made / "net", made / "rule"]
    written = report(inputs, tmp_path / "report.html", dataset=made / "small")
    page = read_page(tmp_path / "report.html")
    check_page(page)
    keys = [found.attributes["id"] for found in page.all("section")]
    assert keys == ["models", "slices", "confidence", "days", "data", "training", "inside", "left-out"]
    assert written.notes == []
    assert "the hashes agree" in page.one("footer").text
    assert read_dataset(made / "small").hash in page.one("footer").text
    said = section(page, "left-out").text
    assert "Training curves of history" in said
    assert "Figure 3a for history" in said
    assert "Figure 3b for history" in said
    names = [row[0] for row in rows_of(section(page, "models").one("table"))]
    assert sorted(name.split()[0] for name in names) == ["attnmove", "history", "nearest", "top", "vote"]
    assert all("naive rule" in name for name in names if name.split()[0] in ("nearest", "vote"))


def test_measured_rows_have_the_intervals_of_evaluate(made: Path, tmp_path: Path) -> None:
    report(made / "net", tmp_path / "report.html", dataset=made / "small")
    shown = {
        row[0].split()[0]: row for row in rows_of(section(read_page(tmp_path / "report.html"), "models").one("table"))
    }
    wanted = evaluate_named(made / "small", [str(made / "net"), "nearest"], intervals=True).rows
    for row in wanted:
        name = row["model"]
        assert shown[name][2] == f"{row['recall']:.4f}{row['recall_low']:.3f}–{row['recall_high']:.3f}"


def test_two_sources_of_one_model_are_told_apart_everywhere(made: Path, tmp_path: Path) -> None:
    compare(made / "small", ["attnmove"], seeds=[0], out=tmp_path / "res", settings={"epochs": 1, "width": 8})
    rows = read_results(tmp_path / "res" / "results.csv")
    text = (tmp_path / "res" / "results.csv").read_text().replace(rows[0]["settings"], "")
    (tmp_path / "res" / "results.csv").write_text(text)
    report([tmp_path / "res", made / "net"], tmp_path / "report.html", dataset=made / "small")
    page = read_page(tmp_path / "report.html")
    check_page(page)
    for key in ("models", "confidence", "training", "inside", "days"):
        assert "attnmove (net)" in section(page, key).text


def test_json_and_curves_of_evaluate_are_read(made: Path, tmp_path: Path) -> None:
    rows, curves = tmp_path / "rows.json", tmp_path / "curves.csv"
    command = ["evaluate", str(made / "small"), "vote", "--by", "gap", "--intervals", "--curves", str(curves), "--json"]
    assert CliRunner().invoke(cli.app, [*command, str(rows)]).exit_code == 0
    report([rows, curves], tmp_path / "report.html")
    page = read_page(tmp_path / "report.html")
    check_page(page)
    assert [row[0].split()[0] for row in rows_of(section(page, "models").one("table"))] == ["vote"]
    (wanted,) = [row for row in json.loads(rows.read_text()) if row["slice"] == "all"]
    assert f"vote {wanted['ece']:.4f}" in section(page, "confidence").text


def test_a_study_of_settings_becomes_figure_five_and_stays_out_of_the_table(made: Path, tmp_path: Path) -> None:
    for width in (4, 8, 16):
        compare(made / "small", ["lstm"], seeds=[0], out=tmp_path / "res", settings={"width": width, "epochs": 1})
    compare(made / "small", ["vote"], out=tmp_path / "res")
    report(tmp_path / "res", tmp_path / "report.html")
    page = read_page(tmp_path / "report.html")
    check_page(page)
    study = section(page, "settings")
    assert [row[0] for row in rows_of(study.one("table"))] == ["4", "8", "16"]
    valid = [
        row["recall"]
        for row in sorted(read_results(tmp_path / "res" / "results.csv"), key=lambda row: len(row["settings"]))
        if row["model"] == "lstm" and row["split"] == "valid"
    ]
    assert sorted(row[1] for row in rows_of(study.one("table"))) == sorted(f"{value:.4f}" for value in valid)
    assert [row[0].split()[0] for row in rows_of(section(page, "models").one("table"))] == ["vote"]


def test_names_from_the_data_cannot_become_markup(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small")
    data = read_dataset(folder)
    named = "<script>alert(1)</script>"
    user = np.array([named if name == "ann" else f"{name}&<b>" for name in data.days.user], dtype=object)
    order = np.lexsort((data.days.date, user.astype(str)))
    days = Days(user, data.days.date, data.days.loc, data.days.split).rows(order)
    targets = data.targets
    renamed = np.array([named if name == "ann" else f"{name}&<b>" for name in targets.user], dtype=object)
    targets = type(targets)(renamed, targets.date, targets.draw, targets.start, targets.slot, targets.history)
    data.locations.name[:] = [f'"><img src=x onerror=alert({i})>' for i in range(len(data.locations))]
    facts = dict(data.facts) | {"hash": content_hash(days, data.locations, targets), "timezone": named}
    write_dataset(tmp_path / "evil", Dataset(days, data.locations, targets, facts))
    report([], tmp_path / "report.html", dataset=tmp_path / "evil", title=EVIL)
    page = read_page(tmp_path / "report.html")
    check_page(page)
    assert named in section(page, "days").text
    assert "alert(1)" in page.one("h1").text


def test_results_by_anybody_cannot_become_markup(tmp_path: Path) -> None:
    row = {"model": EVIL, "slice": f"gap={EVIL}", "n": 3, "recall": 0.5, "run": EVIL, "dataset_hash": EVIL}
    rows = [row, row | {"slice": "all"}, row | {"slice": "hour=09", "n": 0, "recall": None}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    report(tmp_path / "rows.json", tmp_path / "report.html")
    check_page(read_page(tmp_path / "report.html"))


def test_the_page_forbids_itself_to_load_or_run_anything(made: Path, tmp_path: Path) -> None:
    report(made / "results", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert not [word for word in ("http://", "https://", "url(", "@import", "javascript:") if word in text]
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_locations_without_centres_leave_out_the_maps_only(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "opaque", centres=False)
    train_run(read_dataset(folder), "attnmove", tmp_path / "net", settings=SMALL)
    written = report(tmp_path / "net", tmp_path / "report.html", dataset=folder)
    page = read_page(tmp_path / "report.html")
    check_page(page)
    assert [text for text in written.left_out if "no known centres" in text]
    assert "Map of visits" not in section(page, "data").text
    assert "Figure 3b" in section(page, "inside").text
    (row,) = [row for row in rows_of(section(page, "models").one("table")) if row[0].startswith("attnmove")]
    assert row[4] == "–"


def test_another_dataset_than_that_of_the_run_is_said(made: Path, tmp_path: Path) -> None:
    fewer = write_small(tmp_path / "fewer", splits=("past", "train", "train", "test"))
    written = report([made / "results", made / "rule"], tmp_path / "report.html", dataset=fewer)
    assert len(written.notes) == 2
    page = read_page(tmp_path / "report.html")
    check_page(page)
    assert "learnt from another dataset" in page.text
    assert len(section(page, "models").all("table")) == 2


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("locations", "its locations are not those of the dataset (5 there, 5 here)"),
        ("slots", "its slots are not those of the dataset (30 minutes there, 60 here)"),
    ],
)
def test_a_run_that_cannot_answer_here_is_noted_and_the_rest_is_there(
    made: Path, tmp_path: Path, what: str, reason: str
) -> None:
    other = write_small(tmp_path / "other", centres=what != "locations")
    if what == "slots":
        other = halved(other, tmp_path / "halved")
    written = report([made / "results", made / "net", made / "rule"], tmp_path / "report.html", dataset=other)
    page = read_page(tmp_path / "report.html")
    check_page(page)
    keys = [found.attributes["id"] for found in page.all("section")]
    assert keys == ["models", "slices", "confidence", "days", "data", "training", "left-out"]
    for name in ("net", "rule"):
        note = f"{made / name} learnt from another dataset and was not asked here: {reason}."
        assert note in written.notes
        assert note in page.text
    assert f"example days and Figure 3 of attnmove: {reason}" in section(page, "left-out").text
    names = [row[0].split()[0] for row in rows_of(section(page, "models").all("table")[0])]
    assert sorted(names) == ["nearest", "vote"]


def halved(folder: Path, out: Path) -> Path:
    """The dataset with slots of an hour in place of half an hour."""
    data = read_dataset(folder)
    days = Days(data.days.user, data.days.date, data.days.loc[:, ::2], data.days.split)
    targets = draw_targets(days, Preparation(slot_minutes=60))
    facts = dict(data.facts) | {"slots_per_day": 24, "hash": content_hash(days, data.locations, targets)}
    write_dataset(out, Dataset(days, data.locations, targets, facts))
    return out


def test_example_days_are_the_same_for_a_seed_and_others_for_another(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "more", splits=("past", "train", "train", "train", "valid", *["test"] * 5))
    texts = []
    for seed in (0, 0, 5):
        report([], tmp_path / "report.html", dataset=folder, seed=seed)
        days = section(read_page(tmp_path / "report.html"), "days")
        texts.append([title.text for title in days.all("h3")])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 9
    assert texts[0] != texts[2]


def test_an_old_report_is_replaced_and_an_error_leaves_it(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("old")
    with pytest.raises(AttnMoveError):
        report(made / "nothing", out)
    assert out.read_text() == "old"
    report(made / "results", out)
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "not the rows of evaluate --json"),
        ("[", "not JSON, or cut off"),
        ('[{"model": "a", "slice": "all", "n": "many"}]', "a row is broken"),
        ('[{"model": "a", "slice": "all", "n": 1, "recall": []}]', "a row is broken"),
        (f'[{{"model": "a", "slice": "gap=1", "n": 1{"0" * 400}}}]', "a row is broken .expected a count"),
        ('[{"model": "a", "slice": "all", "n": -5}]', "a row is broken .expected a count"),
        ('[{"model": "a", "slice": "all", "n": 1, "recall": 1e308}]', "recall: expected a share"),
        ('[{"model": "a", "slice": "all", "n": 1, "recall_low": -1e308}]', "recall: expected a share"),
    ],
)
def test_a_broken_file_is_refused_in_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "rows.json").write_text(content)
    with pytest.raises(RunError, match=sentence):
        report(tmp_path / "rows.json", tmp_path / "report.html")


def test_rows_of_slices_alone_give_the_slices_and_no_table(tmp_path: Path) -> None:
    row = {"model": "boost", "n": 3, "recall": 0.5, "run": "here"}
    rows = [row | {"slice": "gap=1"}, row | {"slice": "gap=2"}, row | {"slice": "gap=1", "model": "vote", "run": None}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    written = report(tmp_path / "rows.json", tmp_path / "report.html")
    page = read_page(tmp_path / "report.html")
    check_page(page)
    assert written.sections == ["When it is hard"]
    assert "results are of slices only" in written.left_out[0]
    assert rows_of(section(page, "slices").one("table")) == [["1", "3", "0.5000", "0.5000"], ["2", "3", "0.5000", "–"]]
    assert "2 models on dataset" in page.text


def test_a_cut_results_file_is_refused(made: Path, tmp_path: Path) -> None:
    text = (made / "results" / "results.csv").read_text()
    (tmp_path / "results.csv").write_text(text[:-30])
    with pytest.raises(RunError, match=rf"results\.csv, line {text.count(chr(10))}: a row is broken .too few fields"):
        report(tmp_path / "results.csv", tmp_path / "report.html")


def test_a_folder_in_the_place_of_the_log_is_refused(made: Path, tmp_path: Path) -> None:
    run = shutil.copytree(made / "net", tmp_path / "net")
    (run / "log.csv").unlink()
    (run / "log.csv").mkdir()
    with pytest.raises(RunError, match=r"log\.csv: cannot be read .*train the run again"):
        report(run, tmp_path / "report.html")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("vote,,test,reliability,nan,0.5,0.5,3", "line 3: a row is broken .confidence: expected a share"),
        ("vote,,test,risk_coverage,inf,0.5,0.5,3", "line 3: a row is broken .confidence: expected a share"),
        ("vote,,test,risk_coverage,0.5,1e300,0.5,3", "line 3: a row is broken .coverage: expected a share"),
        ("vote,,test,risk_coverage,0.5,0.5,-5,3", "line 3: a row is broken .precision: expected a share"),
        ("vote,,test,risk_coverage,0.5,0.5,0.5,-3", "line 3: a row is broken .expected a count"),
        ("vote,,test,zzz,0.5,0.5,0.5,3", "line 3: a row is broken .no curve 'zzz'"),
        ("vote,,test,reliability,0.5,0.5", "line 3: a row is broken .too few fields"),
        ("vote,,test,reliability,0.5,0.5,0.5,3,4", "line 3: a row is broken .too many fields"),
    ],
)
def test_a_broken_point_of_a_curve_is_refused(tmp_path: Path, line: str, sentence: str) -> None:
    head = "model,run,split,curve,confidence,coverage,precision,n\nvote,,test,reliability,0.5,0.5,0.5,3\n"
    (tmp_path / "curves.csv").write_text(f"{head}{line}\n")
    with pytest.raises(RunError, match=sentence):
        report(tmp_path / "curves.csv", tmp_path / "report.html")


@pytest.mark.parametrize("curve", ["reliability", "risk_coverage"])
def test_a_file_of_one_kind_of_curve_has_one_figure(tmp_path: Path, curve: str) -> None:
    head = "model,run,split,curve,confidence,coverage,precision,n\n"
    (tmp_path / "curves.csv").write_text(f"{head}vote,,test,{curve},0.5,0.4,0.5,30\n")
    report(tmp_path / "curves.csv", tmp_path / "report.html")
    page = read_page(tmp_path / "report.html")
    check_page(page)
    assert len(section(page, "confidence").all("figure")) == 1
    assert "nan" not in section(page, "confidence").text


def test_wrong_inputs_are_refused_in_a_sentence(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    with pytest.raises(ConfigError, match="nothing to report on"):
        report([], out)
    with pytest.raises(RunError, match="name it with --dataset"):
        report(made / "small", out)
    with pytest.raises(RunError, match="neither results nor a run"):
        report(tmp_path, out)
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(RunError, match="not a results file"):
        report(tmp_path / "a.csv", out)
    with pytest.raises(ConfigError, match="did you mean test"):
        report(made / "results", out, split="tst")
    with pytest.raises(RunError, match="cannot be written"):
        report(made / "results", tmp_path)
    with pytest.raises(ConfigError, match=r"results\.csv: expected a page that ends in \.html"):
        report(made / "results", made / "results" / "results.csv")


def test_the_command_writes_the_page_and_tells_machines_what_it_holds(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = CliRunner().invoke(cli.app, ["report", str(made / "results"), "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["wrote"] == str(out)
    assert facts["sections"] == ["The models", "When it is hard"]
    shown = CliRunner().invoke(cli.app, ["report", str(made / "results"), "-o", str(out)])
    assert "wrote" in shown.stdout
    assert "left out: Example days" in shown.stderr
    assert attnmove.report is report
