"""Small builders of the files people have: the same few fixes as CSV, Parquet, GPX, Geolife and Google's exports."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from attnmove.city import synthesize

HEADER = ("user", "time", "lat", "lon")
FIXES = (
    ("ann", "2008-10-23T02:53:04Z", "39.98", "116.31"),
    ("ann", "2008-10-23T03:10:00Z", "39.99", "116.32"),
    ("bob", "2008-10-24T00:00:00Z", "-33.5", "-70.25"),
)
PLT_HEADER = (
    "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"  # six lines
)
N_SLOTS = 48


def micros(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micro: int = 0) -> int:
    """Microseconds since 1970 of a time in UTC."""
    when = datetime(year, month, day, hour, minute, second, micro, tzinfo=UTC)
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def write_text(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def write_rows(
    path: Path, rows: Iterable[Sequence[str]] = FIXES, *, header: Sequence[str] = HEADER, separator: str = ","
) -> Path:
    return write_text(path, separator.join(header), *(separator.join(row) for row in rows))


def write_parquet(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    given = columns or {name: [row[i] for row in FIXES] for i, name in enumerate(HEADER)}
    pq.write_table(pa.table(given), path)
    return path


def write_objects(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    return write_text(path, *(json.dumps(row) for row in rows))


def write_json(path: Path, value: Any, *, indent: int | None = 1) -> Path:
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def half_hours(user: str, n_days: int, *, zone: str = "Z", lat: float = 39.9, lon: float = 116.4) -> list[list[str]]:
    """A fix every half hour of so many days, at work from nine to five and at home otherwise."""
    rows = []
    for k in range(n_days * N_SLOTS):
        when = datetime(2020, 6, 1, tzinfo=UTC) + timedelta(minutes=30 * k + 5)
        at_work = 9 <= when.hour < 17
        rows.append([user, f"{when:%Y-%m-%dT%H:%M:%S}{zone}", f"{lat + 0.02 * at_work:.4f}", f"{lon:.4f}"])
    return rows


def plt(*fixes: tuple[str, str, str, str]) -> str:
    """A Geolife track of (lat, lon, date, clock)."""
    return PLT_HEADER + "".join(
        f"{lat},{lon},0,492,39744.1201851852,{date},{clock}\r\n" for lat, lon, date, clock in fixes
    )


def write_zip(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def gpx(*points: str, root: str = '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">') -> str:
    body = "\n".join(points)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{root}<trk><trkseg>\n{body}\n</trkseg></trk></gpx>\n"


def trkpt(lat: str, lon: str, inside: str) -> str:
    return f'<trkpt lat="{lat}" lon="{lon}">{inside}</trkpt>'


def released_line(
    user: str = "1",
    date: str = "20081023",
    *,
    full: Mapping[int, str] | None = None,
    history: Mapping[int, str] | None = None,
    hidden: Sequence[int] = (16, 17),
) -> str:
    """A line of the released files; `full` and `history` are slot -> region, other slots were never observed."""
    seen = {15: "7", 16: "7", 17: "120", 18: "120"} if full is None else full
    day = [seen.get(slot, "*") for slot in range(N_SLOTS)]
    past = [(history or {}).get(slot, "*") for slot in range(N_SLOTS)]
    masked = ["<m>" if slot in hidden else token for slot, token in enumerate(day)]
    return f"{user}\t{date}\t{' '.join(past * 3 + day * 2 + masked)}"


def write_released(
    folder: Path,
    *,
    train: Sequence[str] = (released_line(),),
    valid: Sequence[str] = (released_line(date="20081024"),),
    test: Sequence[str] = (released_line(date="20081025"),),
) -> Path:
    write_text(folder / "pos.train.txt", *train)
    write_text(folder / "pos.validate.txt", *valid)
    write_text(folder / "pos.test.txt", *test)
    return folder


def write_own_points(path: Path, *, users: int, days: int) -> Path:
    """A small city's points as somebody might have them: a CSV file with local times that carry no zone."""
    chunks = synthesize(users, days, seed=0)
    points = pa.concat_tables([chunk.points for chunk in chunks])
    local = pc.strftime(points["time"].cast(pa.timestamp("us", tz="Asia/Shanghai")), format="%Y-%m-%d %H:%M:%S")
    csv.write_csv(pa.table({"user": points["user"], "time": local, "lat": points["lat"], "lon": points["lon"]}), path)
    return path
