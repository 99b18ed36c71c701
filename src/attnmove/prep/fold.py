"""Points to user-days: sorted by the engine, folded by one vectorised function over whole days.

The engine does what engines are good at (scan, check, sort, spill, spread over machines); `fold_days` does the rest in
numpy, a batch of whole user-days at a time. The same function runs inside DuckDB's stream, in Spark's workers, and
wherever else a handful of points must become days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from attnmove.engine import Engine
from attnmove.io.clock import load_zone, local_of, local_seconds
from attnmove.nouns import Bool, Float64, Int64, Points
from attnmove.prep.config import Preparation
from attnmove.space.datum import to_wgs84
from attnmove.space.tessellation import NO_CELL, Tessellation

if TYPE_CHECKING:
    import ibis.expr.types as ir

KeyFunction = Callable[[Float64, Float64], Int64]
"""(lon, lat) in the source's datum -> key of the cell, NO_CELL where there is none."""

_SECONDS_PER_DAY = 86_400
_CELL = pa.struct([("slot", pa.int16()), ("key", pa.int64())])
_REFUSED = pa.struct([("reason", pa.string()), ("time_us", pa.int64()), ("lat", pa.float64()), ("lon", pa.float64())])
FOLDED = pa.schema(
    [
        ("user", pa.string()),
        ("day", pa.int32()),  # since 1970, local
        ("fixes", pa.int64()),  # accepted, duplicates and those in no location included
        ("cells", pa.list_(_CELL)),
        ("refused", pa.list_(_REFUSED)),
    ]
)
"""One row a user-day: its observed slots with their keys, and the fixes that were refused on the way."""


@dataclass(frozen=True)
class Placing:
    """Coordinates of a datum to the keys of a tessellation; an object, so that it can be sent to other machines."""

    rule: Tessellation
    datum: str

    def __call__(self, lon: Float64, lat: Float64) -> Int64:
        return self.rule.keys(lon, lat) if self.datum == "wgs84" else self.rule.keys(*to_wgs84(lon, lat, self.datum))


def fold(engine: Engine, points: Points, keys: KeyFunction, how: Preparation) -> Iterator[pa.RecordBatch]:
    """The FOLDED rows of all accepted points, by user and day."""
    function = partial(fold_days, keys=keys, n_slots=how.n_slots, slot_rule=how.slot_rule)
    order = ["user", "day", "time_us"]
    return engine.map_groups(_timed(points, how), function, order=order, together=2, schema=FOLDED)


