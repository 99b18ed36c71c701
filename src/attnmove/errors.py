"""The tree of exceptions: each says what was expected, what was found and what to do.

AttnMoveError
├── DataError        the input is not what it should be (file, row, column, value)
├── ConfigError      an option or a combination of options makes no sense
├── NotFittedError   a model was asked before it was trained
├── MissingExtra     an optional library is not installed
└── RunError         a dataset or run folder cannot be read or written
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AttnMoveError(Exception):
    """Something attnmove can explain in one sentence; the command line prints it and exits with 1."""


class DataError(AttnMoveError):
    """The input is not what it should be."""


class ConfigError(AttnMoveError):
    """An option, or a combination of options, makes no sense."""


class NotFittedError(AttnMoveError):
    """A model was asked for scores before it was trained."""


class RunError(AttnMoveError):
    """A dataset or run folder cannot be read or written."""


class OutdatedRunError(RunError):
    """A run is whole, but another version of attnmove made it."""


class MissingExtra(AttnMoveError):  # noqa: N818 - the name states the remedy, not a fault
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}, which is not installed: pip install 'attnmove[{extra}]'")


def check_names(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise ConfigError on the first of the names that is not known, with the nearest one that is."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known) or 'none'}"
            raise ConfigError(f"no {what} {name!r}; {hint}")


def check_text(what: str, value: object) -> None:
    """Raise ConfigError unless the value is text that can be written as UTF-8."""
    try:
        if isinstance(value, str):
            value.encode()
            return
    except UnicodeEncodeError:
        pass
    raise ConfigError(f"{what}: expected text in UTF-8, found {value!a}")
