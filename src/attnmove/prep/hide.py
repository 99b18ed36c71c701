"""Drawing targets: which observed slots of a day to hide and ask for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnmove.nouns import MINUTES_PER_DAY, Bool, Days, Float64, Int64, Targets
from attnmove.prep.config import Preparation
from attnmove.prep.history import history_rows

BURST_MINUTES = 120
NIGHT_FROM_MINUTE, NIGHT_TO_MINUTE = 22 * 60, 7 * 60


def draw_targets(days: Days, how: Preparation) -> Targets:
    """`how.draws` independent draws of `how.n_hide` hidden slots for every day that is not `past`.

    At least one observed slot of a day always stays visible. The history row counts the whole of all earlier days, as
    the paper writes it; `strict_history` gives the row that counts only what a draw leaves visible.
    """
    rows = np.flatnonzero(days.split != "past")
    observed = days.observed[rows]
    hidden = np.zeros((len(rows), how.draws, days.n_slots), dtype=np.bool_)
    for draw in range(how.draws):
        rng = np.random.default_rng([how.seed, draw])
        hidden[:, draw] = hide(observed, how.n_hide, pattern=how.pattern, slot_minutes=how.slot_minutes, rng=rng)
    row_draws = hidden.reshape(-1, days.n_slots)
    return Targets(
        user=np.repeat(days.user[rows], how.draws),
        date=np.repeat(days.date[rows], how.draws),
        draw=np.tile(np.arange(how.draws, dtype=np.int32), len(rows)),
        start=np.concatenate([[0], np.cumsum(row_draws.sum(axis=1))]),
        slot=np.nonzero(row_draws)[1].astype(np.int32),
        history=np.repeat(history_rows(days.loc, days.first_of_user)[rows], how.draws, axis=0),
    )


def hide(observed: Bool, n: int, *, pattern: str, slot_minutes: int, rng: np.random.Generator) -> Bool:
    """(N, T) True at the slots to hide: the n observed ones that come first in the pattern's random order."""
    return _first(observed, n, _PRIORITIES[pattern](observed.shape, slot_minutes, rng))


def redraw(observed: Bool, n: Int64, rng: np.random.Generator, *, pattern: str = "uniform") -> Bool:
    """(N, T) True at the slots to hide: n (N,) observed ones of each day, in the pattern's random order.

    One always stays visible.
    """
    return _first(observed, n, _PRIORITIES[pattern](observed.shape, MINUTES_PER_DAY // observed.shape[1], rng))


def _first(observed: Bool, n: int | Int64, priority: Float64) -> Bool:
    priority[~observed] = np.inf
    order = np.argsort(priority, axis=1, kind="stable")
    wanted = np.minimum(n, np.maximum(observed.sum(axis=1) - 1, 0))
    hidden = np.zeros(observed.shape, dtype=np.bool_)
    np.put_along_axis(hidden, order, np.arange(observed.shape[1])[None, :] < wanted[:, None], axis=1)
    return hidden


def _uniform(shape: tuple[int, ...], slot_minutes: int, rng: np.random.Generator) -> Float64:
    return rng.random(shape)


def _burst(shape: tuple[int, ...], slot_minutes: int, rng: np.random.Generator) -> Float64:
    """Windows of two hours from a random phase, in random order; inside a window one slot after the other."""
    n, t = shape
    width = max(2, BURST_MINUTES // slot_minutes)
    window = (np.arange(t)[None, :] + rng.integers(0, width, size=(n, 1))) // width
    chance = rng.random((n, t // width + 2))
    return np.take_along_axis(chance, window, axis=1)


def _night(shape: tuple[int, ...], slot_minutes: int, rng: np.random.Generator) -> Float64:
    """Slots between 22:00 and 07:00 in random order, then those nearest to the night."""
    start = np.arange(shape[1]) * slot_minutes
    after, before = start - NIGHT_TO_MINUTE, np.maximum(NIGHT_FROM_MINUTE - start - slot_minutes, 0)
    night = (start >= NIGHT_FROM_MINUTE) | (start < NIGHT_TO_MINUTE)
    away = np.where(night, 0, 1 + np.minimum(after, before) // slot_minutes)
    chance: npt.NDArray[np.float64] = rng.random(shape)
    return away[None, :] + chance


_PRIORITIES = {"uniform": _uniform, "burst": _burst, "night": _night}
