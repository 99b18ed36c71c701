"""Cases by hand: what a model sees of a day and of the days before, in both protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from attnmove.errors import ConfigError, DataError
from attnmove.nouns import MISSING, Cases, Days, Int32, Targets
from attnmove.prep.dataset import Dataset
from attnmove.prep.history import history_rows
from builders import asked, days_of, some_locations, texts


def dataset(
    users: dict[str, Sequence[str]], splits: Sequence[str], hidden: dict[tuple[int, int], Sequence[int]]
) -> Dataset:
    """Days with their splits, and the hidden slots of (day, draw); the stored history counts whole days."""
    days = days_of(users)
    days = Days(days.user, days.date, days.loc, np.array(splits, dtype=object))
    at = np.array([day for day, _ in sorted(hidden)], dtype=np.int64)
    slots = [hidden[key] for key in sorted(hidden)]
    targets = Targets(
        user=days.user[at],
        date=days.date[at],
        draw=np.array([draw for _, draw in sorted(hidden)], dtype=np.int32),
        start=np.cumsum([0, *map(len, slots)]),
        slot=np.array([slot for row in slots for slot in row], dtype=np.int32),
        history=history_rows(days.loc, days.first_of_user)[at],
    )
    return Dataset(days, some_locations(8), targets, {})


def seen_before(cases: Cases, row: int) -> list[str]:
    return texts(cases.past[cases.first[row] : cases.end[row]])


ONE_USER = dataset(
    {"a": ["A A A", "B B B", "C C C", "D D D", "E E E"]},
    ["past", "train", "valid", "test", "test"],
    {(1, 0): [0], (1, 1): [1], (2, 0): [0], (2, 1): [1, 2], (3, 0): [2], (3, 1): [0], (4, 0): [1], (4, 1): [1]},
)


def test_a_case_is_a_day_of_the_split_as_one_draw_shows_it() -> None:
    cases = ONE_USER.valid
    assert len(cases) == 2
    assert texts(cases.loc) == ["C C C", "C C C"]
    assert texts(cases.visible) == [". C C", "C . ."]
    assert cases.index.tolist() == [[0, 0], [1, 1], [1, 2]]
    assert cases.truth.tolist() == [2, 2, 2]
    assert cases.date.tolist() == [ONE_USER.days.date[2].item()] * 2
    assert cases.n_slots == 3


def test_the_paper_shows_earlier_days_in_full_and_never_the_day_itself() -> None:
    cases = ONE_USER.cases("test", protocol="paper")
    for row in (0, 1):
        assert seen_before(cases, row) == ["A A A", "B B B", "C C C"]
    for row in (2, 3):
        assert seen_before(cases, row) == ["A A A", "B B B", "C C C", "D D D"]


def test_strict_hides_what_the_same_draw_hides_of_earlier_valid_and_test_days() -> None:
    cases = ONE_USER.cases("test", protocol="strict")
    assert [seen_before(cases, row) for row in range(4)] == [
        ["A A A", "B B B", ". C C"],
        ["A A A", "B B B", "C . ."],
        ["A A A", "B B B", ". C C", "D D ."],
        ["A A A", "B B B", "C . .", ". D D"],
    ]


def test_strict_shows_training_days_in_full() -> None:
    cases = ONE_USER.cases("valid", protocol="strict")
    assert [seen_before(cases, row) for row in range(2)] == [["A A A", "B B B"]] * 2
    assert [seen_before(ONE_USER.cases("train", protocol="strict"), row) for row in range(2)] == [["A A A"]] * 2


def test_the_days_of_the_past_have_their_dates_in_both_protocols() -> None:
    for protocol in ("paper", "strict"):
        cases = ONE_USER.cases("test", protocol=protocol)
        assert len(cases.past_date) == len(cases.past)
        for row in range(len(cases)):
            dates = cases.past_date[cases.first[row] : cases.end[row]]
            assert dates.tolist() == ONE_USER.days.date[: len(dates)].tolist()
            assert dates.max() < cases.date[row]


def test_the_past_is_the_users_own() -> None:
    both = dataset(
        {"a": ["A A", "B B"], "b": ["C C", "D D"]}, ["train", "test"] * 2, {(1, 0): [0], (2, 0): [0], (3, 0): [0]}
    )
    for protocol in ("paper", "strict"):
        test, train = both.cases("test", protocol=protocol), both.cases("train", protocol=protocol)
        assert [seen_before(test, row) for row in range(2)] == [["A A"], ["C C"]]
        assert seen_before(train, 0) == []


def test_the_history_row_is_that_of_the_cases_own_draw() -> None:
    days = {"a": ["A A", "B B", "B B", "A A", "C C"]}
    splits = ["train", "train", "test", "test", "test"]
    hidden = {(2, 0): [0], (2, 1): [1], (3, 0): [0], (3, 1): [1], (4, 0): [0], (4, 1): [0]}
    made = dataset(days, splits, hidden)
    assert texts(made.test.history) == ["A A", "A A", "B B", "B B", "B B", "B B"]
    # The second B is hidden at slot 0 of draw 0 and at slot 1 of draw 1: there A, met first, stays ahead.
    assert texts(made.cases("test", protocol="strict").history) == ["A A", "A A", "A B", "B A", "A B", "B A"]


def test_the_paper_keeps_the_stored_history_row_and_strict_counts_it_anew() -> None:
    # Released files bring history rows of their own, which count days that are not in them.
    released = replace(ONE_USER, targets=replace(ONE_USER.targets, history=np.full_like(ONE_USER.targets.history, 7)))
    assert texts(released.valid.history) == ["H H H"] * 2
    assert texts(released.cases("valid", protocol="strict").history) == ["A A A"] * 2


def test_days_without_a_draw_are_no_cases_but_are_looked_back_upon() -> None:
    made = dataset({"a": ["A A", "B B", "C C"]}, ["train", "test", "test"], {(2, 0): [1]})
    assert len(made.train) == 0
    assert seen_before(made.test, 0) == ["A A", "B B"]


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_a_dataset_without_targets_has_no_cases(protocol: str) -> None:
    made = dataset({"a": ["A A", "B B"]}, ["past", "past"], {})
    assert [len(made.cases(split, protocol=protocol)) for split in ("train", "valid", "test")] == [0, 0, 0]


def test_unknown_protocols_and_splits_are_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no protocol 'strickt'; did you mean strict\?"):
        ONE_USER.cases("test", protocol="strickt")
    with pytest.raises(ConfigError, match="no split 'past'; there are: train, valid, test"):
        ONE_USER.cases("past")


def slow_around(visible: Int32) -> tuple[list[list[int]], list[list[int]]]:
    n_slots = visible.shape[1]
    before, after = [], []
    for row in visible.tolist():
        seen = [slot for slot, place in enumerate(row) if place != MISSING]
        before.append([max((s for s in seen if s < slot), default=-1) for slot in range(n_slots)])
        after.append([min((s for s in seen if s > slot), default=n_slots) for slot in range(n_slots)])
    return before, after


def test_around_is_the_nearest_visible_slot_on_either_side_and_never_the_slot_itself() -> None:
    before, after = asked({"a": ["A b . C d", "a . . . ."]}).around()
    assert before.tolist() == [[-1, 0, 0, 0, 3], [-1] * 5]
    assert after.tolist() == [[3, 3, 3, 5, 5], [5] * 5]


def test_around_equals_a_slow_loop() -> None:
    rng = np.random.default_rng(0)
    marks = np.array(list("ABab.."))
    cases = asked({"a": [" ".join(rng.choice(marks, 9)) for _ in range(60)]})
    before, after = cases.around()
    assert (before.tolist(), after.tolist()) == slow_around(cases.visible)


def test_rows_of_cases_look_back_upon_the_same_days() -> None:
    cases = ONE_USER.cases("test", protocol="strict")
    some = cases.rows(np.array([3, 0]))
    assert [seen_before(some, row) for row in (0, 1)] == [seen_before(cases, row) for row in (3, 0)]
    assert texts(some.visible) == [texts(cases.visible)[row] for row in (3, 0)]
    assert texts(some.history) == [texts(cases.history)[row] for row in (3, 0)]


def test_cases_whose_parts_do_not_fit_together_are_refused() -> None:
    cases = ONE_USER.test
    with pytest.raises(DataError, match="same slots"):
        replace(cases, past=cases.past[:, :2])
    with pytest.raises(DataError, match="same length"):
        replace(cases, user=cases.user[:1])
    with pytest.raises(DataError, match="rows of past"):
        replace(cases, end=cases.end + 99)
    with pytest.raises(DataError, match="rows of past"):
        replace(cases, first=cases.end + 1)
