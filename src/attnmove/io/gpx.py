"""GPX: track points and waypoints that carry a time; one person a file, or all the same one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

from attnmove.errors import DataError
from attnmove.io.texts import Fix

_POINTS = ("trkpt", "wpt", "rtept")
_CHUNK = 1 << 20


def read_gpx(files: Sequence[Path], *, one_user: str | None = None) -> Iterator[Fix]:
    """The timed points of GPX files; the user is the file's name unless one is given."""
    for file in files:
        yield from _parse(file, one_user or file.stem)


class _Reader:
    """Collects points from the parser's events; expat is used bare so that entities can be refused."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.ready: list[Fix] = []
        self.root: str | None = None
        self._point: dict[str, str] | None = None
        self._time: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self.root = self.root or name
        if name in _POINTS:
            self._point = attributes
            self._time = None
        elif name == "time" and self._point is not None:
            self._time = []

    def text(self, data: str) -> None:
        if self._time is not None and self._point is not None:
            self._time.append(data)

    def end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name in _POINTS and self._point is not None:
            when = "".join(self._time).strip() if self._time is not None else None
            self.ready.append(Fix(self.user, when, self._point.get("lat"), self._point.get("lon")))
            self._point = self._time = None


def _parse(file: Path, user: str) -> Iterator[Fix]:
    reader = _Reader(user)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = _refuse_entities
    try:
        with file.open("rb") as handle:
            while chunk := handle.read(_CHUNK):
                parser.Parse(chunk, False)
                yield from reader.ready
                reader.ready.clear()
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise DataError(
            f"{file}, row {error.lineno}: not well-formed GPX ({expat.errors.messages[error.code]}); export it again"
        ) from error
    except _Entities as error:
        raise DataError(f"{file}: declares XML entities, which GPX never needs; refused") from error
    if reader.root != "gpx":
        raise DataError(f"{file}, row 1: expected a <gpx> element, found <{reader.root}>")


class _Entities(Exception):  # noqa: N818 - never leaves this module
    """The file declares entities (the way XML bombs are built)."""


def _refuse_entities(*declaration: Any) -> None:
    raise _Entities
