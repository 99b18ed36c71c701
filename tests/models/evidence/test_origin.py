"""Where answers come from, on days made by hand, asked of trees that were grown in a small town."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from attnmove.models.boost import Boost, BoostConfig
from attnmove.models.evidence import gather as gather_module
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.features import ABSENT, FAMILIES, FEATURES, NAMES, columns_of
from attnmove.models.evidence.gather import Evidence, gather
from attnmove.models.evidence.origin import Origins, origins_of
from attnmove.models.evidential import Answers, Evidential, LessonConfig
from attnmove.nouns import MISSING, Cases, Days, Float64
from builders import asked, cases_from, some_locations

N_SLOTS, N_PLACES, MARKET = 48, 20, 19
DAY, PAST, OTHERS, SPACE = range(4)


def town(seed: int, *, users: int = 10, days: int = 29) -> Cases:
    """People at home by night, by day where they are on this weekday or, one day in five, anywhere; all of them at the
    market from six to eight in the evening. Half of what is seen of a day is asked for, on one day in five all."""
    rng = np.random.default_rng(seed)
    number = np.tile(np.arange(days), users)
    user = np.repeat(np.arange(users), days)
    n = len(user)
    home, weekly = rng.integers(0, MARKET, users), rng.integers(0, MARKET, (users, 7))
    out = np.where(rng.random(n) < 0.2, rng.integers(0, MARKET, n), weekly[user, number % 7])
    slot = np.arange(N_SLOTS)
    loc = np.where((slot >= 14) & (slot < 36), out[:, None], home[user][:, None])
    loc = np.where((slot >= 36) & (slot < 40), MARKET, loc).astype(np.int32)
    loc[rng.random(loc.shape) < 0.4] = MISSING
    hidden = (rng.random(loc.shape) < 0.5) | (rng.random((n, 1)) < 0.2)
    names = np.array([f"u{i:02}" for i in user], dtype=object)
    table = Days(names, np.datetime64("2024-03-04") + number, loc, np.full(n, "train", dtype=object))
    return cases_from(table, hidden & (loc != MISSING), some_locations(N_PLACES))


@cache
def model() -> Evidential:
    """Of many rankers, so that what one version of LightGBM draws does not decide."""
    scorer = Boost(BoostConfig(rankers=8, rounds=30, leaves=15, min_leaf=20, lr=0.1), seed=0)
    return Evidential(scorer, LessonConfig(draws=0, practice=0), seed=0).fit(town(0))


def last_day(days: list[list[str]]) -> Cases:
    cases = asked({"somebody new": [" ".join(marks) for marks in days]}, n_locations=N_PLACES)
    return cases.rows(np.array([len(days) - 1]))


def answer(cases: Cases) -> Answers:
    (found,) = model().answers(cases, origins=True)
    assert np.array_equal(found.index, cases.index)
    return found


def origin(found: Answers) -> Origins:
    assert found.origin is not None
    return found.origin


def mondays(today: list[str]) -> Cases:
    """Four weeks at home by night, by day at B on Mondays and elsewhere on other days, and a Monday."""
    week = [["D"] * 14 + [place] * 22 + ["D"] * 12 for place in "BCEFCGD"]
    return last_day([*week * 4, today])


@pytest.mark.parametrize("seen", [{}, {46: "D"}, {45: "D", 47: "D"}])
def test_what_is_done_on_mondays_at_nine_comes_from_a_monday_at_nine(seen: dict[int, str]) -> None:
    found = answer(mondays([seen.get(slot, "b" if slot == 18 else ".") for slot in range(N_SLOTS)]))
    assert found.place[0, 0] == 1
    assert origin(found).leading == ["past"]
    assert origin(found).share[0].argmax() == PAST
    assert origin(found).slot.tolist() == [18]
    date = origin(found).date[0]
    assert date.item().weekday() == 0
    assert date < np.datetime64("2024-04-01")


def test_a_place_seen_just_before_and_after_comes_from_today() -> None:
    today = ["."] * 20 + ["A", "a", "A"] + ["."] * 25
    for cases in (last_day([today]), last_day([["C"] * N_SLOTS] * 9 + [today])):
        found = answer(cases)
        assert found.place[0, 0] == 0
        assert origin(found).share[0].argmax() == DAY
        assert origin(found).date.tolist() == cases.date.tolist()
        assert origin(found).slot.tolist() == [20]  # of two as near the earlier


def test_the_nearest_of_todays_sightings_is_the_one_reported() -> None:
    found = answer(last_day([["A"] * 10 + ["."] * 5 + ["a", "."] + ["A"] * 31]))
    assert (found.place[0, 0], origin(found).slot.tolist()) == (0, [17])


def test_where_only_others_go_has_no_sighting() -> None:
    found = answer(last_day([["."] * 36 + ["t"] * 4 + ["."] * 8]))
    assert found.place[:, 0].tolist() == [MARKET] * 4
    assert origin(found).share[:, [DAY, PAST]].tolist() == [[0, 0]] * 4
    assert origin(found).leading == ["others"] * 4
    assert np.isnat(origin(found).date).all()
    assert origin(found).slot.tolist() == [MISSING] * 4


def test_shares_sum_to_one_or_to_nothing() -> None:
    cases = town(1, users=3)
    for found in model().answers(cases, origins=True):
        share = origin(found).share
        assert (share >= 0).all()
        total = share.sum(axis=1)
        assert np.all(np.isclose(total, 1, atol=1e-5) | (total == 0))
        assert (total > 0).mean() > 0.9
        assert [kind is None for kind in origin(found).leading] == (total == 0).tolist()


def test_a_reported_sighting_is_one_of_the_answered_place() -> None:
    cases = town(2, users=3)
    for found in model().answers(cases, origins=True):
        kept = zip(found.index.tolist(), found.place[:, 0], origin(found).date, origin(found).slot, strict=True)
        for (row, _), place, date, slot in kept:
            if np.isnat(date):
                assert slot == MISSING
                assert place not in cases.visible[row]
                assert place not in cases.past[cases.first[row] : cases.end[row]]
            elif date == cases.date[row]:
                assert cases.visible[row, slot] == place
            else:
                earlier = np.flatnonzero(cases.past_date[cases.first[row] : cases.end[row]] == date)
                assert cases.past[cases.first[row] + earlier, slot].tolist() == [place]


def test_origins_do_not_depend_on_what_is_hidden_or_on_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = town(3, users=2, days=10)
    monkeypatch.setattr(gather_module, "_TARGETS_AT_ONCE", cases.hidden.size)  # all in one part
    (whole,) = model().answers(cases, origins=True)
    (blind,) = model().answers(replace(cases, loc=cases.visible), origins=True)
    for name in ("share", "date", "slot"):
        one, other = getattr(origin(whole), name), getattr(origin(blind), name)
        assert np.array_equal(one, other, equal_nan=name == "date"), name
    for row in (4, 13):
        (alone,) = model().answers(cases.rows(np.array([row])), origins=True)
        mine = whole.index[:, 0] == row
        assert np.array_equal(origin(alone).share, origin(whole).share[mine])
        assert np.array_equal(origin(alone).date, origin(whole).date[mine], equal_nan=True)
        assert np.array_equal(origin(alone).slot, origin(whole).slot[mine])


def test_shares_are_what_the_score_loses_without_a_family() -> None:
    cases = asked({"a": ["A A A B", "A a B B"], "b": ["A C A B"]})
    evidence = gather(cases, Crowd.of(cases), Atlas.of(cases.locations))

    def score(some: Evidence, _: Cases) -> Float64:
        """Three for evidence of today, one for the user's past, minus five for that of others."""
        spoken = {
            family: (np.nan_to_num(some.values) != np.nan_to_num(ABSENT))[:, columns_of(family)].any(axis=1)
            for family in FAMILIES
        }
        return 3.0 * spoken["day"] + spoken["past"] - 5.0 * spoken["others"]

    chosen = evidence.position_of(np.array([0], dtype=np.int32), 8)
    found = origins_of(evidence, chosen, cases, score)
    assert found.share.tolist() == [[0.75, 0.25, 0, 0]]
    nothing = origins_of(evidence, chosen, cases, lambda some, _: np.zeros(len(some.place)))
    assert nothing.share.tolist() == [[0] * 4]
    assert nothing.leading == [None]


