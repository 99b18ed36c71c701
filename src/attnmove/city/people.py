"""The people of the city, a block at a time: where they live and work, when they rise, which habits they keep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.city.places import GYM, HOME, N_OTHER_KINDS, PARK, SCHOOL, SHOP, WORK, Places
from attnmove.nouns import Bool, Float64, Int64

WEEKDAYS, WEEKEND, FROM_FRIDAY, ALL_WEEK = (0, 1, 2, 3, 4), (5, 6), (4, 5, 6), (0, 1, 2, 3, 4, 5, 6)
WITHOUT, OFFICE, PART_TIME, STUDENT, ROTATING = range(5)
JOB_SHARES = np.array([0.08, 0.57, 0.09, 0.14, 0.12])
"""The share of people with each kind of job, in the order above."""


@dataclass(frozen=True)
class HabitKind:
    """A weekly habit that a share of the people keep, each on their own days, at their own hour and place."""

    kind: int
    """The kind of place: SHOP, …; HOME is somebody else's home."""
    share: float
    """Of the people who have the habit, 0 to 1."""
    days: tuple[int, ...]
    """The weekdays it may fall on, Monday = 0."""
    n_days: tuple[int, int]
    """The fewest and the most days a week."""
    go_min: tuple[float, float]
    """The earliest and latest usual time of leaving for it, local minutes after midnight."""
    stay_min: tuple[float, float]
    """The shortest and longest usual stay in minutes."""
    adherence: float
    """How often it really happens on its days, 0 to 1, by a regular person."""


HABITS = (
    HabitKind(GYM, 0.50, (0, 1, 2, 3, 4, 5), (1, 3), (1040, 1190), (60, 120), 0.80),
    HabitKind(SHOP, 0.80, FROM_FRIDAY, (1, 2), (560, 700), (30, 90), 0.80),
    HabitKind(SHOP, 0.45, WEEKDAYS, (1, 2), (1050, 1140), (15, 40), 0.75),
    HabitKind(HOME, 0.45, WEEKEND, (1, 1), (630, 960), (150, 400), 0.65),
    HabitKind(HOME, 0.22, ALL_WEEK, (1, 3), (1110, 1260), (620, 760), 0.75),  # a partner's: over night
    HabitKind(PARK, 0.30, ALL_WEEK, (2, 7), (1130, 1230), (30, 75), 0.65),
    HabitKind(SCHOOL, 0.18, WEEKDAYS, (4, 5), (425, 470), (5, 12), 0.92),
)


@dataclass(frozen=True)
class People:
    """A block of U people, one row each."""

    home: Int64
    """Place id."""
    work: Int64
    """Place id of the workplace or school, -1 for those without."""
    range_m: Float64
    """How far they like to go, metres; lognormal, which makes the radius of gyration heavy-tailed."""
    chronotype_min: Float64
    """Minutes by which they live later than most, negative for early risers."""
    jitter_min: Float64
    """Standard deviation of their times from day to day, minutes."""
    regularity: Float64
    """0 (lives from day to day) to 1 (keeps every habit)."""
    outgoing: Float64
    """Factor on how often they go out beyond their habits, mean about 1."""
    work_days: Float64
    """(U, 7) the probability of working on each weekday, Monday first; 0 for rotating shifts."""
    work_start_min: Float64
    """When work starts, local minutes after midnight."""
    work_min: Float64
    """How long work lasts, minutes, breaks included."""
    lunch: Float64
    """Probability of eating out on a working day."""
    rota: Int64
    """Where in the cycle of shifts they are on day 0 of the calendar, -1 for those with regular hours."""
    travel: Float64
    """Probability of setting off to another town on a day; heavy-tailed across people."""
    turn: Float64
    """Share of the way along the first street after which they turn into the cross street, 0 to 1."""
    habit_place: Int64
    """(U, H) place id."""
    habit_days: Bool
    """(U, H, 7) the weekdays of the habit, none for people without it."""
    habit_go_min: Float64
    """(U, H) when they leave for it, local minutes after midnight."""
    habit_stay_min: Float64
    """(U, H) how long they stay, minutes."""
    commute_min: Float64
    """How long before work starts they leave home, minutes."""
    rising: Float64
    """(2, U, O + 1) cumulative attraction of the O other places seen from home and from work; a row rises by 1 from its
    number among the 2U, so that the array read row by row is sorted and one search serves all people."""

    def __len__(self) -> int:
        return len(self.home)


