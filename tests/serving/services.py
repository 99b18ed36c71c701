"""Services to ask: in this process, or in one of their own; and points to ask them with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from filling.worlds import AWAY, HOME, fixes, table_of, with_holes

Points = list[dict[str, Any]]


def asked_days(users: tuple[str, ...] = ("ann", "new"), *, seed: int = 1, days: int = 3) -> pa.Table:
    """Some days with holes, of users a run has met or not."""
    rng = np.random.default_rng(seed)
    dates = [f"2024-03-{18 + day:02d}" for day in range(days)]
    texts = (HOME, AWAY)
    return table_of(
        *(fixes(user, date, with_holes(texts[i % 2], rng)) for i, user in enumerate(users) for date in dates)
    )


def as_points(table: pa.Table) -> Points:
    """A table of points as a JSON body has them."""
    rows = table.to_pylist()
    return [{**row, "time": row["time"].isoformat()} for row in rows]


def as_csv(table: pa.Table) -> str:
    lines = ["user,time,lat,lon"]
    lines += [f"{row['user']},{row['time'].isoformat()},{row['lat']!r},{row['lon']!r}" for row in table.to_pylist()]
    return "\n".join(lines) + "\n"


def rows_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The slots of an answer as the rows of a table, probabilities as the run's 32-bit numbers."""
    return [{"user": day["user"], "date": day["date"], **slot} for day in answer["days"] for slot in day["slots"]]


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """A recovery's table as JSON has it."""
    return [_plain(row) for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if hasattr(value, "isoformat") else value


def rounded(value: Any) -> Any:
    """Numbers as 32 bits: such a one is written shorter than the 64 bits Python reads it into."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(np.float32(value)) if isinstance(value, float | int) and not isinstance(value, bool) else value


@contextmanager
def service(run: Path, *options: str, env: dict[str, str] | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address and process of `attnmove serve`, stopped in the end."""
    command = [sys.executable, "-m", "attnmove.cli", "serve", str(run), "--port", "0", "--device", "cpu", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        assert " at http://" in line, process.communicate()[1]
        yield line.split(" at ")[1].split()[0], process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def body(points: Points, **options: Any) -> bytes:
    return json.dumps({"points": points, **options}).encode()
