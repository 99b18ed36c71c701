"""Google location history: the old Takeout `Records.json` and the Timeline exports of Android and iOS phones."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from attnmove.errors import DataError
from attnmove.io.texts import BROKEN, Fix, open_bytes, person_of

STAY_MINUTES = 5
"""A visit from nine to five is a fix every five minutes: the shortest slot there is."""
_LONGEST_STAY = timedelta(days=7)
_CHUNK = 1 << 20
_SHOWN = 500
_Found = tuple[str | None, str | None, str | None]
"""Time, latitude, longitude."""
_LARGEST_ITEM = 64 << 20
_PAIR = re.compile(r"(?:geo:)?\s*(-?[\d.]+)\s*°?\s*,\s*(-?[\d.]+)\s*°?")


def read_google(files: Sequence[Path], *, one_user: str | None = None) -> Iterator[Fix]:
    """The fixes of the exports; the user is the file's name unless one is given.

    A visit is a fix every five minutes from its start to its end, a path point or raw position is one fix. Files are
    read item by item: memory does not grow with their length.
    """
    for file in files:
        user = one_user or person_of(file)
        known = False
        for section, item in _items(file):
            known = known or section != "" or "startTime" in item
            for when, lat, lon in _fixes(section, item):
                yield Fix(user, None if when is None else str(when), lat, lon)
        if not known:
            raise DataError(
                f"{file}: expected Google's Records.json ('locations') or a Timeline export ('semanticSegments', or a "
                "list of segments), found neither, or an empty one; other points in JSON must be one object a line"
            )


def _fixes(section: str, item: dict[str, Any]) -> list[_Found]:
    """What the item says; an item of another shape is one row that is refused, with the item's text."""
    try:
        return list(_READERS[section](item))
    except (AttributeError, TypeError, OverflowError):
        return [(json.dumps(item)[:_SHOWN], None, None)]


def _records(item: dict[str, Any]) -> Iterator[_Found]:
    yield (
        item.get("timestamp") or _text(item.get("timestampMs"), lambda v: _from_ms(int(v))),
        _text(item.get("latitudeE7"), lambda v: repr(_unwrap(v) / 1e7)),
        _text(item.get("longitudeE7"), lambda v: repr(_unwrap(v) / 1e7)),
    )


def _unwrap(e7: int) -> int:
    """Some exports wrote negative degrees as unsigned 32-bit numbers."""
    return e7 - (1 << 32) if e7 > 1_800_000_000 else e7


def _segment(item: dict[str, Any]) -> Iterator[_Found]:
    start, end = item.get("startTime"), item.get("endTime")
    for step in item.get("timelinePath", ()):
        when = step.get("time") or _later(start, step.get("durationMinutesOffsetFromStartTime"))
        yield when, *_pair(step.get("point"))
    if "visit" in item:
        place = item["visit"].get("topCandidate", {}).get("placeLocation")
        lat, lon = _pair(place.get("latLng") if isinstance(place, dict) else place)
        for when in _every(start, end):
            yield when, lat, lon
    if "activity" in item:
        for when, name in ((start, "start"), (end, "end")):
            spot = item["activity"].get(name)
            yield when, *_pair(spot.get("latLng") if isinstance(spot, dict) else spot)


def _signal(item: dict[str, Any]) -> Iterator[_Found]:
    position = item.get("position")
    if position:
        yield position.get("timestamp"), *_pair(position.get("LatLng"))


_READERS = {"locations": _records, "semanticSegments": _segment, "rawSignals": _signal, "": _segment}


def _pair(text: str | None) -> tuple[str | None, str | None]:
    found = _PAIR.fullmatch(text.strip()) if text else None
    return (found.group(1), found.group(2)) if found else (None, None)


def _every(start: str | None, end: str | None) -> Sequence[str | None]:
    try:
        first, last = datetime.fromisoformat(str(start)), datetime.fromisoformat(str(end))
        length = min(last - first, _LONGEST_STAY)
    except (ValueError, TypeError):
        return [start, end]
    steps = int(length / timedelta(minutes=STAY_MINUTES))
    times = [first + timedelta(minutes=STAY_MINUTES * k) for k in range(steps + 1)]
    return [_iso(when) for when in (times if last in times else [*times, last])]


def _later(start: str | None, minutes: str | None) -> str | None:
    try:
        return _iso(datetime.fromisoformat(str(start)) + timedelta(minutes=float(str(minutes))))
    except (ValueError, OverflowError):
        return None


def _iso(when: datetime) -> str:
    return when.isoformat(sep=" ", timespec="milliseconds")


def _from_ms(milliseconds: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)).isoformat(sep=" ") + "Z"  # noqa: DTZ001


def _text(value: Any, convert: Any) -> str | None:
    """The converted value; None where it is absent or of the wrong kind, so that the row is refused, not the file."""
    try:
        return None if value is None else str(convert(value))
    except (TypeError, ValueError, OverflowError):
        return None


def _items(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(section, object) for each object of the top-level arrays we know, without reading the file whole."""
    try:
        with open_bytes(file) as handle, io.TextIOWrapper(handle, encoding="utf-8-sig") as text:
            yield from _Scanner(file, text).items()
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text; export it again") from error
    except BROKEN as error:
        raise DataError(f"{file}: cannot be read ({error}); fetch the file again") from error


class _Scanner:
    """A window over a JSON text that decodes one array element at a time."""

    def __init__(self, file: Path, handle: TextIO) -> None:
        self._file, self._handle = file, handle
        self._text, self._at = "", 0
        self._decode = json.JSONDecoder().raw_decode

    def items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        mark = self._peek()
        if mark == "[":
            yield from self._array("")
            return
        if mark != "{":
            raise DataError(
                f"{self._file}, row 1: expected JSON, found {self._text[:30]!r}"
                if mark
                else f"{self._file}: the file is empty"
            )
        self._at += 1
        while self._peek() == '"':
            name = str(self._value())
            self._expect(":")
            if name in _READERS and self._peek() == "[":
                yield from self._array(name)
            else:
                self._value()
            if self._peek() == ",":
                self._at += 1
        self._expect("}")

    def _array(self, section: str) -> Iterator[tuple[str, dict[str, Any]]]:
        self._at += 1
        while (mark := self._peek()) != "]":
            if mark == ",":
                self._at += 1
                continue
            item = self._value()
            if isinstance(item, dict):
                yield section, item
        self._at += 1

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._torn()
        self._at += 1

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except RecursionError as error:
                raise self._torn() from error
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > _LARGEST_ITEM or not self._more():
                    raise self._torn() from error
                continue
            # A number or word at the very end of the window may go on beyond it.
            if end == len(self._text) and self._more():
                continue
            self._at = end
            return value

    def _more(self) -> bool:
        data = self._handle.read(_CHUNK)
        self._text, self._at = self._text[self._at :] + data, 0
        return bool(data)

    def _torn(self) -> DataError:
        near = self._text[self._at : self._at + 30]
        return DataError(f"{self._file}: the JSON is broken or cut off near {near!r}; export it again")
