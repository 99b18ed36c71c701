"""What the tests of reading share: an engine, and the rows it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from attnmove.engine import Engine, open_engine
from attnmove.io import read_points
from attnmove.nouns import Points


class Row(NamedTuple):
    user: str | None
    time_us: int | None
    lat: float | None
    lon: float | None
    reason: str | None = None


class Read(NamedTuple):
    points: Points
    rows: list[Row]
    """Sorted."""
    raw: list[tuple[str | None, ...]]
    """The source's own text of user, time, lat and lon, in the order of the rows."""


Reader = Callable[..., Read]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with open_engine() as opened:
        yield opened


@pytest.fixture
def read(engine: Engine) -> Reader:
    """Points of a source, evaluated at once: the engine is shared and keeps one source at a time."""

    def evaluate(source: Any, **options: Any) -> Read:
        points = read_points(source, engine, **options)
        found = []
        for batch in engine.batches(points.table):
            for row in batch.to_pylist():
                raw = tuple(row[f"raw_{name}"] for name in ("user", "time", "lat", "lon"))
                found.append((Row(row["user"], row["time_us"], row["lat"], row["lon"], row["reason"]), raw))
        found.sort(key=lambda pair: tuple((part is not None, part) for part in (*pair[1], *pair[0])))
        return Read(points, [row for row, _ in found], [raw for _, raw in found])

    return evaluate
