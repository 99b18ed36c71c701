"""From a table in somebody's columns and types to Points: times in UTC, degrees, and a reason on every refused row."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import ibis

from attnmove.engine import Engine
from attnmove.errors import DataError
from attnmove.io.clock import Zone, utc_seconds
from attnmove.io.columns import Columns

if TYPE_CHECKING:
    import ibis.expr.types as ir

REASONS: Mapping[str, str] = {
    "no_user": "no user",
    "unparsable_time": "a time that cannot be read",
    "naive_time": "a time without a zone, and no --timezone to read it in",
    "not_a_number": "a latitude or longitude that is not a number",
    "out_of_range": "a latitude outside ±90 or a longitude outside ±180",
    "null_island": "a fix at latitude 0, longitude 0",
    "before_1990": "a time before 1990",
    "future": "a time in the future",
    "duplicate": "the same user, time, latitude and longitude as another row",
    "outside": "in no location and too far from the nearest",
}
EPOCH_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
FIRST_US = 631_152_000_000_000
"""The beginning of 1990: no phone reported before."""
NEAR_ZERO_DEGREES = 1e-6
_SAMPLE = 1_000
_NO_TIME = 9e18
"""Numbers from here on, infinity among them, are no time in any unit."""

NUMBER = r"\s*[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*"
"""A number as people write it; there is one way to read it, so that a long text that is none is soon seen through."""
_NUMBER = f"^{NUMBER}$"
DECIMAL_COMMA = r"\s*[-+]?[0-9]{1,3},[0-9]+\s*"
"""Degrees as spreadsheets of many countries write them: 39,9 is 39.9."""
_DATE = r"^\s*[0-9]{4}[-/][0-9]"
"""How a time in text begins; what is neither this nor a number has no say in how a column is read."""
_HEAD = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}"  # engines differ in what 24:00 is
_NO_SECONDS = r"^([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(.*)$"
_TAIL = r"^([.,][0-9]{1,9})? ?(Z|z|UTC|GMT|[-+](0[0-9]|1[0-8])(:?[0-5][0-9])?)?$"


def normalise(
    engine: Engine,
    raw: ir.Table,
    columns: Columns,
    *,
    zone: Zone | None,
    typed_zone: Zone | None,
    one_user: str | None,
    source: str,
) -> tuple[ir.Table, dict[str, str]]:
    """The Points table of `raw`, and how each role was read.

    `zone` is where text without a zone is read, which is refused when it is None. `typed_zone` is the same for a
    timestamp column without one, which is taken as UTC (as pandas and DuckDB write it) when it is None.
    """
    is_typed = raw[columns.time].type().is_timestamp()
    raw, when, naive, style = _time(engine, raw, columns.time, zone=typed_zone if is_typed else zone, source=source)
    _check_user(raw, columns.user, source=source)
    lat, lon = (_degrees(raw, name, source=source) for name in (columns.lat, columns.lon))
    user = ibis.literal(one_user) if columns.user is None else _name(raw[columns.user])
    named = raw.select(
        user=user.strip(),
        time_us=when,
        lon=lon,
        lat=lat,
        naive=naive,
        raw_user=user,
        raw_time=raw[columns.time].cast("string"),
        raw_lat=raw[columns.lat].cast("string"),
        raw_lon=raw[columns.lon].cast("string"),
    )
    table = named.mutate(reason=_reason(named)).drop("naive")
    chosen = {
        "user": f"all {one_user}" if columns.user is None else columns.user,
        "time": f"{columns.time} ({style})",
        "lat": columns.lat,
        "lon": columns.lon,
    }
    return table, chosen


def _reason(t: ir.Table) -> ir.StringValue:
    no_number = t.lat.isnull() | t.lon.isnull() | t.lat.isnan() | t.lon.isnan()
    return ibis.cases(
        (t.user.isnull() | (t.user == ""), "no_user"),
        (t.naive, "naive_time"),
        (t.time_us.isnull(), "unparsable_time"),
        (no_number, "not_a_number"),
        ((t.lat < -90) | (t.lat > 90) | (t.lon < -180) | (t.lon > 180), "out_of_range"),
        ((t.lat.abs() < NEAR_ZERO_DEGREES) & (t.lon.abs() < NEAR_ZERO_DEGREES), "null_island"),
        (t.time_us < FIRST_US, "before_1990"),
        (t.time_us > int(clock.time() * 1_000_000), "future"),
        else_=ibis.null("string"),
    )


def _check_user(raw: ir.Table, name: str | None, *, source: str) -> None:
    kind = None if name is None else raw[name].type()
    if kind is not None and kind.is_nested():
        raise DataError(f"{source}: column {name!r} holds {kind}; expected users as text or numbers")


def _name(column: ir.Column) -> ir.StringValue:
    """The user as text; pandas makes 7.0 of the number 7 where another user is missing, and NaN of that one."""
    text = column.cast("string")
    if not column.type().is_floating():
        return text
    whole = column.try_cast("int64")
    named = ibis.ifelse(column == whole.cast("float64"), whole.cast("string"), text)
    return ibis.ifelse(column.isnan(), ibis.null("string"), named)


def _degrees(raw: ir.Table, name: str, *, source: str) -> ir.FloatingValue:
    column = raw[name]
    if column.type().is_numeric():
        return column.cast("float64")
    if column.type().is_string():
        # The pattern comes first because engines differ in what else they take for a number ("1d", "nan", "1_0").
        text = ibis.ifelse(column.re_search(f"^{DECIMAL_COMMA}$"), column.replace(",", "."), column)
        return ibis.ifelse(text.re_search(_NUMBER), text.strip(), ibis.null("string")).try_cast("float64")
    raise DataError(f"{source}: column {name!r} holds {column.type()}; expected degrees as numbers")


def _time(
    engine: Engine, raw: ir.Table, name: str, *, zone: Zone | None, source: str
) -> tuple[ir.Table, ir.IntegerValue, ir.BooleanValue, str]:
    """The table, perhaps with more columns, and of it: microseconds UTC (null where unreadable), where a zone is
    lacking, and how the column is read in words."""
    column = raw[name]
    kind = column.type()
    never = ibis.literal(False)
    if kind.is_timestamp():
        micros = engine.micros(column)
        if kind.timezone is not None or zone is None:
            return raw, micros, never, "timestamp" if kind.timezone else "timestamp without zone, taken as UTC"
        return raw, _to_utc(micros, zone), never, f"timestamp without zone, taken as {zone.name}"
    if kind.is_numeric():
        unit = _epoch_unit(_sample(engine, raw, name))
        whole = kind.is_integer()
        return raw, _epoch(column.try_cast("int64") if whole else column.cast("float64"), unit), never, _words(unit)
    if not kind.is_string():
        raise DataError(f"{source}: column {name!r} holds {kind}; expected times (ISO 8601 text, epoch or timestamps)")
    sample = _sample(engine, raw, name)
    numbers = [value for value in map(_as_number, sample) if value is not None]
    if len(numbers) > sum(bool(re.match(_DATE, str(value))) for value in sample):
        unit = _epoch_unit(numbers)
        number = ibis.ifelse(column.re_search(_NUMBER), column.strip(), ibis.null("string")).try_cast("float64")
        return raw, _epoch(number, unit), never, _words(unit)
    raw, micros, naive = _iso(engine, raw, name, zone)
    where = f"; times without a zone are in {zone.name}" if zone is not None else ""
    return raw, micros, naive, f"ISO 8601{where}"


def _iso(
    engine: Engine, raw: ir.Table, name: str, zone: Zone | None
) -> tuple[ir.Table, ir.IntegerValue, ir.BooleanValue]:
    # In steps, each a column of its own: written out in one expression, a zone with a hundred changes is 19 MB of SQL.
    # A view keeps Ibis from putting the steps together again.
    t = raw.mutate(_text=raw[name].strip()).view()
    t = t.mutate(_full=ibis.ifelse(t._text.re_search(_HEAD), t._text, _with_seconds(t._text))).view()
    t = t.mutate(_head=t._full.substr(0, 19).replace("T", " "), _tail=t._full.substr(19)).view()
    right = t._tail.re_search(_TAIL)
    digits = t._tail.re_extract(r"^[.,]([0-9]+)", 1)
    fraction = ibis.ifelse(digits == "", "0", (digits + "000000").substr(0, 6)).try_cast("int64")
    t = t.mutate(
        _right=right,
        _wall=engine.micros(ibis.ifelse(right, t._head, ibis.null("string")).try_cast("timestamp")),
        _fraction=ibis.ifelse((t._tail == "") | (t._tail == "Z"), 0, fraction),
        _has_zone=t._tail.re_search(r"(Z|z|UTC|GMT|[-+][0-9:]+)$"),
        _offset=ibis.ifelse(t._tail.re_search(r"[-+][0-9:]+$"), _offset_us(t._tail), 0),
    ).view()
    t = t.mutate(_micros=t._wall + t._fraction).view()
    if zone is None:
        unknown = t._right & ~t._has_zone & t._wall.notnull()
        when = ibis.ifelse(t._has_zone, t._micros - t._offset, ibis.null("int64"))
        t = t.mutate(_when=when, _naive=unknown.fill_null(False)).view()
        return t, t._when, t._naive
    t = t.mutate(_when=ibis.ifelse(t._has_zone, t._micros - t._offset, _to_utc(t._micros, zone))).view()
    return t, t._when, ibis.literal(False)


def _with_seconds(text: ir.StringValue) -> ir.StringValue:
    """2008/10/23 02:53:04Z and 2008-10-23 02:53Z in the form of 2008-10-23 02:53:04Z; other text as it is."""
    dashed = text.re_replace(_NO_SECONDS, r"\1-\2-\3 \4:\5\6")
    no_seconds = dashed.re_search(r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}($|[^:])")
    padded = ibis.ifelse(no_seconds, dashed.substr(0, 16) + ":00" + dashed.substr(16), dashed)
    return ibis.ifelse(padded.re_search(_HEAD), padded, "?")


def _offset_us(tail: ir.StringValue) -> ir.IntegerValue:
    signed = tail.re_extract(r"([-+][0-9:]+)$", 1).replace(":", "")
    hours, minutes = signed.substr(1, 2).try_cast("int64"), (signed + "00").substr(3, 2).try_cast("int64")
    size = (hours * 3600 + minutes * 60) * 1_000_000
    return ibis.ifelse(signed.substr(0, 1) == "-", -size, size)


def _to_utc(local_us: ir.IntegerValue, zone: Zone) -> ir.IntegerValue:
    seconds = local_us // 1_000_000
    return utc_seconds(seconds, zone) * 1_000_000 + local_us % 1_000_000


def _epoch(number: ir.NumericValue, unit: str) -> ir.IntegerValue:
    # Beyond these (the year 5138) the multiplication would overflow, and stop the engine instead of the row.
    limit = {"s": 10**11, "ms": 10**14, "us": 10**17, "ns": 9 * 10**18}[unit]
    number = ibis.ifelse((number > -limit) & (number < limit), number, ibis.null(number.type()))
    if unit == "ns":
        return number.cast("int64") // 1_000
    if isinstance(number, ibis.expr.types.FloatingValue):
        return (number * EPOCH_UNITS[unit]).round().cast("int64")
    return number * EPOCH_UNITS[unit]


def _epoch_unit(values: Sequence[object]) -> str:
    sizes = [abs(float(value)) for value in values if isinstance(value, int | float | Decimal)]
    sizes = sorted(size for size in sizes if size < _NO_TIME)
    middle = sizes[len(sizes) // 2] if sizes else 0.0
    return "s" if middle < 1e11 else "ms" if middle < 1e14 else "us" if middle < 1e17 else "ns"


def _words(unit: str) -> str:
    return "epoch " + {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit]


def _sample(engine: Engine, raw: ir.Table, name: str) -> list[object]:
    few = raw.select(value=raw[name]).filter(ibis._.value.notnull()).limit(_SAMPLE)
    return [value for batch in engine.batches(few) for value in batch.column(0).to_pylist()]


def _as_number(value: object) -> float | None:
    """The number that a value is or that a text says; "nan" and "inf" say none."""
    return float(str(value)) if re.match(_NUMBER, str(value)) else None
