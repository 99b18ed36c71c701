"""What the day and the last days say for a place, against a slow loop written from the descriptions of the features."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp

import numpy as np
import pytest

from attnmove.models.evidence import play as play_module
from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.features import ABSENT, FAR, IN_PLAY, NAMES
from attnmove.models.evidence.gather import gather, tell
from attnmove.models.evidence.pairs import Pairs, Told
from attnmove.models.evidence.play import Play
from attnmove.nouns import MISSING, Cases
from builders import asked, evening, people

OF_THE_USER = list(IN_PLAY)
Values = dict[str, float]


@dataclass(frozen=True)
class Sighting:
    """On an earlier day: how many days ago, its date, the slot and the place."""

    age: int
    day: int
    slot: int
    place: int


def in_steps(weight: float) -> float:
    return round(weight * 4096) / 4096


def slowly(cases: Cases, row: int, slot: int) -> dict[int, Values]:
    """Every feature of the user's own evidence for each place in play of a target."""
    today = {s: place for s, place in enumerate(cases.visible[row].tolist()) if place != MISSING}
    end = int(cases.end[row])
    earlier = range(end - 1, max(int(cases.first[row]), end - play_module.LAST_DAYS) - 1, -1)
    date = cases.date[row].astype("datetime64[D]")
    ages = [int((date - cases.past_date[at]).astype(int)) for at in earlier]
    days = [cases.past[at].tolist() for at in earlier]
    seen = [Sighting(ages[d], d, s, p) for d, day in enumerate(days) for s, p in enumerate(day) if p != MISSING]
    in_play = places_in_play(today, seen)
    seen = [one for one in seen if one.place in in_play]
    values: dict[int, Values] = {place: {} for place in in_play}
    for place in in_play:
        values[place] |= of_today(today, slot, place)
        values[place] |= of_visits(seen, days, in_play, cases.n_slots, slot, place)
    weekday = int((date.astype(int) + 3) % 7)
    weights = {
        "all": lambda one: 1.0,
        "recent": lambda one: exp(-one.age / 7),
        "weekday": lambda one: exp(-one.age / 60) * (one.age % 7 == 0),
        "kind": lambda one: exp(-one.age / 30) * ((weekday >= 5) == ((weekday - one.age) % 7 >= 5)),
        "alike": lambda one: exp(float(6 * resemblance(today, days[one.day])) - one.age / 60),
    }
    for name, weight in weights.items():
        of_day = [in_steps(weight(one)) for one in seen]
        for width in (0.6, 2.0, 6.0):
            near = [in_steps(exp(-0.5 * (abs(one.slot - slot) / width) ** 2)) for one in seen]
            heavy = dict(zip(seen, np.multiply(of_day, near).tolist(), strict=True))
            put(values, f"past_{name}_{width}", heavy, 0.3)
            if (name, width) == ("all", 2.0):
                for place in in_play:
                    values[place]["past_count"] = sum(w for one, w in heavy.items() if one.place == place)
        put(values, f"past_{name}_day", dict(zip(seen, of_day, strict=True)), 1.0)
    for decay in (2.0, 8.0):
        near_ones = [one for one in seen if abs(one.slot - slot) <= 2]
        agrees = {one: agreement(today, days[one.day], slot, decay) for one in near_ones}
        put(values, f"local_{decay}", {one: w * exp(-0.5 * (one.slot - slot) ** 2) for one, w in agrees.items()}, 0.5)
    of_analogies(values, cases, row, today, [one for one in seen if abs(one.slot - slot) <= 8], days, slot)
    return values


def places_in_play(today: dict[int, int], seen: list[Sighting]) -> set[int]:
    weight: dict[int, float] = defaultdict(float)
    for one in seen:
        weight[one.place] += 1e-3 + exp(-one.age / 14)
    order = sorted({*today.values(), *weight}, key=lambda p: (p not in today.values(), -weight[p], p))
    return set(order[: play_module._MOST_PLACES])


