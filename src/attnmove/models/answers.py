"""The most likely places of every target, whichever the model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnmove.errors import DataError
from attnmove.models.contract import Recoverer
from attnmove.models.evidential import Answers, Evidential
from attnmove.nouns import MISSING, Cases, Float32, Int32


def best_answers(model: Recoverer, cases: Cases, *, top: int = 5, origins: bool = False) -> Iterator[Answers]:
    """The `top` places of every target, in chunks; origins, when asked for, from models that work with evidence."""
    if isinstance(model, Evidential):
        yield from model.answers(cases, top=top, origins=origins)
        return
    for chunk in model.scores(cases):
        if chunk.log_prob.shape != (len(chunk.index), len(cases.locations)):
            raise DataError(f"scores: expected a number for each of {len(cases.locations)} locations")
        place, probability = _best(chunk.log_prob, top)
        yield Answers(chunk.index, place, probability)


def _best(log_prob: Float32, top: int) -> tuple[Int32, Float32]:
    """(M, top) the most likely locations, the best first, of equals the lower id, and their probabilities."""
    left = log_prob.copy()
    rows = np.arange(len(left))
    place = np.full((len(left), top), MISSING, dtype=np.int32)
    probability = np.zeros((len(left), top), dtype=np.float32)
    for i in range(min(top, left.shape[1])):
        place[:, i] = left.argmax(axis=1)
        # Rounding may leave a probability of 1 a little above it.
        probability[:, i] = np.minimum(np.exp(left[rows, place[:, i]]), 1)
        left[rows, place[:, i]] = -np.inf
    return place, probability
