"""How people get from place to place: along the streets, at finite speed, one plan after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.city.people import People
from attnmove.city.places import Places
from attnmove.city.plans import Plan, Planner, is_holiday
from attnmove.nouns import MINUTES_PER_DAY, Bool, Float64, Int64

LINGER_MIN = 110.0
"""People go home between two events when there is more time than this."""
TOO_LATE_MIN = 90.0
"""Events other than work are dropped when people would leave for them so much later than planned."""
WALK_M = 1_200.0
"""Shorter ways are walked."""
MIN_STAY_MIN = 4.0
"""Nobody leaves sooner after arriving, even when late for the next event."""
MORNING_MIN = 540.0
"""When journeys to and from a town start at the earliest, local minutes after midnight."""


@dataclass(frozen=True)
class Trips:
    """All trips of a block of people, sorted by person and time; each person's first is a stay at home from the start.

    Times are minutes after the local midnight at which the first day begins.
    """

    first: Int64
    """(U + 1,) the trips of person i are rows first[i] … first[i + 1] - 1."""
    depart_min: Float64
    arrive_min: Float64
    place: Int64
    """Place id of where the trip ends."""
    time_min: Float64
    """(N, 4) when the person leaves, turns into the cross street, turns into the last street, arrives."""
    x: Float64
    """(N, 4) metres east of the centre at these times."""
    y: Float64
    """(N, 4) metres north of the centre at these times."""


class Walker:
    """Carries out the plans of a block of people and notes every trip."""

    def __init__(self, rng: np.random.Generator, places: Places, people: People) -> None:
        self.rng, self.places, self.people = rng, places, people
        n = len(people)
        self.here = people.home.copy()
        self.ready_min = np.zeros(n)  # when each has done what they came for
        start = np.zeros(n)
        self.log = [(np.arange(n), start, start, people.home, people.home)]

    def walk(self, day: int, plan: Plan) -> None:
        """Live through one day, `day` days after the first."""
        midnight = day * MINUTES_PER_DAY
        displaced = self.here != plan.base
        setting_off = midnight + MORNING_MIN + self.rng.exponential(150, len(self.here))
        no_stay = np.zeros(len(self.here))
        self._go(displaced, np.maximum(self.ready_min, setting_off), plan.base, no_stay)
        for event in range(plan.go_min.shape[1]):
            go_min, place = midnight + plan.go_min[:, event], plan.place[:, event]
            late_min = self.ready_min - go_min
            happens = np.isfinite(go_min) & ((late_min < TOO_LATE_MIN) | plan.firm[:, event])
            if not happens.any():
                continue
            self._go(happens & (late_min < -LINGER_MIN), self.ready_min, plan.base, no_stay)
            stay_min = np.maximum(plan.stay_min[:, event], MIN_STAY_MIN)
            self._go(happens, np.maximum(go_min, self.ready_min), place, stay_min)
        self._go(np.ones(len(self.here), dtype=np.bool_), self.ready_min, plan.base, no_stay)

    def _go(self, who: Bool, depart_min: Float64, place: Int64, stay_min: Float64) -> None:
        """Send `who` to `place`; whoever is there already just stays on."""
        index = np.flatnonzero(who)
        start, goal, depart = self.here[index], place[index], depart_min[index]
        x, y = _corners(self.places, start, goal, self.people.turn[index])
        way_m = (np.abs(np.diff(x, axis=1)) + np.abs(np.diff(y, axis=1))).sum(axis=1)
        moves = start != goal
        pace = np.clip(self.rng.lognormal(0, 0.12, len(index)), 0.7, 1.35)
        arrive = depart + np.where(moves, _minutes(way_m) / pace, 0.0)
        self.log.append((index[moves], depart[moves], arrive[moves], start[moves], goal[moves]))
        self.here[index] = goal
        self.ready_min[index] = arrive + stay_min[index]

    def trips(self) -> Trips:
        """The trips so far."""
        columns = [np.concatenate(column) for column in zip(*self.log, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        who, depart, arrive, start, goal = (column[order] for column in columns)
        x, y = _corners(self.places, start, goal, self.people.turn[who])
        leg = np.abs(np.diff(x, axis=1)) + np.abs(np.diff(y, axis=1))  # (N, 3)
        gone = np.cumsum(leg, axis=1) / np.maximum(leg.sum(axis=1, keepdims=True), 1e-9)
        on_way = depart[:, None] + (arrive - depart)[:, None] * gone[:, :2]
        return Trips(
            first=np.searchsorted(who, np.arange(len(self.people) + 1)),
            depart_min=depart,
            arrive_min=arrive,
            place=goal,
            time_min=np.column_stack([depart, on_way, arrive]),
            x=x,
            y=y,
        )


def live(seed: int, places: Places, people: People, rng: np.random.Generator, *, start: int, n_days: int) -> Trips:
    """The trips of a block of people over `n_days` days from the one with proleptic number `start`."""
    planner, walker = Planner(rng, places, people), Walker(rng, places, people)
    for day in range(n_days):
        walker.walk(day, planner.plan(start + day, holiday=is_holiday(seed, start + day)))
    return walker.trips()


def _corners(places: Places, start: Int64, goal: Int64, turn: Float64) -> tuple[Float64, Float64]:
    """(N, 4) east and north of the start, the two corners and the goal.

    Places line the streets that run east; the way changes street at a crossing, after about the share `turn` of it.
    """
    x0, x1, y0, y1 = places.x[start], places.x[goal], places.y[start], places.y[goal]
    crossing = np.round((x0 + turn * (x1 - x0)) / places.city.street_m) * places.city.street_m
    crossing = np.where(np.abs(y1 - y0) < places.city.street_m / 2, x1, crossing)  # same street: straight on
    return np.column_stack([x0, crossing, crossing, x1]), np.column_stack([y0, y0, y1, y1])


def _minutes(way_m: Float64) -> Float64:
    """How long a way takes: on foot at 5 km/h, else at 15 to 40 km/h, faster still beyond the city."""
    ride_kmh = 15 + 25 * (1 - np.exp(-way_m / 9_000)) + 45 * (1 - np.exp(-np.maximum(way_m - 20_000, 0) / 30_000))
    out: Float64 = 1 + 0.06 * way_m / np.where(way_m < WALK_M, 5.0, ride_kmh)
    return out
