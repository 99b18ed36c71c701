"""Points to user-days: one expression, evaluated by DuckDB or Spark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import ibis

from attnmove.engine import Engine
from attnmove.io.clock import load_zone, local_seconds
from attnmove.nouns import Float64, Int64, Points
from attnmove.prep.config import Preparation
from attnmove.space.datum import to_wgs84
from attnmove.space.grid import KEY_STRIDE, Grid
from attnmove.space.tessellation import NO_CELL, Tessellation

if TYPE_CHECKING:
    import ibis.expr.types as ir

FIX = ["user", "time_us", "lon", "lat"]


def distinct_fixes(points: Points) -> ir.Table:
    """The accepted fixes, each once, with the number of its `copies`."""
    accepted = points.table.filter(points.table.reason.isnull())
    return accepted.group_by(FIX).agg(copies=accepted.count())


def with_keys(engine: Engine, fixes: ir.Table, tessellation: Tessellation, datum: str) -> ir.Table:
    """The fixes with the `key` of their cell, NO_CELL where there is none."""
    if isinstance(tessellation, Grid) and datum == "wgs84":
        # A grid is arithmetic: the engine does it five times as fast as a call into Python.
        return fixes.mutate(key=grid_key(tessellation, fixes.lon, fixes.lat))

    def keys(lon: Float64, lat: Float64) -> Int64:
        return tessellation.keys(*to_wgs84(lon, lat, datum))

    return engine.with_key(fixes, keys)


def grid_key(grid: Grid, lon: ir.FloatingValue, lat: ir.FloatingValue) -> ir.IntegerValue:
    """`Grid.keys` as an expression, for coordinates in range."""
    row = ibis.least(((lat + 90) / 180 * grid.n_rows).floor(), grid.n_rows - 1).cast("float64")
    middle = (row + 0.5) / grid.n_rows * 180 - 90
    n_cols = ibis.greatest((grid.equator_cells * (middle * (math.pi / 180)).cos() + 0.5).floor(), 1).cast("float64")
    column = ((lon + 180) / 360 * n_cols).floor().cast("float64")
    column = ibis.ifelse(column >= n_cols, 0.0, column)
    return row.cast("int64") * KEY_STRIDE + column.cast("int64")


def fold(engine: Engine, points: Points, tessellation: Tessellation, datum: str, how: Preparation) -> ir.Table:
    """One row a user-day: `user, day` (days since 1970), `cells` (its slots and their keys), `n_slots`, and the counts
    `copies`, `fixes` (distinct) and `outside` (of the distinct ones, those in no location)."""
    placed = with_keys(engine, distinct_fixes(points), tessellation, datum)
    local = local_seconds(placed.time_us // 1_000_000, load_zone(how.timezone))
    placed = placed.mutate(
        day=(local // 86_400).cast("int32"), slot=(local % 86_400 // (how.slot_minutes * 60)).cast("int16")
    )
    cells = placed.group_by(["user", "day", "slot", "key"]).agg(
        fixes=placed.count(),
        copies=placed.copies.sum(),
        first_us=placed.time_us.min(),
        last_us=placed.time_us.max(),
    )
    nowhere = cells.key == NO_CELL
    most = (
        [cells.fixes.desc(), cells.first_us, cells.key]
        if how.slot_rule == "mode"
        else [cells.last_us.desc(), cells.fixes.desc(), cells.key]
    )
    window = ibis.window(group_by=["user", "day", "slot"], order_by=[nowhere.cast("int8"), *most])
    ranked = cells.mutate(is_answer=(ibis.row_number().over(window) == 0) & ~nowhere, nowhere=nowhere)
    return ranked.group_by(["user", "day"]).agg(
        cells=ibis.struct({"slot": ranked.slot, "key": ranked.key}).collect(where=ranked.is_answer),
        n_slots=ranked.is_answer.cast("int64").sum(),
        copies=ranked.copies.sum(),
        fixes=ranked.fixes.sum(),
        outside=ibis.ifelse(ranked.nowhere, ranked.fixes, 0).sum(),
    )


def keep_days(days: ir.Table, how: Preparation) -> ir.Table:
    """The days with enough observed slots of the users with enough such days, by user and date."""
    enough = days.filter(days.n_slots >= how.n_min_slots)
    user_days = enough.count().over(ibis.window(group_by="user"))
    kept = enough.mutate(user_days=user_days)
    return kept.filter(kept.user_days >= how.min_days).select("user", "day", "cells").order_by("user", "day")
