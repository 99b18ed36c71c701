"""Candidates and what others, the map and the question say, against a slow loop; and what evidence must not look at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import asin, cos, log1p, nan, radians, sin, sqrt

import numpy as np
import pytest

from attnmove.models.evidence import gather as module
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.features import FAR, FEATURES, NAMES
from attnmove.models.evidence.gather import Evidence, gather, in_parts
from attnmove.nouns import MISSING, Cases, Locations
from builders import asked, evening

OF_THE_WAY = ("km_from", "km_towards", "km_onwards", "km_backwards", "km_curve", "speed_prev", "speed_next")
OF_A_LIFE = ("radius_km", "home_share")
NOT_OF_THE_USER = [
    name
    for name, feature in FEATURES.items()
    if feature.family in ("others", "space", "target") and name not in (*OF_THE_WAY, *OF_A_LIFE)
]
"""The rest is in the tests of clues, course and nearby."""

PROMISE = ("past_all_2.0", "past_recent_6.0", "past_alike_6.0", "past_all_day", "after_prev", "before_next", "analogy")
"""Features that, added up, are the promise of a place in play."""


def people(seed: int, *, centres: float = 1.0, n_slots: int = 24, n_places: int = 30) -> Cases:
    """Five people among the same places, in several draws, a day without a visible slot; a share of the locations has
    a centre."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[str]] = {}
    for user in range(5):
        mine = [chr(ord("A") + int(place)) for place in rng.integers(0, min(26, n_places), 7)] + ["."] * 3
        rows[f"u{user}"] = [" ".join(rng.choice(mine, n_slots)) for _ in range(int(rng.integers(4, 8)))]
    cases = asked(rows, n_locations=n_places)
    cases = cases.rows(np.sort(rng.integers(0, len(cases), 2 * len(cases))))
    hidden = rng.random(cases.hidden.shape) < 0.4
    hidden[rng.integers(len(cases))] = True
    where = np.random.default_rng(n_places)
    lon = np.where(where.random(n_places) < centres, 116.3 + 0.2 * where.random(n_places), np.nan)
    lat = 39.9 + 0.2 * where.random(n_places)
    return replace(cases, hidden=hidden, locations=Locations(cases.locations.name, lon, lat, cases.locations.key))


def evidence_of(cases: Cases, train: Cases) -> Evidence:
    return gather(cases, Crowd.of(train), Atlas.of(cases.locations))


def same(one: Evidence, other: Evidence) -> bool:
    """Bit for bit: candidates and numbers."""
    return (
        np.array_equal(one.start, other.start)
        and np.array_equal(one.place, other.place)
        and np.array_equal(one.values, other.values, equal_nan=True)
    )


def kilometres(locations: Locations, i: int, j: int) -> float:
    """Straight through the Earth; NaN where a place is not known."""
    if MISSING in (i, j):
        return nan
    lon1, lat1, lon2, lat2 = (radians(x) for k in (i, j) for x in (locations.lon[k], locations.lat[k]))
    a = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2) ** 2
    return 2 * 6371.0088 * sin(asin(sqrt(a)))


