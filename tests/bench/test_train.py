"""The training benchmark: what it counts, what it leaves out, what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import attnmove
from attnmove import cli
from attnmove.bench import train_once
from attnmove.bench.train import N_HIDDEN, N_SLOTS, Shape, measure, parse_numbers
from attnmove.bench.train_once import Enough, Meter, flop_of_step, made_up_days
from attnmove.errors import ConfigError, RunError
from attnmove.nouns import MISSING

SMALL = Shape(width=8, batch=4, precision="fp32", layers=1, heads=2, locations=20, days=16, device="cpu", seconds=0.05)


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_the_meter_leaves_out_the_warm_up_and_the_first_step_of_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(train_once, "time", clock)
    meter = Meter(seconds=60.0, steps_per_epoch=8, wait=lambda: None)

    def train() -> None:
        for step in count(1):
            # Drawing takes 10 s, the five steps of the warm-up 100 s each, every other one 1 s.
            clock.now += 10 * (step % 8 == 1) + (100 if step <= 5 else 1)
            meter({})

    with pytest.raises(Enough):
        train()
    # Steps 6 to 8, then epochs of 18 s of which the first step (11 s with its drawing) is not counted: after the
    # fourth of them, at 3 + 3 * 18 = 57 s, drawing goes beyond the minute, and the step after it is the last.
    assert (meter.steps, meter.step_seconds) == (3 + 3 * 7 + 1, 25.0)
    assert (meter.whole_steps, meter.whole_seconds) == (3 + 3 * 8 + 2, 69.0)
    assert meter.epochs == 4


def test_made_up_days_hide_ten_observed_slots_each() -> None:
    days = made_up_days(50, 7, torch.device("cpu"), np.random.default_rng(1))
    loc = days.data.loc.numpy()
    assert loc.shape == (50, N_SLOTS)
    assert ((loc != MISSING) == days.observed).all()
    assert (days.hidden.sum(axis=1) == N_HIDDEN).all()
    assert not (days.hidden & ~days.observed).any()
    assert set(np.unique(loc)) == set(range(-1, 7))


def test_operations_of_a_step_are_those_of_its_matrix_products() -> None:
    """More locations change only the inner products with the answer: forward, and the gradient of each factor."""
    flop = [
        flop_of_step(shape, made_up_days(16, shape.locations, torch.device("cpu"), np.random.default_rng(1)))
        for shape in (SMALL, replace(SMALL, locations=SMALL.locations + 30))
    ]
    assert flop[1] - flop[0] == 3 * 2 * (SMALL.batch * N_HIDDEN) * SMALL.width * 30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"days": 7}, "--days: expected two batches or more"),
        ({"locations": 0}, "--locations: expected 1 or more"),
        ({"seconds": 0.0}, "--seconds: expected above 0"),
        ({"precision": "fp8"}, "precision: expected fp32"),
        ({"batch": 0}, "batch_days: expected 1 or more"),
        ({"width": 9}, "width"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SMALL, **change)  # type: ignore[arg-type]


def test_numbers_are_whole_and_separated_by_commas() -> None:
    assert parse_numbers("--widths", "64,128") == [64, 128]
    with pytest.raises(ConfigError, match=r"--widths takes whole numbers such as 64,128; found '64;128'"):
        parse_numbers("--widths", "64;128")


def test_a_shape_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback\nOutOfMemoryError: too much\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RunError, match=r"on cpu in fp32 with width 8 and 4 days a step \(exit 1\): OutOfMemoryError"):
        measure(
            widths=[8], batches=[4], precisions=(), layers=1, heads=2, locations=20, days=16, device="cpu", seconds=1.0
        )


ARGUMENTS = "bench train --widths 8 --layers 1 --heads 2 --locations 20 --days 16 --batch 4 --seconds 0.05 --device cpu"


def test_bench_train_prints_a_row_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {
        "steps": 30,
        "seconds": 2.0,
        "whole_days_per_second": None,
        "peak_mib": 512.0,
        "flop_per_step": 4_000_000_000,
    }
    where = {"ceiling_flop_per_second": 1e12, "threads": 2, "device_name": "cpu", "torch": "2.11"}
    done = subprocess.CompletedProcess([], 0, stdout=json.dumps(facts | where), stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    result = CliRunner().invoke(cli.app, [*ARGUMENTS.split(), "--batch", "4,8", "--precision", "fp32,bf16"])
    assert result.exit_code == 0, result.output
    assert "1 layers, 2 heads, 20 locations" in result.stdout
    cells = [[part.strip() for part in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    assert [row[0] for row in cells] == ["fp32", "fp32", "bf16", "bf16"]
    # 30 steps of 4 days and 4 GFLOP in 2 s: 60 days and 60 GFLOP a second, 6 % of 1 TFLOP/s.
    assert cells[0] == ["fp32", "8", "4", "2", "60.00", "–", "4.00", "60.00", "1,000", "6.00", "512.00"]


WITHOUT_RELATIONAL = """
import sys
from importlib.machinery import PathFinder

class Poorer(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        absent = ('ibis', 'duckdb', 'shapely', 'h3ronpy', 'pyspark', 'osmium', 'pandas', 'sqlglot')
        return None if name in absent else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Poorer
"""
"""As `sitecustomize` it holds for the processes the command starts, too. It finds nothing instead of raising, for torch
asks whether pandas is there."""


def test_bench_train_trains_in_a_process_of_its_own_and_without_the_relational_libraries(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_RELATIONAL)
    paths = os.pathsep.join([str(tmp_path), str(Path(attnmove.__file__).parents[1])])
    command = [sys.executable, "-m", "attnmove.cli", *ARGUMENTS.split(), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["width"], row["batch"], row["precision"]) == (8, 4, "fp32")
    assert row["days_per_second"] == pytest.approx(row["batch"] * row["steps"] / row["seconds"])
    assert 0 < row["share_of_ceiling"] < 1
    assert row["peak_mib"] > 0
    assert row["threads"] >= 1
