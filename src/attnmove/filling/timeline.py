"""Whole users on their continuous timelines: which days are to fill, what is known around each slot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from attnmove.errors import DataError
from attnmove.nouns import MISSING, Bool, Cases, Dates, Days, Int32, Int64, Locations, Text
from attnmove.prep.history import history_rows

DAY_ROWS = pa.schema(
    [
        ("user", pa.string()),
        ("day", pa.int32()),  # since 1970, local
        ("asked", pa.bool_()),  # False: known, but not to fill
        ("loc", pa.list_(pa.int32())),
    ]
)
"""One row a user-day on its way to be filled."""


@dataclass(frozen=True)
class Timelines:
    """All known days of some users, and which of them to fill."""

    days: Days
    asked: Bool
    """(N,) True for the days to fill; the others are history."""

    @classmethod
    def of(cls, days: Days, history: Days | None = None) -> Timelines:
        """The days, all to fill, among the days of the history; of two for one date the one to fill stays."""
        if history is None or len(history) == 0:
            return cls(days, np.ones(len(days), dtype=np.bool_))
        if history.n_slots != days.n_slots:
            raise DataError(f"history: {history.n_slots} slots a day, expected {days.n_slots}")
        known = history.rows(np.isin(history.user, days.user))
        return cls.merged(
            np.concatenate([days.user, known.user]),
            np.concatenate([days.date, known.date]),
            np.concatenate([days.loc, known.loc]),
            np.arange(len(days) + len(known)) < len(days),
        )

    @classmethod
    def from_rows(cls, rows: pa.Table) -> Timelines:
        """The timelines in DAY_ROWS of whole users."""
        user = np.array(rows["user"].to_pylist(), dtype=object)
        date = rows["day"].to_numpy().astype("datetime64[D]")
        loc = rows["loc"].combine_chunks().flatten().to_numpy().astype(np.int32).reshape(len(rows), -1)
        return cls.merged(user, date, loc, rows["asked"].to_numpy())

    @classmethod
    def merged(cls, user: Text, date: Dates, loc: Int32, asked: Bool) -> Timelines:
        """Rows in any order as timelines; of two rows for one date the one to fill stays."""
        order = np.lexsort((~asked, date, np.unique(user, return_inverse=True)[1]))
        user, date, loc, asked = user[order], date[order], loc[order], asked[order]
        again = np.zeros(len(user), dtype=np.bool_)
        again[1:] = (user[1:] == user[:-1]) & (date[1:] == date[:-1]) & ~asked[1:]
        return cls(days_of(user[~again], date[~again], loc[~again]), asked[~again])

    def pieces(self, most_days: int) -> Iterator[Timelines]:
        """The same days, so many to fill at a time."""
        number = np.cumsum(self.asked) - 1
        for first in range(0, max(1, int(self.asked.sum())), most_days):
            yield Timelines(self.days, self.asked & (number >= first) & (number < first + most_days))

    @property
    def rows(self) -> Int64:
        """(K,) the days to fill of which anything is known."""
        return np.flatnonzero(self.asked & self.days.observed.any(axis=1))

    def gaps(self) -> Int64:
        """(K, T) for each slot of `rows`, the length in slots of the unseen run around it; 0 where it is observed.

        A run goes on over midnight and over days nobody saw, up to the first and last known day of the user.
        """
        days, n_slots = self.days, self.days.n_slots
        if len(days) == 0:
            return np.zeros((0, n_slots), dtype=np.int64)
        first = days.first_of_user
        day = days.date.astype(np.int64)
        # Users one after the other on one axis, a slot apart: what belongs to whom can be told by the place alone.
        is_first = first == np.arange(len(days))
        last = np.append(np.flatnonzero(is_first)[1:] - 1, len(days) - 1)
        length = (day[last] - day[is_first] + 1) * n_slots + 1
        begin = np.repeat(np.cumsum(length) - length, np.diff(np.append(np.flatnonzero(is_first), len(days))))
        place = begin[:, None] + (day - day[first])[:, None] * n_slots + np.arange(n_slots)  # (N, T)
        fence = np.append(np.cumsum(length) - 1, -1)
        known = np.sort(np.concatenate([place[days.observed], fence]))
        mine, seen = place[self.rows], days.observed[self.rows]
        after = np.searchsorted(known, mine)
        gap = known[after] - known[after - 1] - 1
        return np.where(seen, 0, gap)

    def cases(self, asked: Bool, locations: Locations) -> Cases:
        """The days of `rows` as a model meets them, asked for the slots `asked` (K, T)."""
        rows, days = self.rows, self.days
        first = days.first_of_user
        return Cases(
            user=days.user[rows],
            date=days.date[rows],
            loc=days.loc[rows],
            hidden=asked,
            history=history_rows(days.loc, first)[rows],
            past=days.loc,
            past_date=days.date,
            first=first[rows],
            end=rows,
            locations=locations,
        )


def days_of(user: Text, date: Dates, loc: Int32) -> Days:
    """Days that belong to no split."""
    return Days(user, date, loc, np.full(len(user), "past", dtype=object))


def grid_of(cells: pa.ListArray, n_slots: int) -> Int32:
    """(N, T) the ids of folded user-days whose keys are ids of locations."""
    flat = cells.flatten()
    grid = np.full((len(cells), n_slots), MISSING, dtype=np.int32)
    row = np.repeat(np.arange(len(cells)), cells.value_lengths().to_numpy())
    grid[row, flat.field("slot").to_numpy()] = flat.field("key").to_numpy()
    return grid
