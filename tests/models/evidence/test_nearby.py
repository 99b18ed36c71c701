"""What lies around a candidate, against a slow loop written from the descriptions of the features."""

from __future__ import annotations

from dataclasses import replace
from math import exp, nan

import numpy as np
import pytest

from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.features import FEATURES, NEAR, NEAR_KM, column
from attnmove.models.evidence.gather import Evidence, gather
from attnmove.nouns import MISSING, Cases
from builders import asked, people

AROUND = [name for name in FEATURES if name.startswith("near_")]
OF_PLACES = [*AROUND, "km_today", "km_home", "km_second", "radius_km", "home_share"]


def evidence_of(cases: Cases) -> Evidence:
    return gather(cases, Crowd.of(cases), Atlas.of(cases.locations))


def in_steps(weight: float, steps: int) -> float:
    return round(weight * steps) / steps


def slowly(cases: Cases, evidence: Evidence, target: int) -> dict[int, dict[str, float]]:
    """The numbers of every candidate of a target, place by place."""
    row = int(evidence.index[target, 0])
    mine = slice(evidence.start[target], evidence.start[target + 1])
    candidates, values = evidence.place[mine].tolist(), evidence.values[mine]
    own = {p: {name: float(values[i, column(name)]) for name in NEAR} for i, p in enumerate(candidates)}
    today = {p for p in cases.visible[row].tolist() if p != MISSING}
    then = [p for day in cases.past[cases.first[row] : cases.end[row]].tolist() for p in day if p != MISSING]
    most = sorted(set(then), key=lambda p: (-then.count(p), p))
    position = cases.locations.on_sphere * 6371.0088

    def km(one: int, other: int) -> float:
        return float(np.linalg.norm(position[one] - position[other]))

    out: dict[int, dict[str, float]] = {}
    for place in candidates:
        others = [p for p in (today | set(then)) - {place} if not np.isnan(km(place, p))]
        out[place] = {
            f"near_{name}_{width}": sum(
                in_steps(own[p][name], 4096) * in_steps(exp(-km(place, p) / width), 2048) for p in others
            )
            for name in NEAR
            for width in NEAR_KM
        }
        out[place]["km_today"] = min((km(place, p) for p in others if p in today), default=nan)
        for i, name in enumerate(("km_home", "km_second")):
            out[place][name] = km(place, most[i]) if len(most) > i else nan
        from_home = [km(p, most[0]) for p in then]
        known = bool(then) and not np.isnan(km(most[0], most[0]))
        out[place]["radius_km"] = float(np.nansum(from_home)) / len(then) if known else nan
        out[place]["home_share"] = then.count(most[0]) / len(then) if then else 0
    return out


def check(cases: Cases) -> None:
    evidence = evidence_of(cases)
    some = np.random.default_rng(0).permutation(len(evidence))[:12]
    for target in [0, len(evidence) - 1, *some.tolist()]:
        for place, wanted in slowly(cases, evidence, target).items():
            at = int(np.flatnonzero(evidence.place[evidence.start[target] : evidence.start[target + 1]] == place)[0])
            values = evidence.values[evidence.start[target] + at]
            found = {name: float(values[column(name)]) for name in OF_PLACES}
            # A distance off by half a metre, or a share by its last digit, may be another step of 1/4096.
            assert found == pytest.approx(wanted, rel=1e-3, abs=3e-3, nan_ok=True)


@pytest.mark.parametrize(("seed", "centres"), [(0, 1.0), (1, 1.0), (2, 0.6), (3, 0.0)])
def test_what_is_around_is_what_the_descriptions_say(seed: int, centres: float) -> None:
    check(people(seed, centres=centres))


def test_users_without_a_past_have_no_home() -> None:
    cases = people(4)
    check(replace(cases, first=cases.end))
    none = np.zeros(len(cases), dtype=np.int64)
    check(replace(cases, first=none, end=none, past=cases.past[:0], past_date=cases.past_date[:0]))


def test_a_day_without_a_visible_slot_and_without_a_past_has_nothing_around_it() -> None:
    cases = asked({"a": ["a b c d"]})
    others = asked({"b": ["A B C D"]})
    evidence = gather(cases, Crowd.of(others), Atlas.of(cases.locations))
    assert len(evidence.place) > 0
    values = evidence.values[:, [column(name) for name in OF_PLACES]]
    assert np.nan_to_num(values).tolist() == np.zeros(values.shape).tolist()


def test_the_home_next_door_speaks_for_a_place() -> None:
    """Two neighbours: the user was always at the first; the second is no place of theirs, but near one."""
    days = ["A A A A"] * 4 + [". a . A"]
    cases = asked({"a": days}).rows(np.array([4]))
    evidence = evidence_of(cases)
    near = dict(zip(evidence.place.tolist(), evidence.values[:, column("near_past_all_2.0_3.0")].tolist(), strict=True))
    km = dict(zip(evidence.place.tolist(), evidence.values[:, column("km_home")].tolist(), strict=True))
    others = sorted((p for p in km if p != 0), key=lambda p: km[p])
    assert (near[0], km[0]) == (0, 0)
    assert near[others[0]] > near[others[-1]] > 0
