"""Times as people write them, to microseconds since 1970: the rules of `io.normal`, on a list instead of an engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from attnmove.io.clock import Zone, utc_of
from attnmove.io.handful import BLANK
from attnmove.io.normal import NUMBER
from attnmove.nouns import Bool, Int64

_ISO = re.compile(
    r"([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(:([0-9]{2})([.,][0-9]{1,9})?)? ?"
    r"(Z|z|UTC|GMT|[-+](?:0[0-9]|1[0-8])(?::?[0-5][0-9])?)?",
    re.ASCII,
)
_NUMBER = re.compile(NUMBER, re.ASCII)
_DATE = re.compile(r"\s*[0-9]{4}[-/][0-9]", re.ASCII)
_SAMPLE = 1_000
_UNITS = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (9e18, 1e-3))
"""Up to which size numbers count seconds, milliseconds, micro- and nanoseconds; microseconds of each."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instants_of(times: Sequence[str | float], zone: Zone) -> tuple[Int64, Bool]:
    """Microseconds since 1970, and which are known; text without an offset is a wall-clock time of the zone.

    When more are numbers than dates, all are read as such, in the unit that their middle one suggests.
    """
    numbers = [_number(time) for time in times]
    told = [(number, time) for number, time in zip(numbers, times, strict=True) if time != ""][:_SAMPLE]
    sample = [number for number, _ in told if number is not None]
    if len(sample) > sum(bool(_DATE.match(str(time))) for _, time in told):
        return _epochs(numbers, sample)
    micros = np.zeros(len(times), dtype=np.int64)
    known, naive = np.zeros(len(times), dtype=np.bool_), np.zeros(len(times), dtype=np.bool_)
    for i, time in enumerate(times):
        found = _iso(time) if isinstance(time, str) else None
        if found is not None:
            known[i], micros[i], naive[i] = True, found[0], found[1]
    wall = micros[naive]
    micros[naive] = utc_of(wall // 1_000_000, zone) * 1_000_000 + wall % 1_000_000
    return micros, known


def _number(time: str | float) -> float | None:
    if isinstance(time, str):
        return float(time) if _NUMBER.fullmatch(time) else None
    try:
        return float(time)
    except OverflowError:
        return float("inf")


def _epochs(numbers: Sequence[float | None], sample: Sequence[float]) -> tuple[Int64, Bool]:
    sizes = sorted(abs(number) for number in sample if abs(number) < _UNITS[-1][0])
    middle = sizes[len(sizes) // 2] if sizes else 0.0
    limit, micros = next(unit for unit in _UNITS if middle < unit[0])
    number = np.array([np.nan if value is None else value for value in numbers])
    with np.errstate(invalid="ignore"):
        known = np.abs(number) < limit
    return np.round(np.where(known, number, 0) * micros).astype(np.int64), known


def _iso(text: str) -> tuple[int, bool] | None:
    """Microseconds since 1970 as if it were UTC, less the offset; and whether it has none."""
    found = _ISO.fullmatch(text.strip(BLANK))
    if found is None:
        return None
    try:
        head = datetime(int(found[1]), *(int(found[i] or 0) for i in (2, 3, 4, 5, 7)), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    seconds = (head - _EPOCH).days * 86_400 + (head - _EPOCH).seconds
    fraction = int(((found[8] or ".")[1:] + "000000")[:6])
    offset = 0 if found[9] is None or found[9][0] not in "+-" else _offset(found[9])
    return (seconds - offset) * 1_000_000 + fraction, found[9] is None


def _offset(text: str) -> int:
    digits = text[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60
    return -seconds if text[0] == "-" else seconds
