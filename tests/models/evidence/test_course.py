"""The way before and after a target, against a slow loop written from the descriptions of the features."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.course import course, pace
from attnmove.nouns import MISSING, Cases
from builders import evening, people


def slowly(cases: Cases, row: int, slot: int, place: int, *, night: bool) -> dict[str, float]:
    """What the way says of one place, by going through the visible slots one by one."""
    today = {s: p for s, p in enumerate(cases.visible[row].tolist()) if p != MISSING}
    after = [s for s in sorted(today) if s > slot]
    today |= evening(cases, row) if night else {}
    before = [s for s in sorted(today, reverse=True) if s < slot]
    if before and before[0] < min(0, slot - cases.n_slots // 3):
        before = []
    sphere = cases.locations.on_sphere
    position = np.where(np.isfinite(sphere).all(axis=1, keepdims=True), sphere * 6371.0088, nan)
    here = position[place]

    def apart(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.linalg.norm(one - other))

    def stride(side: list[int]) -> np.ndarray:
        if len(side) < 2:
            return np.full(3, nan)
        return (position[today[side[0]]] - position[today[side[1]]]) / abs(side[1] - side[0])

    def to_other(side: list[int]) -> float:
        others = [today[s] for s in side if today[s] != today[side[0]]]
        return apart(position[others[0]], here) if others else nan

    def to_going_on(side: list[int]) -> float:
        return apart(position[today[side[0]]] + stride(side) * min(2, abs(side[0] - slot)), here) if side else nan

    def leaning(side: list[int], gap: int) -> np.ndarray:
        lively = len(side) > 1 and abs(side[1] - side[0]) <= 3
        return np.nan_to_num(stride(side)) * min(3, gap) if lively else np.zeros(3)

    def to_curve() -> float:
        if not (before and after):
            return nan
        gap = after[0] - before[0]
        t = (slot - before[0]) / gap
        ends = (2 * t**3 - 3 * t**2 + 1) * position[today[before[0]]] + (3 * t**2 - 2 * t**3) * position[
            today[after[0]]
        ]
        # The way after the target leads from its side on; towards the target it is the other way round.
        bends = (t**3 - 2 * t**2 + t) * leaning(before, gap) - (t**3 - t**2) * leaning(after, gap)
        return apart(ends + bends, here)

    return {
        "km_from": to_other(before),
        "km_towards": to_other(after),
        "km_onwards": to_going_on(before),
        "km_backwards": to_going_on(after),
        "km_curve": to_curve(),
        "speed_prev": float(np.linalg.norm(stride(before))),
        "speed_next": float(np.linalg.norm(stride(after))),
    }


@pytest.mark.parametrize("night", [False, True])
@pytest.mark.parametrize(("seed", "centres"), [(0, 1.0), (1, 1.0), (2, 0.6), (3, 0.0)])
def test_the_way_is_what_the_descriptions_say(seed: int, centres: float, night: bool) -> None:
    cases, rng = people(seed, centres=centres), np.random.default_rng(seed)
    target = np.sort(rng.integers(0, len(cases.index), 200))
    place = rng.integers(0, len(cases.locations), 200)
    around, atlas = Asked.of(cases, night=night), Atlas.of(cases.locations)
    points, of_target = course(around, atlas), pace(around, atlas)
    km = atlas.km_to_points(place, np.stack(list(points.values())), target)
    of_candidate = dict(zip(points, km, strict=True))
    clues = of_candidate | {name: value[target] for name, value in of_target.items()}
    for at, (which, where) in enumerate(zip(target.tolist(), place.tolist(), strict=True)):
        row, slot = cases.index[which].tolist()
        found = {name: float(value[at]) for name, value in clues.items()}
        # Positions are kept to half a metre.
        assert found == pytest.approx(slowly(cases, row, slot, where, night=night), rel=1e-5, abs=4e-3, nan_ok=True)
