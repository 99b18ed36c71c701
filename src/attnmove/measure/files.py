"""Files of results: written as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attnmove.errors import ConfigError, RunError, check_text

_LONGEST_NAME = 240
"""Bytes of a file's name; while it is written it has another that is a little longer."""


def make_room(path: Path) -> Path:
    """`path`, in a folder that is there and can be written to; RunError otherwise. Ask before the work, not after."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror or error})") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise RunError(f"{path}: cannot be written; name another place")
    if len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise RunError(f"{path}: the name is too long; {_LONGEST_NAME} bytes at most")
    return path


def check_apart(outputs: Iterable[Path], *, files: Iterable[Path] = (), folders: Iterable[Path] = ()) -> None:
    """Raise ConfigError where an output would take the place of a file that is read, lie in a folder (a dataset's, a
    run's) that is, or be another output; and where its name is no text, which not every format can write."""
    read = {file.resolve() for file in files}
    taken, written = {folder.resolve() for folder in folders}, set[Path]()
    for out in outputs:
        here = out.resolve()
        if here in read or here.parent in taken:
            raise ConfigError(f"{out}: is among the files that are read; name another place")
        check_text("the name of an output", str(out))
        if here in written:
            raise ConfigError(f"{out}: named for two things; name another place for one of them")
        written.add(here)


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
