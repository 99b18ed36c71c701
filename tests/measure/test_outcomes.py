"""Outcomes: every target once, its truth beside the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from attnmove.errors import DataError
from attnmove.measure.outcomes import outcomes_of
from attnmove.models.contract import Scores
from attnmove.models.rules import Nearest
from attnmove.nouns import MISSING, Cases
from builders import asked
from measure.answers import Fixed

CASES = asked({"ann": ["A b C", "a . B"], "bob": ["A A c"]}, n_locations=3)
"""Targets: ann's day 0, slot 1 (B); her day 1, slot 0 (A); bob's slot 2 (C)."""
ANSWERS = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]]


def test_each_target_has_its_truth_beside_the_answer() -> None:
    found = outcomes_of(Fixed(ANSWERS), CASES)
    assert found.user.tolist() == ["ann", "ann", "bob"]
    assert (found.row.tolist(), found.slot.tolist()) == ([0, 1, 2], [1, 0, 2])
    assert found.truth.tolist() == [1, 0, 2]
    assert found.predicted.tolist() == [1, 2, 0]
    assert found.rank.tolist() == [1, 2, 3]
    assert found.right.tolist() == [True, False, False]
    assert np.exp(found.log_prob).tolist() == pytest.approx([0.5, 0.1, 0.2])
    assert found.confidence.tolist() == pytest.approx([0.5, 0.8, 0.4])


def test_the_distance_is_between_the_centres_of_truth_and_prediction() -> None:
    found = outcomes_of(Fixed(ANSWERS), CASES)
    step = float(CASES.locations.distance_m(np.array([0]), np.array([1]))[0])
    assert found.distance_m.tolist() == pytest.approx([0, 2 * step, 2 * step], rel=1e-6)


def test_the_distance_is_unknown_without_centres() -> None:
    cases = asked({"ann": ["A b C"]}, n_locations=3, centres=False)
    assert np.isnan(outcomes_of(Fixed([[0.2, 0.5, 0.3]]), cases).distance_m).all()


def test_chunks_may_come_in_any_size_and_order() -> None:
    whole = outcomes_of(Fixed(ANSWERS), CASES)
    parts = outcomes_of(Fixed(ANSWERS, chunks=[[2], [], [1, 0]]), CASES)
    assert parts.rank.tolist() == whole.rank.tolist()
    assert parts.row.tolist() == [0, 1, 2]


def test_a_target_whose_truth_nobody_knows_is_left_out() -> None:
    loc = CASES.loc.copy()
    loc[1, 0] = MISSING
    found = outcomes_of(Fixed(ANSWERS), replace(CASES, loc=loc))
    assert found.row.tolist() == [0, 2]
    assert found.truth.tolist() == [1, 2]


def test_no_targets_give_no_outcomes() -> None:
    cases = CASES.rows(np.zeros(0, dtype=np.int64))
    assert len(outcomes_of(Nearest().fit(CASES), cases)) == 0


@pytest.mark.parametrize(
    ("chunks", "sentence"),
    [
        ([[0, 1]], "scores: 1 of 3 targets have no answer, the first in row 2, slot 2"),
        ([[0, 1, 2], [1]], "scores: row 1, slot 0 was answered twice"),
        ([[0, 1, 1, 2]], "scores: row 1, slot 0 was answered twice"),
    ],
)
def test_every_target_must_be_answered_once(chunks: list[list[int]], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        outcomes_of(Fixed(ANSWERS, chunks=chunks), CASES)


class Odd(Fixed):
    """Answers one chunk, whatever was asked."""

    def __init__(self, index: list[list[int]], log_prob: list[list[float]]) -> None:
        super().__init__([[1.0]])
        self.chunk = Scores(np.array(index, dtype=np.int64), np.array(log_prob, dtype=np.float32))

    def scores(self, cases: Cases) -> Iterator[Scores]:
        yield self.chunk


@pytest.mark.parametrize(
    ("index", "log_prob", "sentence"),
    [
        ([[0, 0]], [[0.0, -1.0, -1.0]], "row 0, slot 0 was answered but is not a target"),
        ([[9, 0]], [[0.0, -1.0, -1.0]], "row 9, slot 0 was answered but is not a target"),
        ([[0, 1]], [[0.0, -1.0]], "expected 1 x 3 log-probabilities"),
        ([[0, 1]], [[0.0, np.nan, -1.0]], "row 0, slot 1 has a log-probability that is not a number"),
    ],
)
def test_an_answer_to_something_else_is_refused(
    index: list[list[int]], log_prob: list[list[float]], sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        outcomes_of(Odd(index, log_prob), CASES)
