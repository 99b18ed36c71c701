"""Two names that are one person are found, companions and neighbours are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnmove.nouns import MISSING, Days
from attnmove.prep.doubles import Double, doubles
from builders import days_of

WALK = "A B C D E F G H"


def people(**days: list[str]) -> Days:
    return days_of(days)


def test_a_person_under_two_names_is_found_with_the_slots_that_say_so() -> None:
    found = doubles(people(ann=[WALK] * 4, bob=["H G F E D C B A"] * 4, cyd=[WALK] * 3 + ["A B C D E F G ."]))
    assert found == [Double(("ann", "cyd"), slots=31, same=31)]


def test_a_few_slots_apart_are_forgiven_and_more_are_not() -> None:
    days = people(ann=[WALK] * 5, bob=[WALK] * 5)
    for apart, found in ((1, [Double(("ann", "bob"), slots=40, same=39)]), (3, [])):
        loc = days.loc.copy()
        loc[5, :apart] = 25
        assert doubles(replace(days, loc=loc)) == found


def test_the_same_places_on_other_dates_or_at_one_place_only_are_no_sign() -> None:
    late = days_of({"bob": [WALK] * 4}, start="2024-06-01")
    early = people(ann=[WALK] * 4)
    both = Days(*(np.concatenate([getattr(one, name) for one in (early, late)]) for name in early.__dataclass_fields__))
    assert doubles(both) == []
    assert doubles(people(ann=["A A A A A A B B"] * 6, bob=["A A A A A A B B"] * 6)) == []


def test_a_crowd_is_no_company() -> None:
    assert doubles(people(**{f"u{i:02}": [WALK] * 4 for i in range(17)})) == []
    assert len(doubles(people(**{f"u{i:02}": [WALK] * 4 for i in range(3)}))) == 3


def test_nobody_is_nobody_twice() -> None:
    days = people(ann=[WALK])
    assert doubles(days) == []
    assert doubles(replace(days, loc=np.full_like(days.loc, MISSING))) == []
    assert doubles(days.rows(np.zeros(0, dtype=np.int64))) == []
