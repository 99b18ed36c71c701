"""Which column is the user, the time, the latitude, the longitude: found by name, or told."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnmove.errors import ConfigError, DataError, check_text

ROLES = ("user", "time", "lat", "lon")
NAMES: Mapping[str, tuple[str, ...]] = {
    "user": ("user", "uid", "user_id", "userid", "device_id", "deviceid", "device", "person_id", "person"),
    "time": ("time", "timestamp", "datetime", "ts", "date_time", "gps_time", "utc_time", "time_utc", "when", "t"),
    "lat": ("lat", "latitude", "y"),
    "lon": ("lon", "lng", "longitude", "long", "x"),
}


@dataclass(frozen=True)
class Columns:
    """The column of each role; `user` is None when all points are of one named user."""

    user: str | None
    time: str
    lat: str
    lon: str

    def names(self) -> list[str]:
        """The columns to read, each once."""
        return list(dict.fromkeys(name for name in (self.user, self.time, self.lat, self.lon) if name is not None))


def parse_columns(text: str) -> dict[str, str]:
    """`user=uid,time=when` as a dict; raises ConfigError for anything else."""
    told: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        role, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not name or role not in ROLES:
            raise ConfigError(f"--columns takes user=…,time=…,lat=…,lon=… (any of them); found {part!r}")
        told[role] = name
    return told


def find_columns(
    header: Sequence[str], told: Mapping[str, str] | None, *, source: str, one_user: str | None = None
) -> Columns:
    """The column of each role, by what was told or by the names people use.

    Raises DataError naming the source, what was looked for and the columns there are.
    """
    told = dict(told or {})
    unknown = set(told) - set(ROLES)
    if unknown:
        raise ConfigError(f"columns may name {', '.join(ROLES)}; found {', '.join(sorted(unknown))}")
    for role, called in told.items():
        check_text(f"columns: {role}", called)
    found: dict[str, str | None] = {}
    for role in ROLES:
        if role == "user" and one_user is not None:
            found[role] = None
            continue
        found[role] = told[role] if role in told else _by_name(header, role)
        if role in told and told[role] not in header:
            raise DataError(f"{source}: there is no column {told[role]!r} for {role}{_near(told[role], header)}")
    lost = [role for role in ROLES if found[role] is None and not (role == "user" and one_user is not None)]
    if lost:
        raise DataError(
            f"{source}: no column for {' and '.join(lost)} among {_list(header)}; say which with "
            f"--columns {','.join(f'{role}=…' for role in lost)}"
            + (" (or --user NAME if all points are one person's)" if "user" in lost else "")
        )
    for name in found.values():
        if name is not None and list(header).count(name) > 1:
            raise DataError(f"{source}: the column {name!r} occurs twice; rename one of them")
    return Columns(found["user"], str(found["time"]), str(found["lat"]), str(found["lon"]))


def _by_name(header: Sequence[str], role: str) -> str | None:
    plain = {_plain(name): name for name in reversed(header)}
    return next((plain[_plain(name)] for name in NAMES[role] if _plain(name) in plain), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _near(name: str, header: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, header, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; the columns are {_list(header)}"


def _list(header: Sequence[str]) -> str:
    shown = ", ".join(map(repr, header[:12])) or "none"
    return shown + (f" and {len(header) - 12} more" if len(header) > 12 else "")
