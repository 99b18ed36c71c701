"""What is visible on both sides of a target, on days written out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnmove.models.evidence.asked import Asked
from attnmove.nouns import MISSING
from builders import asked, people


def test_the_sides_are_the_nearest_visible_slots() -> None:
    cases = people(0)
    found, (before, after) = Asked.of(cases), cases.around()
    for at, (row, slot) in enumerate(cases.index.tolist()):
        prev, following = int(before[row, slot]), int(after[row, slot])
        there = cases.visible[row, prev] if prev >= 0 else MISSING
        assert (found.prev[at], found.gap_prev[at]) == (there, slot - prev if prev >= 0 else 0)
        there = cases.visible[row, following] if following < cases.n_slots else MISSING
        assert (found.next[at], found.gap_next[at]) == (there, following - slot if following < cases.n_slots else 0)


def test_the_other_place_is_the_nearest_that_is_not_the_side() -> None:
    found = Asked.of(asked({"a": ["A B B c D D E", ". . a . . B C", "B A a . . . .", "a b . . c . ."]}))
    before, after = found.before, found.after
    assert (found.row.tolist(), found.slot.tolist()) == ([0, 1, 2, 3, 3, 3], [3, 2, 2, 0, 1, 4])
    assert before.near.tolist() == [1, MISSING, 0, MISSING, MISSING, MISSING]
    assert before.next.tolist() == [1, MISSING, 1, MISSING, MISSING, MISSING]
    assert before.other.tolist() == [0, MISSING, 1, MISSING, MISSING, MISSING]
    assert before.gap.tolist() == [1, 0, 1, 0, 0, 0]
    assert after.near.tolist() == [3, 1, MISSING, MISSING, MISSING, MISSING]
    assert after.next.tolist() == [3, 2, MISSING, MISSING, MISSING, MISSING]
    assert after.other.tolist() == [4, 2, MISSING, MISSING, MISSING, MISSING]
    assert (after.gap.tolist(), after.step.tolist()) == ([1, 3, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1])


def test_a_row_alone_ends_where_it_ends() -> None:
    alone = asked({"a": ["a B C d"]})
    before, after = Asked.of(alone).before, Asked.of(alone).after
    assert (before.near.tolist(), before.other.tolist()) == ([MISSING, 2], [MISSING, 1])
    assert (after.near.tolist(), after.other.tolist()) == ([1, MISSING], [2, MISSING])
    unseen = replace(alone, hidden=np.ones_like(alone.hidden))
    assert all(side.near.tolist() == [MISSING] * 4 for side in (Asked.of(unseen).before, Asked.of(unseen).after))


def test_the_night_before_is_looked_at_where_today_shows_nothing_before() -> None:
    cases = asked({"a": ["A . . B C .", "a a . D . a", ". . . . . .", "a . . . . B"], "b": ["a B . . . ."]})
    today, night = Asked.of(cases), Asked.of(cases, night=True)
    assert (night.row.tolist(), night.slot.tolist()) == ([1, 1, 1, 3, 4], [0, 1, 5, 0, 0])
    # A night is two of six slots: B is before it, and the second target three slots after C. Day 2 shows nothing, b has
    # no day before.
    assert night.before.near.tolist() == [2, MISSING, 3, MISSING, MISSING]
    assert night.before.gap.tolist() == [2, 0, 2, 0, 0]
    assert night.before.next.tolist() == [MISSING, MISSING, 2, MISSING, MISSING]
    assert night.before.step.tolist() == [1, 1, 5, 1, 1]
    assert night.before.other.tolist() == [MISSING, MISSING, 2, MISSING, MISSING]
    assert night.prev_today.tolist() == today.prev.tolist() == [MISSING, MISSING, 3, MISSING, MISSING]
    assert np.array_equal(night.after.near, today.after.near)
    assert np.array_equal(night.after.gap, today.after.gap)


def test_a_night_ends_with_the_day_before() -> None:
    """A day between, or a day that may not be looked back upon, and there is no night before."""
    cases = asked({"a": ["A . . B C C", "a . . . . ."]})
    assert Asked.of(cases, night=True).prev.tolist() == [2]
    later = replace(cases, date=cases.date + np.array([0, 1]))
    assert Asked.of(later, night=True).prev.tolist() == [MISSING]
    assert Asked.of(replace(cases, first=cases.end), night=True).prev.tolist() == [MISSING]
