"""The synthetic city as tables: the points that phones report, and where everybody truly was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import islice

import numpy as np
import pyarrow as pa

from attnmove.city.people import draw_people
from attnmove.city.phones import Track, fixes, report_times
from attnmove.city.places import City, Places, draw_places
from attnmove.city.trips import live
from attnmove.errors import ConfigError
from attnmove.nouns import MINUTES_PER_DAY, MISSING, Float64, Int64

BLOCK_USERS = 256
"""People are always drawn in blocks of this size, so that user k is the same however many users are asked for."""
MAX_USERS = 999_999
"""Users are named with six digits, so that text order is their order."""
KINDS = ("home", "work", "other", "moving")
TIME = pa.timestamp("us", tz="UTC")
POINTS_SCHEMA = pa.schema([("user", pa.string()), ("time", TIME), ("lon", pa.float64()), ("lat", pa.float64())])
TRUTH_SCHEMA = pa.schema([*POINTS_SCHEMA, ("kind", pa.string()), ("place", pa.int32())])
DEFAULT_CITY = City()
DEFAULT_START = date(2024, 3, 4)
"""A Monday, so that weeks of the city are weeks of the calendar."""


@dataclass(frozen=True)
class Chunk:
    """All points and the whole truth of some users."""

    points: pa.Table
    """`user, time (UTC), lon, lat`: what phones reported, sorted by user and time."""
    truth: pa.Table
    """`user, time, lon, lat, kind, place`: a row a user and slot, sorted; `time` is the start of the slot (UTC).

    The rest says where the person is at the middle of the slot: `kind` home, work, other or moving; `place` the id
    among `draw_places`, -1 when moving. The first slot starts at the local midnight of the first day.
    """


def synthesize(
    n_users: int,
    n_days: int,
    *,
    seed: int,
    start: date = DEFAULT_START,
    city: City = DEFAULT_CITY,
    points_per_day: float = 60.0,
    truth_minutes: int = 30,
    chunk_users: int = BLOCK_USERS,
) -> Iterator[Chunk]:
    """The city's points and truth, `chunk_users` users at a time.

    A user's rows depend on the seed, the city, the dates and `points_per_day`, neither on how many users there are nor
    on the chunks. `points_per_day` is the mean over users; phones of some users report several times more than others.
    Raises ConfigError where an argument is out of range.
    """
    for name, value, low, high in [
        ("n_users", n_users, 1, MAX_USERS),
        ("n_days", n_days, 1, 3_660),
        ("seed", seed, 0, 2**63 - 1),
        ("points_per_day", points_per_day, 0.1, 20_000),
        ("truth_minutes", truth_minutes, 1, MINUTES_PER_DAY),
        ("chunk_users", chunk_users, 1, MAX_USERS),
    ]:
        if not low <= value <= high:
            raise ConfigError(f"city: {name} must be from {low:,} to {high:,}; found {value!r}")
    if MINUTES_PER_DAY % truth_minutes:
        raise ConfigError(f"city: truth_minutes must divide {MINUTES_PER_DAY}; found {truth_minutes}")
    users = _users(n_users, n_days, seed, start, draw_places(city, seed=seed), points_per_day, truth_minutes)
    midnight = np.datetime64(start, "us") - np.timedelta64(round(city.utc_offset_h * 3600), "s")
    return (_chunk(some, midnight, truth_minutes) for some in _batched(users, chunk_users))


@dataclass(frozen=True)
class User:
    """One user's points and truth."""

    name: str
    time_s: Int64
    """When the phone reports, seconds after the first local midnight."""
    lon: Float64
    lat: Float64
    truth_lon: Float64
    """One value a slot, as in all fields below."""
    truth_lat: Float64
    kind: Int64
    """Position in KINDS."""
    place: Int64


def _users(
    n_users: int, n_days: int, seed: int, start: date, places: Places, points_per_day: float, truth_minutes: int
) -> Iterator[User]:
    """The users of the city one by one."""
    middle_min = np.arange(truth_minutes / 2, n_days * MINUTES_PER_DAY, truth_minutes, dtype=np.float64)
    for user in range(n_users):
        row = user % BLOCK_USERS
        if row == 0:
            block = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, user // BLOCK_USERS)))
            people = draw_people(block, places, BLOCK_USERS)
            trips = live(seed, places, people, block, start=start.toordinal(), n_days=n_days)
        own = slice(trips.first[row], trips.first[row + 1])
        track = Track(trips.time_min[own].ravel(), trips.x[own].ravel(), trips.y[own].ravel())
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, user)))
        time_s = report_times(rng, track, n_days, points_per_day, float(people.chronotype_min[row]))
        lon, lat = places.degrees(*fixes(rng, track, time_s))
        truth_lon, truth_lat = places.degrees(*track.position(middle_min))
        place = _place_at(trips.depart_min[own], trips.arrive_min[own], trips.place[own], middle_min)
        kind = np.select([place == MISSING, place == people.home[row], place == people.work[row]], [3, 0, 1], 2)
        yield User(f"u{user + 1:06d}", time_s, lon, lat, truth_lon, truth_lat, kind, place)


def _place_at(depart_min: Float64, arrive_min: Float64, goal: Int64, time_min: Float64) -> Int64:
    """The place id at each time, MISSING while moving."""
    last = np.searchsorted(depart_min, time_min, side="right") - 1
    return np.where(time_min < arrive_min[last], MISSING, goal[last])


def _chunk(users: list[User], midnight: np.datetime64, truth_minutes: int) -> Chunk:
    """The tables of some users; `midnight` is the start of the first day, UTC."""
    names = pa.array([user.name for user in users])
    n_slots = len(users[0].place)
    time = midnight + np.concatenate([user.time_s for user in users]) * np.timedelta64(1, "s")
    who = np.repeat(np.arange(len(users)), [len(user.time_s) for user in users])
    lon, lat = np.concatenate([user.lon for user in users]), np.concatenate([user.lat for user in users])
    slot = np.tile(midnight + np.arange(n_slots) * np.timedelta64(truth_minutes, "m"), len(users))
    kind = np.concatenate([user.kind for user in users])
    truth = [
        names.take(pa.array(np.repeat(np.arange(len(users)), n_slots))),
        pa.array(slot).cast(TIME),
        pa.array(np.concatenate([user.truth_lon for user in users])),
        pa.array(np.concatenate([user.truth_lat for user in users])),
        pa.array(KINDS).take(pa.array(kind)),
        pa.array(np.concatenate([user.place for user in users]).astype(np.int32)),
    ]
    points = [names.take(pa.array(who)), pa.array(time).cast(TIME), pa.array(lon), pa.array(lat)]
    return Chunk(pa.table(points, schema=POINTS_SCHEMA), pa.table(truth, schema=TRUTH_SCHEMA))


def _batched(users: Iterator[User], size: int) -> Iterator[list[User]]:
    """Lists of `size` users, the last one shorter."""
    while some := list(islice(users, size)):
        yield some
