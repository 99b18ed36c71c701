"""The nouns everything else is a verb between: their columns, types and checks. Arrays only: numpy and pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from attnmove.errors import DataError

if TYPE_CHECKING:
    import ibis.expr.types as ir

MISSING = -1
"""The location of a slot nobody saw."""

MINUTES_PER_DAY = 1440
SPLITS = ("past", "train", "valid", "test")
"""`past` days are history only: the first days of each user."""

EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the Earth; all distances are on the sphere."""

SATURDAY = 5
"""The weekday; Monday is 0."""

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Text = npt.NDArray[np.object_]
Dates = npt.NDArray[np.datetime64]


@dataclass(frozen=True)
class Points:
    """A table of fixes, not yet read: `user, time (UTC), lon, lat`, and `reason` where a row is refused.

    The table also has the source's own text of each of the four (`raw_user, raw_time, raw_lat, raw_lon`), so that a
    refused row can be kept as it was written.
    """

    table: ir.Table
    source: str
    """What was read, as the user named it."""
    format: str
    """csv, parquet, ndjson, geolife, gpx, google, table."""
    chosen: Mapping[str, str]
    """How each of user, time, lat, lon was found: the column, and how its values are read."""


def distance_m(lon1: Float64, lat1: Float64, lon2: Float64, lat2: Float64) -> Float64:
    """Great-circle distance in metres, element by element (haversine)."""
    phi1, phi2 = np.radians(lat1), np.radians(lat2)
    half_dphi = (phi2 - phi1) / 2
    half_dlam = np.radians(np.subtract(lon2, lon1)) / 2
    a = np.sin(half_dphi) ** 2 + np.cos(phi1) * np.cos(phi2) * np.sin(half_dlam) ** 2
    out: Float64 = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.clip(a, 0.0, 1.0)))
    return out


@dataclass(frozen=True)
class Locations:
    """The L locations of a dataset; row number = id.

    `lon`, `lat` are NaN for a location whose place is not known (opaque ids). `geometry` is WKB, or None.
    """

    name: Text
    """The id in the source: H3 index, polygon property, grid cell, released region id."""
    lon: Float64
    lat: Float64
    key: Int64
    """What the tessellation's rule answers for a point inside (L,), each once."""
    geometry: list[bytes | None] | None = None

    def __post_init__(self) -> None:
        n = len(self.name)
        if not (len(self.lon) == len(self.lat) == len(self.key) == n):
            raise DataError("locations: name, lon, lat and key must have the same length")
        if self.geometry is not None and len(self.geometry) != n:
            raise DataError(f"locations: {n} names but {len(self.geometry)} geometries")
        if len(np.unique(self.key)) != n:
            raise DataError("locations: a key occurs twice")

    def __len__(self) -> int:
        return len(self.name)

    @property
    def centres(self) -> Float64:
        """(L, 2) longitude, latitude in degrees."""
        return np.column_stack([self.lon, self.lat])

    @property
    def on_sphere(self) -> Float64:
        """(L, 3) the centres as points of the unit sphere; NaN where not known."""
        lon, lat = np.radians(self.lon), np.radians(self.lat)
        return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])

    def ids_of(self, keys: Int64) -> Int32:
        """The id of each key, MISSING where no location has it."""
        if len(self) == 0:
            return np.full(len(keys), MISSING, dtype=np.int32)
        order = np.argsort(self.key, kind="stable")
        at = np.minimum(np.searchsorted(self.key[order], keys), len(self) - 1)
        found = order[at]
        return np.where(self.key[found] == keys, found, MISSING).astype(np.int32)

    def distance_m(self, i: Int32, j: Int32) -> Float64:
        """Metres between the centres of locations `i` and `j`, element by element; NaN where one is not known."""
        return distance_m(self.lon[i], self.lat[i], self.lon[j], self.lat[j])


@dataclass(frozen=True)
class Days:
    """N user-days of T slots, sorted by user and date."""

    user: Text
    date: Dates
    loc: Int32
    """(N, T) location ids, MISSING where nobody saw the user."""
    split: Text

    def __post_init__(self) -> None:
        n = len(self.user)
        if self.loc.ndim != 2 or self.loc.dtype != np.int32:
            raise DataError(f"days: loc must be (N, T) int32; found {self.loc.shape} {self.loc.dtype}")
        if not (len(self.date) == len(self.split) == len(self.loc) == n):
            raise DataError("days: user, date, split and loc must have the same length")
        unknown = set(self.split.tolist()) - set(SPLITS)
        if unknown:
            raise DataError(f"days: split must be one of {', '.join(SPLITS)}; found {', '.join(sorted(unknown))}")
        if n > 1:
            ahead = (self.user[1:] > self.user[:-1]) | (
                (self.user[1:] == self.user[:-1]) & (self.date[1:] > self.date[:-1])
            )
            if not ahead.all():
                row = int(np.flatnonzero(~ahead)[0]) + 1
                raise DataError(f"days: row {row} ({self.user[row]}, {self.date[row]}) is not after the row before it")

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_slots(self) -> int:
        return int(self.loc.shape[1])

    @property
    def observed(self) -> Bool:
        """(N, T) True where the slot was seen."""
        seen: Bool = self.loc != MISSING
        return seen

    @property
    def first_of_user(self) -> Int64:
        """(N,) the row of the user's first day; the past of row i is rows first_of_user[i] … i - 1."""
        if len(self) == 0:
            return np.zeros(0, dtype=np.int64)
        new = np.concatenate([[True], self.user[1:] != self.user[:-1]])
        return np.maximum.accumulate(np.where(new, np.arange(len(self)), 0))

    def rows(self, index: npt.NDArray[Any]) -> Days:
        """The days at `index` (positions or a mask), in this order."""
        return Days(self.user[index], self.date[index], self.loc[index], self.split[index])


