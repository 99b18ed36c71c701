"""Who trains and who judges, and which slots are asked for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from attnmove.nouns import Bool, Days
from attnmove.prep.config import PATTERNS, Preparation
from attnmove.prep.hide import draw_targets, hide
from attnmove.prep.split import split_days
from builders import days_of

N_SLOTS = 48


def sizes(*days_of_users: int, first_days: int = 3) -> list[tuple[int, ...]]:
    """(past, train, valid, test) of each user."""
    first = np.repeat(np.concatenate([[0], np.cumsum(days_of_users)[:-1]]), days_of_users)
    split = split_days(first, first_days=first_days)
    counts = [Counter(part.tolist()) for part in np.split(split, np.cumsum(days_of_users)[:-1])]
    return [tuple(count[name] for name in ("past", "train", "valid", "test")) for count in counts]


@pytest.mark.parametrize(
    ("n_days", "expected"),
    [
        (3 + 10, (3, 7, 1, 2)),
        (3 + 14, (3, 9, 2, 3)),
        (3 + 4, (3, 2, 1, 1)),
        (3 + 1, (3, 0, 0, 1)),
        (3 + 2, (3, 1, 0, 1)),
        (3, (3, 0, 0, 0)),
        (1, (1, 0, 0, 0)),
        (3 + 30, (3, 21, 3, 6)),  # 0.7 * 30 is a little below 21 in floating point
    ],
)
def test_the_days_after_the_first_three_are_split_7_to_1_to_2(n_days: int, expected: tuple[int, ...]) -> None:
    assert sizes(n_days) == [expected]


def test_each_user_is_split_alone() -> None:
    assert sizes(13, 2, 7) == [(3, 7, 1, 2), (2, 0, 0, 0), (3, 2, 1, 1)]


def test_the_splits_of_a_user_follow_each_other_in_time() -> None:
    split = split_days(np.zeros(23, dtype=np.int64)).tolist()
    assert split == sorted(split, key=["past", "train", "valid", "test"].index)


def test_without_first_days_no_day_is_past() -> None:
    assert sizes(10, first_days=0) == [(0, 7, 1, 2)]


def test_no_days_have_no_split() -> None:
    assert len(split_days(np.zeros(0, dtype=np.int64))) == 0


def observed_days(n: int, share: float, seed: int = 0) -> Bool:
    return np.random.default_rng(seed).random((n, N_SLOTS)) < share


def hidden(observed: Bool, n: int, pattern: str, seed: int = 0) -> Bool:
    return hide(observed, n, pattern=pattern, slot_minutes=30, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_n_observed_slots_are_hidden_and_at_least_one_stays_visible(pattern: str) -> None:
    observed = observed_days(400, 0.25)
    mask = hidden(observed, 10, pattern)
    assert not np.any(mask & ~observed)
    seen = observed.sum(axis=1)
    assert np.array_equal(mask.sum(axis=1), np.clip(seen - 1, 0, 10))
    assert np.all((observed & ~mask).sum(axis=1)[seen > 0] >= 1)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_nothing_is_hidden_of_a_day_with_one_observed_slot_or_none(pattern: str) -> None:
    observed = np.zeros((2, N_SLOTS), dtype=np.bool_)
    observed[0, 20] = True
    assert not hidden(observed, 10, pattern).any()


def whole_days(n: int = 30) -> Days:
    return days_of({f"u{i}": [" ".join(["A"] * N_SLOTS)] * 4 for i in range(n)})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_draws_are_the_same_under_one_seed_and_differ_otherwise(pattern: str) -> None:
    days = whole_days()
    once, again = (draw_targets(days, Preparation(draws=2, pattern=pattern, seed=4)) for _ in range(2))
    other = draw_targets(days, Preparation(draws=2, pattern=pattern, seed=5))
    assert np.array_equal(once.slot, again.slot)
    assert not np.array_equal(once.slot, other.slot)
    assert not np.array_equal(once.hidden(days, 0), once.hidden(days, 1))


def test_more_draws_leave_the_first_ones_as_they_were() -> None:
    days = whole_days()
    one, three = (draw_targets(days, Preparation(draws=n)) for n in (1, 3))
    assert np.array_equal(one.hidden(days, 0), three.hidden(days, 0))


def test_past_days_are_no_targets() -> None:
    days = days_of({"u": [" ".join(["A"] * N_SLOTS)] * 4})
    some_past = Days(days.user, days.date, days.loc, np.array(["past", "past", "train", "test"], dtype=object))
    targets = draw_targets(some_past, Preparation(draws=2))
    assert targets.date.tolist() == np.repeat(days.date[2:], 2).tolist()
    assert targets.draw.tolist() == [0, 1, 0, 1]


def test_uniform_is_flat_over_the_slots() -> None:
    n = 20_000
    per_slot = hidden(np.ones((n, N_SLOTS), dtype=np.bool_), 10, "uniform").sum(axis=0)
    share = 10 / N_SLOTS
    spread = np.sqrt(n * share * (1 - share))
    assert np.all(np.abs(per_slot - n * share) < 4.5 * spread)


def mean_run(mask: Bool) -> float:
    """How many neighbouring slots are hidden at a time."""
    starts = mask & ~np.concatenate([np.zeros((len(mask), 1), dtype=np.bool_), mask[:, :-1]], axis=1)
    return float(mask.sum() / starts.sum())


def test_burst_hides_runs_of_two_hours() -> None:
    everything = np.ones((2_000, N_SLOTS), dtype=np.bool_)
    assert mean_run(hidden(everything, 10, "uniform")) < 1.5
    assert mean_run(hidden(everything, 10, "burst")) > 3


def test_burst_reaches_every_slot() -> None:
    per_slot = hidden(np.ones((5_000, N_SLOTS), dtype=np.bool_), 10, "burst").sum(axis=0)
    assert per_slot.min() > 0.5 * per_slot.mean()


def test_night_slots_are_hidden_first() -> None:
    night = np.array([slot < 14 or slot >= 44 for slot in range(N_SLOTS)])  # 22:00 to 07:00
    few = hidden(np.ones((500, N_SLOTS), dtype=np.bool_), 10, "night")
    assert not few[:, ~night].any()
    assert few[:, night].sum(axis=0).min() > 0
    many = hidden(np.ones((500, N_SLOTS), dtype=np.bool_), 22, "night")
    assert many[:, night].all()
    beside = [14, 15, 42, 43]  # the four that are nearest to the night
    assert np.array_equal(many.sum(axis=0)[beside], [500] * 4)
