"""Usefulness downstream, worked by hand: the same slots as they are, as they were seen, and as they were recovered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import pytest

from attnmove.errors import DataError
from attnmove.measure.downstream import MEASURES, TOP, evaluate_downstream, views_of
from attnmove.measure.presence import Presence, expected, flows, moves, n_places, presence_in
from attnmove.models.contract import Scores
from attnmove.models.evidential import Answers
from attnmove.models.registry import make_model
from attnmove.nouns import EARTH_RADIUS_M, MISSING, Cases, Float64
from builders import asked, loc
from measure.answers import Fixed

HALF = [0.5, 0.5]


def measured(model: Any, cases: Cases, **how: Any) -> dict[str, dict[str, Any]]:
    rows = evaluate_downstream(model, cases, **how)
    assert tuple(row["measure"] for row in rows) == MEASURES
    return {row["measure"]: row for row in rows}


def errors(row: dict[str, Any]) -> list[float | None]:
    return [row[name] for name in ("sparse", "sparse_scaled", "most_likely", "expected")]


def presence(*entries: tuple[int, int, int, float]) -> Presence:
    row, slot, place, share = (np.array(column) for column in zip(*entries, strict=True))
    return Presence(row, slot, place, share.astype(float))


def test_a_crowd_is_slots_at_a_place_in_an_hour() -> None:
    # Slots of six hours. Of four slots one is missed; the expected one is a quarter at A instead of B.
    found = measured(Fixed([[0.25, 0.75]]), asked({"ann": ["A b B A"]}, n_locations=2))
    assert found["crowd"]["n"] == 4
    assert errors(found["crowd"]) == pytest.approx([1 / 4, 1 / 4, 0, 2 * 0.25 / 4])
    assert errors(found["crowd_rms"]) == pytest.approx([1 / 2, 1 / 2, 0, 0.25 * sqrt(2) / 2])
    assert found["crowd"]["most_likely_reduction"] == 1
    assert found["crowd"]["expected_reduction"] == pytest.approx(0.5)


def test_scaled_sparse_days_have_as_many_slots_in_each_hour_as_there_are() -> None:
    # One slot a day; of two people at A and B one is seen, at A, and counts twice.
    found = measured(Fixed([HALF]), asked({"ann": ["A"], "bob": ["b"]}, n_locations=2))
    assert errors(found["crowd"])[:2] == [1 / 2, 2 / 2]
    # Less error is counted from the better of both.
    assert found["crowd"]["expected_reduction"] == pytest.approx(1 - (0.5 + 0.5) / 2 / 0.5)


def test_dates_are_apart_in_one_measure_and_together_in_the_other() -> None:
    # Answered B and A on two dates where it was A and B: wrong on each, right on both together.
    found = measured(Fixed([[0.1, 0.9], [0.9, 0.1]]), asked({"ann": ["a", "b"]}, n_locations=2))
    assert found["crowd"]["most_likely"] == 0
    assert found["crowd_by_date"]["most_likely"] == 2


def test_draws_of_a_day_are_not_people_beside_each_other() -> None:
    cases = asked({"ann": ["A b B C"]}, n_locations=3).rows(np.array([0, 0]))
    # The two draws are wrong in opposite ways; taken together that would look right.
    found = measured(Fixed([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]]), cases)
    assert found["crowd"]["n"] == 8
    assert found["crowd"]["most_likely"] == 2 / 8
    assert found["radius_m"]["n"] == 2


def test_the_radius_is_the_spread_of_the_slots_of_a_day_in_metres() -> None:
    cases = asked({"ann": ["A b"]}, n_locations=2)
    d = float(cases.locations.distance_m(*loc("A B").T)[0])
    found = measured(Fixed([[0.25, 0.75]]), cases)["radius_m"]
    # In truth half a way from the middle; a day with one place seen has none; 1.25 slots at A and 0.75 at B.
    assert errors(found) == [pytest.approx(d / 2), None, 0, pytest.approx(d / 2 - d * sqrt(0.625 * 0.375))]
    assert found["expected_reduction"] == pytest.approx(1 - (1 - 2 * sqrt(0.625 * 0.375)))


def test_the_median_does_not_follow_one_far_day() -> None:
    cases = asked({"ann": ["A a", "A a", "A h"]})
    home = [0.93] + [0.01] * 7
    found = measured(Fixed([home] * 3), cases)
    assert found["radius_median_m"]["most_likely"] == 0
    assert found["radius_m"]["most_likely"] > 1_000


def test_expected_places_are_the_probabilities_of_at_least_one_visit() -> None:
    # At B with 1/2 twice: 3/4 to have been there at all.
    found = measured(Fixed([HALF, HALF]), asked({"ann": ["A b b"]}, n_locations=2))["places"]
    assert errors(found) == [1, None, 1, pytest.approx(0.25)]
    assert (found["most_likely_reduction"], found["expected_reduction"]) == (0, pytest.approx(0.75))


def test_sparse_days_see_a_way_over_a_hidden_place_as_direct() -> None:
    found = measured(Fixed([[0.1, 0.8, 0.1]]), asked({"ann": ["A b C"]}, n_locations=3))
    # Seen: A to C. True: A to B, B to C. Scaled: one pair of slots seen of two, so A to C twice.
    assert found["flows"]["n"] == 2
    assert errors(found["flows"])[:3] == [3 / 2, 4 / 2, 0]
    assert errors(found["flows_apart"])[:3] == [1, 1, 0]
    assert errors(found["flows_rms"])[:3] == pytest.approx([sqrt(3 / 2), sqrt(6 / 2), 0])


def test_days_nobody_saw_whole_have_no_moves_in_what_was_never_known() -> None:
    assert moves(presence_in(loc("A . B", ". . C"))).n_pairs == 1


def test_uncertain_slots_move_as_little_as_their_probabilities_allow() -> None:
    # From A .7, B .3 to A .2, B .3, C .5: .2 stays at A, .3 at B, and the .5 left of A go to C.
    found = moves(presence((0, 0, 0, 0.7), (0, 0, 1, 0.3), (0, 1, 0, 0.2), (0, 1, 1, 0.3), (0, 1, 2, 0.5)))
    assert list(zip(found.origin.tolist(), found.destination.tolist(), strict=True)) == [(0, 2)]
    assert found.share.tolist() == pytest.approx([0.5])
    # What is left of several goes to what is left of several in proportion, and all of it goes.
    found = moves(presence((0, 0, 0, 0.6), (0, 0, 1, 0.4), (0, 1, 2, 0.25), (0, 1, 3, 0.75)))
    assert found.share.tolist() == pytest.approx([0.15, 0.45, 0.1, 0.3])


def test_days_without_targets_are_right_and_nothing_can_be_gained() -> None:
    found = measured(Fixed([], chunks=[]), asked({"ann": ["A B . A"], "bob": [". . . ."]}), intervals=True)
    for row in found.values():
        assert {error for error in errors(row) if error is not None} == {0}
        assert row["most_likely_reduction"] is None
    assert (found["radius_m"]["n"], found["crowd"]["n"], found["flows"]["n"]) == (1, 3, 2)


def test_without_any_day_nothing_is_defined() -> None:
    cases = asked({"ann": ["A b"]}).rows(np.array([], dtype=np.int64))
    for row in evaluate_downstream(Fixed([], chunks=[]), cases, intervals=True):
        assert row["n"] == 0
        assert errors(row) == [None] * 4


def test_opaque_ids_have_no_radius_but_all_else() -> None:
    cases = asked({"ann": ["A b"], "bob": ["A B"]}, n_locations=2, centres=False)
    found = measured(Fixed([HALF]), cases, intervals=True)
    for name, row in found.items():
        assert (row["most_likely"] is None) == name.startswith("radius")
    assert found["radius_m"]["expected_low"] is found["radius_m"]["expected_reduction_high"] is None


def test_targets_of_unknown_truth_are_not_looked_at() -> None:
    cases = asked({"ann": ["A b . A"]}, n_locations=2)
    more = replace(cases, hidden=cases.hidden | (cases.loc == MISSING))
    one, other = evaluate_downstream(Fixed([HALF]), cases), evaluate_downstream(Fixed([HALF, HALF]), more)
    assert one == other


class Curious(Fixed):
    """Keeps what it was shown."""

    def scores(self, cases: Cases) -> Iterator[Scores]:
        self.shown = cases
        return super().scores(cases)


def test_recovered_days_do_not_know_the_truth() -> None:
    cases = asked({"ann": ["A b B c"]}, n_locations=3)
    other = replace(cases, loc=loc("A A B B"))
    model = Curious([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    one, two = views_of(model, cases), views_of(model, other)
    for name in ("sparse", "most_likely", "expected"):
        for part in ("row", "slot", "place", "share"):
            assert getattr(one[name], part).tolist() == getattr(two[name], part).tolist()
    assert (model.shown.loc[model.shown.hidden] == MISSING).all()


def test_a_slot_without_a_candidate_stays_unknown() -> None:
    seen, wanted = presence_in(loc("A . B")), np.array([[False, True, False]])
    nothing = Answers(np.array([[0, 1]]), np.full((1, 2), MISSING, dtype=np.int32), np.zeros((1, 2), dtype=np.float32))
    assert expected(seen, [nothing], wanted).slot.tolist() == [0, 2]
    with pytest.raises(DataError, match="1 targets have none"):
        expected(seen, [], wanted)


def test_an_expected_slot_is_spread_over_the_first_places_and_whole() -> None:
    n = TOP + 3
    prob = np.linspace(2, 1, n) / np.linspace(2, 1, n).sum()
    spread = views_of(Fixed([prob.tolist()]), asked({"ann": ["A b"]}, n_locations=n))["expected"]
    hidden = spread.slot == 1
    assert hidden.sum() == TOP
    assert spread.share[hidden].sum() == pytest.approx(1)


def test_intervals_are_over_users_and_only_where_days_are_averaged() -> None:
    cases = asked({"ann": ["A b A"] * 3, "bob": ["A b A"] * 3, "cy": ["A c A"]}, n_locations=3)
    found = measured(make_model("vote").fit(cases), cases, intervals=True)
    for name, row in found.items():
        assert ("expected_low" in row) == (name in ("radius_m", "places"))
    row = found["places"]
    assert row["expected_low"] <= row["expected"] <= row["expected_high"]
    low, high = row["expected_reduction_low"], row["expected_reduction_high"]
    assert low <= row["expected_reduction"] <= high


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_a_slow_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    days = rng.integers(-2, 4, size=(6, 12)).clip(MISSING).astype(np.int32)
    seen = presence_in(days)
    steps: dict[tuple[int, int], int] = {}
    for day in days.tolist():
        known = [place for place in day if place != MISSING]
        for pair in pairwise(known):
            if pair[0] != pair[1]:
                steps[pair] = steps.get(pair, 0) + 1
    counts = flows(moves(seen), np.zeros(6, dtype=np.int64), 4)
    assert counts.by_key.tolist() == [steps[pair] for pair in sorted(steps)]
    distinct = [len(set(day) - {MISSING}) for day in days.tolist()]
    assert n_places(seen, 6, 4).tolist() == distinct


@pytest.mark.parametrize("seed", range(5))
def test_expected_days_are_those_of_a_slow_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_locations, marks = TOP + 2, "ABCDEFGABCDEFGabcdefg..."
    cases = asked(
        {user: [" ".join(rng.choice(list(marks), 24)) for _ in range(4)] for user in ("ann", "bob")},
        n_locations=n_locations,
    )
    prob = rng.dirichlet(np.ones(n_locations), size=len(cases.index))
    found = measured(Fixed(prob.tolist()), cases)
    at = np.zeros((*cases.loc.shape, n_locations))  # the probability of each place in each slot
    for row, slot in np.argwhere(cases.visible != MISSING).tolist():
        at[row, slot, cases.loc[row, slot]] = 1
    for (row, slot), p in zip(cases.index.tolist(), prob, strict=True):
        kept = np.where(np.argsort(np.argsort(-p)) < TOP, p, 0)
        at[row, slot] = kept / kept.sum()
    true = np.zeros_like(at)
    for row, slot in np.argwhere(cases.loc != MISSING).tolist():
        true[row, slot, cases.loc[row, slot]] = 1
    off = np.abs(at.sum(axis=0) - true.sum(axis=0))
    assert found["crowd"]["expected"] == pytest.approx(off.sum() / true.sum(), rel=1e-5)
    whole = sqrt((true.sum(axis=0) ** 2).sum())
    assert found["crowd_rms"]["expected"] == pytest.approx(sqrt((off**2).sum()) / whole, rel=1e-5)
    places = [
        abs((1 - np.prod(1 - day, axis=0)).sum() - (truth.max(axis=0)).sum())
        for day, truth in zip(at, true, strict=True)
    ]
    assert found["places"]["expected"] == pytest.approx(np.mean(places), rel=1e-5)
    position = cases.locations.on_sphere * EARTH_RADIUS_M
    radii = [
        abs(_radius(day.sum(axis=0), position) - _radius(truth.sum(axis=0), position))
        for day, truth in zip(at, true, strict=True)
    ]
    assert found["radius_m"]["expected"] == pytest.approx(np.mean(radii), rel=1e-4)


def _radius(weight: Float64, position: Float64) -> float:
    centre = sum(w * x for w, x in zip(weight, position, strict=True)) / weight.sum()
    squared = sum(w * ((x - centre) ** 2).sum() for w, x in zip(weight, position, strict=True))
    return sqrt(squared / weight.sum())
