"""Folded user-days gathered into arrays: the filters are applied on the way, so that only what is kept takes memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from attnmove.nouns import MISSING, Dates, Int32, Int64, Locations, Text
from attnmove.prep.config import Preparation
from attnmove.prep.rejects import Rejects
from attnmove.space.tessellation import Tessellation


@dataclass
class Gathered:
    """The kept user-days and counts of everything that went by."""

    user: Text
    date: Dates
    number: Int32
    """(N, T) positions in `keys`, MISSING where nobody saw the user."""
    keys: Int64
    """The cells met, in the order they were first met."""
    fixes: int
    """Accepted fixes, duplicates and those in no location included."""
    days: int
    most_slots: int
    dropped: dict[str, int] = field(default_factory=dict)

    def locate(self, rule: Tessellation) -> tuple[Locations, Int32]:
        """The locations and the (N, T) ids. A finite tessellation keeps all its locations, an endless one those that
        occur."""
        every = rule.all_keys()
        used = np.unique(self.number)
        locations = rule.locations(np.sort(self.keys[used[used != MISSING]]) if every is None else every)
        final = np.append(locations.ids_of(self.keys), np.int32(MISSING))  # the last entry is what MISSING points at
        return locations, final[self.number]


def gather(folded: Iterable[pa.RecordBatch], rejects: Rejects, how: Preparation) -> Gathered:
    """Keep the days with enough observed slots of the users with enough such days; refused fixes go to `rejects`."""
    users: list[str] = []
    dates: list[Int64] = []
    blocks: list[Int32] = []
    numbering = _Numbering()
    fixes = days = most = 0
    seen_users = _Counter()
    for batch in folded:
        rejects.add_folded(batch)
        n_slots = batch.column("cells").value_lengths().to_numpy()
        fixes += int(pc.sum(batch.column("fixes")).as_py() or 0)
        days += len(batch)
        most = max(most, int(n_slots.max(initial=0)))
        seen_users.add(batch.column("user"))
        kept = batch.filter(pa.array(n_slots >= how.n_min_slots))
        if len(kept):
            users.extend(kept.column("user").to_pylist())
            dates.append(kept.column("day").to_numpy())
            blocks.append(_grid(kept.column("cells"), how.n_slots, numbering))
    names = np.array(users, dtype=object)
    day = np.concatenate([*dates, np.zeros(0, dtype=np.int32)])
    number = np.concatenate(blocks) if blocks else np.zeros((0, how.n_slots), dtype=np.int32)
    blocks.clear()
    enough = _enough_days(names, how.min_days)
    gathered = Gathered(
        user=names[enough],
        date=day[enough].astype("datetime64[D]"),
        number=number if enough.all() else number[enough],
        keys=numbering.keys,
        fixes=fixes,
        days=days,
        most_slots=most,
    )
    gathered.dropped = {
        "days_too_sparse": days - len(names),
        "days_of_users_with_too_few": len(names) - len(gathered.user),
        "users_with_too_few_days": seen_users.n - len(set(gathered.user.tolist())),
    }
    return gathered


def _grid(cells: pa.ListArray, n_slots: int, numbering: _Numbering) -> Int32:
    slots, keys = (pc.struct_field(cells.flatten(), name).to_numpy() for name in ("slot", "key"))
    grid = np.full((len(cells), n_slots), MISSING, dtype=np.int32)
    grid[np.repeat(np.arange(len(cells)), cells.value_lengths().to_numpy()), slots] = numbering.of(keys)
    return grid


def _enough_days(users: Text, least: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """True for the rows of users that have at least `least` (rows of a user are adjacent)."""
    if len(users) == 0:
        return np.zeros(0, dtype=np.bool_)
    starts = np.flatnonzero(np.concatenate([[True], users[1:] != users[:-1]]))
    n_days = np.diff(starts, append=len(users))
    return np.repeat(n_days >= least, n_days)


class _Counter:
    """Counts distinct users of a stream sorted by user."""

    def __init__(self) -> None:
        self.n = 0
        self._last: str | None = None

    def add(self, users: pa.Array) -> None:
        distinct = users.unique()
        if len(distinct):
            self.n += len(distinct) - (distinct[0].as_py() == self._last)
            self._last = distinct[-1].as_py()


class _Numbering:
    """Numbers keys in the order they are first met: an (N, T) table of 32-bit numbers is half of one of keys."""

    def __init__(self) -> None:
        self.keys: Int64 = np.zeros(0, dtype=np.int64)
        self._order: Int64 = np.zeros(0, dtype=np.int64)

    def of(self, keys: Int64) -> Int64:
        """The number of each key, new ones numbered now."""
        fresh = np.setdiff1d(keys, self.keys)
        if len(fresh):
            self.keys = np.concatenate([self.keys, fresh])
            self._order = np.argsort(self.keys, kind="stable")
        numbers: Int64 = self._order[np.searchsorted(self.keys, keys, sorter=self._order)]
        return numbers
