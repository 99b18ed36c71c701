"""Days to try the service with: made up from the run's locations, or taken from a dataset or points that were named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from attnmove.engine import open_engine
from attnmove.errors import DataError
from attnmove.filling.feed import feed
from attnmove.filling.rows import slot_starts
from attnmove.filling.setting import Setting
from attnmove.filling.texts import start_texts
from attnmove.filling.timeline import Timelines, days_of
from attnmove.nouns import MISSING, Bool, Days, Float64, Int32, Int64
from attnmove.serving.wire import LONGEST_NAME
from attnmove.space.datum import from_wgs84

_FIRST_DAY = "2024-03-04"
"""A Monday."""
_N_DAYS, _MOST_PEOPLE, _MOST_DAYS = 7, 6, 14

Example = dict[str, Any]


@dataclass(frozen=True)
class _Person:
    """A made-up habit: where somebody is at each hour, by a letter of HOME, WORK, SHOP, PARK."""

    name: str
    about: str
    workday: str
    weekend: str
    seen: float
    """How often the phone reports, a share of the slots."""


_PEOPLE = (
    _Person("office", "a week with an office", "hhhhhhhhwwwwswwwwwsshhhh", "hhhhhhhhhhsspphhhhphhhhh", 0.45),
    _Person("nights", "a week of night shifts", "wwwwwwhhhhhhhhsshhhhhwww", "hhhhhhhhhhhhssphhhhhhhhh", 0.4),
    _Person("sparse", "a phone that seldom reports", "hhhhhhhhhwwwwwwwsshhhhhh", "hhhhhhhhhhpppphhhhsshhhh", 0.15),
)
_METRES = {"h": 0.0, "w": 4_000.0, "s": 1_000.0, "p": 2_500.0}
"""How far from home each kind of place is, roughly."""


def made_up(setting: Setting) -> list[Example]:
    """People nobody has met: a home somewhere among the locations, and places around it. The same every time."""
    examples = []
    for seed, person in enumerate(_PEOPLE):
        rng = np.random.default_rng(seed)
        days = _live(person, setting, rng)
        examples.append(_example(days, setting, name=person.name, about=person.about, seed=seed))
    return examples


def taken_from(source: str, setting: Setting) -> list[Example]:
    """The first people of a dataset or of points, their days as the run sees them: at the centres of locations.

    Those whose names are too long to be asked for are left out. Raises DataError where nobody is left.
    """
    with open_engine() as engine:
        rows, _ = feed(source, engine, setting)
        askable = rows.filter(rows.user.length() <= LONGEST_NAME)
        people = askable.select("user").distinct().order_by("user").limit(_MOST_PEOPLE)
        some = rows.semi_join(people, "user").order_by("user", "day")
        batches = list(engine.batches(some))
    if not batches:
        raise DataError(
            f"--examples: {source} has nobody with days in the run's locations and a name of {LONGEST_NAME} characters "
            "or less; name another, or none"
        )
    found = Timelines.from_rows(pa.Table.from_batches(batches)).days
    examples = []
    for seed, user in enumerate(dict.fromkeys(found.user.tolist())):
        days = found.rows(np.flatnonzero(found.user == user)[:_MOST_DAYS])
        about = f"{len(days)} days from {days.date[0]}" if len(days) > 1 else str(days.date[0])
        examples.append(_example(days, setting, name=str(user), about=about, seed=seed))
    return examples


def _example(days: Days, setting: Setting, *, name: str, about: str, seed: int) -> Example:
    """The observed slots as fixes at a moment of the slot."""
    row, slot = np.nonzero(days.observed)
    place = days.loc[row, slot]
    minute = np.random.default_rng(seed).integers(0, setting.how.slot_minutes, len(row))
    start = slot_starts(days.date, setting).reshape(len(days), -1)[row, slot] + minute * 60_000_000
    times = start_texts(pa.chunked_array([pa.array(start).cast(pa.timestamp("us", "UTC"))]), setting.zone).to_pylist()
    centres = setting.locations.lon[place], setting.locations.lat[place]
    lon, lat = (side.round(6).tolist() for side in from_wgs84(*centres, setting.datum))
    points = [{"user": name, "time": when, "lon": x, "lat": y} for when, x, y in zip(times, lon, lat, strict=True)]
    return {"name": name, "about": about, "points": points}


def _live(person: _Person, setting: Setting, rng: np.random.Generator) -> Days:
    """A week of the person, as far as the phone reports."""
    place_of = _places(setting, rng)
    hour = np.arange(setting.n_slots) * setting.how.slot_minutes // 60
    date = np.datetime64(_FIRST_DAY) + np.arange(_N_DAYS)
    plans = [person.workday if i < 5 else person.weekend for i in range(_N_DAYS)]
    loc: Int32 = np.array([[place_of[plan[h]] for h in hour] for plan in plans], dtype=np.int32)
    loc[~_reported(loc.shape, person.seen, rng)] = MISSING
    return days_of(np.full(_N_DAYS, person.name, dtype=object), date, loc)


def _reported(shape: tuple[int, ...], share: float, rng: np.random.Generator) -> Bool:
    """Slots in which the phone reports: some hours in a row, then none for a while."""
    lively = rng.random(shape)
    lively[:, 1:] = np.where(rng.random((shape[0], shape[1] - 1)) < 0.5, lively[:, :-1], lively[:, 1:])
    seen: Bool = lively < share
    seen[:, shape[1] // 2] = True  # no day without any
    return seen


def _places(setting: Setting, rng: np.random.Generator) -> dict[str, int]:
    """A home, and for the others a location at about the right distance from it."""
    locations = setting.locations
    known: Int64 = np.flatnonzero(np.isfinite(locations.lon))
    middle = np.array([np.median(locations.lon[known]), np.median(locations.lat[known])])
    off = np.abs(locations.centres[known] - middle).sum(axis=1)
    home = int(rng.choice(known[np.argsort(off, kind="stable")[: max(1, len(known) // 2)]]))
    metres = locations.distance_m(np.full(len(known), home, dtype=np.int32), known.astype(np.int32))
    return {kind: home if kind == "h" else int(known[_about(far, metres, rng)]) for kind, far in _METRES.items()}


def _about(far: float, metres: Float64, rng: np.random.Generator) -> int:
    """One of the positions at about that distance, in any direction; where there is none, the nearest to it."""
    fitting = np.flatnonzero(np.abs(metres - far) < far / 5)
    return int(rng.choice(fitting)) if len(fitting) else int(np.abs(metres - far).argmin())
