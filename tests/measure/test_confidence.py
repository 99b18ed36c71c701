"""The confidence from which on a model answers, and the curves it is read from."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnmove.errors import ConfigError, DataError, RunError
from attnmove.measure.confidence import confidence_for
from attnmove.measure.curves import COLUMNS, curves_of, write_curves
from attnmove.measure.outcomes import Outcomes, outcomes_of
from attnmove.measure.table import evaluate
from builders import asked
from measure.answers import Fixed, outcomes

CASES = asked({"ann": [" ".join("a" * 50)], "bob": [" ".join("b" * 50)]}, n_locations=2)


def answers(*parts: tuple[int, float, float]) -> Fixed:
    """A model for CASES: so many targets of each, with these probabilities of A and B. The first 50 are A, then B."""
    return Fixed([[a, b] for n, a, b in parts for _ in range(n)])


def with_confidence(*values: float) -> Outcomes:
    n = len(values)
    right = [1 if value > 0.5 else 2 for value in values]
    return replace(outcomes("a" * n, right), confidence=np.array(values, dtype=np.float32))


def test_the_confidence_is_the_lowest_that_keeps_the_precision() -> None:
    # 50 right at 0.9; then 10 right and 40 wrong at 0.7: from there on 60 of 100.
    model = answers((50, 0.9, 0.1), (10, 0.3, 0.7), (40, 0.7, 0.3))
    assert confidence_for(model, CASES, 0.6) == pytest.approx(0.7)
    assert confidence_for(model, CASES, 0.61) == pytest.approx(0.9)


def test_what_was_chosen_keeps_the_precision_where_it_was_chosen() -> None:
    model = answers((30, 0.9, 0.1), (20, 0.2, 0.8), (10, 0.3, 0.7), (40, 0.6, 0.4))
    for wanted in (0.4, 0.6, 0.75, 1.0):
        (row,) = evaluate(model, CASES, min_confidence=confidence_for(model, CASES, wanted))
        assert row["precision"] >= wanted


def test_certainty_that_rounds_above_one_is_a_confidence_still() -> None:
    model = answers((50, 1 + 1e-6, 1e-9), (50, 1e-9, 1 + 1e-6))
    assert outcomes_of(model, CASES).confidence.max() > 1
    chosen = confidence_for(model, CASES, 1.0)
    assert chosen == 1.0
    assert evaluate(model, CASES, min_confidence=chosen)[0]["coverage"] == 1.0


def test_a_precision_out_of_reach_is_refused_with_the_best_there_is() -> None:
    model = answers((10, 0.2, 0.8), (40, 0.8, 0.2), (50, 0.7, 0.3))
    # From 0.8 on, 40 of 50 are right.
    with pytest.raises(ConfigError, match=r"precision 0\.9 is not reached on the 100 validation targets, 0\.8 at most"):
        confidence_for(model, CASES, 0.9)


def test_too_few_targets_are_no_ground_to_choose_on() -> None:
    few = asked({"ann": [" ".join("a" * 29)]}, n_locations=2)
    with pytest.raises(DataError, match="expected 30 validation targets or more to choose a confidence on, found 29"):
        confidence_for(Fixed([[0.9, 0.1]] * 29), few, 0.5)


@pytest.mark.parametrize("wrong", [-0.5, 1.1, float("nan")])
def test_a_precision_is_from_zero_to_one(wrong: float) -> None:
    with pytest.raises(ConfigError, match="precision: expected a number from 0 to 1"):
        confidence_for(answers((100, 0.9, 0.1)), CASES, wrong)


def test_the_curves_are_rows_of_one_table() -> None:
    rows = curves_of(with_confidence(0.75, 0.25, 0.75, 0.5), model="m", run="runs/m", split="test")
    assert [tuple(row.values()) for row in rows] == [
        ("m", "runs/m", "test", "risk_coverage", 0.75, 0.5, 1.0, 2),
        ("m", "runs/m", "test", "risk_coverage", 0.5, 0.75, pytest.approx(2 / 3), 3),
        ("m", "runs/m", "test", "risk_coverage", 0.25, 1.0, 0.5, 4),
        ("m", "runs/m", "test", "reliability", 0.25, 0.25, 0.0, 1),
        ("m", "runs/m", "test", "reliability", 0.5, 0.25, 0.0, 1),
        ("m", "runs/m", "test", "reliability", 0.75, 0.5, 1.0, 2),
    ]
    assert all(tuple(row) == COLUMNS for row in rows)


def test_a_long_curve_is_thinned_and_keeps_both_ends() -> None:
    values = np.random.default_rng(3).random(3_000)
    rows = curves_of(with_confidence(*values), model="m")
    curve = [row for row in rows if row["curve"] == "risk_coverage"]
    assert 150 < len(curve) <= 200
    assert (curve[0]["n"], curve[-1]["n"]) == (1, 3_000)
    assert max(np.diff([row["coverage"] for row in curve])) < 0.01


def test_without_targets_there_are_no_curves() -> None:
    assert curves_of(with_confidence(), model="m") == []


def test_curves_are_written_whole_and_an_unknown_run_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "new" / "curves.csv"
    write_curves(path, curves_of(with_confidence(0.75, 0.3), model="m", split="test"))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert list(rows[1].values()) == ["m", "", "test", "risk_coverage", "0.3", "1.0", "0.5", "2"]
    assert [other.name for other in path.parent.iterdir()] == ["curves.csv"]
    with pytest.raises(RunError, match="cannot be written"):
        write_curves(tmp_path / "new", rows)
