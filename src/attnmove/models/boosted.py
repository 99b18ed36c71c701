"""Boosted trees: LightGBM grows them, plain arrays keep them and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from attnmove.errors import ConfigError, RunError
from attnmove.models.contract import State, check_within, taken
from attnmove.models.walks import Walks
from attnmove.nouns import Float32, Float64, Int32, Int64

if TYPE_CHECKING:
    from lightgbm import Booster

_OF_A_NODE = {
    "split_feature": np.int32,
    "threshold": np.float64,
    "decision_type": np.int8,
    "left_child": np.int32,
    "right_child": np.int32,
}
"""Arrays with an entry for each split, by the names that LightGBM has for them."""
_ARRAYS = {"num_leaves": np.int32, **_OF_A_NODE, "leaf_value": np.float64}
_DECISION_TYPES = (0, 2, 8, 10)
"""Those of a split on a number; an odd one is a split on categories, 4 and 6 take zero for missing."""


@dataclass(frozen=True)
class BoostedTrees:
    """All trees of one or several boosters, one after the other; the leaves that a row reaches add up to its score.

    A tree has one node fewer than leaves, both numbered from 0 within the tree. A child below zero is the leaf ~child;
    any other is a node, and comes after its parent.
    """

    n_features: int
    """Columns of a row, whether or not a tree looks at them."""
    num_leaves: Int32
    """(trees,) 1 for a tree that does not split."""
    split_feature: Int32
    threshold: Float64
    """(nodes,) a row goes left where its feature is at most this; LightGBM has infinity where only NaN goes right."""
    decision_type: npt.NDArray[np.int8]
    """(nodes,) 8 where NaN is missing, plus 2 where the missing goes left; without 8 NaN is taken for zero."""
    left_child: Int32
    right_child: Int32
    leaf_value: Float64
    """(leaves,) of all trees; shrinkage is in it."""

    @classmethod
    def of(cls, booster: Booster, *, n_rounds: int | None = None) -> BoostedTrees:
        """The trees of a booster's first rounds; unless told, up to its best round where it knows one, else all.

        Raises ConfigError where its score is not a plain sum of leaves, or a split is not on a number.
        """
        if n_rounds is not None and not 1 <= n_rounds <= booster.num_trees():
            raise ConfigError(f"{n_rounds} rounds asked of a booster that has {booster.num_trees()}")
        head, *blocks = booster.model_to_string(num_iteration=n_rounds).partition("\nend of trees")[0].split("\nTree=")
        facts, trees = _facts(head), [_facts(block) for block in blocks]
        if not trees or facts["num_tree_per_iteration"] != "1" or "average_output" in facts:
            raise ConfigError("a booster is kept where it has trees, one a round, that are added up, not averaged")
        words = {name: " ".join(tree[name] for tree in trees).split() for name in _ARRAYS}
        arrays: dict[str, Any] = {name: np.array(words[name], dtype) for name, dtype in _ARRAYS.items()}
        is_linear = any(tree.get("is_linear", "0") != "0" for tree in trees)
        if is_linear or not np.isin(arrays["decision_type"], _DECISION_TYPES).all():
            raise ConfigError("a booster is kept where its splits are on numbers, zero among them, its leaves constant")
        return cls(booster.num_feature(), **arrays)

    @classmethod
    def flat(cls, n_features: int) -> BoostedTrees:
        """One tree of one leaf: every row scores nothing."""
        nodes: dict[str, Any] = {name: np.zeros(0, dtype) for name, dtype in _OF_A_NODE.items()}
        return cls(n_features, num_leaves=np.ones(1, np.int32), leaf_value=np.zeros(1), **nodes)

    def first(self, n_trees: int) -> BoostedTrees:
        """The first trees only, 1 or more of them."""
        return self._between(0, n_trees)

    def _between(self, first: int, end: int) -> BoostedTrees:
        leaf, last = int(self.num_leaves[:first].sum()), int(self.num_leaves[:end].sum())
        nodes: dict[str, Any] = {name: getattr(self, name)[leaf - first : last - end] for name in _OF_A_NODE}
        return replace(self, num_leaves=self.num_leaves[first:end], leaf_value=self.leaf_value[leaf:last], **nodes)

    @classmethod
    def averaged(cls, parts: Sequence[BoostedTrees]) -> BoostedTrees:
        """Trees whose score is the mean of the parts': the first tree of each part, then the second of each, and so on.

        Raises ConfigError unless the parts have as many features.
        """
        n_features = sorted({part.n_features for part in parts})
        if len(n_features) != 1:
            raise ConfigError(f"trees of {n_features} features cannot be averaged")
        most = max(part.n_trees for part in parts)
        trees = [part._tree(i) for i in range(most) for part in parts if i < part.n_trees]
        arrays: dict[str, Any] = {name: np.concatenate([tree[name] for tree in trees]) for name in _ARRAYS}
        arrays["leaf_value"] = arrays["leaf_value"] / len(parts)
        return cls(n_features[0], **arrays)

    def _tree(self, number: int) -> dict[str, npt.NDArray[Any]]:
        """The arrays of one tree."""
        one = self._between(number, number + 1)
        return {name: getattr(one, name) for name in _ARRAYS}

    def state(self) -> State:
        """The arrays by their names; the number of features is for the model to know."""
        return {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def restored(cls, state: State, *, n_features: int) -> BoostedTrees:
        """The trees of a run's arrays. Raises RunError where they cannot be any: every walk down must end in a leaf."""
        arrays: dict[str, Any] = {name: taken(state, name, np.dtype(dtype).kind) for name, dtype in _ARRAYS.items()}
        made = cls(n_features, **arrays)
        n_trees, n_leaves = made.n_trees, len(made.leaf_value)
        check_within(made.num_leaves, 1, n_leaves + 1)
        if not n_trees or made.num_leaves.sum(dtype=np.int64) != n_leaves:
            raise RunError("arrays of leaves that do not fit together")
        if any(len(arrays[name]) != n_leaves - n_trees for name in _OF_A_NODE):
            raise RunError("arrays of trees that do not fit together")
        check_within(made.split_feature, 0, n_features)
        with np.errstate(over="ignore"):
            adds_up = np.isfinite(np.abs(made.leaf_value).sum(dtype=np.float64))
        if not adds_up or np.isnan(made.threshold).any():
            raise RunError("trees with values that are not numbers, or that add up to none")
        if not np.isin(made.decision_type, _DECISION_TYPES).all():
            raise RunError("trees with splits that are not on numbers")
        made._check_walks()
        if not Walks.fit_in_memory(n_leaves - n_trees, int(made.num_leaves.max())):
            raise RunError("trees of more leaves than can be answered from")
        return replace(made, **{name: arrays[name].astype(dtype) for name, dtype in _ARRAYS.items()})

    def _check_walks(self) -> None:
        n_nodes = self.num_leaves.astype(np.int64) - 1
        first = np.repeat(np.cumsum(n_nodes) - n_nodes, n_nodes)
        first_leaf = first + np.repeat(np.arange(len(n_nodes)), n_nodes)
        node, end = np.arange(len(first)) - first, np.repeat(n_nodes, n_nodes)
        reached = []
        for child in (self.left_child.astype(np.int64), self.right_child.astype(np.int64)):
            if np.any(child < -end - 1) or np.any(child >= end) or np.any((child >= 0) & (child <= node)):
                raise RunError("trees that lead nowhere")
            reached.append(np.where(child < 0, len(first) + first_leaf + ~child, first + child))
        if len(np.unique(reached)) < 2 * len(first):
            raise RunError("trees with a node or a leaf that is reached in two ways")

    @property
    def n_trees(self) -> int:
        return len(self.num_leaves)

    @property
    def is_flat(self) -> bool:
        """Whether no tree splits: every row scores the same."""
        return bool((self.num_leaves == 1).all())

    def predict(self, x: Float32, *, rows: Int64 | None = None, first: int = 0, n_trees: int | None = None) -> Float64:
        """(M,) the raw score of each row of x, (M, n_features), or of some `rows` of it; of `n_trees` from `first` on,
        or of all that follow it.

        It is what the booster itself gives, to the last bit; NaN is missing. Raises ConfigError for more trees.
        """
        asked = self.n_trees - first if n_trees is None else n_trees
        if not 0 <= first < first + asked <= self.n_trees:
            raise ConfigError(f"{asked} trees asked from number {first} on, of {self.n_trees}")
        if x.shape[1:] != (self.n_features,):
            raise ConfigError(f"rows of {self.n_features} features are scored, these have the shape {x.shape}")
        some = np.arange(len(x)) if rows is None else rows
        score = np.zeros(len(some))
        self._walks.add(np.ascontiguousarray(x, dtype=np.float32), some, score, first, first + asked)
        return score

    @cached_property
    def _walks(self) -> Walks:
        return Walks.of(self)


def lightgbm() -> Any:
    """The library, loaded when it is first needed. Raises ConfigError where the system lacks what it stands on."""
    try:
        import lightgbm as library
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"LightGBM cannot be loaded ({error}); it takes OpenMP from the system: apt-get install libgomp1, or "
            "brew install libomp"
        ) from error
    return library


def _facts(lines: str) -> dict[str, str]:
    """The key=value lines; a line without a value is a key of nothing."""
    return {key: value for key, _, value in (line.partition("=") for line in lines.splitlines())}