def draw_people(rng: np.random.Generator, places: Places, n: int) -> People:
    """`n` people who live in the city."""
    home = rng.choice(places.ids(HOME), n, p=places.popularity[places.ids(HOME)])
    range_m = rng.lognormal(np.log(2_000), 0.85, n)
    chronotype = rng.normal(0, 45, n)
    regularity = rng.beta(5, 2, n)
    job = rng.choice(len(JOB_SHARES), n, p=JOB_SHARES)
    without, part_time, student, rotating = job == WITHOUT, job == PART_TIME, job == STUDENT, job == ROTATING

    work = _pick_near(rng, places, WORK, home, 4 * range_m)
    work[student] = _pick_near(rng, places, SCHOOL, home, 2 * range_m)[student]
    week = np.where(part_time[:, None], (rng.random((n, 7)) < 0.55) * 0.95, [0.97] * 5 + [0.02] * 2)
    remote = (rng.random((n, 7)) < 0.25) & (job == OFFICE)[:, None] & (rng.random(n) < 0.3)[:, None]
    start = np.round((540 + 0.5 * chronotype) / 30) * 30
    seen_from = np.stack([home, np.where(without, home, work)])
    reach = [2 * range_m if habit.kind == HOME else range_m for habit in HABITS]
    habit_place = [_pick_near(rng, places, HABITS[h].kind, home, reach[h]) for h in range(len(HABITS))]
    return People(
        home=home,
        work=np.where(without, -1, work),
        range_m=range_m,
        chronotype_min=chronotype,
        jitter_min=rng.lognormal(np.log(20), 0.5, n) * (1.5 - regularity),
        regularity=regularity,
        outgoing=rng.gamma(3.0, 1 / 3.0, n),
        work_days=np.where((without | rotating)[:, None] | remote, 0.0, week),
        work_start_min=np.where(student, 480, np.where(part_time, start + rng.choice([0, 240], n), start)),
        work_min=np.where(student, 510, np.where(part_time, 300, rng.choice([510, 540, 570, 630], n))),
        lunch=rng.beta(0.7, 0.9, n),
        rota=np.where(rotating, rng.integers(0, 8, n), -1),
        travel=0.004 * rng.lognormal(-0.72, 1.2, n),
        turn=rng.random(n),
        habit_place=np.stack(habit_place, axis=1),
        habit_days=np.stack([_draw_days(rng, habit, n) for habit in HABITS], axis=1),
        habit_go_min=np.stack([rng.uniform(*habit.go_min, n) + 0.4 * chronotype for habit in HABITS], axis=1),
        habit_stay_min=np.stack([rng.uniform(*habit.stay_min, n) for habit in HABITS], axis=1),
        commute_min=5 + _streets_m(places, home, work) / 400,  # people allow for 24 km/h
        rising=_attraction(places, seen_from.ravel(), np.tile(range_m, 2)).reshape(2, n, -1),
    )


def _draw_days(rng: np.random.Generator, habit: HabitKind, n: int) -> Bool:
    """(n, 7) the weekdays on which each person has the habit, none for people without it."""
    weekdays = np.array(habit.days)
    order = rng.random((n, len(weekdays))).argsort(axis=1)
    chosen = order < rng.integers(habit.n_days[0], habit.n_days[1] + 1, n)[:, None]
    days = np.zeros((n, 7), dtype=np.bool_)
    days[:, weekdays] = chosen & (rng.random(n) < habit.share)[:, None]
    return days


def _pick_near(rng: np.random.Generator, places: Places, kind: int, home: Int64, reach_m: Float64) -> Int64:
    """For each person one place of a kind, by popularity and distance from home."""
    ids = places.ids(kind)
    total = np.cumsum(_gravity(places, ids, home, reach_m), axis=1)  # (U, places of the kind)
    below = total < (rng.random(len(home)) * total[:, -1])[:, None]
    picked: Int64 = ids[np.minimum(below.sum(axis=1), len(ids) - 1)]
    return picked


def _attraction(places: Places, at: Int64, range_m: Float64) -> Float64:
    """(R, O + 1) cumulative share of the other places in what draws each person standing at `at`, plus the row."""
    ids = np.flatnonzero(places.kind < N_OTHER_KINDS)
    total = np.cumsum(_gravity(places, ids, at, range_m), axis=1)
    share = np.concatenate([np.zeros((len(at), 1)), total / total[:, -1:]], axis=1)
    return share + np.arange(len(at))[:, None]


def _gravity(places: Places, ids: Int64, at: Int64, reach_m: Float64) -> Float64:
    """(U, len(ids)) popularity over a power of the distance: never zero, so that every place can be reached."""
    nearness = 1 / (1 + _streets_m(places, ids[None, :], at[:, None]) / reach_m[:, None])
    out: Float64 = places.popularity[ids] * nearness * nearness * nearness
    return out


def _streets_m(places: Places, a: Int64, b: Int64) -> Float64:
    """Metres between places along the streets."""
    out: Float64 = np.abs(places.x[a] - places.x[b]) + np.abs(places.y[a] - places.y[b])
    return out
