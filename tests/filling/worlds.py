"""A small world to recover in: lettered places, days of 24 hours written as text, and runs trained on them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from attnmove.models.runs import train_run
from attnmove.nouns import MISSING, Days, Int32
from attnmove.prep.pipeline import prepare
from builders import PLACES, points

ZONE = "Asia/Shanghai"
HOME, AWAY = "AAAAAAAABBBBCBBBBBDDAAAA", "DDDDDDDDBBBBEEBBBBDDDDDD"
TINY_BOOST = {"rounds": 4, "rankers": 1, "draws": 1, "most_targets": 2000, "practice": 0}
SLOTS = 24

Fix = tuple[str, datetime, str]


def fixes(user: str, date: str, text: str, *, zone: str = ZONE) -> list[Fix]:
    """A fix a quarter past each hour with a letter; a dot is an hour without one."""
    midnight = datetime.fromisoformat(date)
    return [
        (user, (midnight + timedelta(hours=hour, minutes=15)).replace(tzinfo=ZoneInfo(zone)), mark)
        for hour, mark in enumerate(text)
        if mark != "."
    ]


def table_of(*days: list[Fix]) -> pa.Table:
    return points([fix for day in days for fix in day])


def with_holes(text: str, rng: np.random.Generator, share: float = 0.4) -> str:
    return "".join("." if rng.random() < share else mark for mark in text)


def a_month(*, users: Iterable[str] = ("ann", "bob", "cy", "dee"), seed: int = 0, zone: str = ZONE) -> pa.Table:
    """Twelve days of each user: mostly a habit, with holes."""
    rng = np.random.default_rng(seed)
    every: list[Fix] = []
    for i, user in enumerate(users):
        for day in range(12):
            text = HOME if (i + (day % 5 == 4)) % 2 == 0 else AWAY
            every += fixes(user, f"2024-03-{day + 4:02d}", with_holes(text, rng), zone=zone)
    return points(every)


def train_small(folder: Path, *, model: str = "vote", zone: str = ZONE, **settings: Any) -> Path:
    """A run on a month of four users, hours as slots."""
    dataset = prepare(
        a_month(zone=zone),
        timezone=zone,
        slot_minutes=60,
        min_slots=4,
        first_days=2,
        hide=4,
        draws=6,
        out=folder / "dataset",
    )
    train_run(dataset, model, folder / "run", settings=settings or None, device="cpu")
    return folder / "run"


def days_from(users: dict[str, dict[str, str]], letters: dict[str, int]) -> Days:
    """Days from `{user: {date: text}}`, letters as ids of locations."""
    keys = sorted((user, date) for user in users for date in users[user])
    rows = [[MISSING if mark == "." else letters[mark] for mark in users[user][date]] for user, date in keys]
    loc: Int32 = np.array(rows, dtype=np.int32).reshape(len(keys), -1)
    return Days(
        np.array([user for user, _ in keys], dtype=object),
        np.array([date for _, date in keys], dtype="datetime64[D]"),
        loc,
        np.full(len(keys), "past", dtype=object),
    )


def letters_of(setting: Any) -> dict[str, int]:
    """The run's id of each lettered place it knows."""
    lon, lat = (np.array(side) for side in zip(*PLACES.values(), strict=True))
    ids = setting.locate(lon, lat).tolist()
    return {letter: place for letter, place in zip(PLACES, ids, strict=True) if place != MISSING}


def column(table: pa.Table, name: str, user: str, date: str) -> list[Any]:
    """One column of one user-day, slot by slot."""
    return [
        row[name]
        for row in table.select(["user", "date", name]).to_pylist()
        if (row["user"], str(row["date"])) == (user, date)
    ]