def put(values: dict[int, Values], name: str, weight: dict[Sighting, float], calm: float) -> None:
    """The share of each place in the weights of sightings."""
    total = sum(weight.values())
    for place in values:
        values[place][name] = sum(w for one, w in weight.items() if one.place == place) / (total + calm)


def of_today(today: dict[int, int], slot: int, place: int) -> Values:
    here = [s for s, p in today.items() if p == place]
    fading = {
        decay: [sum(in_steps(exp(-abs(s - slot) / decay)) for s in slots) for slots in (here, today)]
        for decay in (1.5, 4.0, 12.0)
    }
    before, after = [slot - s for s in here if s < slot], [s - slot for s in here if s > slot]
    return {f"day_{decay}": mine / (everywhere + 0.05) for decay, (mine, everywhere) in fading.items()} | {
        "day_weight": fading[1.5][0],
        "day_share": len(here) / max(1, len(today)),
        "since_seen": min(before, default=FAR),
        "until_seen": min(after, default=FAR),
    }


def of_visits(
    seen: list[Sighting], days: list[list[int]], in_play: set[int], n_slots: int, slot: int, place: int
) -> Values:
    here = [one for one in seen if one.place == place]
    two_hours = n_slots / 12
    went_on = [later for day in days for now, later in pairwise(day) if now == place]
    went_on = [later for later in went_on if later in in_play]
    halved = {one: exp(-(one.age * n_slots - one.slot) / (6 * two_hours)) for one in seen}
    return {
        "days_since": min((one.age for one in here), default=999),
        "n_days": len({one.day for one in here}),
        "share_of_days": len({one.day for one in here}) / (len(days) + 1),
        "dwell": (went_on.count(place) + 1) / (len(went_on) + 2),
        "evening": sum(exp(-(one.age * n_slots - one.slot + slot) / two_hours) for one in here),
        "evening_share": sum(halved[one] for one in here) / (sum(halved.values()) + 1e-3),
    }


def resemblance(today: dict[int, int], day: list[int]) -> np.float32:
    both = [day[s] == place for s, place in today.items() if day[s] != MISSING]
    return np.float32((sum(both) + 0.5) / (len(both) + 2))


def agreement(today: dict[int, int], day: list[int], slot: int, decay: float) -> float:
    both = {s: day[s] == place for s, place in today.items() if day[s] != MISSING}
    return exp(sum((2 if same else -1) * in_steps(exp(-abs(s - slot) / decay)) for s, same in both.items()))


def of_analogies(
    values: dict[int, Values],
    cases: Cases,
    row: int,
    today: dict[int, int],
    seen: list[Sighting],
    days: list[list[int]],
    slot: int,
) -> None:
    atlas = Atlas.of(cases.locations)

    def alike(place: int, side: int) -> float:
        km = float(atlas.km(np.array([place]), np.array([side]))[0])
        return 1.0 if place == side else 0.0 if np.isnan(km) else 0.7 * exp(-km / 0.7)

    def likeness(one: Sighting, neighbour: int | None) -> float:
        """Of the place as long before or after the sighting as the neighbour is before or after the target."""
        if neighbour is None:
            return 0.0
        found, at = [0.0], one.slot + neighbour - slot
        for s, worth in ((at, 1.0), (at - 1, 0.8), (at + 1, 0.8)):
            if 0 <= s < cases.n_slots and days[one.day][s] in values:
                found.append(worth * alike(days[one.day][s], (eve | today)[neighbour]))
        return max(found)

    eve = evening(cases, row)
    before, after = max((s for s in today if s < slot), default=None), min((s for s in today if s > slot), default=None)
    if before is None and eve and slot - max(eve) <= cases.n_slots // 3:
        before = max(eve)
    sides = {one: (likeness(one, before), likeness(one, after)) for one in seen}
    recent = {one: exp(-one.age / 40) for one in seen}
    now = {one: exp(-abs(one.slot - slot) / 4) * recent[one] for one in seen}
    weights: dict[str, Callable[[Sighting, float, float], float]] = {
        "after_prev": lambda one, b, a: b * recent[one],
        "before_next": lambda one, b, a: a * recent[one],
        "analogy": lambda one, b, a: exp(3 * (b + a)) * now[one],
        "analogy_either": lambda one, b, a: (b + a) * now[one],
        "analogy_both": lambda one, b, a: b * a * recent[one],
    }
    for name, weight in weights.items():
        put(values, name, {one: weight(one, *sides[one]) for one in seen}, 0.05)


