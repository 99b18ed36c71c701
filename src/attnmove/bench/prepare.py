"""How fast points become days: attnmove beside a plain pandas fold of the same points, each in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attnmove.bench.child import measured_by
from attnmove.errors import ConfigError

DAYS = 50
POINTS_PER_DAY = 60.0
ZONE = "Asia/Shanghai"


def parse_sizes(text: str) -> list[int]:
    """`1e6,10000000` as whole numbers."""
    try:
        sizes = [int(float(part)) for part in text.split(",")]
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--points takes numbers such as 1e6,1e7; found {text!r}") from error
    if any(size < 1_000 for size in sizes):
        raise ConfigError(f"--points must be at least 1,000 each; found {text!r}")
    return sizes


def measure(
    sizes: Sequence[int],
    tessellations: Sequence[str],
    *,
    pandas_up_to: int,
    folder: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """One row a (size, tessellation, tool): seconds of the fold and of the whole, points folded a second, peak memory,
    times the speed of pandas at the fold, and whether the two made the same days."""
    say = progress or (lambda stage: None)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="attnmove-bench-") as temporary:
        home = Path(temporary) if folder is None else folder
        home.mkdir(parents=True, exist_ok=True)
        for size in sizes:
            say(f"making {size:,} points")
            source = _points(home, size)
            for tessellation in tessellations:
                for tool in ("pandas", "attnmove") if size <= pandas_up_to else ("attnmove",):
                    say(f"{size:,} points, {tessellation}, {tool}")
                    rows.append(_row(size, tessellation, tool, _run(tool, source, tessellation), rows))
    return rows


def _row(
    size: int, tessellation: str, tool: str, result: dict[str, Any], before: list[dict[str, Any]]
) -> dict[str, Any]:
    rival = next((row for row in before if (row["points"], row["tessellation"]) == (size, tessellation)), None)
    return {
        "points": size,
        "tessellation": tessellation,
        "tool": tool,
        "fold_seconds": result["fold_seconds"],
        "seconds": result["seconds"],
        "fold_points_per_second": result["points"] / result["fold_seconds"],
        "peak_mib": result["peak_mib"],
        "times_pandas": rival["fold_seconds"] / result["fold_seconds"] if rival else None,
        "same_days": rival["checksum"] == result["checksum"] if rival else None,
        "checksum": result["checksum"],
    }


def _points(home: Path, size: int) -> Path:
    from attnmove.city import write_city

    path = home / f"points-{size}.parquet"
    if not path.exists():
        users = max(1, round(size / (DAYS * POINTS_PER_DAY)))
        write_city(path, users=users, days=DAYS, seed=0, points_per_day=POINTS_PER_DAY)
    return path


def _run(tool: str, source: Path, tessellation: str) -> dict[str, Any]:
    what = f"{tool} did not finish on {source.name} with {tessellation}"
    return measured_by("prepare_once", tool, str(source), tessellation, what=what)
