"""A model whose answers are written down, and outcomes made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from attnmove.measure.outcomes import Outcomes
from attnmove.models.contract import Scores, State
from attnmove.nouns import Cases


class Fixed:
    """Answers the m-th target with the m-th row of probabilities, in chunks of these positions."""

    def __init__(self, prob: Sequence[Sequence[float]], chunks: Sequence[Sequence[int]] | None = None) -> None:
        self.log_prob = np.log(np.array(prob, dtype=np.float32))
        self.chunks = chunks

    def fit(self, train: Cases, valid: Cases | None = None) -> Self:
        return self

    def scores(self, cases: Cases) -> Iterator[Scores]:
        for chunk in self.chunks if self.chunks is not None else [range(len(cases.index))]:
            at = np.array(chunk, dtype=np.int64)
            yield Scores(cases.index[at], self.log_prob[at])

    def state(self) -> State:
        return {"log_prob": self.log_prob}

    def restore(self, state: State) -> Self:
        return self


def outcomes(users: str, ranks: Sequence[int], *, distance_m: float = 100.0) -> Outcomes:
    """An outcome for each letter, a user; right where the rank is 1, else `distance_m` off."""
    rank = np.array(ranks, dtype=np.int64)
    n = len(rank)
    return Outcomes(
        user=np.array(list(users), dtype=object),
        row=np.arange(n),
        slot=np.zeros(n, dtype=np.int64),
        truth=np.zeros(n, dtype=np.int32),
        predicted=(rank > 1).astype(np.int32),
        rank=rank,
        log_prob=np.log(0.5 / rank).astype(np.float32),
        confidence=np.full(n, 0.5, dtype=np.float32),
        distance_m=np.where(rank > 1, distance_m, 0.0),
    )
