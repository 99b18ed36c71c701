"""The first few of each group, beside sorting each group by itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from attnmove.models.ranking import heaviest, leading, leading_of
from attnmove.nouns import MISSING, Float64, Int64


def groups() -> tuple[Int64, Float64]:
    """Forty groups, some of them empty, of weights that are often equal."""
    rng = np.random.default_rng(0)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 12, 40))])
    return start, rng.integers(-2, 4, start[-1]).astype(np.float64)


def ordered(start: Int64, weight: Float64) -> Iterator[list[int]]:
    """Each group, the highest first; sorting is stable, so of equals the first."""
    return (sorted(range(a, b), key=lambda i: -weight[i]) for a, b in pairwise(start.tolist()))


def table(rows: list[list[int]], width: int) -> list[list[int]]:
    return [(row + [MISSING] * width)[:width] for row in rows]


def test_the_heaviest_of_each_group_stay_of_equals_the_first_and_all_of_endless_weight() -> None:
    start = np.array([0, 5, 5, 7, 11])
    weight = np.array([1, 3, 2, 3, 3, 0, 0, np.inf, 1, np.inf, np.inf], dtype=np.float64)
    kept = heaviest(start, weight, most=2)
    assert np.flatnonzero(kept).tolist() == [1, 3, 5, 6, 7, 9, 10]
    start, weight = groups()
    for most in (1, 3, 7):
        wanted = [at for group in ordered(start, weight) for at in group[:most]]
        assert np.flatnonzero(heaviest(start, weight, most=most)).tolist() == sorted(wanted)


def test_of_equal_scores_the_first_leads() -> None:
    best = leading(np.array([0, 3, 3, 5]), np.array([1.0, 2.0, 2.0, -3.0, -1.0]), most=4)
    assert best.tolist() == [[1, 2, 0, MISSING], [MISSING] * 4, [4, 3, MISSING, MISSING]]


def test_the_leading_of_each_group_are_those_that_sorting_puts_first() -> None:
    start, score = groups()
    for most in (1, 3, 20):
        assert leading(start, score, most=most).tolist() == table(list(ordered(start, score)), most)
    assert leading(np.array([0]), np.zeros(0), most=3).shape == (0, 3)


def test_the_leading_of_some_are_looked_for_among_these_in_whatever_order_they_stand() -> None:
    start, score = groups()
    rng = np.random.default_rng(1)
    rows = [[at for at in group if rng.random() < 0.6] for group in ordered(start, score)]
    some = rng.permuted(np.array(table(rows, 12)), axis=1)
    for most in (1, 4, 12):
        assert leading_of(some, score, most=most).tolist() == table(rows, most)
