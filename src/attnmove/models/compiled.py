"""Loops that are compiled when they are first called, for what would take many passes over arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """The loop over arrays and numbers as machine code, which other threads need not wait for.

    What is compiled is kept for the next process where there is a folder that may be written, beside the source or in
    the user's cache. Nothing is reordered: sums have the digits that Python's would have.
    """
    try:
        made = njit(cache=True, nogil=True, error_model="numpy")(loop)
    except RuntimeError:  # nowhere to keep it
        made = njit(nogil=True, error_model="numpy")(loop)
    return cast(Loop, made)
