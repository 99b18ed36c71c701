"""What other people do: counts over the training days, from which each user's own are taken out again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnmove.errors import DataError, RunError
from attnmove.models.contract import State, check_within, taken
from attnmove.models.habits import day_rows, spread, user_keys
from attnmove.nouns import MISSING, Bool, Cases, Float32, Int32, Int64

TIMES_OF_DAY = 8
"""Parts of the day in which visits are counted apart."""
_LONGEST_MOVE = 4
"""Slots between the two ends of a move; a move over n slots counts 1 / n."""
_WEIGHT = 12
"""What a move over one slot counts, so that counts stay whole numbers: divisible by 1 to _LONGEST_MOVE."""
_KEPT_MOVES = 64
"""Most frequent moves of others that are told of, from and to a location."""
_MOST_COUNTED = 1 << 40
"""A count beyond this is forged; sums of less stay whole numbers."""
_LOOKED_AT_POPULAR = 64
"""Locations among which the most popular ones are looked for, more where many of them are the user's own."""


@dataclass(frozen=True)
class Counts:
    """Whole numbers by key: a sparse table."""

    key: Int64
    """Ascending, each once."""
    count: Int64

    @classmethod
    def of(cls, keys: Int64, weights: Int64 | None = None) -> Counts:
        key, inverse, count = np.unique(keys, return_inverse=True, return_counts=True)
        if weights is not None:
            count = np.bincount(inverse, weights=weights, minlength=len(key)).astype(np.int64)
        return cls(key, count.astype(np.int64))

    def at(self, keys: Int64) -> Int64:
        """The count of each key, 0 where there is none."""
        if len(self.key) == 0:
            return np.zeros(keys.shape, dtype=np.int64)
        found = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        return np.where(self.key[found] == keys, self.count[found], 0)


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves of others from, or to, the places beside M targets, the most frequent first."""

    target: Int64
    """Which target a move is for; ascending."""
    end: Int64
    """The other end of the move."""
    rank: Int64
    """0 for the most frequent of the target; of equals the lower id."""
    count: Float32
    total: Float32
    """(M,) all moves from, or to, the place of each target."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Visits by location and time of day, and moves from location to location, of all and of each user.

    Whoever asks for a user's evidence asks with the user's number and gets the counts of all the others.
    """

    user: Int64
    """(U,) keys of the users, ascending; a user's number is the position."""
    visits: Int64
    """(L * TIMES_OF_DAY,) by location, then time of day."""
    people: Int64
    """(L,) users who were seen there."""
    own_visits_key: Int64
    """number * L * TIMES_OF_DAY + location * TIMES_OF_DAY + time of day."""
    own_visits: Int64
    moves_key: Int64
    """from * L + to."""
    moves: Int64
    own_moves_key: Int64
    """(number * L + from) * L + to."""
    own_moves: Int64

    @classmethod
    def of(cls, cases: Cases) -> Crowd:
        """What the whole days of the cases show."""
        n = len(cases.locations)
        rows = day_rows(cases)
        loc = cases.loc[rows].astype(np.int64)
        user, number = np.unique(user_keys(cases.user[rows]), return_inverse=True)
        row, slot = np.nonzero(loc != MISSING)
        visit = loc[row, slot] * TIMES_OF_DAY + slot * TIMES_OF_DAY // max(1, loc.shape[1])
        own = Counts.of(number[row] * (n * TIMES_OF_DAY) + visit)
        moved, weight, mover = _moves(loc, n)
        all_moves, own_moves = Counts.of(moved, weight), Counts.of(number[mover] * (n * n) + moved, weight)
        return cls(
            user=user,
            visits=np.bincount(visit, minlength=n * TIMES_OF_DAY).astype(np.int64),
            people=np.bincount(np.unique(own.key // TIMES_OF_DAY) % max(1, n), minlength=n).astype(np.int64),
            own_visits_key=own.key,
            own_visits=own.count,
            moves_key=all_moves.key,
            moves=all_moves.count,
            own_moves_key=own_moves.key,
            own_moves=own_moves.count,
        )

    @property
    def n_locations(self) -> int:
        return len(self.people)

    def numbers_of(self, cases: Cases) -> Int64:
        """(K,) the number of each row's user, MISSING for a stranger."""
        keys = user_keys(cases.user)
        if len(self.user) == 0:
            return np.full(len(keys), MISSING)
        at = np.minimum(np.searchsorted(self.user, keys), len(self.user) - 1)
        return np.where(self.user[at] == keys, at, MISSING)

    def visits_at(self, number: Int64, place: Int64, slot: Int64, n_slots: int) -> tuple[Float32, Float32, Float32]:
        """Of everybody else at each location: visits, visits at this time of day, people."""
        pair = number * self.n_locations + place
        stranger = number == MISSING
        at, mine = found(self._own_pairs, pair)
        mine &= ~stranger
        at, own = at[mine], np.flatnonzero(mine)
        time = slot * TIMES_OF_DAY // n_slots
        at_time = self.visits[place * TIMES_OF_DAY + time]
        at_time[own] -= self._own_table[at, time[own]]
        total = self.total_visits[place]
        total[own] -= self._own_total[at]
        return total.astype(np.float32), at_time.astype(np.float32), (self.people[place] - mine).astype(np.float32)

    def moves_from(self, number: Int64, place: Int32) -> Moves:
        """Where everybody else goes from each place."""
        return self._others(number, place, self._successors, leaving=True)

    def moves_to(self, number: Int64, place: Int32) -> Moves:
        """Where everybody else comes from to each place."""
        return self._others(number, place, self._predecessors, leaving=False)

    def popular(self, number: Int64, k: int) -> Int64:
        """(M, k) the locations that most others visit, for each user number; MISSING where there are fewer."""
        distinct, which = np.unique(number, return_inverse=True)
        looked_at = min(_LOOKED_AT_POPULAR, self.n_locations)
        while True:
            # A place of the user's own beyond those looked at is behind every place of others that is among them.
            place = np.sort(self._by_people[:looked_at])
            pair = distinct[:, None] * self.n_locations + place
            mine = found(self._own_pairs, pair)[1] & (distinct != MISSING)[:, None]
            if looked_at == self.n_locations or (~mine).sum(axis=1).min(initial=k) >= k:
                break
            looked_at = min(4 * looked_at, self.n_locations)
        people = self.people[place] - mine
        order = np.argsort(-people, axis=1, kind="stable")[:, :k]
        some = np.take_along_axis(people, order, axis=1) > 0
        best = np.full((len(distinct), k), MISSING)
        best[:, : order.shape[1]] = np.where(some, place[order], MISSING)
        return best[which]

    def check(self, cases: Cases) -> None:
        """Raise DataError unless the cases are about the locations that were counted."""
        if len(cases.locations) != self.n_locations:
            raise DataError(
                f"the model knows {self.n_locations:,} locations, the data have {len(cases.locations):,}: it was "
                "trained on another dataset"
            )

    def state(self) -> State:
        """The arrays of a run."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def restored(cls, state: State) -> Crowd:
        """The crowd of a run's arrays. Raises RunError where they cannot be one."""
        made = cls(**{name: taken(state, name, "i") for name in cls.__dataclass_fields__})
        n, users = made.n_locations, len(made.user)
        pairs = ((made.own_visits_key, made.own_visits), (made.moves_key, made.moves))
        if n == 0 or any(len(key) != len(count) for key, count in (*pairs, (made.own_moves_key, made.own_moves))):
            raise RunError("arrays of counts that do not fit together")
        if len(made.visits) != n * TIMES_OF_DAY:
            raise RunError("visits of other locations than there are")
        check_within(made.own_visits_key, 0, users * n * TIMES_OF_DAY)
        check_within(made.moves_key, 0, n * n)
        check_within(made.own_moves_key, 0, users * n * n)
        for key in (made.user, made.own_visits_key, made.moves_key, made.own_moves_key):
            if np.any(key[1:] <= key[:-1]):
                raise RunError("keys that do not rise")
        for count in (made.visits, made.people, made.own_visits, made.moves, made.own_moves):
            check_within(count, 0, _MOST_COUNTED)
        return made

    def _others(self, number: Int64, place: Int32, lists: tuple[Int64, Int64, Int64], *, leaving: bool) -> Moves:
        """The user's own moves are taken out before anything is cut, so that they do not show in what is left."""
        start, other, count = lists
        n = self.n_locations
        asked = np.flatnonzero(place != MISSING)
        pair, which = np.unique((number[asked] + 1) * n + place[asked], return_inverse=True)  # a user at a place
        user, here = pair // n - 1, pair % n
        of, entry = spread(start[here], start[here + 1])
        end = other[entry]
        move = here[of] * n + end if leaving else end * n + here[of]
        own = Counts(self.own_moves_key, self.own_moves).at(user[of] * n**2 + move)
        left = count[entry] - np.where(user[of] == MISSING, 0, own)
        total = np.bincount(of, left, len(pair)) / _WEIGHT
        some = np.flatnonzero(left > 0)  # a place only the user goes to is no news of others
        order = some[np.lexsort((end[some], -left[some], of[some]))]
        first = np.searchsorted(of[order], np.arange(len(pair) + 1))
        rank = np.arange(len(order)) - first[of[order]]
        order, rank = order[rank < _KEPT_MOVES], rank[rank < _KEPT_MOVES]
        first = np.searchsorted(of[order], np.arange(len(pair) + 1))
        target, entry = spread(first[which], first[which + 1])
        of_asked = np.zeros(len(place), dtype=np.float32)
        of_asked[asked] = total[which]
        return Moves(
            target=asked[target],
            end=end[order][entry],
            rank=rank[entry],
            count=(left[order][entry] / _WEIGHT).astype(np.float32),
            total=of_asked,
        )

    @cached_property
    def total_visits(self) -> Int64:
        """(L,) of everybody, at any time."""
        total: Int64 = self.visits.reshape(-1, TIMES_OF_DAY).sum(axis=1)
        return total

    @cached_property
    def _own_pairs(self) -> Int64:
        """number * L + location of every user's places, ascending."""
        return np.unique(self.own_visits_key // TIMES_OF_DAY)

    @cached_property
    def _own_table(self) -> Int64:
        """(pairs, TIMES_OF_DAY)"""
        table = np.zeros((len(self._own_pairs), TIMES_OF_DAY), dtype=np.int64)
        row = np.searchsorted(self._own_pairs, self.own_visits_key // TIMES_OF_DAY)
        table[row, self.own_visits_key % TIMES_OF_DAY] = self.own_visits
        return table

    @cached_property
    def _own_total(self) -> Int64:
        total: Int64 = self._own_table.sum(axis=1)
        return total

    @cached_property
    def _by_people(self) -> Int64:
        return np.argsort(-self.people, kind="stable")

    @cached_property
    def _successors(self) -> tuple[Int64, Int64, Int64]:
        n = self.n_locations
        return _grouped(self.moves_key // n, self.moves_key % n, self.moves, n)

    @cached_property
    def _predecessors(self) -> tuple[Int64, Int64, Int64]:
        n = self.n_locations
        return _grouped(self.moves_key % n, self.moves_key // n, self.moves, n)


def _moves(loc: Int64, n_locations: int) -> tuple[Int64, Int64, Int64]:
    """Every move within a day as from * L + to, its weight, and its row."""
    pair, weight, row = [], [], []
    for lag in range(1, min(_LONGEST_MOVE, loc.shape[1] - 1) + 1):
        here, there = loc[:, :-lag], loc[:, lag:]
        r, s = np.nonzero((here != MISSING) & (there != MISSING))
        pair.append(here[r, s] * n_locations + there[r, s])
        weight.append(np.full(len(r), _WEIGHT // lag))
        row.append(r)
    none = [np.zeros(0, dtype=np.int64)]
    return np.concatenate(pair or none), np.concatenate(weight or none), np.concatenate(row or none)


def _grouped(group: Int64, member: Int64, count: Int64, n_groups: int) -> tuple[Int64, Int64, Int64]:
    """Where each group begins among the members and their counts, which stand group by group."""
    order = np.argsort(group, kind="stable")
    return np.searchsorted(group[order], np.arange(n_groups + 1)), member[order], count[order]


def found(keys: Int64, wanted: Int64) -> tuple[Int64, Bool]:
    """Where each wanted key is among the ascending keys, and whether it is there."""
    if len(keys) == 0:
        return np.zeros(wanted.shape, dtype=np.int64), np.zeros(wanted.shape, dtype=np.bool_)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    there: Bool = keys[at] == wanted
    return at, there
