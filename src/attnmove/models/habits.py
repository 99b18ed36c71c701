"""How often people were seen where: counts over whole training days, of each user and of all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from attnmove.errors import DataError, RunError
from attnmove.models.contract import State, check_ranges, check_within, taken
from attnmove.nouns import MISSING, Cases, Float64, Int32, Int64, Text


def user_keys(users: Text | Iterable[str]) -> Int64:
    """A 64-bit number for each user: what a run remembers of them instead of their names."""
    names = np.asarray(users, dtype=object)
    distinct, inverse = np.unique(names, return_inverse=True)
    digests = [hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in distinct]
    keys = np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)
    return keys[inverse.reshape(names.shape)]


def day_rows(cases: Cases) -> Int64:
    """One row of each day of the cases, the first, though it may be there in several draws."""
    new = np.ones(len(cases), dtype=np.bool_)
    new[1:] = (cases.user[1:] != cases.user[:-1]) | (cases.date[1:] != cases.date[:-1])
    return np.flatnonzero(new)


@dataclass(frozen=True)
class Habits:
    """Counts of observed slots by user and location (sparse), and by location."""

    user: Int64
    """(U,) keys of the users, ascending."""
    start: Int64
    """(U + 1,) the places of user u are place[start[u]:start[u + 1]]."""
    place: Int32
    count: Int64
    everyone: Int64
    """(L,) of all users together."""

    @classmethod
    def of(cls, cases: Cases) -> Habits:
        """The habits that the whole days of the cases show."""
        n_locations = len(cases.locations)
        rows = day_rows(cases)
        user, loc = cases.user[rows], cases.loc[rows]
        row, slot = np.nonzero(loc != MISSING)
        keys, code = np.unique(user_keys(user), return_inverse=True)
        pair, count = np.unique(code[row].astype(np.int64) * n_locations + loc[row, slot], return_counts=True)
        return cls(
            user=keys,
            start=np.searchsorted(pair, np.arange(len(keys) + 1) * n_locations),
            place=(pair % max(1, n_locations)).astype(np.int32),
            count=count.astype(np.int64),
            everyone=np.bincount(loc[row, slot], minlength=n_locations).astype(np.int64),
        )

    def of_users(self, cases: Cases) -> Float64:
        """(K, L) counts of each row's user; of the earlier days in the cases where the user was not in training."""
        out = np.zeros((len(cases), len(self.everyone)))
        keys = user_keys(cases.user)
        at = np.minimum(np.searchsorted(self.user, keys), max(0, len(self.user) - 1))
        known = self.user[at] == keys if len(self.user) else np.zeros(len(keys), dtype=np.bool_)
        row, entry = spread(self.start[at[known]], self.start[at[known] + 1])
        np.add.at(out, (np.flatnonzero(known)[row], self.place[entry]), self.count[entry])
        strange = np.flatnonzero(~known)
        row, entry = spread(cases.first[strange], cases.end[strange])
        day, slot = np.nonzero(cases.past[entry] != MISSING)
        np.add.at(out, (strange[row[day]], cases.past[entry[day], slot]), 1)
        return out

    def check(self, cases: Cases) -> None:
        """Raise DataError unless the cases are about the locations whose habits these are."""
        if len(cases.locations) != len(self.everyone):
            raise DataError(
                f"the model knows {len(self.everyone):,} locations, the data have {len(cases.locations):,}: it was "
                "trained on another dataset"
            )

    def state(self) -> State:
        """The arrays of a run."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def restored(cls, state: State) -> Habits:
        """The habits of a run's arrays. Raises RunError where they cannot be any."""
        made = cls(**{name: taken(state, name, "i") for name in cls.__dataclass_fields__})
        check_ranges(made.start, len(made.place))
        check_within(made.place, 0, len(made.everyone))
        if not len(made.user) == len(made.start) - 1 or len(made.place) != len(made.count) or len(made.everyone) == 0:
            raise RunError("arrays of habits that do not fit together")
        return made


def spread(start: Int64, stop: Int64) -> tuple[Int64, Int64]:
    """Every number of each range start…stop-1, and which range it belongs to.

    >>> [part.tolist() for part in spread(np.array([3, 9]), np.array([5, 10]))]
    [[0, 0, 1], [3, 4, 9]]
    """
    length = stop - start
    which = np.repeat(np.arange(len(start)), length)
    within = np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length)
    return which, start[which] + within
