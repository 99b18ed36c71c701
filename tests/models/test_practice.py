"""People to practise on: cut as one's own days are, the same every time, and worth something where those are few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnmove.models import practice
from attnmove.models.practice import made_up
from attnmove.nouns import MISSING, Cases
from builders import asked, some_locations


def own(n_slots: int = 48, *, hidden: int = 1, apart_m: float = 500.0, centres: bool = True) -> Cases:
    """A person's two days of four seen slots, so many of which are hidden, among locations in a row."""
    marks = ["a"] * hidden + ["B"] * (4 - hidden) + ["."] * (n_slots - 4)
    cases = asked({"ann": [" ".join(marks)] * 2}, n_locations=26)
    locations = some_locations(26, centres=centres)
    if centres:
        degrees = apart_m / 111_195 * np.arange(26)
        locations = replace(locations, lon=np.zeros(26), lat=degrees)
    return replace(cases, locations=locations)


def practised(like: Cases, n_targets: int = 500, *, seed: int = 0) -> Cases:
    return made_up(like, n_targets, np.random.default_rng(seed))


@pytest.mark.parametrize(("n_slots", "hidden"), [(48, 2), (48, 1), (12, 1), (288, 1)])
def test_made_up_people_are_asked_for_as_much_as_is_wanted_and_are_many(n_slots: int, hidden: int) -> None:
    cases = practised(own(n_slots, hidden=hidden), 12_000)
    assert cases.hidden.sum() >= 0.9 * 12_000
    assert len(np.unique(cases.user)) >= 110


def test_where_thousands_of_people_would_be_needed_there_are_fewer_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(practice, "_MOST_PEOPLE", 70)
    assert 0 < practised(own(), 10**9).hidden.sum() < 10**6


@pytest.mark.parametrize("n_slots", [12, 24, 48, 50, 144])
def test_days_have_the_slots_of_ones_own(n_slots: int) -> None:
    cases = practised(own(n_slots))
    assert cases.n_slots == n_slots
    seen = (cases.loc != MISSING).sum(axis=1)
    assert seen.min() >= max(2, min(n_slots // 4, 4))
    assert (cases.loc[:, n_slots * 3 // 8 : n_slots * 7 // 8] != MISSING).mean() > 0.2


@pytest.mark.parametrize("hidden", [1, 3])
def test_as_large_a_share_of_what_was_seen_is_hidden(hidden: int) -> None:
    cases = practised(own(hidden=hidden))
    assert cases.hidden.sum() / (cases.loc != MISSING).sum() == pytest.approx(hidden / 4, abs=0.03)
    assert (cases.loc[cases.hidden] != MISSING).all()
    assert (cases.visible != MISSING).any(axis=1).all()


@pytest.mark.parametrize(
    ("apart_m", "cell_m"), [(10.0, 100.0), (300.0, 400.0), (1_200.0, 1_600.0), (90_000.0, 2_000.0)]
)
def test_locations_are_about_as_large_as_ones_own_within_reason(apart_m: float, cell_m: float) -> None:
    locations = practised(own(apart_m=apart_m)).locations
    north = np.unique(np.round(locations.lat * 111_195 / cell_m, 2))
    assert np.diff(north).min() == pytest.approx(1, rel=0.05)


def test_where_ones_own_places_are_not_known_theirs_are_not_either() -> None:
    assert np.isnan(practised(own(centres=False)).locations.centres).all()


def test_they_look_back_upon_their_own_earlier_days_only() -> None:
    cases = practised(own())
    assert (cases.end > cases.first).all()
    user = {name: set(range(a, b)) for name, a, b in zip(cases.user, cases.first, cases.end, strict=True)}
    assert len(set.union(*user.values())) == sum(len(rows) for rows in user.values())
    row = len(cases) // 2
    assert (cases.past_date[cases.first[row] : cases.end[row]] < cases.date[row]).all()


def test_the_same_every_time_and_others_with_another_seed() -> None:
    one, two, other = practised(own()), practised(own()), practised(own(), seed=1)
    for name in ("user", "date", "loc", "hidden", "history"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(one.locations.centres, other.locations.centres)
