"""Rows of measures and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import attnmove as am
from attnmove.errors import ConfigError, DataError
from attnmove.measure.intervals import N_DRAWS, intervals_of, paired
from attnmove.measure.table import MEASURES, evaluate, measure
from attnmove.models.rules import Nearest
from builders import asked
from measure.answers import Fixed, outcomes

CASES = asked({"ann": ["A b C", "a . B"], "bob": ["A A c"]}, n_locations=3)
ANSWERS = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]]


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_the_first_row_measures_every_target() -> None:
    (row,) = evaluate(Fixed(ANSWERS), CASES, split="test")
    assert (row["model"], row["split"], row["slice"], row["n"]) == ("fixed", "test", "all", 3)
    assert row["recall"] == pytest.approx(1 / 3)
    assert (row["recall_at_3"], row["recall_at_5"]) == (1.0, 1.0)
    assert row["map"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert row["nll"] == pytest.approx(-np.log([0.5, 0.1, 0.2]).mean())
    assert row["ece"] == pytest.approx((0.5 + 0.8 + 0.4) / 3)
    origins = ["origin_day", "origin_past", "origin_others", "origin_space"]
    assert list(row)[4:] == [*MEASURES, "aurc", "sure_n", "sure_recall", *origins]
    assert [row[name] for name in origins] == [None] * 4


def test_a_row_says_how_well_confidence_tells_right_from_wrong() -> None:
    (row,) = evaluate(Fixed([[0.05, 0.9, 0.05], [0.04, 0.01, 0.95], [0.4, 0.4, 0.2]]), CASES)
    # The surest is wrong, the next right, the last wrong.
    assert row["aurc"] == pytest.approx((1 + 1 / 2 + 2 / 3) / 3)
    assert (row["sure_n"], row["sure_recall"]) == (2, 0.5)
    (row,) = evaluate(Fixed(ANSWERS), CASES)
    assert (row["sure_n"], row["sure_recall"]) == (0, None)


def test_what_is_not_sure_enough_is_not_answered_but_counts_in_every_other_measure() -> None:
    plain = evaluate(Fixed(ANSWERS), CASES, by=["places"])
    rows = evaluate(Fixed(ANSWERS), CASES, by=["places"], min_confidence=0.5)
    assert [(row["min_confidence"], row["coverage"], row["precision"]) for row in rows] == [
        (0.5, pytest.approx(2 / 3), 0.5),  # 0.5, right; 0.8, wrong; 0.4
        (0.5, 0.5, 0.0),
        (0.5, 1.0, 1.0),
    ]
    for before, row in zip(plain, rows, strict=True):
        assert {name: row[name] for name in MEASURES} == {name: before[name] for name in MEASURES}


def test_where_nothing_is_answered_there_is_no_precision() -> None:
    (row,) = evaluate(Fixed(ANSWERS), CASES, min_confidence=0.9)
    assert (row["coverage"], row["precision"]) == (0.0, None)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan])
def test_a_confidence_is_from_zero_to_one(wrong: float) -> None:
    with pytest.raises(ConfigError, match="min_confidence: expected a number from 0 to 1"):
        evaluate(Nearest(), CASES, min_confidence=wrong)


def test_slices_follow_and_add_up_to_the_whole() -> None:
    rows = evaluate(Fixed(ANSWERS), CASES, by=["places", "gap"])
    assert [row["slice"] for row in rows] == [
        "all",
        "places=2",
        "places=3",
        "gap=1",
        "gap=after last",
        "gap=before first",
    ]
    assert [row["n"] for row in rows] == [3, 2, 1, 1, 1, 1]
    assert sum(row["n"] * row["map"] for row in rows[1:3]) == pytest.approx(3 * rows[0]["map"])


def test_the_distance_is_none_where_centres_are_unknown() -> None:
    cases = asked({"ann": ["A b C"], "bob": ["A b C"]}, n_locations=3, centres=False)
    (row,) = evaluate(Nearest().fit(cases), cases, intervals=True)
    assert row["distance_m"] is row["distance_low"] is row["distance_high"] is None


def test_without_targets_the_measures_are_nan_and_n_is_zero() -> None:
    none = CASES.rows(np.zeros(0, dtype=np.int64))
    (row,) = evaluate(Nearest().fit(CASES), none, by=["hour"])
    assert row["n"] == 0
    assert all(math.isnan(row[name]) for name in (*MEASURES, "aurc"))
    assert (row["sure_n"], row["sure_recall"]) == (0, None)


def test_the_public_function_measures_a_fitted_model() -> None:
    rows = am.evaluate(Nearest().fit(CASES), CASES, by=["hour"])
    assert rows[0]["model"] == "nearest"


def test_a_slicing_is_refused_before_the_model_is_asked() -> None:
    with pytest.raises(ConfigError, match="no slicing"):
        evaluate(Nearest(), CASES, by=["minute"])


def test_an_interval_holds_the_measure_and_comes_from_users_not_targets() -> None:
    # Half of the users are always right, half never: with whole users drawn, the mean of 8 fair coins.
    some = outcomes("aabbccddeeffgghh", [1] * 8 + [2] * 8)
    found = intervals_of(some, rng())
    assert found["recall"].low < 0.5 < found["recall"].high
    assert (found["recall"].low, found["recall"].high) == (0.125, 0.875)
    assert found["map"].low == pytest.approx(0.5 + 0.125 / 2)
    assert found["distance_m"].high == pytest.approx(87.5)


def test_users_who_agree_leave_no_doubt() -> None:
    found = intervals_of(outcomes("aabb", [1, 2, 1, 2]), rng())
    assert found["recall"].low == found["recall"].high == 0.5


def test_intervals_agree_with_a_slow_loop_over_draws() -> None:
    users = "aaabbcdddd"
    some = outcomes(users, [1, 1, 2, 1, 3, 4, 1, 2, 1, 1])
    names = sorted(set(users))
    times = rng().multinomial(4, [0.25] * 4, size=N_DRAWS)
    slow = []
    for draw in times:
        hits = [hit for name, n in zip(names, draw, strict=True) for hit in some.right[some.user == name].tolist() * n]
        slow.append(sum(hits) / len(hits))
    low, high = np.quantile(slow, [0.025, 0.975])
    found = intervals_of(some, rng())["recall"]
    assert (found.low, found.high) == pytest.approx((low, high))


def test_one_user_has_no_interval() -> None:
    (row,) = measure(outcomes("aaa", [1, 2, 1]), model="m", rng=rng())
    assert row["recall_low"] is row["map_high"] is row["distance_low"] is None


def test_an_interval_does_not_depend_on_the_other_slices() -> None:
    some = outcomes("aabbccdd", [1, 2, 1, 1, 3, 1, 2, 2])
    label = np.array(list("xxyyxxyy"), dtype=object)
    both = measure(some, {"p": np.array(list("uvuvuvuv"), dtype=object), "q": label}, model="m", rng=rng())
    alone = measure(some, {"q": label}, model="m", rng=rng())
    assert both[-2:] == alone[-2:]


def test_a_pair_is_compared_on_the_same_targets() -> None:
    one, other = outcomes("aabb", [1, 1, 1, 2]), outcomes("aabb", [1, 2, 1, 4])
    gain = paired(one, other, rng())
    assert gain.n == 4
    assert gain.recall == pytest.approx(1 / 4)
    assert gain.map == pytest.approx((1 / 2 + 1 / 4) / 4)
    assert (gain.recall_interval.low, gain.recall_interval.high) == (0.0, 0.5)


def test_a_model_is_no_better_than_itself() -> None:
    same = outcomes("aabb", [1, 3, 1, 2])
    gain = paired(same, same, rng())
    assert (gain.recall, gain.recall_interval.low, gain.recall_interval.high, gain.map) == (0, 0, 0, 0)


def test_answers_to_different_targets_are_not_a_pair() -> None:
    with pytest.raises(DataError, match="the same targets"):
        paired(outcomes("aab", [1, 1, 1]), outcomes("aa", [1, 1]), rng())