@dataclass(frozen=True)
class Others:
    """The training days of everybody but the user, each once, counted."""

    visits: Counter[int]
    visits_by_time: Counter[tuple[int, int]]
    people: Counter[int]
    moves: Counter[tuple[int, int]]

    @classmethod
    def than(cls, user: str, train: Cases) -> Others:
        named = zip(train.user.tolist(), train.date.tolist(), strict=True)
        days = {name: day for name, day in zip(named, train.loc.tolist(), strict=True) if name[0] != user}
        fixes = [(who, s, p) for (who, _), day in days.items() for s, p in enumerate(day) if p != MISSING]
        moves: Counter[tuple[int, int]] = Counter()
        for day in days.values():
            for lag in (1, 2, 3, 4):
                for here, there in zip(day, day[lag:], strict=False):
                    if MISSING not in (here, there):
                        moves[here, there] += 1 / lag  # type: ignore[assignment]
        return cls(
            visits=Counter(p for _, _, p in fixes),
            visits_by_time=Counter((p, s * 8 // train.n_slots) for _, s, p in fixes),
            people=Counter(p for _, p in {(who, p) for who, _, p in fixes}),
            moves=moves,
        )

    def most(self, counts: Counter[int], k: int) -> list[int]:
        return sorted((p for p in counts if counts[p] > 1e-9), key=lambda p: (-round(counts[p], 6), p))[:k]


def slowly(cases: Cases, train: Cases, row: int, slot: int) -> dict[int, dict[str, float]]:
    """The candidates of a target, and all that others, the map and the question say for each."""
    at, others = cases.locations, Others.than(cases.user[row], train)
    everywhere = range(len(at))
    today = {s: p for s, p in enumerate(cases.visible[row].tolist()) if p != MISSING}
    days = cases.past[cases.first[row] : cases.end[row]].tolist()
    before, after = max((s for s in today if s < slot), default=None), min((s for s in today if s > slot), default=None)
    leaves = MISSING if before is None else today[before]
    eve = evening(cases, row)
    if before is None and eve and slot - max(eve) <= cases.n_slots // 3:
        before = max(eve)
    prev, following = (MISSING if s is None else (eve | today)[s] for s in (before, after))
    gap_prev, gap_next = (FAR if s is None else abs(s - slot) for s in (before, after))
    leaving = Counter({there: n for (here, there), n in others.moves.items() if here == leaves})
    arriving = Counter({here: n for (here, there), n in others.moves.items() if there == following})
    in_play = {*today.values(), *chain(*days)} - {MISSING}

    def near(point: list[float], k: int, but: int = MISSING) -> list[int]:
        known = [p for p in everywhere if np.isfinite(at.on_sphere[p]).all() and p != but]
        return sorted(known, key=lambda p: float(np.linalg.norm(at.on_sphere[p] - point)))[:k]

    sides = [p for p in (prev, following) if p != MISSING]
    share = gap_prev / (gap_prev + gap_next) if len(sides) == 2 else 0
    ends = [sides[0], sides[-1]] if sides else []
    middle = at.on_sphere[ends[0]] * (1 - share) + at.on_sphere[ends[1]] * share if ends else np.full(3, nan)
    known = bool(np.isfinite(middle).all())
    candidates = in_play | {
        *others.most(leaving, 12),
        *others.most(arriving, 12),
        *others.most(others.people, module._POPULAR),
    }
    for side in sides:
        candidates |= {*(near(at.on_sphere[side], 12, side) if np.isfinite(at.on_sphere[side]).all() else [])}
    if known and prev != following:
        candidates |= {*near(middle, 10)}
    pairs = [pair for day in days for pair in pairwise(day) if MISSING not in pair]
    steps = [a != b for a, b in pairwise(today[s] for s in sorted(today))]
    returns = 1 + sum(steps) - len({*today.values()}) if today else nan
    question = {
        "slot": slot * 24 / cases.n_slots,
        "weekday": cases.date[row].item().weekday(),
        "gap_prev": gap_prev,
        "gap_next": gap_next,
        "same_sides": float(len(sides) == 2 and prev == following),
        "km_sides": kilometres(at, prev, following),
        "n_seen": len(today),
        "n_places_day": len({*today.values()}),
        "changes": sum(steps) / len(steps) if steps else nan,
        "most_share": max(Counter(today.values()).values()) / len(today) if today else nan,
        "returns": returns,
        "returns_share": returns / (1 + sum(steps)),
        "n_days_past": len(days),
        "n_play": len(in_play),
        "stay": (sum(a == b for a, b in pairs) + 1) / (len(pairs) + 2),
    }
    out: dict[int, dict[str, float]] = {}
    for p in candidates:
        km_prev, km_next, straight = kilometres(at, prev, p), kilometres(at, p, following), question["km_sides"]
        legs = [km / gap for km, gap in ((km_prev, gap_prev), (km_next, gap_next)) if not np.isnan(km)]
        around = [kilometres(at, p, q) for q in near(at.on_sphere[p], 3, p)] if np.isfinite(at.on_sphere[p][0]) else []
        out[p] = question | {
            "crowd": others.visits[p],
            "crowd_now": others.visits_by_time[p, slot * 8 // cases.n_slots],
            "crowd_people": others.people[p],
            "from_prev": leaving[p] / (leaving.total() + 1),
            "from_prev_count": log1p(leaving[p]),
            "to_next": arriving[p] / (arriving.total() + 1),
            "to_next_count": log1p(arriving[p]),
            "km_prev": km_prev,
            "km_next": km_next,
            "km_mid": float(np.linalg.norm(at.on_sphere[p] - middle)) * 6371.0088,
            "detour_km": km_prev + km_next - straight,
            "detour_ratio": (km_prev + km_next + 0.1) / (straight + 0.1),
            "speed": max(legs, default=nan),
            "spacing_km": float(np.mean(around)) if around else nan,
        }
    return out


def check(cases: Cases, train: Cases, *, targets: int = 14) -> None:
    evidence = evidence_of(cases, train)
    unseen = np.flatnonzero((cases.visible == MISSING).all(axis=1)[evidence.index[:, 0]])[:2]
    some = np.random.default_rng(0).permutation(len(evidence))[:targets]
    for target in np.concatenate([[0, len(evidence) - 1], unseen, some]).tolist():
        row, slot = evidence.index[target].tolist()
        wanted = slowly(cases, train, row, slot)
        mine = slice(evidence.start[target], evidence.start[target + 1])
        assert evidence.place[mine].tolist() == sorted(wanted)
        for place, values in zip(evidence.place[mine].tolist(), evidence.values[mine], strict=True):
            found = {name: float(values[NAMES.index(name)]) for name in NOT_OF_THE_USER}
            # Positions are kept to half a metre; a ratio over 0.1 km magnifies it tenfold.
            ratio = found.pop("detour_ratio")
            assert ratio == pytest.approx(wanted[place].pop("detour_ratio"), rel=1e-2, abs=3e-2, nan_ok=True)
            assert found == pytest.approx(wanted[place], rel=1e-5, abs=2e-3, nan_ok=True)


@pytest.mark.parametrize("seed", range(3))
def test_candidates_and_numbers_are_what_the_descriptions_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POPULAR", 0)
    train = people(seed)
    check(people(seed + 50), train.rows(train.user < "u3"))  # the others are strangers


@pytest.mark.parametrize(
    ("today", "wanted"),
    [
        ("A . B A b C A .", (1.0, 3 / 5, 2.0, 2 / 5)),  # to and fro
        ("A A a . A B B C", (2 / 5, 3 / 6, 0.0, 0.0)),  # on and on
        (". . a B . . . .", (nan, 1.0, 0.0, 0.0)),
        (". . a . . . . .", (nan, nan, nan, nan)),
    ],
)
def test_a_restless_day_is_told_from_a_quiet_one(today: str, wanted: tuple[float, ...]) -> None:
    evidence = evidence_of(asked({"a": ["A B C A B C A B", today]}), asked({"b": ["A B C D . . . ."]}))
    names = ("changes", "most_share", "returns", "returns_share")
    found = evidence.values[:, [NAMES.index(name) for name in names]]
    assert len(found) > 0
    assert found == pytest.approx(np.broadcast_to(wanted, found.shape), nan_ok=True)


@pytest.mark.parametrize("centres", [0.0, 0.1, 0.6, 1.0])
def test_strangers_get_the_popular_places_and_need_no_centres(centres: float) -> None:
    train = people(2, centres=centres)
    known = replace(train, user=np.array([f"known {user}" for user in train.user], dtype=object))
    check(people(1, centres=centres), known)


def test_known_users_get_the_places_that_are_popular_with_others() -> None:
    check(people(0), people(50))


def test_users_without_a_past_and_nobody_in_training_leave_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, train = people(3), people(4)
    check(cases, train.rows(np.zeros(0, dtype=np.int64)))
    monkeypatch.setattr(module, "_POPULAR", 0)
    check(replace(cases, first=cases.end), train)


def test_of_the_places_in_play_those_of_today_and_the_most_promising_become_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases, nobody = people(15, centres=0), people(16).rows(np.zeros(0, dtype=np.int64))
    whole = evidence_of(cases, nobody)
    promise = whole.values[:, [NAMES.index(name) for name in PROMISE]].astype(np.float64).sum(axis=1)
    seen = whole.values[:, NAMES.index("day_share")] > 0
    monkeypatch.setattr(module, "_PROMISING", 4)
    few = evidence_of(cases, nobody)
    for target in range(len(whole)):
        mine = range(whole.start[target], whole.start[target + 1])
        best = sorted(mine, key=lambda c: (not seen[c], -promise[c]))[: max(4, int(seen[mine].sum()))]
        left = slice(few.start[target], few.start[target + 1])
        assert few.place[left].tolist() == whole.place[sorted(best)].tolist()
    assert len(few.place) < len(whole.place)


def test_what_is_told_of_a_candidate_does_not_depend_on_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, train = people(17), people(18)
    whole = evidence_of(cases, train)
    monkeypatch.setattr(module, "_PROMISING", 2)
    few = evidence_of(cases, train)
    at = np.searchsorted(whole.target * 30 + whole.place, few.target * 30 + few.place)
    assert np.array_equal(whole.place[at], few.place)
    assert np.array_equal(whole.values[at], few.values, equal_nan=True)
    assert len(few.place) < len(whole.place)


def test_what_is_hidden_is_not_looked_at() -> None:
    cases, train = people(5), people(6)
    whole = evidence_of(cases, train)
    rng = np.random.default_rng(0)
    for lie in (np.full(cases.loc.shape, MISSING), rng.integers(0, 30, cases.loc.shape)):
        blind = replace(cases, loc=np.where(cases.hidden, lie, cases.loc).astype(np.int32))
        assert same(evidence_of(blind, train), whole)


def test_later_days_and_the_days_of_others_are_not_looked_at() -> None:
    cases, train = people(7), people(8)
    rng = np.random.default_rng(0)
    for row in range(0, len(cases), 3):
        case = cases.rows(np.array([row]))
        whole = evidence_of(case, train)
        earlier = np.zeros(len(cases.past), dtype=np.bool_)
        earlier[case.first[0] : case.end[0]] = True
        for lie in (np.full(cases.past.shape, MISSING), rng.integers(0, 30, cases.past.shape)):
            past = np.where(earlier[:, None], case.past, lie).astype(np.int32)
            later = np.where(earlier, case.past_date, np.datetime64("2031-01-01"))
            assert same(evidence_of(replace(case, past=past, past_date=later), train), whole)


@pytest.mark.parametrize("promising", [2, 40])
def test_evidence_of_a_row_is_the_same_whatever_else_is_asked(promising: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROMISING", promising)
    cases, train = people(9, n_slots=48), people(10, n_slots=48)
    whole = evidence_of(cases, train)
    order = np.random.default_rng(1).permutation(len(cases))
    shuffled = evidence_of(cases.rows(order), train)
    for row in range(len(cases)):
        alone = evidence_of(cases.rows(np.array([row])), train)
        for many, at in ((whole, row), (shuffled, int(np.flatnonzero(order == row)[0]))):
            target = np.flatnonzero(many.index[:, 0] == at)
            mine = slice(many.start[target[0]], many.start[target[-1] + 1]) if len(target) else slice(0)
            assert np.array_equal(many.index[target, 1], alone.index[:, 1])
            assert np.array_equal(many.place[mine], alone.place)
            assert np.array_equal(many.values[mine], alone.values, equal_nan=True)


def test_candidates_ascend_and_are_found_again() -> None:
    cases, train = people(11), people(12)
    evidence = evidence_of(cases, train)
    assert np.array_equal(evidence.index, cases.index)
    assert evidence.start[0] == 0
    assert evidence.start[-1] == len(evidence.place) == len(evidence.values) == len(evidence.target)
    key = evidence.target * 30 + evidence.place
    assert (np.diff(key) > 0).all()
    for place in (np.zeros(len(evidence)), cases.truth, np.full(len(evidence), 29), np.full(len(evidence), MISSING)):
        at = evidence.position_of(place.astype(np.int32), 30)
        for target, (wanted, found) in enumerate(zip(place.tolist(), at.tolist(), strict=True)):
            mine = range(evidence.start[target], evidence.start[target + 1])
            assert found == next((c for c in mine if evidence.place[c] == wanted), MISSING)


def test_nothing_asked_is_no_evidence() -> None:
    cases = people(13)
    for none in (cases.rows(np.zeros(0, dtype=np.int64)), replace(cases, hidden=np.zeros_like(cases.hidden))):
        evidence = evidence_of(none, cases)
        assert (len(evidence), len(evidence.place), evidence.start.tolist()) == (0, 0, [0])
        assert evidence.values.shape == (0, len(NAMES))
        assert evidence.position_of(np.zeros(0, dtype=np.int32), 30).tolist() == []
        assert list(in_parts(none)) == []


@pytest.mark.parametrize(("targets", "rows"), [(1, 256), (30, 256), (2048, 4), (40, 3), (2048, 256)])
def test_parts_hold_each_asking_row_once_and_not_much_at_a_time(
    targets: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = people(14)
    hidden = cases.hidden & (np.arange(len(cases)) % 5 != 2)[:, None]
    cases = replace(cases, hidden=hidden)
    monkeypatch.setattr(module, "_TARGETS_AT_ONCE", targets)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows)
    parts = list(in_parts(cases))
    assert np.concatenate(parts).tolist() == np.flatnonzero(hidden.any(axis=1)).tolist()
    for part in parts:
        assert 0 < len(part) <= rows
        assert hidden[part[:-1]].sum() < targets  # the last row may go beyond
