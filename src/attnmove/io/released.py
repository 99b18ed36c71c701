"""The files the paper's authors released: days, splits, masks and history rows as they made them.

A line is `uid TAB yyyymmdd TAB 288 tokens`: six traces of 48 half-hour slots, H H H D D M. H is the history row, D the
full day, M the day with `<m>` at the ten targets; `*` was never observed. Each user-day has one line a draw, and each
line a history row of its own: the mode, slot by slot, of what that draw's masks leave visible of the user's strictly
earlier days (in all splits), and of the first days of each user, which are not in the files.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from attnmove.errors import DataError
from attnmove.nouns import MISSING, Days, Int32, Locations, Targets

N_SLOTS = 48
SLOT_MINUTES = 30
_FILES = {"train": "pos.train.txt", "valid": "pos.validate.txt", "test": "pos.test.txt"}
_TARGET, _UNSEEN = "<m>", "*"
_DATE = re.compile(r"[0-9]{8}")
_REGION = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Released:
    """What the files hold, in this project's nouns."""

    days: Days
    targets: Targets
    locations: Locations


@dataclass
class _Day:
    split: str
    full: list[str]
    draws: list[tuple[list[int], list[str]]]
    """Hidden slots and history row of each line."""


def read_released(folder: Path, *, centres: Path | None = None) -> Released:
    """The released days in their own split, with their masks and history rows.

    `centres` is a CSV of `region_id, lat, lon`; without it locations have no place and distances are undefined.
    """
    found: dict[tuple[str, np.datetime64], _Day] = {}
    for split, name in _FILES.items():
        for where, user, date, traces in _lines(folder / name):
            _add(found, split, where, user, date, traces)
    order = sorted(found)
    drawn = [(key, draw, *found[key].draws[draw]) for key in order for draw in range(len(found[key].draws))]
    tokens = {token for day in found.values() for token in day.full}.union(*(history for *_, history in drawn))
    names = sorted(tokens - {_UNSEEN}, key=_region)
    number = {token: i for i, token in enumerate(names)} | {_UNSEEN: MISSING}
    days = Days(
        user=np.array([user for user, _ in order], dtype=object),
        date=np.array([date for _, date in order], dtype="datetime64[D]"),
        loc=_numbers([found[key].full for key in order], number),
        split=np.array([found[key].split for key in order], dtype=object),
    )
    targets = Targets(
        user=np.array([key[0] for key, *_ in drawn], dtype=object),
        date=np.array([key[1] for key, *_ in drawn], dtype="datetime64[D]"),
        draw=np.array([draw for _, draw, *_ in drawn], dtype=np.int32),
        start=np.concatenate([[0], np.cumsum([len(mask) for *_, mask, _ in drawn])]).astype(np.int64),
        slot=np.array([slot for *_, mask, _ in drawn for slot in mask], dtype=np.int32),
        history=_numbers([history for *_, history in drawn], number),
    )
    return Released(days, targets, _locations(names, centres))


def _lines(file: Path) -> Iterator[tuple[str, str, np.datetime64, list[list[str]]]]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"{file}: not there or not a file; the released folder holds {', '.join(_FILES.values())}"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text; not a released file") from error
    if not text.strip():
        raise DataError(f"{file}: the file is empty")
    for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
        where = f"{file}, row {number}"
        parts = line.split("\t")
        if len(parts) != 3:
            raise DataError(
                f"{where}: expected 3 columns separated by tabs (user, yyyymmdd, tokens), found {len(parts)}"
            )
        user, date, tokens = parts[0].strip(), parts[1].strip(), parts[2].split()
        if not user:
            raise DataError(f"{where}, column 1: expected a user, found nothing")
        if len(tokens) != 6 * N_SLOTS:
            raise DataError(
                f"{where}, column 3: expected {6 * N_SLOTS} tokens, found {len(tokens)}; the line is cut off"
            )
        try:
            if not _DATE.fullmatch(date):
                raise ValueError
            day = np.datetime64(datetime.strptime(date, "%Y%m%d").date(), "D")  # noqa: DTZ007 - a local calendar day
        except ValueError as error:
            raise DataError(f"{where}, column 2: expected a date yyyymmdd, found {date!r}") from error
        yield where, user, day, [tokens[i : i + N_SLOTS] for i in range(0, 6 * N_SLOTS, N_SLOTS)]


def _add(
    found: dict[tuple[str, np.datetime64], _Day],
    split: str,
    where: str,
    user: str,
    date: np.datetime64,
    traces: list[list[str]],
) -> None:
    history, full, mask = traces[0], traces[3], traces[5]
    for token in history + full:
        if token != _UNSEEN and not _REGION.fullmatch(token):
            raise DataError(f"{where}, column 3: expected a region number or {_UNSEEN!r}, found {token!r}")
    hidden = [slot for slot, token in enumerate(mask) if token == _TARGET]
    if any(full[slot] == _UNSEEN for slot in hidden):
        raise DataError(f"{where}: a slot is masked that the full day does not have; the traces do not belong together")
    day = found.setdefault((user, date), _Day(split, full, []))
    if day.split != split or day.full != full:
        raise DataError(f"{where}: user {user} on {date} contradicts an earlier line of the same day")
    day.draws.append((hidden, history))


def _numbers(rows: list[list[str]], number: dict[str, int]) -> Int32:
    return np.array([[number[token] for token in row] for row in rows], dtype=np.int32).reshape(-1, N_SLOTS)


def _region(token: str) -> int:
    return int(token)


def _locations(names: list[str], centres: Path | None) -> Locations:
    lon, lat = np.full(len(names), np.nan), np.full(len(names), np.nan)
    if centres is not None:
        place = _read_centres(centres)
        for i, name in enumerate(names):
            lon[i], lat[i] = place.get(int(name), (np.nan, np.nan))
        if np.isnan(lon).all() and len(names):
            raise DataError(f"{centres}: none of its region ids occurs in the released days")
    return Locations(np.array(names, dtype=object), lon, lat, np.array([int(name) for name in names], dtype=np.int64))


def _read_centres(file: Path) -> dict[int, tuple[float, float]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:
            rows = csv.DictReader(handle)
            lost = {"region_id", "lat", "lon"} - set(rows.fieldnames or ())
            if lost:
                raise DataError(f"{file}, row 1: no column {', '.join(sorted(lost))}; expected region_id, lat, lon")
            return dict(_centre(file, rows.line_num, row) for row in rows)
    except OSError as error:
        raise DataError(f"{file}: there is no such file of centres") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file}: not a CSV file in UTF-8 ({error}); expected region_id, lat, lon") from error


def _centre(file: Path, number: int, row: dict[str, str]) -> tuple[int, tuple[float, float]]:
    try:
        region, lat, lon = int(row["region_id"]), float(row["lat"]), float(row["lon"])
    except (ValueError, TypeError) as error:
        found = ", ".join(str(row[name]) for name in ("region_id", "lat", "lon"))
        raise DataError(f"{file}, row {number}: expected numbers in region_id, lat, lon; found {found}") from error
    if not (abs(lat) <= 90 and abs(lon) <= 180):
        raise DataError(f"{file}, row {number}: expected degrees, found lat {lat:g}, lon {lon:g}")
    return region, (lon, lat)
