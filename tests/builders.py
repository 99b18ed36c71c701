"""Small builders of days, fixes and point files, shared by the tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnmove.nouns import MISSING, Bool, Cases, Days, Float64, Int32, Int64, Locations
from attnmove.prep.history import history_rows

METRES_OF_A_CELL = 500
PLACES = {name: (116.30 + 0.02 * i, 39.90) for i, name in enumerate("ABCDEFGH")}
"""Longitude and latitude of lettered places, 1.7 km apart: each in a cell of its own."""


def day(text: str) -> list[int]:
    """The slots of a day, a letter each: A is location 0, B 1, …, and a dot is missing."""
    return [MISSING if mark == "." else ord(mark) - ord("A") for mark in text.split()]


def loc(*days: str) -> Int32:
    return np.array([day(text) for text in days], dtype=np.int32)


def days_of(users: dict[str, Sequence[str]], *, split: str = "train", start: str = "2024-03-04") -> Days:
    """Consecutive days of each user, written as for `day`."""
    names = sorted(users)
    user = [name for name in names for _ in users[name]]
    date = [np.datetime64(start) + i for name in names for i in range(len(users[name]))]
    rows = [text for name in names for text in users[name]]
    splits = np.full(len(user), split, dtype=object)
    return Days(np.array(user, dtype=object), np.array(date, dtype="datetime64[D]"), loc(*rows), splits)


def texts(rows: Int32) -> list[str]:
    """Rows of locations as `day` reads them."""
    return [" ".join("." if place == MISSING else chr(ord("A") + place) for place in row) for row in rows.tolist()]


def utc(text: str, zone: str = "UTC", *, fold: int = 0) -> datetime:
    """The instant of a wall-clock time; `fold=1` is the second pass of a repeated hour."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(ZoneInfo("UTC"))


def points(rows: Iterable[tuple[str, datetime, str]]) -> pa.Table:
    """A table of points from (user, instant, letter of a place)."""
    rows = list(rows)
    return pa.table(
        {
            "user": pa.array([user for user, _, _ in rows], pa.string()),
            "time": pa.array([when for _, when, _ in rows], pa.timestamp("us", tz="UTC")),
            "lon": [PLACES[place][0] for _, _, place in rows],
            "lat": [PLACES[place][1] for _, _, place in rows],
        }
    )


def write_points(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def fixes(*rows: tuple[str, int, int, int, float, float]) -> pa.Table:
    """The sorted table that `fold_days` takes, from (user, day, slot, second, lon, lat)."""
    rows = tuple(sorted(rows, key=lambda row: (row[0], row[1], row[3])))
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * 6
    return pa.table(
        {
            "user": pa.array(columns[0], pa.string()),
            "day": pa.array(columns[1], pa.int32()),
            "slot": pa.array(columns[2], pa.int16()),
            "time_us": pa.array(columns[3], pa.int64()),
            "lon": pa.array(columns[4], pa.float64()),
            "lat": pa.array(columns[5], pa.float64()),
        }
    )


def whole_degrees(lon: Float64, lat: Float64) -> Int64:
    """A tessellation for the hand: the key is the longitude, and there is no cell below the equator."""
    return np.where(lat >= 0, lon, -1).astype(np.int64)


def some_locations(n: int, *, centres: bool = True) -> Locations:
    """`n` locations in a row from west to east, 1.7 km apart, or without a known place."""
    number = np.arange(n)
    lon = 116.30 + 0.02 * number if centres else np.full(n, np.nan)
    lat = np.full(n, 39.90 if centres else np.nan)
    return Locations(np.array([f"p{i}" for i in number], dtype=object), lon, lat, number.astype(np.int64))


def cases_from(days: Days, hidden: Bool, locations: Locations) -> Cases:
    """One case a day, with the days before it as its past."""
    first = days.first_of_user
    return Cases(
        user=days.user,
        date=days.date,
        loc=days.loc,
        hidden=hidden,
        history=history_rows(days.loc, first),
        past=days.loc,
        past_date=days.date,
        first=first,
        end=np.arange(len(days)),
        locations=locations,
    )


def asked(users: dict[str, Sequence[str]], *, n_locations: int = 8, centres: bool = True) -> Cases:
    """Cases written as for `day`; a small letter is hidden: `A b .` asks for B at slot 1."""
    marks = [text.split() for name in sorted(users) for text in users[name]]
    days = days_of({name: [text.upper() for text in written] for name, written in users.items()})
    hidden = np.array([[mark.islower() for mark in row] for row in marks], dtype=np.bool_)
    return cases_from(days, hidden, some_locations(n_locations, centres=centres))


def evening(cases: Cases, row: int) -> dict[int, int]:
    """Where the user was seen in the last third of the day before a row's, by slots from midnight: below zero."""
    past = range(int(cases.first[row]), int(cases.end[row]))
    (just,) = [at for at in past if cases.date[row] - cases.past_date[at] == np.timedelta64(1, "D")] or [None]
    seen = [] if just is None else enumerate(cases.past[just].tolist())
    first = cases.n_slots - cases.n_slots // 3
    return {slot - cases.n_slots: place for slot, place in seen if place != MISSING and slot >= first}


def people(seed: int, *, centres: float = 1.0) -> Cases:
    """A few people among a few places on days with days between them, in several draws, a day without a visible slot;
    a share of the locations has a centre."""
    rng = np.random.default_rng(seed)
    n_slots, n_places = int(rng.integers(12, 49)), int(rng.integers(8, 31))
    rows: dict[str, list[str]] = {}
    for user in range(int(rng.integers(3, 7))):
        mine = [chr(ord("A") + int(place)) for place in rng.integers(0, min(26, n_places), 6)] + ["."] * 3
        rows[f"u{user}"] = [" ".join(rng.choice(mine, n_slots)) for _ in range(int(rng.integers(4, 11)))]
    cases = asked(rows, n_locations=n_places)
    date = np.datetime64("2024-03-04") + np.cumsum(rng.integers(1, 5, len(cases)))
    cases = replace(cases, date=date, past_date=date).rows(np.sort(rng.integers(0, len(cases), 2 * len(cases))))
    hidden = rng.random(cases.hidden.shape) < 0.4
    hidden[rng.integers(len(cases))] = True
    lon = np.where(rng.random(n_places) < centres, 116.3 + 0.1 * rng.random(n_places), np.nan)
    lat = 39.9 + 0.1 * rng.random(n_places)
    return replace(cases, hidden=hidden, locations=Locations(cases.locations.name, lon, lat, cases.locations.key))