@dataclass(frozen=True)
class Targets:
    """Which slots of which days are hidden: one row a (user-day, draw), sorted by user, date, draw."""

    user: Text
    date: Dates
    draw: Int32
    start: Int64
    """(K + 1,) the hidden slots of row k are slot[start[k]:start[k + 1]]."""
    slot: Int32 = field(repr=False)
    """The hidden slots of all rows, ascending within a row."""
    history: Int32 = field(repr=False)
    """(K, T) the history row of the day as this draw sees it: for each slot the user's most frequent location on
    strictly earlier days, MISSING where there is none."""

    def __post_init__(self) -> None:
        n = len(self.user)
        if not (len(self.date) == len(self.draw) == len(self.start) - 1 == len(self.history) == n):
            raise DataError("targets: user, date, draw, start and history must be of one length (start one longer)")
        if self.start[0] != 0 or self.start[-1] != len(self.slot) or np.any(self.start[1:] < self.start[:-1]):
            raise DataError("targets: start must rise from 0 to the number of slots")

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_draws(self) -> int:
        """How often the hidden slots were drawn."""
        return len(np.unique(self.draw))

    def slots_of(self, row: int) -> Int32:
        """The hidden slots of one row."""
        return self.slot[self.start[row] : self.start[row + 1]]

    def rows_in(self, days: Days) -> Int64:
        """(K,) the row of each target's day in `days`; raises DataError when a day is not there."""
        row_of = {pair: i for i, pair in enumerate(zip(days.user.tolist(), days.date.tolist(), strict=True))}
        pairs = zip(self.user.tolist(), self.date.tolist(), strict=True)
        try:
            return np.fromiter((row_of[pair] for pair in pairs), dtype=np.int64, count=len(self))
        except KeyError as error:
            raise DataError(f"targets: there is no day {error.args[0]} among the days") from error

    def hidden(self, days: Days, draw: int) -> Bool:
        """(N, T) True at the slots of `days` that the draw hides."""
        row = np.repeat(self.rows_in(days), np.diff(self.start))
        mine = np.repeat(self.draw == draw, np.diff(self.start))
        mask = np.zeros(days.loc.shape, dtype=np.bool_)
        mask[row[mine], self.slot[mine]] = True
        return mask


def weekday(day: Any) -> Any:
    """The weekday, 0 on Mondays, of days counted from 1 January 1970, a Thursday: a number, an array or a tensor."""
    return (day + 3) % 7


@dataclass(frozen=True)
class Cases:
    """K user-days as a model meets them: what is visible, what is asked, and the user's earlier days.

    One row a (user-day, draw). Days and Targets joined; the same for training, measuring and recovering.
    """

    user: Text
    date: Dates
    loc: Int32 = field(repr=False)
    """(K, T) the whole day, hidden slots with it: the truth a model may look at in `fit` only."""
    hidden: Bool = field(repr=False)
    """(K, T) True at the slots to recover, the targets."""
    history: Int32 = field(repr=False)
    """(K, T) the history row: the user's most frequent location of the slot on strictly earlier days."""
    past: Int32 = field(repr=False)
    """(N, T) days that may be looked back upon, MISSING where the protocol forbids it; each user's in order."""
    past_date: Dates = field(repr=False)
    first: Int64 = field(repr=False)
    """(K,) the earlier days of row k are past[first[k]:end[k]]."""
    end: Int64 = field(repr=False)
    locations: Locations = field(repr=False)

    def __post_init__(self) -> None:
        k = len(self.user)
        if not (self.loc.shape == self.hidden.shape == self.history.shape) or self.past.shape[1] != self.n_slots:
            raise DataError("cases: loc, hidden, history and past must have the same slots")
        if not (len(self.loc) == len(self.date) == len(self.first) == len(self.end) == k):
            raise DataError("cases: user, date, loc, first and end must have the same length")
        if k and (self.first.min() < 0 or np.any(self.first > self.end) or self.end.max() > len(self.past)):
            raise DataError("cases: first and end must be rows of past, in this order")

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_slots(self) -> int:
        return int(self.loc.shape[1])

    @property
    def visible(self) -> Int32:
        """(K, T) the day without its hidden slots."""
        return np.where(self.hidden, np.int32(MISSING), self.loc)

    @property
    def index(self) -> Int64:
        """(M, 2) row and slot of every target, in the order of rows and slots."""
        return np.argwhere(self.hidden)

    @property
    def truth(self) -> Int32:
        """(M,) the location of every target, in the order of `index`."""
        return self.loc[self.hidden]

    def around(self) -> tuple[Int64, Int64]:
        """(K, T) the nearest visible slot before and after each slot; -1 and T where there is none."""
        slot = np.arange(self.n_slots)
        seen = self.visible != MISSING
        before = np.full(seen.shape, -1, dtype=np.int64)
        before[:, 1:] = np.maximum.accumulate(np.where(seen, slot, -1), axis=1)[:, :-1]
        after = np.full(seen.shape, self.n_slots, dtype=np.int64)
        after[:, :-1] = np.minimum.accumulate(np.where(seen, slot, self.n_slots)[:, ::-1], axis=1)[:, ::-1][:, 1:]
        return before, after

    def rows(self, index: npt.NDArray[Any]) -> Cases:
        """The cases at `index` (positions or a mask), in this order; they look back upon the same days."""
        return replace(
            self,
            user=self.user[index],
            date=self.date[index],
            loc=self.loc[index],
            hidden=self.hidden[index],
            history=self.history[index],
            first=self.first[index],
            end=self.end[index],
        )
