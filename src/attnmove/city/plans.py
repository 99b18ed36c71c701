"""What each person means to do on a day: work, lunch, habits, and outings that explore new places or return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.city.people import HABITS, People
from attnmove.city.places import AWAY, LODGINGS_PER_TOWN, N_OTHER_KINDS, PLACES_PER_TOWN, Places
from attnmove.nouns import Bool, Float64, Int64

EXPLORE_RHO, EXPLORE_GAMMA = 0.6, 0.21
"""Song et al. 2010: the next outing goes to a new place with probability rho * S^-gamma, S places being known."""
MAX_KNOWN = 192
"""Places a person can remember; whoever knows that many explores no more."""
N_FIRST_KNOWN = 10
"""Places every person has been to before the first day."""

ROTA_START_MIN = np.array([360.0, 360.0, 840.0, 840.0, 1320.0, 1320.0, np.nan, np.nan])
"""The cycle of rotating shifts: early, late, night, free, two days each."""
HOLIDAY_RATE, SICK_RATE = 0.02, 0.008
"""Probability of a day off for the whole city, and of falling ill on a day."""

LUNCH, EVENING, DAYTIME = range(3)
APPEAL = np.array([[0.2, 1.0, 0.0, 0.1, 0.0], [0.6, 1.0, 0.1, 0.2, 0.0], [1.0, 0.6, 0.2, 0.6, 0.0]])
"""(part of the day, kind of other place) how much that kind of place draws people then."""
STAY_MIN = np.array([50.0, 90.0, 95.0, 95.0, 20.0])
"""Median stay at each kind of other place, minutes."""
LAST_STRAIGHT_MIN = 1260.0
"""Whoever finishes work later than this does not go out straight from there, local minutes after midnight."""
BEFORE_LUNCH, AT_LUNCH, AFTER_LUNCH, FIRST_HABIT = range(4)
FIRST_OUTING = FIRST_HABIT + len(HABITS)


@dataclass(frozen=True)
class Outing:
    """An occasion to go out beside work and habits; in the daytime only for those who do not work that day."""

    part: int
    """LUNCH, EVENING or DAYTIME."""
    usual_min: float
    """When people with an average chronotype leave for it, local minutes after midnight."""
    spread_min: float
    """Standard deviation of that time, minutes."""
    rate: float
    """How often an average person takes the occasion, 0 to 1."""


OUTINGS = (
    Outing(DAYTIME, 620, 50, 0.70),
    Outing(DAYTIME, 860, 80, 0.95),
    Outing(EVENING, 1110, 45, 0.48),
    Outing(EVENING, 1200, 50, 0.36),
)


@dataclass(frozen=True)
class Plan:
    """The E events of U people on one day, sorted by time; where `go_min` is infinite there is none."""

    base: Int64
    """(U,) place id of where each returns to: home, or the lodging of a journey."""
    go_min: Float64
    """(U, E) when to leave for the event, local minutes after midnight."""
    place: Int64
    """(U, E) place id."""
    stay_min: Float64
    """(U, E) how long to stay, minutes."""
    firm: Bool
    """(U, E) True for work, which is done however late one comes; other events are dropped when too late."""


class Agenda:
    """The events of one day while they are gathered, a column each."""

    def __init__(self, n: int) -> None:
        self.go_min = np.full((n, FIRST_OUTING + len(OUTINGS)), np.inf)
        self.place = np.zeros(self.go_min.shape, dtype=np.int64)
        self.stay_min = np.zeros(self.go_min.shape)

    def add(self, column: int, who: Int64, *, go_min: Float64, place: Int64, stay_min: Float64) -> None:
        """Enter one event for each of `who`."""
        self.go_min[who, column] = go_min
        self.place[who, column] = place
        self.stay_min[who, column] = stay_min

    def sorted(self, base: Int64) -> Plan:
        """The plan with its events in the order of time."""
        order = np.argsort(self.go_min, axis=1, kind="stable")
        return Plan(
            base=base,
            go_min=np.take_along_axis(self.go_min, order, axis=1),
            place=np.take_along_axis(self.place, order, axis=1),
            stay_min=np.take_along_axis(self.stay_min, order, axis=1),
            firm=(order == BEFORE_LUNCH) | (order == AFTER_LUNCH),
        )


def is_holiday(seed: int, ordinal: int) -> bool:
    """Whether the whole city has the day with this proleptic number off, beside the weekends."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, ordinal)))
    return bool(rng.random() < HOLIDAY_RATE)


