"""Slicings: the label of each target, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnmove.errors import ConfigError
from attnmove.measure.slices import SLICES, gap, hour, in_order, labels_of, missing_rate, places
from attnmove.nouns import MISSING, Cases
from builders import asked


def one(text: str) -> Cases:
    return asked({"ann": [text]}, n_locations=26)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a A A A A A A A A A", "10-20%"),
        ("a . . A A A A A A A", "30-40%"),
        ("a . . . . . . . . A", "90-100%"),
        ("a . . . . . . . . .", "90-100%"),
        ("A A A A A A A A A A A a", "0-10%"),
    ],
)
def test_the_missing_rate_counts_hidden_and_unobserved_slots(text: str, label: str) -> None:
    assert missing_rate(one(text)).tolist() == [label]


def test_the_hour_is_that_in_which_the_slot_begins() -> None:
    half_hours = " ".join(["a"] * 48)
    assert hour(one(half_hours)).tolist() == [f"{slot // 2:02}" for slot in range(48)]
    two_hours = " ".join(["a"] * 12)
    assert hour(one(two_hours)).tolist()[-1] == "22"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a A . A", "1"),
        ("a B A B", "2"),
        ("a . B c", "3"),
        (" ".join("aBCDEFGHI"), "9"),
        (" ".join("aBCDEFGHIJKL"), "10+"),
    ],
)
def test_places_are_the_distinct_locations_of_the_whole_day(text: str, label: str) -> None:
    assert set(places(one(text)).tolist()) == {label}


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("A a A", ["1"]),
        ("A a . A", ["2-3"]),
        ("A . a b A a A", ["2-3", "2-3", "1"]),
        ("A . . . a A", ["4-7"]),
        ("A " + ". " * 7 + "a A", ["8-15"]),
        ("A " + ". " * 15 + "a A", ["16+"]),
        (". a A A . a", ["before first", "after last"]),
        ("a . .", ["whole day"]),
    ],
)
def test_a_gap_is_the_run_of_unseen_slots_around_the_target(text: str, labels: list[str]) -> None:
    assert gap(one(text)).tolist() == labels


def test_every_slicing_labels_every_target_in_the_order_of_the_index() -> None:
    cases = asked({"ann": ["A b C d", "a . B B"], "bob": ["A A c ."]})
    for slicing in SLICES.values():
        assert len(slicing(cases)) == len(cases.index)
    assert gap(cases).tolist() == ["1", "after last", "before first", "after last"]


def test_slicings_take_cases_without_targets() -> None:
    none = asked({"ann": ["A b"]}).rows(np.zeros(0, dtype=np.int64))
    assert [len(slicing(none)) for slicing in SLICES.values()] == [0] * len(SLICES)


def test_labels_are_those_of_the_targets_that_can_be_measured() -> None:
    cases = asked({"ann": ["A b . . A a A"]})
    loc = cases.loc.copy()
    loc[0, 1] = MISSING
    assert labels_of(replace(cases, loc=loc), ["gap"])["gap"].tolist() == ["1"]


def test_an_unknown_slicing_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"no slicing 'hours'; did you mean hour\?"):
        labels_of(one("A a"), ["hours"])
    with pytest.raises(ConfigError, match="there are: missing_rate, hour, places, gap"):
        labels_of(one("A a"), ["zzz"])


def test_labels_come_in_the_order_of_their_numbers() -> None:
    found = in_order({"before first", "16+", "8-15", "1", "2-3"})
    assert found == ["1", "2-3", "8-15", "16+", "before first"]
    assert in_order({"90-100%", "10-20%", "0-10%"}) == ["0-10%", "10-20%", "90-100%"]
