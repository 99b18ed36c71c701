"""Files of results: written as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnmove.errors import RunError


def make_room(path: Path) -> Path:
    """`path`, in a folder that is there and can be written to; RunError otherwise. Ask before the work, not after."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror or error})") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise RunError(f"{path}: cannot be written; name another place")
    return path


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new file to write, which then takes the place of `path`: readers see the old one or the new one.

    Raises RunError when that fails.
    """
    new = path.with_name(f".{path.name}-{os.getpid()}")
    make_room(path)
    try:
        try:
            yield new
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror or error})") from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file at once. Raises RunError when that fails."""
    with replaced(path) as new:
        new.write_text(text, encoding="utf-8", newline="")
