"""What a path holds, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from attnmove.engine import open_engine
from attnmove.errors import RunError
from attnmove.io import read_points
from attnmove.io.clock import load_zone
from attnmove.io.columns import parse_columns
from attnmove.io.sources import find_files
from attnmove.prep.dataset import read_dataset, read_facts
from attnmove.prep.doubles import doubles
from attnmove.prep.pipeline import Progress
from attnmove.prep.rejects import count_rows


def describe(
    path: str | Path,
    *,
    format: str = "auto",
    columns: str | Mapping[str, str] | None = None,
    user: str | None = None,
    timezone: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The facts of a dataset, or of a source of points: format and columns found, counts, ranges, refused rows."""
    if (Path(path) / "dataset.json").is_file():
        return _dataset(Path(path), progress)
    if find_files(path, format)[0] == "released":
        return {"format": "released", "note": "days prepared by the paper's authors; see attnmove prepare"}
    told = parse_columns(columns) if isinstance(columns, str) else columns
    zone = None if timezone is None else load_zone(timezone)
    with open_engine() as engine:
        if progress is not None:
            progress("reading")
        points = read_points(path, engine, format=format, columns=told, zone=zone, one_user=user)
        t = points.table
        good = t.filter(t.reason.isnull())
        summary = good.agg(
            points=good.count(),
            users=good.user.nunique(),
            first=good.time_us.min(),
            last=good.time_us.max(),
            west=good.lon.min(),
            east=good.lon.max(),
            south=good.lat.min(),
            north=good.lat.max(),
        )
        [facts] = [row for batch in engine.batches(summary) for row in batch.to_pylist()]
        rejects = dict(count_rows(engine, points)[1])
    times = {name: _iso(facts.pop(name)) for name in ("first", "last")}
    return {"format": points.format, "columns": dict(points.chosen), **facts, **times, "rejects": rejects}


def _dataset(folder: Path, progress: Progress | None) -> dict[str, Any]:
    facts = read_facts(folder)
    for name in ("days.parquet", "targets.parquet", "locations.parquet"):
        try:
            n_rows = pq.read_metadata(folder / name).num_rows
        except Exception as error:
            raise RunError(f"{folder / name}: missing or damaged; prepare the dataset again") from error
        if name == "days.parquet" and n_rows != facts["days"]:
            raise RunError(f"{folder / name}: {n_rows} days, dataset.json says {facts['days']}; prepare it again")
    if progress is not None:
        progress("looking for people who are there twice")
    return facts | {"doubles": [asdict(double) for double in doubles(read_dataset(folder).days)]}


def _iso(micros: int | None) -> str | None:
    return None if micros is None else (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat()