def check(cases: Cases, *, targets: int = 14) -> None:
    """Compare the user's own evidence for some targets with the slow loop, candidates that are not in play too."""
    evidence = gather(cases, Crowd.of(cases), Atlas.of(cases.locations))
    columns = [NAMES.index(name) for name in OF_THE_USER]
    some = np.random.default_rng(0).permutation(len(evidence))[:targets]
    unseen = np.flatnonzero((cases.visible == MISSING).all(axis=1)[evidence.index[:, 0]])[:1]
    for target in np.concatenate([[0, len(evidence) - 1], unseen, some]).tolist():
        row, slot = evidence.index[target].tolist()
        wanted = slowly(cases, row, slot)
        mine = slice(evidence.start[target], evidence.start[target + 1])
        places = evidence.place[mine].tolist()
        assert set(wanted) <= set(places)
        for place, values in zip(places, evidence.values[mine][:, columns], strict=True):
            absent = dict(zip(OF_THE_USER, ABSENT[columns].tolist(), strict=True))
            expected = wanted.get(place, absent)
            assert dict(zip(OF_THE_USER, values.tolist(), strict=True)) == pytest.approx(expected, rel=2e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(7))
def test_the_users_own_evidence_is_what_the_descriptions_say(seed: int) -> None:
    check(people(seed))


@pytest.mark.parametrize("centres", [0.0, 0.5])
def test_places_without_a_centre_are_alike_only_where_they_are_the_same(centres: float) -> None:
    check(people(11, centres=centres))


def test_only_the_last_days_and_the_most_visited_places_count(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = people(12)
    assert (cases.end - cases.first).max() > 3
    monkeypatch.setattr(play_module, "LAST_DAYS", 3)
    check(cases, targets=6)
    # Today's visible places must fit: the loop, as the package, puts them before all others.
    most = max(len(np.unique(row[row != MISSING])) for row in cases.visible)
    monkeypatch.setattr(play_module, "_MOST_PLACES", most)
    monkeypatch.setattr(play_module, "LAST_DAYS", 64)
    assert np.diff(Play.of(cases).start).max() == most
    check(cases)


def test_the_first_days_of_users_have_no_past() -> None:
    cases = people(13)
    check(replace(cases, first=cases.end))
    none = np.zeros(len(cases), dtype=np.int64)
    check(replace(cases, first=none, end=none, past=cases.past[:0], past_date=cases.past_date[:0]))


def test_what_is_around_a_target_is_visible() -> None:
    around = Asked.of(asked({"a": ["A b b C", "a B . .", ". . C d", "a b . c"]}))
    assert around.prev.tolist() == [0, 0, MISSING, 2, MISSING, MISSING, MISSING]
    assert around.next.tolist() == [2, 2, 1, MISSING, MISSING, MISSING, MISSING]
    assert around.gap_prev.tolist() == [1, 2, 0, 1, 0, 0, 0]
    assert around.gap_next.tolist() == [2, 1, 1, 0, 0, 0, 0]


def test_all_that_is_told_of_places_in_play_is_written() -> None:
    cases = people(14)
    around, play = Asked.of(cases, night=True), Play.of(cases)
    pairs = Pairs.of(around, play)
    told = Told.nothing(len(pairs))
    told.values[:] = np.nan
    tell(around, play, pairs, Atlas.of(cases.locations), told)
    assert len(told.values) == len(pairs) > 0
    assert np.isfinite(told.values).all()
    assert told.promise.max() > 0
