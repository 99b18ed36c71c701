"""Loops that are compiled when they are first called, for what would take many passes over arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from attnmove.errors import ConfigError

try:
    from numba import njit
    from numba.core.caching import FunctionCache
except (ImportError, OSError) as error:  # a machine that only trains the paper's models may lack it
    _WHY_NOT, njit, FunctionCache = str(error), None, object

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """The loop over arrays and numbers as machine code, which other threads need not wait for.

    What is compiled is kept for the next process where there is a folder that may be written, beside the source or in
    the user's cache, until attnmove changes. Nothing is reordered: sums have the digits that Python's would have.
    Without numba the loop raises ConfigError when it is called: uncompiled it would take a hundred times as long.
    """
    if njit is None:
        return cast(Loop, _refused(loop))
    made = njit(nogil=True, error_model="numpy")(loop)
    with suppress(RuntimeError):  # nowhere to keep it
        made._cache = _Kept(loop)
    return cast(Loop, made)


class _Kept(FunctionCache):  # type: ignore[misc]
    """Machine code on disk, of these very sources; what cannot be read or written there is compiled again.

    numba itself looks at the file of a loop only, but constants and tuples of other files are compiled into it.
    """

    def __init__(self, loop: Callable[..., Any]) -> None:
        super().__init__(loop)
        index = self._cache_file
        index._source_stamp = (index._source_stamp, _digest_of_sources())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a file cut short may raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # a full disk, a folder that is gone, an index cut short
            with suppress(OSError):
                self.flush()


@cache
def _digest_of_sources() -> str:
    """A digest of every source that a loop may take something from."""
    here = Path(__file__).parent
    sources = sorted([*here.rglob("*.py"), here.parent / "nouns.py"])
    digest = hashlib.blake2b(digest_size=16)
    for source in sources:
        with suppress(OSError):  # sources in an archive are those of one version
            digest.update(source.read_bytes())
    return digest.hexdigest()


def _refused(loop: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(loop)
    def refuse(*_: object) -> None:
        raise ConfigError(
            f"boost and copymove are compiled by numba, which cannot be loaded ({_WHY_NOT}): pip install numba"
        )

    return refuse
