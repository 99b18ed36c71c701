"""One contract for every model: cases in, log-probabilities of the target slots out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from attnmove.errors import NotFittedError, RunError
from attnmove.nouns import Cases, Float32, Int64

State = Mapping[str, npt.NDArray[Any]]
"""What a model learnt, as named arrays: the content of model.safetensors."""

_CELLS_AT_ONCE = 1 << 22
"""Log-probabilities held at a time: 16 MiB of them."""


@dataclass(frozen=True)
class Scores:
    """The answer for M target slots."""

    index: Int64
    """(M, 2) row and slot of each target in the cases that were asked."""
    log_prob: Float32
    """(M, L) natural logarithm of the probability of each location; a row sums to one."""


class Recoverer(Protocol):
    """Fills the target slots of cases.

    `scores` looks at the visible slots, the history row and the earlier days of a case, never at the hidden slots; it
    gives the same answer whatever else is asked with a case, and in whatever order.
    """

    def fit(self, train: Cases, valid: Cases | None = None) -> Self:
        """Learn from whole days; choose on `valid` where there is something to choose."""
        ...

    def scores(self, cases: Cases) -> Iterator[Scores]:
        """Answers for every target of the cases, in chunks, in the order of `cases.index`.

        Raises NotFittedError before `fit`.
        """
        ...

    def state(self) -> State:
        """What was learnt; `restore` of a new model with the same configuration brings it back."""
        ...

    def restore(self, state: State) -> Self:
        """Take what an equally configured model learnt."""
        ...


def in_chunks(cases: Cases, log_prob: Callable[[Cases], Float32]) -> Iterator[Scores]:
    """Ask `log_prob` for some rows at a time, so that memory does not grow with the number of cases."""
    counts = cases.hidden.sum(axis=1)
    part_of = (np.cumsum(counts) - counts) // targets_at_once(cases)
    for part in np.unique(part_of).tolist():
        rows = np.flatnonzero(part_of == part)
        chunk = cases.rows(rows)
        index = chunk.index
        if len(index):
            yield Scores(np.column_stack([rows[index[:, 0]], index[:, 1]]), log_prob(chunk))


def targets_at_once(cases: Cases) -> int:
    """Targets of which every location's log-probability may be held, the last row's not counted."""
    return max(1, _CELLS_AT_ONCE // max(1, len(cases.locations)))


def normalised(weight: npt.NDArray[np.floating[Any]]) -> Float32:
    """The logarithm of each row's shares; weights must be above zero."""
    total = weight.sum(axis=1, keepdims=True)
    out: Float32 = np.log(weight / total).astype(np.float32)
    return out


def not_fitted(model: object) -> NotFittedError:
    """The error for a model that was asked before `fit`."""
    return NotFittedError(f"{type(model).__name__} has not learnt anything yet: call fit, or load a run")


def under(prefix: str, state: State) -> State:
    """The arrays whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def taken(state: State, name: str, kind: str) -> npt.NDArray[Any]:
    """The array of this name, in one dimension and of this kind: i for whole numbers, f for others.

    Raises RunError: a run may have been made by anybody.
    """
    if name not in state or state[name].ndim != 1 or state[name].dtype.kind != kind:
        raise RunError(f"no array {name} such as this model keeps")
    return state[name]


def check_ranges(start: Int64, n: int) -> None:
    """Raise RunError unless `start` rises from 0 to `n`."""
    if len(start) == 0 or start[0] != 0 or start[-1] != n or np.any(start[1:] < start[:-1]):
        raise RunError("ranges that do not fit the array they cut")


def check_within(values: npt.NDArray[Any], least: int, end: int) -> None:
    """Raise RunError unless all whole numbers are from `least` to `end` - 1."""
    if len(values) and not least <= values.min() <= values.max() < end:
        raise RunError(f"numbers from {values.min()} to {values.max()} where {least} to {end - 1} are possible")
