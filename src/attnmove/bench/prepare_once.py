"""One timed preparation in this process: `python -m attnmove.bench.prepare_once attnmove|pandas FILE TESSELLATION`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from attnmove.bench.child import peak_mib
from attnmove.bench.prepare import ZONE
from attnmove.errors import MissingExtra
from attnmove.nouns import Int64
from attnmove.prep.config import Preparation

HOW = Preparation(timezone=ZONE)


@dataclass(frozen=True)
class Outcome:
    """What one preparation made, and how long the fold took of it."""

    points: int
    checksum: int
    fold_seconds: float
    """Read, check, fold, filter: what both tools do."""


def with_attnmove(source: Path, tessellation: str) -> Outcome:
    """The whole `prepare`: the fold, then split, hide, history, and a dataset written."""
    from attnmove.prep.pipeline import prepare

    start = time.perf_counter()
    reached: dict[str, float] = {}

    def note(stage: str) -> None:
        reached[stage] = time.perf_counter() - start

    with tempfile.TemporaryDirectory(prefix="attnmove-bench-") as folder:
        made = prepare(
            source,
            tessellation,
            out=Path(folder) / "dataset",
            timezone=ZONE,
            how=HOW,
            progress=note,
        )
    seen = made.days.loc[made.days.observed]
    return Outcome(int(made.facts["points"]), checksum(made.locations.key[seen]), reached["splitting and hiding"])


def with_pandas(source: Path, tessellation: str) -> Outcome:
    """The fold as one would write it with pandas: read, check, fold, filter; no split, nothing written."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("pandas", "dev", "the comparison with pandas") from error
    from attnmove.space import parse_tessellation

    start = time.perf_counter()
    frame = pd.read_parquet(source, columns=["user", "time", "lon", "lat"])
    n_points = len(frame)
    in_range = frame["lat"].between(-90, 90) & frame["lon"].between(-180, 180)
    on_island = (frame["lat"] == 0) & (frame["lon"] == 0)
    in_time = frame["time"].between(pd.Timestamp("1990-01-01", tz="UTC"), pd.Timestamp.now(tz="UTC"))
    frame = frame[in_range & ~on_island & in_time & frame["user"].notna()].drop_duplicates()
    frame["key"] = parse_tessellation(tessellation).keys(frame["lon"].to_numpy(), frame["lat"].to_numpy())
    local = frame["time"].dt.tz_convert(ZONE)
    frame["date"] = local.dt.tz_localize(None).dt.floor("D")
    frame["slot"] = (local.dt.hour * 60 + local.dt.minute) // HOW.slot_minutes
    slot = ["user", "date", "slot"]
    cells = frame.groupby([*slot, "key"])["time"].agg(["size", "min"]).reset_index()
    best = cells.sort_values([*slot, "size", "min", "key"], ascending=[True, True, True, False, True, True])
    best = best.drop_duplicates(slot)
    n_slots = best.groupby(["user", "date"])["slot"].transform("size")
    best = best[n_slots >= HOW.n_min_slots]
    n_days = best.groupby("user")["date"].transform("nunique")
    total = checksum(best.loc[n_days >= HOW.min_days, "key"].to_numpy())
    return Outcome(n_points, total, time.perf_counter() - start)


def checksum(keys: Int64) -> int:
    """Equal for equal multisets of slots, whatever their order."""
    return int((keys % 1_000_003).sum()) + len(keys)


def _measure(tool: str, source: Path, tessellation: str) -> dict[str, Any]:
    run = {"attnmove": with_attnmove, "pandas": with_pandas}[tool]
    for module in ("pandas", "ibis.backends.duckdb", "attnmove.prep.pipeline"):
        import_module(module)  # loading libraries is not what is measured
    start = time.perf_counter()
    outcome = run(source, tessellation)
    seconds = time.perf_counter() - start
    return {**asdict(outcome), "seconds": seconds, "peak_mib": round(peak_mib(), 1)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(sys.argv[1], Path(sys.argv[2]), sys.argv[3])))
