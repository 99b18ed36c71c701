"""Loops that are compiled when they are first called, for what would take many passes over arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from attnmove.errors import ConfigError

try:
    from numba import njit
except ImportError:  # a machine that only trains the paper's models may lack it
    njit = None

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """The loop over arrays and numbers as machine code, which other threads need not wait for.

    What is compiled is kept for the next process where there is a folder that may be written, beside the source or in
    the user's cache. Nothing is reordered: sums have the digits that Python's would have. Without numba the loop raises
    ConfigError when it is called: uncompiled it would take a hundred times as long.
    """
    if njit is None:
        return cast(Loop, _refused(loop))
    try:
        made = njit(cache=True, nogil=True, error_model="numpy")(loop)
    except RuntimeError:  # nowhere to keep it
        made = njit(nogil=True, error_model="numpy")(loop)
    return cast(Loop, made)


def _refused(loop: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(loop)
    def refuse(*_: object) -> None:
        raise ConfigError("evidence is gathered by compiled loops, and numba is not installed: pip install numba")

    return refuse
