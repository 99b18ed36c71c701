"""Points from the body of a request: JSON or CSV, read as the readers of files read them, without an engine."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from attnmove.errors import DataError
from attnmove.io.clock import Zone
from attnmove.io.columns import Columns as Names
from attnmove.io.columns import find_columns
from attnmove.io.normal import DECIMAL_COMMA, NUMBER
from attnmove.serving.instants import instants_of
from attnmove.serving.wire import LONGEST_NAME, NOBODY, check_number, read_question

_DELIMITERS = ",;\t|"
_NUMBER = re.compile(NUMBER, re.ASCII)
_COMMA = re.compile(DECIMAL_COMMA, re.ASCII)
_MOST_COLUMNS = 1_000
_SOURCE = "the CSV"
_ADVICE = "; say which with --columns"
"""How find_columns goes on where columns are missing; here there is no such option to give."""

Columns = tuple[Sequence[str], Sequence[str | float], Sequence[float], Sequence[float]]
"""User, time, lon, lat."""


def read_json(body: bytes, most: int) -> tuple[Columns, dict[str, Any]]:
    """The columns of a JSON question, and the options it names."""
    points, options = read_question(body, most)
    columns = (
        [str(point.user) for point in points],
        [point.time for point in points],
        [point.lon for point in points],
        [point.lat for point in points],
    )
    return columns, options


def read_csv(body: bytes, most: int) -> tuple[Columns, dict[str, Any]]:
    """The columns of delimited text with a header; without a user column all points are one person's.

    Raises DataError naming the row that cannot be read.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = body.count(b"\n", 0, error.start) + 1
        raise DataError(f"{_SOURCE}, row {row}: not UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        raise DataError(f"{_SOURCE}: binary content, expected UTF-8 text; save the table as CSV in UTF-8")
    first = text.lstrip("\r\n").partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=first.count), strict=True)
    try:
        header = [name.strip() for name in next((row for row in rows if row), [])]
        columns = _columns(header)
        picked = _picked(rows, len(header), [at for at in columns if at is not None], most)
    except csv.Error as error:
        raise DataError(f"{_SOURCE}, row {rows.line_num}: broken quotes or too long a value ({error})") from None
    named = dict(zip([name for name, at in zip(_ROLES, columns, strict=True) if at is not None], picked, strict=True))
    user = named.get("user", [NOBODY] * len(named["time"]))
    _check_names(user)
    return (user, named["time"], _degrees(named["lon"]), _degrees(named["lat"])), {}


READERS: Mapping[str, Callable[[bytes, int], tuple[Columns, dict[str, Any]]]] = {
    "application/json": read_json,
    "text/csv": read_csv,
}


def table_of(columns: Columns, zone: Zone) -> pa.Table:
    """The points as a table; times without an offset are in the zone."""
    user, time, lon, lat = columns
    instant, known = instants_of(time, zone)
    return pa.table(
        {
            "user": pa.array(user, pa.string()),
            "time": pa.array(instant, pa.int64(), mask=~known).cast(pa.timestamp("us", "UTC")),
            "lon": np.array(lon, dtype=np.float64),
            "lat": np.array(lat, dtype=np.float64),
        }
    )


_ROLES = ("user", "time", "lon", "lat")


def _columns(header: list[str]) -> list[int | None]:
    """The position of each role's column; None for a user that is not named."""
    if not header:
        raise DataError(f"{_SOURCE} is empty; expected a header with user, time, lat and lon")
    if len(header) > _MOST_COLUMNS:
        raise DataError(
            f"{_SOURCE}: {len(header):,} columns, but {_MOST_COLUMNS:,} are read at most; send four of them"
        )
    try:
        found = find_columns(header, None, source=_SOURCE)
    except DataError as error:
        if _ADVICE not in str(error):
            raise
        found = _one_person(header)
    names = [found.user, found.time, found.lon, found.lat]
    return [None if name is None else header.index(name) for name in names]


def _one_person(header: list[str]) -> Names:
    try:
        return find_columns(header, None, source=_SOURCE, one_user=NOBODY)
    except DataError as error:
        what, advice, _ = str(error).partition(_ADVICE)
        raise DataError(f"{what}; name them time, lat, lon, and user" if advice else what) from None


def _picked(rows: Any, width: int, at: list[int], most: int) -> list[list[str]]:
    picked: list[list[str]] = [[] for _ in at]
    for row in rows:
        if not row:
            continue
        if len(row) < width or any(row[width:]):  # a delimiter at the end is not a value
            raise DataError(
                f"{_SOURCE}, row {rows.line_num}: {len(row)} columns, but the header has {width}; correct or remove "
                "that row"
            )
        for column, position in zip(picked, at, strict=True):
            column.append(row[position])
        check_number(len(picked[0]), most)
    return picked


def _degrees(texts: Sequence[str]) -> list[float]:
    plain = (text.replace(",", ".") if _COMMA.fullmatch(text) else text for text in texts)
    return [float(text) if _NUMBER.fullmatch(text) else float("nan") for text in plain]


def _check_names(users: Sequence[str]) -> None:
    if any(len(user) > LONGEST_NAME for user in users):
        raise DataError(f"{_SOURCE}: a user of more than {LONGEST_NAME} characters; is a quote missing?")
