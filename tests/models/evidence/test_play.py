"""The places in play and the last days, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnmove.models.evidence import play as module
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.gather import gather
from attnmove.models.evidence.play import LastDays, Play
from attnmove.models.habits import spread
from attnmove.nouns import MISSING, Cases
from builders import asked, texts

WEEK = ["A A . .", "B . . .", ". . . C", ". . . .", "D D D D", "A b . E"]


def last_row(cases: Cases) -> Cases:
    return cases.rows(np.array([len(cases) - 1]))


def places(play: Play, row: int = 0) -> str:
    return "".join(chr(ord("A") + place) for place in play.place[play.start[row] : play.start[row + 1]].tolist())


def test_the_last_days_come_the_most_recent_first() -> None:
    last = LastDays.of(last_row(asked({"a": WEEK})))
    assert texts(last.loc[0]) == ["D D D D", ". . . .", ". . . C", "B . . .", "A A . ."]
    assert last.age.tolist() == [[1, 2, 3, 4, 5]]
    assert last.there.all()
    assert [str(date) for date in last.date[0]] == [f"2024-03-0{day}" for day in (8, 7, 6, 5, 4)]


def test_days_of_the_week_are_those_of_the_calendar() -> None:
    last = LastDays.of(last_row(asked({"a": ["A A"] * 15})))  # from Monday 4 to Monday 18 March 2024
    assert np.flatnonzero(last.same_weekday[0]).tolist() == [6, 13]
    assert np.flatnonzero(~last.same_kind[0]).tolist() == [0, 1, 7, 8]  # Sunday 17, Saturday 16, and the week before
    sunday = LastDays.of(asked({"a": ["A A"] * 14}).rows(np.array([13])))
    assert np.flatnonzero(sunday.same_weekday[0]).tolist() == [6]
    assert np.flatnonzero(sunday.same_kind[0]).tolist() == [0, 6, 7]


def test_a_row_with_fewer_days_than_another_has_none_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = asked({"a": WEEK, "b": ["A A A A", "B b B B"]})
    last = LastDays.of(cases)
    assert last.there.sum(axis=1).tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
    assert (last.loc[~last.there] == MISSING).all()
    assert (last.age[~last.there] > 1000).all()
    assert not (last.same_weekday | last.same_kind)[~last.there].any()
    monkeypatch.setattr(module, "LAST_DAYS", 2)
    assert LastDays.of(cases).there.sum(axis=1).tolist() == [0, 1, 2, 2, 2, 2, 0, 1]
    assert texts(LastDays.of(cases).loc[5]) == ["D D D D", ". . . ."]


def test_in_play_is_what_is_visible_today_and_what_was_on_the_last_days() -> None:
    cases = asked({"a": WEEK, "b": ["H h H H"]})
    play = Play.of(cases)
    assert [places(play, row) for row in range(len(cases))] == ["A", "AB", "ABC", "ABC", "ABCD", "ABCDE", "H"]
    assert play.row.tolist() == np.repeat(np.arange(7), np.diff(play.start)).tolist()
    now = play.today[5]
    assert [places(play, 5)[entry - play.start[5]] if entry != MISSING else "." for entry in now] == [
        "A",
        ".",
        ".",
        "E",
    ]
    for row, day, slot in np.argwhere(play.last.loc != MISSING).tolist():
        assert play.place[play.then[row, day, slot]] == play.last.loc[row, day, slot]
    assert (play.then[play.last.loc == MISSING] == MISSING).all()


@pytest.mark.parametrize(("most", "kept"), [(5, "ABCDE"), (4, "ACDE"), (3, "ADE"), (2, "AE")])
def test_beyond_the_most_places_those_of_today_and_often_and_lately_visited_stay(
    most: int, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_PLACES", most)
    play = Play.of(asked({"a": WEEK, "b": ["H h H H"]}))
    assert places(play, 5) == kept
    assert places(play, 6) == "H"  # a short list beside a long one stays whole
    out = np.array([place not in kept for place in "ABCDE"])
    gone = (play.last.loc[5] != MISSING) & out[play.last.loc[5]]
    assert (play.then[5][gone] == MISSING).all()
    assert (play.then[5][~gone & (play.last.loc[5] != MISSING)] != MISSING).all()


def test_of_places_visited_alike_the_first_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PLACES", 2)
    assert places(Play.of(last_row(asked({"a": ["D C B A", ". . . ."]})))) == "AB"


def test_all_places_of_today_are_in_play_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PLACES", 2)
    cases = asked({"a": ["A E F D", "A B c D"]})
    assert places(Play.of(last_row(cases))) == "ABD"
    evidence = gather(cases, Crowd.of(cases), Atlas.of(cases.locations))
    assert len(evidence) == 1
    assert not np.isinf(evidence.values).any()


def test_all_visible_and_last_places_are_candidates() -> None:
    cases = asked({"a": WEEK, "b": ["H h H H", "G . g ."]}, centres=False)
    nobody = Crowd.of(cases.rows(np.zeros(0, dtype=np.int64)))
    evidence = gather(cases, nobody, Atlas.of(cases.locations))
    found = [evidence.place[evidence.start[m] : evidence.start[m + 1]].tolist() for m in range(len(evidence))]
    assert found == [[0, 1, 2, 3, 4], [7], [6, 7]]


def test_fixes_are_every_sighting_once_and_found_around_a_slot() -> None:
    cases = asked({"a": WEEK, "b": ["H h H H", "H h . ."]})
    play = Play.of(cases)
    fixes = play.fixes
    wanted = {tuple(at) for at in np.argwhere(play.last.loc != MISSING).tolist()}
    assert {*zip(fixes.row.tolist(), fixes.day.tolist(), fixes.slot.tolist(), strict=True)} == wanted
    assert len(fixes.row) == len(wanted)
    row, slot = np.array([5, 7, 0]), np.array([0, 3, 1])
    which, fix = spread(*fixes.between(row, slot, 1, 4))
    found = {(int(w), int(fixes.day[f]), int(fixes.slot[f])) for w, f in zip(which, fix, strict=True)}
    assert (fixes.row[fix] == row[which]).all()
    assert found == {(0, 0, 0), (0, 0, 1), (0, 3, 0), (0, 4, 0), (0, 4, 1), (1, 0, 2), (1, 0, 3)}


def test_days_resemble_each_other_by_the_slots_visible_on_both() -> None:
    play = Play.of(last_row(asked({"a": ["A B C D", ". . . .", "A B . D", "C . d D", "A b C D"]})))
    same, other = play.agreement
    # Today is A . C D: slots in common with C . D D, A B . D, nothing, A B C D.
    assert (same.sum(axis=-1).tolist(), other.sum(axis=-1).tolist()) == ([[1, 2, 0, 3]], [[2, 0, 0, 0]])
    assert play.resemblance.tolist()[0] == pytest.approx([1.5 / 5, 2.5 / 4, 0.25, 3.5 / 5])


def test_nothing_in_play_is_nothing() -> None:
    cases = asked({"a": ["a a a a"], "b": [". . . ."]})
    play = Play.of(cases)
    assert play.start.tolist() == [0, 0, 0]
    assert len(play.place) == len(play.fixes.row) == len(play.seen_today) == 0
    assert play.resemblance.tolist() == [[0.25], [0.25]]
    empty = Play.of(cases.rows(np.zeros(0, dtype=np.int64)))
    assert empty.start.tolist() == [0]
    assert (
        len(
            LastDays.of(
                replace(
                    cases,
                    past=cases.past[:0],
                    past_date=cases.past_date[:0],
                    end=cases.first * 0,
                    first=cases.first * 0,
                )
            ).loc
        )
        == 2
    )
