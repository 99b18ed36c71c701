"""The recovering benchmark: what it asks, what it counts, what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from attnmove import cli
from attnmove.bench import recover_once
from attnmove.bench.child import peak_mib
from attnmove.bench.recover import HIDE, Errand, measure
from attnmove.bench.recover_once import recover, slices
from attnmove.errors import ConfigError, DataError, RunError
from attnmove.models.runs import load_run, train_run
from attnmove.nouns import MISSING
from attnmove.prep.dataset import read_dataset, write_dataset
from measure.datasets import write_small

ERRAND = Errand(dataset="small", run="run", split="test", days=10, hide="stored", top=5)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, `small`, and a run of either kind on it: `boost`, `vote`."""
    folder = tmp_path_factory.mktemp("recover")
    dataset = read_dataset(write_small(folder / "small"))
    train_run(dataset, "boost", folder / "boost", settings={"rounds": 2, "draws": 0, "min_leaf": 1, "practice": 0})
    train_run(dataset, "vote", folder / "vote")
    return folder


def asked(home: Path, *arguments: object) -> Result:
    return CliRunner().invoke(cli.app, ["bench", "recover", str(home / "small"), *(str(part) for part in arguments)])


def test_all_asks_for_every_slot_that_is_not_visible(home: Path) -> None:
    cases = read_dataset(home / "small").test
    loc = cases.loc.copy()
    loc[0, :3] = MISSING
    cases = replace(cases, loc=loc)
    assert (HIDE["stored"](cases) == cases.hidden).all()
    assert (HIDE["all"](cases) == (cases.hidden | (loc == MISSING))).all()
    assert HIDE["all"](cases).sum() > cases.hidden.sum()


def test_days_are_repeated_from_the_start_until_there_are_enough(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover_once, "_DAYS_AT_ONCE", 4)
    cases = read_dataset(home / "small").test
    assert len(cases) == 3
    parts = [part.user.tolist() for part in slices(cases, 10)]
    assert parts == [["ann", "bob", "cy", "ann"], ["bob", "cy", "ann", "bob"], ["cy", "ann"]]


@pytest.mark.parametrize("model", ["boost", "vote"])
def test_every_target_is_answered_whatever_the_kind_of_model(home: Path, model: str) -> None:
    cases = read_dataset(home / "small").test
    cases = replace(cases, hidden=HIDE["all"](cases))
    assert recover(load_run(home / model).model, cases, 2) == cases.hidden.sum()


def test_memory_is_that_of_the_process_and_not_of_the_one_that_started_it() -> None:
    held = np.ones(40_000_000)  # 305 MiB
    code = "from attnmove.bench.child import peak_mib; print(peak_mib())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 10 < float(child.stdout) < peak_mib()
    if Path("/proc/self/status").exists():
        assert float(child.stdout) < held.nbytes / 1024**2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"days": 0}, "--days: expected 1 or more, found 0"),
        ({"top": 0}, "--top: expected 1 or more, found 0"),
        ({"split": "tset"}, "no split 'tset'; did you mean test?"),
        ({"hide": "alll"}, "no hiding 'alll'; did you mean all?"),
    ],
)
def test_an_errand_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        replace(ERRAND, **change)
    assert str(caught.value) == message


def test_nothing_is_started_for_what_cannot_be_recovered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("started"))
    dataset = read_dataset(home / "small")
    strange = replace(dataset, locations=replace(dataset.locations, name=dataset.locations.name[::-1].copy()))
    write_dataset(home / "strange", strange)
    write_small(home / "young", splits=("past", "train"))

    def refused(name: str, run: str) -> str:
        how: dict[str, Any] = {"days": [5], "split": "test", "hide": ["stored"], "top": 5}
        with pytest.raises((DataError, RunError)) as caught:
            measure(str(home / name), [str(home / "vote"), str(home / run)], **how)
        return str(caught.value)

    assert refused("small", "nowhere") == f"{home}/nowhere: not a run (no config.json); make one with attnmove train"
    assert refused("strange", "vote").startswith(f"{home}/vote: the run does not fit this dataset: its locations")
    assert refused("young", "vote") == f"{home}/young: no test days to recover; ask for another --split"


def test_a_recovery_that_fails_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback\nMemoryError: too much\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    result = asked(home, home / "vote", "--days", "2000")
    assert isinstance(result.exception, RunError)
    assert f"{home}/vote did not recover stored slots of 2,000 days (exit 1): MemoryError" in str(result.exception)


def test_bench_recover_prints_a_row_a_run_question_and_number_of_days(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"targets": 4000, "seconds": 2.0, "base_mib": 150.0, "peak_mib": 200.0}
    done = subprocess.CompletedProcess([], 0, stdout=json.dumps(facts), stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    result = asked(home, home / "boost", home / "vote", "--days", "100,400")
    assert result.exit_code == 0, result.output
    assert "test, 5 places a slot" in result.stdout
    cells = [[part.strip() for part in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    assert [row[1:4] for row in cells] == [
        [model, what, days] for model in ("boost", "vote") for what in ("stored", "all") for days in ("100", "400")
    ]
    assert cells[1][4:] == ["4,000", "2.00", "200.00", "2,000", "150.00", "200.00"]


def test_bench_recover_takes_whole_numbers_of_days(home: Path) -> None:
    result = asked(home, home / "vote", "--days", "many")
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith("--days takes whole numbers")


def test_bench_recover_recovers_in_a_process_of_its_own(home: Path) -> None:
    result = asked(home, home / "boost", home / "vote", "--days", "7", "--hide", "stored", "--split", "valid", "--json")
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    rows = json.loads(result.stdout)
    assert [row["model"] for row in rows] == ["boost", "vote"]
    asked_for = {"dataset", "run", "split", "days", "hide", "top", "model"}
    for row in rows:
        found = {"targets", "seconds", "days_per_second", "targets_per_second", "base_mib", "peak_mib"}
        assert set(row) == asked_for | found
        assert (row["days"], row["targets"], row["split"]) == (7, 70, "valid")
        assert row["days_per_second"] == pytest.approx(7 / row["seconds"])
        assert row["targets_per_second"] == pytest.approx(70 / row["seconds"])
        assert 0 < row["base_mib"] <= row["peak_mib"]