class Planner:
    """Plans the days of a block of people one after the other, remembering where they have been."""

    def __init__(self, rng: np.random.Generator, places: Places, people: People) -> None:
        self.rng, self.places, self.people = rng, places, people
        self.n = len(people)
        self.others = np.flatnonzero(places.kind < N_OTHER_KINDS)
        self.first_of_kind = np.searchsorted(places.kind[self.others], np.arange(N_OTHER_KINDS + 1))
        self.towns = places.ids(AWAY)
        self.sick_until = np.zeros(self.n, dtype=np.int64)  # proleptic numbers of days
        self.away_until = np.zeros(self.n, dtype=np.int64)
        self.lodging = np.full(self.n, self.towns[0])
        self.known = np.full((self.n, MAX_KNOWN), self.others[0])  # place ids, the first n_known of each row
        self.visits = np.zeros((self.n, MAX_KNOWN))
        self.n_known = np.zeros(self.n, dtype=np.int64)
        everyone = np.arange(self.n)
        for rank in range(1, N_FIRST_KNOWN + 1):
            found = self._explore(everyone, np.zeros(self.n, dtype=np.int64), DAYTIME)
            self._remember(everyone, found, 12.0 / rank)

    def plan(self, ordinal: int, *, holiday: bool) -> Plan:
        """The plan of the day with proleptic number `ordinal`; the days must be asked for in order."""
        weekday = (ordinal - 1) % 7
        self._begin_absences(ordinal, weekday)
        sick, away = self.sick_until > ordinal, self.away_until > ordinal
        agenda = Agenda(self.n)
        finish_min = self._add_work(agenda, ordinal, ~sick & ~away, holiday=holiday)
        self._add_habits(agenda, weekday, ~sick & ~away)
        works = np.isfinite(finish_min)
        for column, outing in enumerate(OUTINGS, start=FIRST_OUTING):
            evening = outing.part == EVENING
            straight = works & (finish_min < LAST_STRAIGHT_MIN) & (self.rng.random(self.n) < 0.55) & evening
            festive = 1.4 if evening and weekday in (4, 5) else 1.0
            rate = outing.rate * festive * self.people.outgoing * np.where(sick, 0.1, 1.0) * (evening | ~works)
            going = self.rng.random(self.n) < np.where(away, 0.8, rate)
            usual_min = outing.usual_min + 0.6 * self.people.chronotype_min
            go_min = np.where(straight, finish_min, usual_min + self.rng.normal(0, outing.spread_min, self.n))
            self._add_outing(agenda, column, outing.part, np.flatnonzero(going & ~away), straight, go_min)
            self._add_visit(agenda, column, np.flatnonzero(going & away), go_min)
        return agenda.sorted(np.where(away, self.lodging, self.people.home))

    def _begin_absences(self, ordinal: int, weekday: int) -> None:
        """Let some people fall ill, and some set off to a town, for a few days."""
        present = np.maximum(self.sick_until, self.away_until) <= ordinal
        ill = present & (self.rng.random(self.n) < SICK_RATE)
        leaves = present & ~ill & (self.rng.random(self.n) < self.people.travel * (2.2 if weekday >= 4 else 0.6))
        self.sick_until[ill] = ordinal + self.rng.geometric(0.5, self.n)[ill]
        self.away_until[leaves] = ordinal + self.rng.geometric(0.4, self.n)[leaves]
        town = self.rng.integers(0, self.places.city.n_towns, self.n)
        bed = self.rng.integers(0, LODGINGS_PER_TOWN, self.n)
        self.lodging[leaves] = self.towns[town * PLACES_PER_TOWN + bed][leaves]

    def _add_work(self, agenda: Agenda, ordinal: int, present: Bool, *, holiday: bool) -> Float64:
        """When each finishes work, local minutes, infinite for those who do not work; adds work and lunch."""
        people, rng, n = self.people, self.rng, self.n
        shift = np.where(people.rota >= 0, ROTA_START_MIN[(people.rota + ordinal) % len(ROTA_START_MIN)], np.nan)
        on_shift = np.isfinite(shift)
        attends = (rng.random(n) < people.work_days[:, (ordinal - 1) % 7]) & (not holiday)
        works = np.flatnonzero(present & (attends | on_shift))
        start = np.where(on_shift, shift, people.work_start_min) + rng.normal(0, 0.6, n) * people.jitter_min
        length = people.work_min + rng.normal(0, 1.2, n) * people.jitter_min + rng.exponential(35, n)
        pause = start + 0.38 * length
        finish = start + length
        eats_out = (length > 400) & (rng.random(n) < people.lunch)
        eating = rng.lognormal(np.log(38), 0.25, n)
        after = finish - pause - np.where(eats_out, eating + 10, 0)
        for column, go, stay in [
            (BEFORE_LUNCH, start - people.commute_min, pause - start),
            (AFTER_LUNCH, pause + 1, after),  # a minute later sorts it behind lunch
        ]:
            agenda.add(column, works, go_min=go[works], place=people.work[works], stay_min=stay[works])
        eaters = works[eats_out[works]]
        place = self._choose(eaters, np.ones(len(eaters), dtype=np.int64), LUNCH)
        agenda.add(AT_LUNCH, eaters, go_min=pause[eaters], place=place, stay_min=eating[eaters])
        return np.where(np.isin(np.arange(n), works), finish, np.inf)

    def _add_habits(self, agenda: Agenda, weekday: int, present: Bool) -> None:
        """Add the habits that fall on the weekday and are kept this time."""
        people, rng = self.people, self.rng
        for h, habit in enumerate(HABITS):
            kept = rng.random(self.n) < habit.adherence * (0.5 + 0.5 * people.regularity)
            who = np.flatnonzero(people.habit_days[:, h, weekday] & present & kept)
            go = people.habit_go_min[who, h] + rng.normal(0, 1, len(who)) * people.jitter_min[who]
            stay = people.habit_stay_min[who, h] * rng.lognormal(0, 0.2, len(who))
            agenda.add(FIRST_HABIT + h, who, go_min=go, place=people.habit_place[who, h], stay_min=stay)

    def _add_outing(self, agenda: Agenda, column: int, part: int, who: Int64, straight: Bool, go_min: Float64) -> None:
        """Add an outing in the city; whoever goes `straight` from work looks around there."""
        place = self._choose(who, straight[who].astype(np.int64), part)
        stay = STAY_MIN[self.places.kind[place]] * self.rng.lognormal(0, 0.45, len(who))
        agenda.add(column, who, go_min=go_min[who], place=place, stay_min=stay)

    def _add_visit(self, agenda: Agenda, column: int, who: Int64, go_min: Float64) -> None:
        """Add a visit to some place of the town where each of `who` is staying."""
        town = (self.lodging[who] - self.towns[0]) // PLACES_PER_TOWN
        place = self.towns[town * PLACES_PER_TOWN + self.rng.integers(0, PLACES_PER_TOWN, len(who))]
        stay = 80.0 * self.rng.lognormal(0, 0.45, len(who))
        agenda.add(column, who, go_min=go_min[who], place=place, stay_min=stay)

    def _choose(self, who: Int64, at: Int64, part: int) -> Int64:
        """Where each of `who` goes, seen from home (`at` 0) or from work (`at` 1): a new place or a known one."""
        places, n_known = self.places, self.n_known[who]
        explores = (self.rng.random(len(who)) < EXPLORE_RHO * n_known**-EXPLORE_GAMMA) & (n_known < MAX_KNOWN)
        width = int(n_known.max(initial=1))
        known = self.known[who, :width]  # (W, width)
        origin = np.where(at == 1, self.people.work[who], self.people.home[who])[:, None]
        far_m = np.abs(places.x[known] - places.x[origin]) + np.abs(places.y[known] - places.y[origin])
        appeal = APPEAL[part][places.kind[known]] + 0.01  # nothing is out of the question
        draw = self.visits[who, :width] * appeal / (1 + far_m / self.people.range_m[who][:, None])
        total = np.cumsum(draw, axis=1)
        below = total < (self.rng.random(len(who)) * total[:, -1])[:, None]
        back = known[np.arange(len(who)), np.minimum(below.sum(axis=1), n_known - 1)]
        chosen = np.where(explores, self._explore(who, at, part), back)
        self._remember(who, chosen, 1.0)
        return chosen

    def _explore(self, who: Int64, at: Int64, part: int) -> Int64:
        """For each of `who` a place by the appeal of its kind, then by popularity and distance."""
        kind = self.rng.choice(N_OTHER_KINDS, len(who), p=APPEAL[part] / APPEAL[part].sum())
        first, last = self.first_of_kind[kind], self.first_of_kind[kind + 1]
        rising = self.people.rising
        low, high = rising[at, who, first], rising[at, who, last]
        goal = low + self.rng.random(len(who)) * (high - low)
        row = at * self.n + who
        column = np.searchsorted(rising.ravel(), goal, side="right") - row * rising.shape[2] - 1
        found: Int64 = self.others[np.clip(column, first, last - 1)]
        return found

    def _remember(self, who: Int64, place: Int64, visits: float) -> None:
        """Count a visit of each of `who`, entering the places that are new to them."""
        same = (self.known[who] == place[:, None]) & (self.visits[who] > 0)
        is_known = same.any(axis=1)
        column = np.where(is_known, same.argmax(axis=1), np.minimum(self.n_known[who], MAX_KNOWN - 1))
        self.known[who, column] = place
        self.visits[who, column] += visits
        self.n_known[who] = np.minimum(self.n_known[who] + ~is_known, MAX_KNOWN)
