"""The whole way from a source of points to a dataset."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnmove.engine import Engine, open_engine
from attnmove.errors import ConfigError, DataError
from attnmove.io import Source, read_points
from attnmove.io.clock import load_zone
from attnmove.io.columns import parse_columns
from attnmove.io.normal import REASONS
from attnmove.io.sources import find_files
from attnmove.nouns import Dates, Days, Int32, Locations, Points, Targets, Text
from attnmove.prep.config import Preparation
from attnmove.prep.dataset import FORMAT_VERSION, Dataset, check_writable, content_hash, count, write_dataset
from attnmove.prep.fold import Placing, fold
from attnmove.prep.gather import Gathered, gather
from attnmove.prep.hide import draw_targets
from attnmove.prep.rejects import Rejects
from attnmove.prep.split import split_days
from attnmove.space import parse_tessellation
from attnmove.space.datum import DATUMS
from attnmove.space.tessellation import Tessellation
from attnmove.version import __version__

if TYPE_CHECKING:
    import ibis.expr.types as ir

DEFAULT_TESSELLATION = "grid:500"
Progress = Callable[[str], None]


def prepare(
    source: Source,
    tessellation: str | Tessellation = DEFAULT_TESSELLATION,
    *,
    out: Path | str | None = None,
    format: str = "auto",
    columns: str | dict[str, str] | None = None,
    user: str | None = None,
    timezone: str | None = None,
    naive_timezone: str | None = None,
    datum: str = "wgs84",
    centres: Path | str | None = None,
    location_name: str | None = None,
    snap_m: float | None = None,
    road_classes: Sequence[str] | None = None,
    how: Preparation | None = None,
    engine: str = "duckdb",
    progress: Progress | None = None,
    **options: Any,
) -> Dataset:
    """Read points, place them, fold them into days, split, hide; return the dataset and, with `out`, write it.

    `source` is a path, folder or glob, or a pandas, polars, pyarrow or Ibis table. Days are those of `timezone` (UTC
    when not given); times without a zone are read in `naive_timezone`, or in `timezone`. `options` are the fields of
    `Preparation` (slot_minutes=30, min_slots=12, hide=10, …).
    """
    say = progress or (lambda stage: None)
    if how is not None and (options or timezone not in (None, how.timezone)):
        raise ConfigError("give either how=Preparation(…) or its fields and timezone, not both")
    if how is not None:
        timezone = how.timezone
    else:
        how = _preparation(timezone, options)
    if datum not in DATUMS:
        raise ConfigError(f"there is no datum {datum!r}: use {', '.join(DATUMS)}")
    folder = None if out is None else Path(out)
    if folder is not None:
        check_writable(folder)
    if isinstance(source, str | Path) and find_files(source, format)[0] == "released":
        _refuse_choices(
            {
                "columns": columns,
                "user": user,
                "naive-timezone": naive_timezone,
                "location-name": location_name,
                "snap-m": snap_m,
                "road-classes": road_classes,
                "tessellation": tessellation if tessellation != DEFAULT_TESSELLATION else None,
                "timezone": timezone if timezone != "UTC" else None,
                "datum": datum if datum != "wgs84" else None,
                "the slot and hide options": how if how != Preparation(timezone=how.timezone) else None,
            }
        )
        dataset = _released(Path(source), centres, say)
        if folder is not None:
            write_dataset(folder, dataset)
        return dataset
    if centres is not None:
        raise ConfigError("--centres belongs to --format released; other sources have coordinates of their own")
    told = parse_columns(columns) if isinstance(columns, str) else columns
    local = naive_timezone or timezone
    zone = None if local is None else load_zone(local)
    load_zone(how.timezone)
    rule = parse_tessellation(tessellation, name_property=location_name, snap_m=snap_m, road_classes=road_classes)
    with open_engine(engine) as opened:
        say("reading")
        # A timestamp column without a zone is UTC by convention; only its own option says otherwise.
        typed_zone = None if naive_timezone is None else zone
        points = read_points(
            source, opened, format=format, columns=told, zone=zone, typed_zone=typed_zone, one_user=user
        )
        dataset, rejects = _from_points(opened, points, rule, datum, how, say)
        if folder is not None:
            say("writing")
            write_dataset(folder, dataset, rejects=rejects)
    return dataset


def _from_points(
    engine: Engine, points: Points, rule: Tessellation, datum: str, how: Preparation, say: Progress
) -> tuple[Dataset, Path]:
    say("folding points into days")
    with Rejects(engine.scratch / "rejects.parquet") as rejects:
        gathered = gather(fold(engine, points, Placing(rule, datum), how), rejects, how)
        n_points = int(_one_row(engine, points.table.agg(n=points.table.count()))["n"])
        if n_points != gathered.fixes:
            say("collecting refused rows")
            rejects.add_unreadable(engine, points)
    if len(gathered.user) == 0:
        raise DataError(_nothing_left(points, gathered, rejects.counts, how))
    say("splitting and hiding")
    locations, loc = gathered.locate(rule)
    days = _with_split(gathered.user, gathered.date, loc, how)
    targets = draw_targets(days, how)
    facts = {
        "source": {"format": points.format, "columns": dict(points.chosen)},
        "tessellation": {"spec": rule.spec, **rule.to_json()},
        "datum": datum,
        "preparation": asdict(how),
        "points": n_points,
        "points_used": n_points - sum(rejects.counts.values()),
        "dropped": gathered.dropped,
    }
    return _dataset(days, locations, targets, facts, rejects=rejects.counts, how=how), rejects.path


def _one_row(engine: Engine, table: ir.Table) -> dict[str, Any]:
    [row] = [row for batch in engine.batches(table) for row in batch.to_pylist()]
    return dict(row)


def _with_split(user: Text, date: Dates, loc: Int32, how: Preparation) -> Days:
    blank = Days(user, date, loc, np.full(len(user), "past", dtype=object))
    return Days(user, date, loc, split_days(blank.first_of_user, first_days=how.first_days))


def _refuse_choices(choices: dict[str, Any]) -> None:
    unfit = [name for name, value in choices.items() if value is not None]
    if unfit:
        raise ConfigError(
            f"the released files bring their own days in UTC, masks and locations: {', '.join(unfit)} cannot be chosen"
        )


def _released(folder: Path, centres: Path | str | None, say: Progress) -> Dataset:
    from attnmove.io.released import SLOT_MINUTES, read_released

    say("reading the released files")
    released = read_released(folder, centres=None if centres is None else Path(centres))
    facts = {
        "source": {"format": "released", "columns": {}},
        "tessellation": {"spec": "released", "kind": "released"},
        "datum": "wgs84",
        "preparation": {"note": "split, targets and history rows are the files' own"},
        "dropped": {},
    }
    how = Preparation(slot_minutes=SLOT_MINUTES)
    return _dataset(released.days, released.locations, released.targets, facts, rejects={}, how=how)


def _dataset(
    days: Days,
    locations: Locations,
    targets: Targets,
    facts: dict[str, Any],
    *,
    rejects: dict[str, int],
    how: Preparation,
) -> Dataset:
    page = {
        "format_version": FORMAT_VERSION,
        "attnmove": __version__,
        **count(days, locations, targets),
        "slot_minutes": how.slot_minutes,
        "slots_per_day": how.n_slots,
        "timezone": how.timezone,
        "rejects": rejects,
        **facts,
        "hash": content_hash(days, locations, targets),
    }
    return Dataset(days, locations, targets, page)


def _preparation(timezone: str | None, options: dict[str, Any]) -> Preparation:
    known = [field.name for field in fields(Preparation) if field.name != "timezone"]
    wrong = next((name for name in options if name not in known), None)
    if wrong is not None:
        near = difflib.get_close_matches(wrong, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"prepare has no option {wrong!r}: {hint}")
    return Preparation(timezone=timezone or "UTC", **options)


def _nothing_left(points: Points, gathered: Gathered, rejects: dict[str, int], how: Preparation) -> str:
    worst = max(rejects, key=lambda reason: rejects[reason], default=None)
    if gathered.fixes == 0 and worst is not None:
        hint = "; say --timezone" if worst == "naive_time" else ""
        return f"{points.source}: every row was refused, most of them ({rejects[worst]:,}) for {REASONS[worst]}{hint}"
    if gathered.fixes == 0:
        return f"{points.source}: there is no point in it"
    if gathered.most_slots == 0:
        return f"{points.source}: none of the {gathered.fixes:,} fixes lies in a location; check datum and tessellation"
    return (
        f"{points.source}: no user has {how.min_days} days of at least {how.n_min_slots} observed slots (the fullest "
        f"of {gathered.days:,} user-days has {gathered.most_slots}); lower --min-slots or --min-days"
    )
