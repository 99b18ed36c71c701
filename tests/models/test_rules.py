"""The rules and people's habits, worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from attnmove.errors import ConfigError, DataError
from attnmove.models.contract import Recoverer
from attnmove.models.habits import Habits, day_rows, user_keys
from attnmove.models.rules import History, Linear, LinearConfig, Nearest, Top, Vote, VoteConfig
from attnmove.nouns import Cases, Float64
from builders import asked, some_locations


def probabilities(model: Recoverer, cases: Cases) -> Float64:
    """(M, L) of all targets."""
    return np.exp(np.concatenate([part.log_prob for part in model.scores(cases)]).astype(np.float64))


def order(row: Float64, n: int) -> str:
    """The letters of the n most probable locations, the lower id first on a tie."""
    return "".join(chr(ord("A") + place) for place in np.argsort(-row, kind="stable")[:n].tolist())


# Habits.


def test_a_users_key_depends_on_the_name_alone() -> None:
    keys = user_keys(np.array(["b", "a", "b", "é"], dtype=object))
    assert keys.dtype == np.int64
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 3
    assert user_keys(["a"])[0] == keys[1] == 3405396810240292928
    assert user_keys([]).shape == (0,)


def test_a_day_in_several_draws_counts_once() -> None:
    cases = asked({"a": ["A A b", "B . a"]})
    twice = cases.rows(np.array([0, 0, 0, 1, 1]))
    assert len(day_rows(twice)) == 2
    assert Habits.of(twice).everyone[:3].tolist() == Habits.of(cases).everyone[:3].tolist() == [3, 2, 0]


def test_habits_count_hidden_slots_too_and_each_user_alone() -> None:
    train = asked({"a": ["A A b", "B . a"], "b": ["C C c"]})
    counts = Habits.of(train).of_users(asked({"b": ["A a a"], "a": ["C c c"]}))
    assert counts[:, :3].tolist() == [[3, 2, 0], [0, 0, 3]]


def test_a_user_who_was_not_in_training_has_the_habits_of_the_days_before() -> None:
    habits = Habits.of(asked({"a": ["A A b"]}))
    counts = habits.of_users(asked({"z": ["A B .", "C C .", "a . ."]}))
    assert counts[:, :3].tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 2]]


def test_the_own_past_of_a_user_who_was_in_training_is_not_counted_again() -> None:
    train = asked({"a": ["A A b"]})
    assert Habits.of(train).of_users(asked({"a": ["C C C", "a . ."]}))[1, :3].tolist() == [2, 1, 0]


def test_habits_of_nobody_are_nothing() -> None:
    nobody = asked({"a": ["A a a"]}).rows(np.zeros(0, dtype=np.int64))
    habits = Habits.of(nobody)
    assert habits.everyone.tolist() == [0] * 8
    assert habits.of_users(asked({"z": ["A A .", "a . ."]}))[:, 0].tolist() == [0, 2]


# Top.


def test_top_ranks_the_users_own_places_then_those_of_everyone() -> None:
    model = Top().fit(asked({"a": ["B B B A"], "b": ["D D D C"]}))
    found = probabilities(model, asked({"a": ["c . . ."], "b": ["c . . ."]}))
    assert [order(row, 4) for row in found] == ["BADC", "DCBA"]
    # Own share 3/4, everyone's 3/8 of a thousandth, a millionth spread over eight locations.
    assert found[0, 1] == pytest.approx((0.75 + 0.001 * 3 / 8 + 1e-6 / 8) / (1 + 0.001 + 1e-6), rel=1e-5)


def test_top_knows_only_everyone_where_a_user_has_no_past() -> None:
    model = Top().fit(asked({"a": ["B B B A"]}))
    assert order(probabilities(model, asked({"z": ["a . . ."]}))[0], 2) == "BA"


# History.


def test_history_answers_its_row_and_nothing_where_it_is_empty() -> None:
    cases = asked({"a": ["A . .", "B b ."]})
    cases = replace(cases, history=np.array([[-1, -1, -1], [-1, 3, -1]], dtype=np.int32))
    empty = replace(cases, history=np.full((2, 3), -1, dtype=np.int32))
    model = History().fit(cases)
    assert order(probabilities(model, cases)[0], 1) == "D"
    assert probabilities(model, cases)[0, 3] == pytest.approx(1 / (1 + 7e-6))
    assert probabilities(model, empty)[0].tolist() == pytest.approx([1 / 8] * 8)


# Nearest.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A b . C", "A"),
        ("A . b C", "C"),
        ("A b C .", "A"),  # a tie goes to the earlier
        (". a . C", "C"),  # nothing before
        ("A . b .", "A"),  # nothing after
        ("A b b C", "AC"),  # hidden slots are not there
        (". a . .", "F"),  # nothing at all: the user's most frequent place
    ],
)
def test_nearest_copies_the_nearest_visible_slot(text: str, expected: str) -> None:
    model = Nearest().fit(asked({"u": ["F F F G"]}))
    found = probabilities(model, asked({"u": [text]}))
    assert "".join(order(row, 1) for row in found) == expected


def test_nearest_goes_on_with_the_users_places_by_frequency() -> None:
    model = Nearest().fit(asked({"u": ["F F F G"]}))
    found = probabilities(model, asked({"u": ["A b . ."]}))[0]
    assert order(found, 3) == "AFG"
    assert found[0] == pytest.approx(2 / 3.001, rel=1e-3)


# Vote.


def test_votes_fall_with_the_slots_between() -> None:
    model = Vote(VoteConfig(decay_slots=1.0, habit=0.0, history=0.0)).fit(asked({"u": ["A A A A"]}))
    found = probabilities(model, asked({"u": ["B b C C"]}))[0]
    b, c = np.exp(-1), np.exp(-1) + np.exp(-2)
    assert found[1] / found[2] == pytest.approx(b / c, rel=1e-4)
    assert order(found, 2) == "CB"


def test_the_habits_and_the_history_row_have_their_votes() -> None:
    model = Vote(VoteConfig(decay_slots=1.0, habit=0.3, history=0.1)).fit(asked({"u": ["A A A D"]}))
    cases = asked({"u": ["E B b ."]})
    cases = replace(cases, history=np.array([[-1, -1, 5, -1]], dtype=np.int32))
    found = probabilities(model, cases)[0]
    votes = {"B": np.exp(-1), "A": 0.3 * 0.75, "E": np.exp(-2), "F": 0.1, "D": 0.3 * 0.25}
    assert order(found, 5) == "BAEFD"
    for place, vote in votes.items():
        assert found[ord(place) - ord("A")] / found[1] == pytest.approx(vote / votes["B"], rel=2e-3)


def test_a_day_without_a_visible_slot_is_left_to_the_habits() -> None:
    model = Vote().fit(asked({"u": ["A A A D"]}))
    assert order(probabilities(model, asked({"u": [". b . ."]}))[0], 2) == "AD"


# Linear.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A b . . E", "B"),
        ("A . b . E", "C"),
        ("A . . b E", "D"),
        ("E b . . A", "D"),
        ("A b A . .", "A"),
        (". a . C .", "C"),  # nothing before: copied
        ("A . b . .", "A"),  # nothing after: copied
        (". . b . .", "G"),  # nothing at all: the user's most frequent place
    ],
)
def test_linear_goes_straight_and_uniformly(text: str, expected: str) -> None:
    model = Linear().fit(asked({"u": ["G G G G H"]}))
    assert order(probabilities(model, asked({"u": [text]}))[0], 1) == expected


def test_probability_falls_by_e_with_every_blur_metres() -> None:
    cases = asked({"u": ["A a A"]})
    model = Linear(LinearConfig(blur_m=1000.0)).fit(cases)
    found = probabilities(model, cases)[0]
    metres = some_locations(8).distance_m(np.array([0], dtype=np.int32), np.array([1], dtype=np.int32))[0]
    assert metres == pytest.approx(1706, abs=1)
    assert np.log(found[0] / found[1]) == pytest.approx(metres / 1000, abs=0.02)


def test_linear_crosses_the_date_line_the_short_way() -> None:
    cases = asked({"u": ["A c B"]})
    lon = np.array([179.0, -179.0, 180.0, 0.0, 90.0, -90.0, 10.0, 20.0])
    cases = replace(cases, locations=replace(cases.locations, lon=lon, lat=np.zeros(8)))
    assert order(probabilities(Linear().fit(cases), cases)[0], 1) == "C"


def test_linear_says_that_it_needs_centres() -> None:
    with pytest.raises(DataError, match="linear needs the centre of every location"):
        Linear().fit(asked({"u": ["A a A"]}, centres=False))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearConfig(blur_m=0.0),
        lambda: LinearConfig(blur_m=float("nan")),
        lambda: VoteConfig(decay_slots=0.0),
        lambda: VoteConfig(habit=-1.0),
        lambda: VoteConfig(history=float("nan")),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        make()
