"""History rows against a loop written from the rule."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from attnmove.nouns import MISSING, Bool, Days, Int32, Int64
from attnmove.prep import history
from attnmove.prep.config import Preparation
from attnmove.prep.hide import draw_targets
from attnmove.prep.history import history_rows, strict_history
from builders import days_of, loc, texts


def slow_history(loc: Int32, first: Int64, counted: Bool) -> Int32:
    """Day after day, slot after slot; on a tie the location that reached the count first stays."""
    out = np.full_like(loc, MISSING)
    for slot in range(loc.shape[1]):
        counts: Counter[int] = Counter()
        leader = MISSING
        for row in range(len(loc)):
            if first[row] == row:
                counts, leader = Counter(), MISSING
            out[row, slot] = leader
            place = int(loc[row, slot])
            if place != MISSING and counted[row, slot]:
                counts[place] += 1
                if counts[place] > counts[leader]:
                    leader = place
    return out


def random_days(seed: int, *, users: int = 6, n_slots: int = 5) -> Days:
    rng = np.random.default_rng(seed)
    letters = np.array(list("ABC."))
    return days_of(
        {
            f"u{i}": [" ".join(rng.choice(letters, n_slots)) for _ in range(int(rng.integers(1, 12)))]
            for i in range(users)
        }
    )


def test_history_is_the_most_frequent_location_of_strictly_earlier_days() -> None:
    days = days_of({"a": ["A B .", "A C .", "B C .", "B C A"], "b": ["B B B", ". . ."]})
    assert texts(history_rows(days.loc, days.first_of_user)) == [
        ". . .",
        "A B .",
        "A B .",  # B and C were seen once each at slot 1: B was first
        "A C .",
        ". . .",
        "B B B",
    ]


def test_on_a_tie_the_location_that_reached_the_count_first_stays() -> None:
    rows = history_rows(loc("A", "B", "B", "A", "A", "."), np.zeros(6, dtype=np.int64))
    assert texts(rows) == [".", "A", "A", "B", "B", "A"]


@pytest.mark.parametrize("rows_at_once", [1, 7, 20_000])
def test_history_rows_equal_a_slow_loop(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_ROWS_AT_ONCE", rows_at_once)
    for seed in range(40):
        days = random_days(seed)
        counted = np.random.default_rng(seed + 100).random(days.loc.shape) < 0.7
        for some in (counted, np.ones_like(counted)):
            fast = history_rows(days.loc, days.first_of_user, counted=some)
            assert np.array_equal(fast, slow_history(days.loc, days.first_of_user, some))


def test_history_of_no_days_is_empty() -> None:
    none = np.zeros((0, 48), dtype=np.int32)
    assert history_rows(none, np.zeros(0, dtype=np.int64)).shape == (0, 48)


def test_later_days_never_change_earlier_history_rows() -> None:
    for seed in range(20):
        days = random_days(seed, users=1)
        whole = history_rows(days.loc, days.first_of_user)
        for n in range(1, len(days)):
            part = days.rows(np.arange(n))
            assert np.array_equal(history_rows(part.loc, part.first_of_user), whole[:n])
            changed = days.loc.copy()
            changed[n:] = 2
            assert np.array_equal(history_rows(changed, days.first_of_user)[: n + 1], whole[: n + 1])


def test_strict_history_counts_training_in_full_and_of_other_days_what_the_same_draw_leaves_visible() -> None:
    for seed in range(10):
        days = random_days(seed, n_slots=48)
        split = np.random.default_rng(seed).choice(["train", "valid", "test"], len(days)).astype(object)
        days = Days(days.user, days.date, days.loc, split)
        targets = draw_targets(days, Preparation(hide=8, draws=3, seed=seed))
        strict = strict_history(days, targets)
        for draw in range(3):
            visible = np.ones(days.loc.shape, dtype=np.bool_)
            for row in np.flatnonzero(targets.draw == draw):
                at = (days.user == targets.user[row]) & (days.date == targets.date[row]) & (split != "train")
                visible[np.ix_(at, targets.slots_of(int(row)))] = False
            slow = slow_history(days.loc, days.first_of_user, visible)
            mine = targets.draw == draw
            assert np.array_equal(strict[mine], slow)  # every day is a target row here, in the order of the days
        assert not np.array_equal(strict[targets.draw == 0], strict[targets.draw == 1])


def test_strict_history_of_training_days_alone_is_the_stored_one() -> None:
    days = random_days(4, n_slots=48)
    targets = draw_targets(days, Preparation(draws=2))
    assert np.array_equal(strict_history(days, targets), targets.history)


def test_targets_carry_the_history_of_whole_earlier_days() -> None:
    days = random_days(3, n_slots=48)
    targets = draw_targets(days, Preparation(draws=2))
    rows = history_rows(days.loc, days.first_of_user)
    assert np.array_equal(targets.history, rows[targets.rows_in(days)])