def _timed(points: Points, how: Preparation) -> ir.Table:
    """The accepted fixes with the local `day` and `slot` they fall into."""
    t = points.table.filter(points.table.reason.isnull())
    local = local_seconds(t.time_us // 1_000_000, load_zone(how.timezone))
    return t.select(
        "user",
        "time_us",
        "lon",
        "lat",
        day=(local // _SECONDS_PER_DAY).cast("int32"),
        slot=(local % _SECONDS_PER_DAY // (how.slot_minutes * 60)).cast("int16"),
    )


def fold_in_memory(table: pa.Table, keys: KeyFunction, how: Preparation) -> pa.RecordBatch:
    """The FOLDED rows of accepted fixes (`user, time_us, lon, lat`, no nulls) in any order, without an engine."""
    if len(table) == 0:
        return pa.RecordBatch.from_pylist([], schema=FOLDED)
    time = table["time_us"].to_numpy()
    user = np.unique(np.array(table["user"].to_pylist(), dtype=object), return_inverse=True)[1]
    local = local_of(time // 1_000_000, load_zone(how.timezone))
    day = (local // _SECONDS_PER_DAY).astype(np.int32)
    slot = (local % _SECONDS_PER_DAY // (how.slot_minutes * 60)).astype(np.int16)
    order = np.lexsort((time, day, user))
    timed = table.append_column("day", pa.array(day)).append_column("slot", pa.array(slot)).take(pa.array(order))
    return fold_days(timed, keys=keys, n_slots=how.n_slots, slot_rule=how.slot_rule)


def fold_days(table: pa.Table, *, keys: KeyFunction, n_slots: int, slot_rule: str) -> pa.RecordBatch:
    """FOLDED rows of whole user-days sorted by user, day and time.

    Where two fixes of a user have the same time and place, one counts. `mode`: the key with most fixes, then the one
    seen first, then the lower; `last`: that of the last fix, then the one with more fixes, then the lower.
    """
    users, user = _codes(table["user"])
    day, slot, time, lon, lat = (
        table[name].combine_chunks().to_numpy() for name in ("day", "slot", "time_us", "lon", "lat")
    )
    starts = _starts((user, day))
    owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(day)))
    lon, lat = _sort_ties(owner, time, lon, lat)
    duplicate = np.zeros(len(day), dtype=np.bool_)
    duplicate[1:] = _equal_neighbours(owner, time, lon, lat)
    key = np.full(len(day), NO_CELL, dtype=np.int64)
    key[~duplicate] = keys(lon[~duplicate], lat[~duplicate])
    placed = key != NO_CELL
    group, answer = _choose(owner[placed] * n_slots + slot[placed], key[placed], time[placed], slot_rule)
    refused = np.flatnonzero(~placed)
    reason = np.where(duplicate[refused], "duplicate", "outside")
    return pa.RecordBatch.from_arrays(
        [
            users.take(pa.array(user[starts])),
            pa.array(day[starts], pa.int32()),
            pa.array(np.bincount(owner, minlength=len(starts)), pa.int64()),
            _lists(group // n_slots, len(starts), _CELL, group % n_slots, answer),
            _lists(owner[refused], len(starts), _REFUSED, reason, time[refused], lat[refused], lon[refused]),
        ],
        schema=FOLDED,
    )


def _choose(group: Int64, key: Int64, time: Int64, slot_rule: str) -> tuple[Int64, Int64]:
    """Each (user-day, slot) once, ascending, and its key."""
    if np.any(group[1:] < group[:-1]):
        # An hour that occurs twice: the second pass comes back to the slots of the first.
        order = np.argsort(group, kind="stable")
        group, key, time = group[order], key[order], time[order]
    starts = _starts((group,))
    if len(starts) == 0:
        return group, key
    answer = np.minimum.reduceat(key, starts)
    mixed = answer != np.maximum.reduceat(key, starts)
    if mixed.any():
        rows = np.repeat(mixed, np.diff(starts, append=len(group)))
        answer[mixed] = _vote(group[rows], key[rows], time[rows], slot_rule)
    return group[starts], answer


def _vote(group: Int64, key: Int64, time: Int64, slot_rule: str) -> Int64:
    """The key of each group that has several."""
    order = np.lexsort((key, group))
    group, key, time = group[order], key[order], time[order]
    cells = _starts((group, key))
    n_fixes = np.diff(cells, append=len(group))
    first, last = np.minimum.reduceat(time, cells), np.maximum.reduceat(time, cells)
    group, key = group[cells], key[cells]
    keep_order = (key, first, -n_fixes, group) if slot_rule == "mode" else (key, -n_fixes, -last, group)
    best = np.lexsort(keep_order)
    winners: Int64 = key[best][_starts((group[best],))]
    return winners


def _starts(columns: tuple[Any, ...]) -> Int64:
    """Where a run of equal rows starts."""
    if len(columns[0]) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], ~_equal_neighbours(*columns)]))


def _equal_neighbours(*columns: Any) -> Bool:
    """(n - 1,) True where a row equals the one before it in all columns."""
    equal: Bool = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return equal


def _sort_ties(owner: Int64, time: Int64, lon: Float64, lat: Float64) -> tuple[Float64, Float64]:
    """Positions of fixes at the same instant in a fixed order, so that equal ones are neighbours."""
    tied = _equal_neighbours(owner, time)
    if not tied.any():
        return lon, lat
    rows = np.flatnonzero(np.concatenate([[False], tied]) | np.concatenate([tied, [False]]))
    order = rows[np.lexsort((lat[rows], lon[rows], time[rows], owner[rows]))]
    lon, lat = lon.copy(), lat.copy()
    lon[rows], lat[rows] = lon[order], lat[order]
    return lon, lat


def _codes(column: pa.ChunkedArray) -> tuple[pa.Array, Int64]:
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    return encoded.dictionary, encoded.indices.to_numpy()


def _lists(owner: Int64, n: int, kind: pa.StructType, *columns: Any) -> pa.Array:
    """For each of n owners (ascending) the list of its rows."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))]).astype(np.int32)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, kind, strict=True)]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(arrays, fields=list(kind)))
