"""Every target with every place in play of its row, and what is told about such pairs.

Letters as in play.py; P pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.features import IN_PLAY, column
from attnmove.models.evidence.play import Play
from attnmove.models.habits import spread
from attnmove.nouns import Float32, Float64, Int64


class At(NamedTuple):
    """Row and slot of M targets, and where their pairs are."""

    row: Int64
    slot: Int64
    start: Int64
    """(M + 1,) the pairs of target m are start[m] … start[m + 1] - 1."""
    offset: Int64
    """(M,) what to add to an entry of the target's row to get its pair."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every target with every place in play of its row."""

    at: At
    target: Int64
    """(P,)"""
    entry: Int64
    """(P,) which of the places in play."""

    @classmethod
    def of(cls, asked: Asked, play: Play) -> Pairs:
        first, end = play.start[asked.row], play.start[asked.row + 1]
        target, entry = spread(first, end)
        start = np.concatenate([[0], np.cumsum(end - first)])
        return cls(At(asked.row, asked.slot, start, start[:-1] - first), target, entry)

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, eq=False)
class Told:
    """What the day and the past say about P pairs."""

    values: Float32
    """(P, F) the features of places in play, in the order of features.IN_PLAY."""
    promise: Float64
    """(P,) some of them, added up: which places in play are worth a closer look."""

    @classmethod
    def nothing(cls, n_pairs: int) -> Told:
        """Room for what will be told, and no promise."""
        return cls(np.empty((n_pairs, len(IN_PLAY)), dtype=np.float32), np.zeros(n_pairs))

    def of(self, name: str) -> Float32:
        """(P,) one of the features."""
        return self.values[:, column(name)]

    def since(self, name: str) -> Float32:
        """(P, …) the features from this one on."""
        return self.values[:, column(name) :]
