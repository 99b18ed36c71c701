"""GPX: track points and waypoints that carry a time; one person a file, or all the same one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

from attnmove.errors import DataError
from attnmove.io.texts import BROKEN, Fix, open_bytes, person_of

_POINTS = ("trkpt", "wpt", "rtept")
_CHUNK = 1 << 20


def read_gpx(files: Sequence[Path], *, one_user: str | None = None) -> Iterator[Fix]:
    """The timed points of GPX files; the user is the file's name unless one is given."""
    for file in files:
        yield from _parse(file, one_user or person_of(file))


class _Reader:
    """Collects points from the parser's events; expat is used bare so that entities can be refused."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.ready: list[Fix] = []
        self.root: str | None = None
        self._point: dict[str, str] | None = None
        self._time: list[str] | None = None
        self._inside: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self.root = self.root or name
        if name in _POINTS:
            self._point, self._time, self._inside = attributes, None, []
            return
        self._inside.append(name)
        if self._point is not None and self._inside == ["time"]:
            self._time = []

    def text(self, data: str) -> None:
        # Receivers add satellites, heart rates and times of their own after, or below, the one that counts.
        if self._time is not None and self._inside == ["time"]:
            self._time.append(data)

    def end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name in _POINTS and self._point is not None:
            when = "".join(self._time).strip() if self._time is not None else None
            self.ready.append(Fix(self.user, when, self._point.get("lat"), self._point.get("lon")))
            self._point = self._time = None
        elif self._inside:
            self._inside.pop()


def _parse(file: Path, user: str) -> Iterator[Fix]:
    reader = _Reader(user)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = _refuse_entities
    try:
        with open_bytes(file) as handle:
            while chunk := handle.read(_CHUNK):
                parser.Parse(chunk, False)
                yield from reader.ready
                reader.ready.clear()
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise DataError(
            f"{file}, row {error.lineno}: not well-formed GPX ({expat.errors.messages[error.code]}); export it again"
        ) from error
    except (LookupError, ValueError) as error:
        raise DataError(f"{file}, row 1: an encoding XML readers do not know ({error}); save as UTF-8") from error
    except BROKEN as error:
        raise DataError(f"{file}: cannot be read ({error}); fetch the file again") from error
    except _Entities as error:
        raise DataError(f"{file}: declares XML entities, which GPX never needs; refused") from error
    if reader.root != "gpx":
        raise DataError(f"{file}, row 1: expected a <gpx> element, found <{reader.root}>; not a GPX file")


class _Entities(Exception):  # noqa: N818 - never leaves this module
    """The file declares entities (the way XML bombs are built)."""


def _refuse_entities(*declaration: Any) -> None:
    raise _Entities
