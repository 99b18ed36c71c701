"""Time zones: local time from UTC and back, as expressions that are the same on every engine, and on arrays.

The offsets come from the IANA data Python ships with, not from the engine's own copy, so that two engines cannot
disagree. The rules for the two odd days of a year are:

* a day of 23 hours: the slots of the skipped hour exist and are missing;
* a day of 25 hours: the two passes of the repeated hour share their slots, so `mode` counts the fixes of both and
  `last` takes the second pass;
* a local time without a zone that occurs twice is the first of the two; one that never occurs is read with the offset
  in force before the jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

import ibis
import numpy as np

from attnmove.errors import ConfigError
from attnmove.nouns import Bool, Int64

if TYPE_CHECKING:
    import ibis.expr.types as ir

FIRST_YEAR, LAST_YEAR = 1990, 2060


@dataclass(frozen=True)
class Zone:
    """The offsets of a time zone between 1990 and 2060."""

    name: str
    changes: tuple[int, ...]
    """UTC seconds at which the offset changes, ascending."""
    offsets: tuple[int, ...]
    """Seconds to add to UTC: before the first change, after the first, … (one more than changes)."""


@lru_cache(maxsize=64)
def load_zone(name: str) -> Zone:
    """The zone with this IANA name. Raises ConfigError with the nearest names for an unknown one."""
    if name not in available_timezones() and name != "UTC":
        import difflib

        near = difflib.get_close_matches(name, available_timezones(), n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"{name!r} is not an IANA time zone such as Asia/Shanghai or UTC{hint}")
    zone = ZoneInfo(name)
    changes: list[int] = []
    day = int(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(LAST_YEAR, 1, 1, tzinfo=UTC).timestamp())
    offsets = [_offset(zone, day)]
    while day < end:
        if _offset(zone, day + 86_400) != offsets[-1]:
            low, high = day, day + 86_400
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(_offset(zone, high))
        day += 86_400
    return Zone(name, tuple(changes), tuple(offsets))


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).astimezone(zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def local_seconds(utc_seconds: ir.IntegerValue, zone: Zone) -> ir.IntegerValue:
    """Wall-clock seconds since 1970 in `zone` of UTC seconds since 1970."""
    return utc_seconds + _choose(utc_seconds, zone.changes, zone.offsets)


def utc_seconds(local: ir.IntegerValue, zone: Zone) -> ir.IntegerValue:
    """UTC seconds of wall-clock seconds in `zone`, by the rules at the top of this module."""
    return local - _choose(local, _borders(zone), zone.offsets)


def local_of(utc: Int64, zone: Zone) -> Int64:
    """`local_seconds` of an array."""
    local: Int64 = utc + np.array(zone.offsets)[np.searchsorted(zone.changes, utc, side="right")]
    return local


def utc_of(local: Int64, zone: Zone) -> Int64:
    """`utc_seconds` of an array."""
    utc: Int64 = local - np.array(zone.offsets)[np.searchsorted(_borders(zone), local, side="right")]
    return utc


def never_occurs(start: Int64, end: Int64, zone: Zone) -> Bool:
    """True where the wall clock of `zone` skips the whole time from `start` to `end`, local seconds since 1970."""
    skipped = np.zeros(len(start), dtype=np.bool_)
    for change, before, after in zip(zone.changes, zone.offsets[:-1], zone.offsets[1:], strict=True):
        if after > before:
            skipped |= (start >= change + before) & (end <= change + after)
    return skipped


def _borders(zone: Zone) -> tuple[int, ...]:
    """Wall-clock seconds from which on the next offset counts."""
    pairs = zip(zone.changes, zone.offsets[:-1], zone.offsets[1:], strict=True)
    return tuple(change + max(before, after) for change, before, after in pairs)


def _choose(value: ir.IntegerValue, borders: tuple[int, ...], answers: tuple[int, ...]) -> ir.IntegerValue:
    """A balanced tree of comparisons: about seven of them for a zone with a change every half year."""
    if not borders:
        return ibis.literal(answers[0], "int64")
    middle = len(borders) // 2
    return ibis.ifelse(
        value < borders[middle],
        _choose(value, borders[:middle], answers[: middle + 1]),
        _choose(value, borders[middle + 1 :], answers[middle + 1 :]),
    )