def test_a_scorer_is_asked_once_and_meets_every_candidate_in_its_own_day() -> None:
    cases = asked({"a": ["A A b B", "A a B B"], "b": ["A c A B"]})
    evidence = gather(cases, Crowd.of(cases), Atlas.of(cases.locations))
    chosen = evidence.position_of(cases.truth, 8)
    answered, asks = chosen[chosen != MISSING], []

    def score(some: Evidence, met: Cases) -> Float64:
        asks.append(len(some))
        row, slot = some.index.T
        assert np.array_equal(met.index[:, 1], np.tile(cases.index[:, 1], 5))
        assert met.hidden[row, slot].all()
        assert np.array_equal(met.loc[row, slot], some.place)  # each candidate chosen here is its target's truth
        assert np.array_equal(met.visible[row], np.tile(cases.visible, (5, 1))[row])
        return np.zeros(len(some.place))

    origins_of(evidence, chosen, cases, score)
    assert asks == [5 * len(answered)]
    assert len(answered) > 1


@pytest.mark.parametrize(
    ("days", "wanted"),
    [
        (["A . . .", *["A . . ."] * 6, "a . . ."], ("2024-03-04", 0)),  # a Monday counts double
        ([". . . .", *["A . . ."] * 6, "a . . ."], ("2024-03-10", 0)),  # else the last day
        ([". . . .", ". . A .", ". A . .", "a . . ."], ("2024-03-06", 1)),  # the nearer in time of day
        ([". . B A", ". . B .", ". . C A", "a . B ."], ("2024-03-04", 3)),  # the day that is more like today
    ],
)
def test_the_sighting_that_counts_most_is_reported(days: list[str], wanted: tuple[str, int]) -> None:
    cases = asked({"a": days}).rows(np.array([len(days) - 1]))
    evidence = gather(cases, Crowd.of(cases), Atlas.of(cases.locations))
    chosen = evidence.position_of(np.array([0], dtype=np.int32), 8)
    found = origins_of(evidence, chosen, cases, lambda some, _: np.zeros(len(some.place)))
    assert (str(found.date[0]), int(found.slot[0])) == wanted


def test_no_answer_has_no_origin() -> None:
    cases = asked({"a": ["A b B B", "A a . b"]})
    evidence = gather(cases, Crowd.of(cases), Atlas.of(cases.locations))
    found = origins_of(evidence, np.full(3, MISSING), cases, lambda some, _: np.ones(len(some.place)))
    assert found.share.tolist() == [[0] * 4] * 3
    assert np.isnat(found.date).all()
    assert found.slot.tolist() == [MISSING] * 3
    assert found.leading == [None] * 3


def test_the_families_hold_every_feature_but_those_of_the_question_once() -> None:
    columns = np.concatenate([columns_of(family) for family in (*FAMILIES, "target")])
    assert sorted(columns.tolist()) == list(range(len(NAMES)))
    assert len(FEATURES) == len(ABSENT)
