"""Walking many rows down many trees at a time, without a step that depends on the one before.

Every split of a tree rules out leaves: those on its left where a row goes right. A row reaches the first leaf, from
left to right, that no split rules out. So each split is one comparison and one "and" for many rows at once, whatever
the other splits say (QuickScorer, Lucchese et al., SIGIR 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from attnmove.models.compiled import compiled
from attnmove.nouns import Bool, Float32, Float64, Int32, Int64

if TYPE_CHECKING:
    from attnmove.models.boosted import BoostedTrees

UInt32 = npt.NDArray[np.uint32]

_ROWS = 64
"""Rows that are walked at a time: their numbers and leaves stay in the processor's first cache."""
_BITS = 32
_ALL = np.uint32(0xFFFFFFFF)
_SPREAD = np.uint64(0x077CB531)
"""A de Bruijn number: times a power of two, its highest five bits tell which one."""
_WHICH = np.zeros(_BITS, dtype=np.int64)
_WHICH[[(1 << bit) * 0x077CB531 % (1 << 32) >> 27 for bit in range(_BITS)]] = np.arange(_BITS)


_MOST_WORDS = 2**27
"""Half a gigabyte: 300 trees of 3,000 leaves; those of the default take 43 kilobytes."""


@dataclass(frozen=True, eq=False)
class Walks:
    """The splits of some trees, tree by tree, of each tree first those that send NaN to the left."""

    split: Int64
    """(trees + 1,) the splits of a tree are split[t] … split[t + 1] - 1."""
    middle: Int64
    """(trees,) the first split of a tree that sends NaN to the right."""
    feature: Int32
    threshold: Float32
    """(splits,) the largest 32 bit number that goes left."""
    left: UInt32
    """(splits, words) a bit for each leaf of the tree, from left to right; 0 at those on the split's left."""
    leaf: Int64
    """(trees + 1,) the leaves of a tree are value[leaf[t]] … value[leaf[t + 1] - 1], from left to right."""
    value: Float64

    @staticmethod
    def fit_in_memory(n_splits: int, largest: int) -> bool:
        """Whether the bits of so many splits do, where the largest tree has so many leaves: every split has as many."""
        return n_splits * _words(largest) <= _MOST_WORDS

    @classmethod
    def of(cls, trees: BoostedTrees) -> Walks:
        """Those of all the trees."""
        n_leaves = trees.num_leaves.astype(np.int64)
        leaf = np.concatenate([[0], np.cumsum(n_leaves)])
        split = leaf - np.arange(len(leaf))
        left = np.full((split[-1], _words(int(n_leaves.max()))), _ALL, dtype=np.uint32)
        place = np.zeros(leaf[-1], dtype=np.int64)
        _rule_out(split, leaf, trees.left_child, trees.right_child, left, place)
        value = np.empty(leaf[-1])
        value[np.repeat(leaf[:-1], n_leaves) + place] = trees.leaf_value
        nan_left = _sends_nan_left(trees)
        tree = np.repeat(np.arange(len(n_leaves)), n_leaves - 1)
        order = np.lexsort((~nan_left, tree))
        return cls(
            split=split,
            middle=split[:-1] + np.bincount(tree, nan_left, len(n_leaves)).astype(np.int64),
            feature=trees.split_feature[order],
            threshold=_rounded_down(trees.threshold)[order],
            left=left[order],
            leaf=leaf,
            value=value,
        )

    def add(self, x: Float32, rows: Int64, score: Float64, first: int, end: int) -> None:
        """Add what the trees `first` … `end` - 1 say about the rows of x to their scores (rows,)."""
        _walk(
            x, rows, first, end, self.split, self.middle, self.feature, self.threshold, self.left, self.leaf,
            self.value, score,
        )  # fmt: skip


def _words(n_leaves: int) -> int:
    """Words that hold a bit for each of so many leaves."""
    return -(-n_leaves // _BITS)


def _sends_nan_left(trees: BoostedTrees) -> Bool:
    """(splits,) where a split was learnt without NaN it takes it for zero."""
    knows_nan = (trees.decision_type & 8) != 0
    return np.where(knows_nan, (trees.decision_type & 2) != 0, trees.threshold >= 0)


def _rounded_down(threshold: Float64) -> Float32:
    """A number of 32 bits is at most the threshold where it is at most this."""
    with np.errstate(over="ignore", under="ignore"):
        near = threshold.astype(np.float32)
        below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > threshold, below, near)


@compiled
def _rule_out(split: Int64, leaf: Int64, left_child: Int32, right_child: Int32, left: UInt32, place: Int64) -> None:
    """Clear the bits of the leaves on the left of each split, and number the leaves of each tree from left to right."""
    n_left, n_both = np.zeros(len(left_child), dtype=np.int64), np.zeros(len(left_child), dtype=np.int64)
    begin = np.zeros(len(left_child), dtype=np.int64)
    for t in range(len(split) - 1):
        a, b = split[t], split[t + 1]
        for s in range(b - 1, a - 1, -1):  # a child comes after its parent
            one, other = left_child[s], right_child[s]
            n_left[s] = 1 if one < 0 else n_both[a + one]
            n_both[s] = n_left[s] + (1 if other < 0 else n_both[a + other])
        for s in range(a, b):
            for at, child in ((begin[s], left_child[s]), (begin[s] + n_left[s], right_child[s])):
                if child < 0:
                    place[leaf[t] + ~child] = at
                else:
                    begin[a + child] = at
            for bit in range(begin[s], begin[s] + n_left[s]):
                left[s, bit // _BITS] &= ~(np.uint32(1) << np.uint32(bit % _BITS))


@compiled
def _walk(
    x: Float32,
    rows: Int64,
    first: int,
    end: int,
    split: Int64,
    middle: Int64,
    feature: Int32,
    threshold: Float32,
    left: UInt32,
    leaf: Int64,
    value: Float64,
    score: Float64,
) -> None:
    n_words, n_features = left.shape[1], x.shape[1]
    numbers = np.zeros((n_features, _ROWS), dtype=np.float32)
    open_leaves = np.empty((n_words, _ROWS), dtype=np.uint32)
    total = np.zeros(_ROWS)
    for begin in range(0, len(rows), _ROWS):
        n = min(_ROWS, len(rows) - begin)
        for i in range(n):
            total[i] = score[begin + i]
            for f in range(n_features):
                numbers[f, i] = x[rows[begin + i], f]
        for t in range(first, end):
            open_leaves[:] = _ALL
            for s in range(split[t], middle[t]):
                number, limit = numbers[feature[s]], threshold[s]
                for w in range(n_words):
                    right, still = left[s, w], open_leaves[w]
                    for i in range(_ROWS):
                        still[i] &= right if number[i] > limit else _ALL
            for s in range(middle[t], split[t + 1]):
                number, limit = numbers[feature[s]], threshold[s]
                for w in range(n_words):
                    right, still = left[s, w], open_leaves[w]
                    for i in range(_ROWS):
                        still[i] &= _ALL if number[i] <= limit else right
            for i in range(n):
                w = 0
                while open_leaves[w, i] == 0:
                    w += 1
                bits = np.uint64(open_leaves[w, i])
                lowest = bits & (~bits + np.uint64(1))
                which = _WHICH[(lowest * _SPREAD & np.uint64(_ALL)) >> np.uint64(27)]
                total[i] += value[leaf[t] + w * _BITS + which]
        for i in range(n):
            score[begin + i] = total[i]
