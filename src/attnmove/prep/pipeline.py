"""The whole way from a source of points to a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from attnmove.engine import Engine, open_engine
from attnmove.errors import ConfigError, DataError
from attnmove.io import Source, read_points
from attnmove.io.clock import load_zone
from attnmove.io.columns import parse_columns
from attnmove.io.sources import find_files
from attnmove.nouns import MISSING, Dates, Days, Int32, Int64, Locations, Points, Targets, Text
from attnmove.prep.config import Preparation
from attnmove.prep.dataset import FORMAT_VERSION, Dataset, check_writable, content_hash, count, write_dataset
from attnmove.prep.fold import fold, keep_days
from attnmove.prep.hide import draw_targets
from attnmove.prep.rejects import write_rejects
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
    how = how or _preparation(timezone, options)
    if datum not in DATUMS:
        raise ConfigError(f"there is no datum {datum!r}: use {', '.join(DATUMS)}")
    folder = None if out is None else Path(out)
    if folder is not None:
        check_writable(folder)
    if isinstance(source, str | Path) and find_files(source, format)[0] == "released":
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
    rule = parse_tessellation(tessellation, name_property=location_name, snap_m=snap_m)
    with open_engine(engine) as opened:
        say("reading")
        if zone is not None and naive_timezone is None and _is_typed(source, format):
            zone = None  # a timestamp column without a zone is UTC by convention, not local time
        points = read_points(source, opened, format=format, columns=told, zone=zone, one_user=user)
        dataset, rejects = _from_points(opened, points, rule, datum, how, say)
        if folder is not None:
            say("writing")
            write_dataset(folder, dataset, rejects=rejects)
    return dataset


def _from_points(
    engine: Engine, points: Points, rule: Tessellation, datum: str, how: Preparation, say: Progress
) -> tuple[Dataset, Path]:
    say("folding points into days")
    folded = engine.keep(fold(engine, points, rule, datum, how), "days")
    totals = _totals(engine, folded, how)
    say("collecting refused rows")
    path = engine.scratch / "rejects.parquet"
    rejects = write_rejects(
        path,
        engine,
        points,
        tessellation=rule,
        datum=datum,
        n_duplicates=totals["copies"] - totals["fixes"],
        n_outside=totals["outside"],
    )
    say("splitting and hiding")
    user, date, cells = _collect(engine, keep_days(folded, how), how.n_slots)
    if len(user) == 0:
        raise DataError(_nothing_left(points, totals, rejects, how))
    locations, loc = _locate(rule, cells)
    days = _with_split(user, date, loc, how)
    targets = draw_targets(days, how)
    dropped = {
        "days_too_sparse": totals["days"] - totals["days_enough"],
        "days_of_users_with_too_few": totals["days_enough"] - len(days),
        "users_with_too_few_days": totals["users"] - len(np.unique(user)),
    }
    points_facts = {
        "points": totals["copies"] + sum(n for reason, n in rejects.items() if reason not in ("duplicate", "outside")),
        "points_used": totals["fixes"] - totals["outside"],
    }
    facts = {
        "source": {"format": points.format, "columns": dict(points.chosen)},
        "tessellation": {"spec": rule.spec, **rule.to_json()},
        "datum": datum,
        "preparation": asdict(how),
        **points_facts,
        "dropped": dropped,
    }
    return _dataset(days, locations, targets, facts, rejects=rejects, how=how), path


def _totals(engine: Engine, folded: ir.Table, how: Preparation) -> dict[str, int]:
    enough = (folded.n_slots >= how.n_min_slots).cast("int64")
    sums = folded.agg(
        days=folded.count(),
        days_enough=enough.sum(),
        users=folded.user.nunique(),
        copies=folded.copies.sum(),
        fixes=folded.fixes.sum(),
        outside=folded.outside.sum(),
        most_slots=folded.n_slots.max(),
    )
    [row] = [row for batch in engine.batches(sums) for row in batch.to_pylist()]
    return {name: int(value or 0) for name, value in row.items()}


def _collect(engine: Engine, kept: ir.Table, n_slots: int) -> tuple[Text, Dates, Int64]:
    """Users, dates and (N, T) cell keys of the kept days, -1 where nobody saw the user."""
    users: list[Any] = []
    dates: list[Any] = []
    grids: list[Any] = []
    for batch in engine.batches(kept):
        lists = batch.column("cells")
        slots, keys = (pc.struct_field(lists.flatten(), name).to_numpy() for name in ("slot", "key"))
        row = np.repeat(np.arange(len(batch)), lists.value_lengths().to_numpy())
        grid = np.full((len(batch), n_slots), MISSING, dtype=np.int64)
        grid[row, slots] = keys
        users.append(np.array(batch.column("user").to_pylist(), dtype=object))
        dates.append(batch.column("day").to_numpy().astype("datetime64[D]"))
        grids.append(grid)
    if not users:
        return np.zeros(0, dtype=object), np.zeros(0, "datetime64[D]"), np.zeros((0, n_slots), np.int64)
    return np.concatenate(users), np.concatenate(dates), np.concatenate(grids)


def _locate(rule: Tessellation, cells: Int64) -> tuple[Locations, Int32]:
    """The dataset's locations, and the keys as ids. A finite tessellation keeps all its locations, an endless one
    those that occur."""
    keys = rule.all_keys()
    if keys is None:
        keys = np.unique(cells)
        keys = keys[keys != MISSING]
    locations = rule.locations(keys)
    return locations, locations.ids_of(cells.ravel()).reshape(cells.shape)


def _with_split(user: Text, date: Dates, loc: Int32, how: Preparation) -> Days:
    blank = Days(user, date, loc, np.full(len(user), "past", dtype=object))
    return Days(user, date, loc, split_days(blank.first_of_user, first_days=how.first_days))


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
    try:
        return Preparation(timezone=timezone or "UTC", **options)
    except TypeError as error:
        import difflib
        from dataclasses import fields

        known = [field.name for field in fields(Preparation)]
        wrong = next(name for name in options if name not in known)
        near = difflib.get_close_matches(wrong, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"prepare has no option {wrong!r}: {hint}") from error


def _is_typed(source: Source, format: str) -> bool:
    return not isinstance(source, str | Path) or find_files(source, format)[0] == "parquet"


def _nothing_left(points: Points, totals: dict[str, int], rejects: dict[str, int], how: Preparation) -> str:
    if totals["copies"] == 0:
        worst = max(rejects, key=lambda reason: rejects[reason], default=None)
        if worst is None:
            return f"{points.source}: there is no point in it"
        hint = "; say --timezone" if worst == "naive_time" else ""
        return f"{points.source}: every row was refused, most of them ({rejects[worst]:,}) for {_words(worst)}{hint}"
    if totals["outside"] == totals["fixes"]:
        return f"{points.source}: none of the {totals['fixes']:,} fixes lies in a location; check datum and tessellation"
    return (
        f"{points.source}: no user has {how.min_days} days of at least {how.n_min_slots} observed slots (the fullest of "
        f"{totals['days']:,} user-days has {totals['most_slots']}); lower --min-slots or --min-days"
    )


def _words(reason: str) -> str:
    from attnmove.io.normal import REASONS

    return REASONS[reason]
