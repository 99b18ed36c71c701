"""People to practise on where one's own are few: days of the synthetic city, cut as one's own days are."""

from __future__ import annotations

from datetime import date

import numpy as np

from attnmove.city import City, synthesize
from attnmove.models.evidence.atlas import Atlas
from attnmove.nouns import MINUTES_PER_DAY, MISSING, Cases, Days, Float64, Int64, Locations
from attnmove.prep.hide import redraw
from attnmove.prep.history import history_rows
from attnmove.space.grid import Grid

_LEAST_PEOPLE = 64
_MOST_PEOPLE = 4_000
_TARGETS_A_PERSON = 100
"""Fewer than one person is asked for: many people teach more than many days."""
_N_DAYS, _PAST_DAYS = 28, 3
"""Days of each person, and how many of the first are history only."""
_MONDAY = date(2024, 3, 4)
_CITY = City(utc_offset_h=0)
_USUAL_CELL_M, _LEAST_CELL_M, _LARGEST_CELL_M = 500.0, 100.0, 2_000.0


def made_up(like: Cases, n_targets: int, rng: np.random.Generator) -> Cases:
    """Days of people who do not exist, with about so many targets or more; fewer where that would take thousands.

    They have the slots of the days of `like`, locations about as large, coordinates where those have any, and as large
    a share of what was seen is hidden.
    """
    seen_of = (like.loc != MISSING).sum(axis=1)
    least = max(2, min(like.n_slots // 4, int(seen_of.min(initial=like.n_slots))))
    share = like.hidden.sum() / max(1, seen_of.sum())
    people = min(_MOST_PEOPLE, max(_LEAST_PEOPLE, n_targets // _TARGETS_A_PERSON))
    seed = int(rng.integers(2**62))
    while True:
        days, locations = _folded(people, like.n_slots, _cell_m(like.locations), least=least, seed=seed)
        rows = np.flatnonzero(np.arange(len(days)) - days.first_of_user >= _PAST_DAYS)
        seen = days.observed[rows]
        n_hidden = np.maximum(1, np.round(share * seen.sum(axis=1))).astype(np.int64)
        if n_hidden.sum() >= 0.9 * n_targets or people == _MOST_PEOPLE:
            break
        people = min(_MOST_PEOPLE, int(1.1 * people * n_targets / max(1, n_hidden.sum())) + 1)
    if not np.isfinite(like.locations.lon).any():
        unknown = np.full(len(locations), np.nan)
        locations = Locations(locations.name, unknown, unknown, locations.key)
    return Cases(
        user=days.user[rows],
        date=days.date[rows],
        loc=days.loc[rows],
        hidden=redraw(seen, n_hidden, rng),
        history=history_rows(days.loc, days.first_of_user)[rows],
        past=days.loc,
        past_date=days.date,
        first=days.first_of_user[rows],
        end=rows,
        locations=locations,
    )


def _cell_m(locations: Locations) -> float:
    """How far apart locations lie, within reason."""
    spacing = Atlas.of(locations).spacing_km
    known = spacing[np.isfinite(spacing)]
    usual = 1000 * float(np.median(known)) if len(known) else _USUAL_CELL_M
    return min(max(usual, _LEAST_CELL_M), _LARGEST_CELL_M)


def _folded(people: int, n_slots: int, cell_m: float, *, least: int, seed: int) -> tuple[Days, Locations]:
    """The days that show so many slots at `least`; a slot is where the phone reported last in it."""
    names: list[str] = []
    columns: list[tuple[Int64, Int64, Float64, Float64]] = []
    for chunk in synthesize(people, _N_DAYS, seed=seed, start=_MONDAY, city=_CITY):
        user = chunk.points["user"].combine_chunks().dictionary_encode()
        minute = (chunk.points["time"].to_numpy().astype("datetime64[m]") - np.datetime64(_MONDAY)).astype(np.int64)
        columns.append(
            (
                len(names) + user.indices.to_numpy().astype(np.int64),
                minute,
                chunk.points["lon"].to_numpy(),
                chunk.points["lat"].to_numpy(),
            )
        )
        names += user.dictionary.to_pylist()
    who, minute, lon, lat = (np.concatenate(column) for column in zip(*columns, strict=True))
    cells = Grid(cell_m)
    keys, place = np.unique(cells.keys(lon, lat), return_inverse=True)
    grid = np.full((len(names), _N_DAYS, n_slots), MISSING, dtype=np.int32)
    within = (minute >= 0) & (minute < _N_DAYS * MINUTES_PER_DAY)
    day, rest = np.divmod(minute[within], MINUTES_PER_DAY)
    grid[who[within], day, rest * n_slots // MINUTES_PER_DAY] = place[within]  # in the order of time: the last stays
    user, day = np.nonzero((grid != MISSING).sum(axis=2) >= least)
    loc = grid[user, day]
    split = np.full(len(loc), "train", dtype=object)
    days = Days(np.array(names, dtype=object)[user], np.datetime64(_MONDAY) + day, loc, split)
    return days, cells.centres(keys)
