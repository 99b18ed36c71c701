"""The random forest of the paper: scikit-learn grows the trees, plain arrays keep them and answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from attnmove.errors import ConfigError, DataError, RunError
from attnmove.models.contract import (
    Scores,
    State,
    check_ranges,
    check_within,
    in_chunks,
    normalised,
    not_fitted,
    taken,
    under,
)
from attnmove.models.evidence.asked import Asked
from attnmove.models.habits import Habits, day_rows, spread
from attnmove.nouns import EARTH_RADIUS_M, MISSING, Cases, Float32, Float64, Int32, Int64
from attnmove.prep.hide import redraw

_TREES_AT_ONCE = 4
"""Trees grown before they are made small; fixed, so that a forest does not depend on the machine."""
_CELLS_OF_A_TREE = 1 << 24
"""Nodes times answers a growing tree may have: 128 MiB in scikit-learn."""
_ROWS_OF_A_TREE = 100_000
"""Targets a tree learns from at most, drawn for each tree."""
_RELATIVE = ("the nearer place", "the other place")
"""Answers beside the locations, numbered after them."""
_N_FEATURES = 28
_STEPS_AT_ONCE = 1 << 20
"""Targets times trees followed at a time."""


@dataclass(frozen=True)
class ForestConfig:
    """Settings of the forest, chosen on the validation days of the released Geolife."""

    trees: int = 100
    """Number of trees; 1 or more."""
    min_leaf: int = 12
    """Targets of training a leaf holds at least; 1 or more."""
    tried: float = 0.1
    """Share of the features tried at a split; above 0, at most 1."""
    redraws: int = 15
    """Further draws of each training day, at random and of as many slots, anew for every few trees; 0 or more."""
    relative: bool = False
    """Whether a tree may also answer "the place of the nearer (or the other) visible slot", not a location only."""
    popularity: float = 0.1
    """Share of everyone's habits mixed into the answer, so that no location is impossible; above 0, at most 1."""

    def __post_init__(self) -> None:
        if self.trees < 1 or self.min_leaf < 1 or self.redraws < 0:
            raise ConfigError("rf: trees and min_leaf must be 1 or more, redraws 0 or more")
        if not 0 < self.tried <= 1 or not 0 < self.popularity <= 1:
            raise ConfigError("rf: tried and popularity must be above 0 and at most 1")


class Forest:
    """A random forest over what surrounds a target: no user, no history.

    Notes
    -----
    The paper names the features, not their encoding. A place is three numbers here, its centre in kilometres and its
    rank in popularity (the rank alone where centres are not known). With `relative`, which the paper does not have, an
    answer may be relative: a tree cannot otherwise say "where the user was half an hour before" but place by place.
    """

    def __init__(self, config: ForestConfig | None = None, *, seed: int = 0) -> None:
        self.config = config or ForestConfig()
        self.seed = seed
        self._habits: Habits | None = None
        self._trees: Trees | None = None

    def fit(self, train: Cases, valid: Cases | None = None) -> Self:
        if not np.any(train.truth != MISSING):
            raise DataError("rf learns from hidden slots whose place is known; these training days have none")
        habits = Habits.of(train)
        parts = []
        for first in range(0, self.config.trees, _TREES_AT_ONCE):
            rng = np.random.default_rng([self.seed, first])
            x, answer = self._lesson(_with_redraws(train, self.config.redraws, rng), habits)
            parts.append(_grow(x, answer, self.config, min(_TREES_AT_ONCE, self.config.trees - first), rng))
        self._habits, self._trees = habits, _one_forest(parts)
        return self

    def _lesson(self, cases: Cases, habits: Habits) -> tuple[Float32, Int32]:
        """Features and answers of the targets whose place is known."""
        around, truth = _Around.of(cases), cases.truth
        answer = around.relative_to(truth, len(cases.locations)) if self.config.relative else truth
        known = truth != MISSING
        return _features(cases, around, habits)[known], answer[known]

    def scores(self, cases: Cases) -> Iterator[Scores]:
        if self._trees is None or self._habits is None:
            raise not_fitted(self)
        self._habits.check(cases)
        return in_chunks(cases, self._log_prob)

    def state(self) -> State:
        if self._trees is None or self._habits is None:
            raise not_fitted(self)
        habits = {f"habits/{name}": array for name, array in self._habits.state().items()}
        return habits | {f"trees/{name}": getattr(self._trees, name) for name in Trees.__dataclass_fields__}

    def restore(self, state: State) -> Self:
        habits = Habits.restored(under("habits/", state))
        self._trees = Trees.restored(under("trees/", state), n_answers=len(habits.everyone) + len(_RELATIVE))
        self._habits = habits
        return self

    def _log_prob(self, cases: Cases) -> Float32:
        assert self._trees is not None
        assert self._habits is not None
        around = _Around.of(cases)
        x = _features(cases, around, self._habits)
        everyone = self._habits.everyone + 0.5
        weight = np.tile(self.config.popularity * everyone / everyone.sum(), (len(x), 1))
        at_once = max(1, _STEPS_AT_ONCE // self._trees.n_trees)
        for start in range(0, len(x), at_once):
            block = slice(start, start + at_once)
            target, answer, share = self._trees.answers(x[block])
            place = around.absolute(target + start, answer, weight.shape[1])
            known = place != MISSING
            np.add.at(weight, (target[known] + start, place[known]), (1 - self.config.popularity) * share[known])
        return normalised(weight)


@dataclass(frozen=True)
class _Around:
    """What is visible next to each of M targets; MISSING where the day shows nothing."""

    before: Int32
    """(M,) the place before, or the one after where nothing is before."""
    after: Int32
    nearer: Int32
    """Of the two the one fewer slots away; on a tie the one before."""
    other: Int32
    to_before: Int64
    """(M,) slots to it; all the slots of a day where there is none."""
    to_after: Int64

    @classmethod
    def of(cls, cases: Cases) -> _Around:
        asked = Asked.of(cases)
        has_before, has_after = asked.prev != MISSING, asked.next != MISSING
        one, two = np.where(has_before, asked.prev, asked.next), np.where(has_after, asked.next, asked.prev)
        to_before = np.where(has_before, asked.gap_prev, cases.n_slots)
        to_after = np.where(has_after, asked.gap_next, cases.n_slots)
        nearer, other = np.where(to_before <= to_after, (one, two), (two, one))
        return cls(one, two, nearer, other, to_before, to_after)

    def relative_to(self, truth: Int32, n_locations: int) -> Int32:
        """(M,) the truth as an answer: n_locations for the nearer place, the number after it for the other."""
        other = np.where(truth == self.other, n_locations + 1, truth)
        return np.where(truth == self.nearer, n_locations, other).astype(np.int32)

    def absolute(self, target: Int64, answer: Int32, n_locations: int) -> Int32:
        """The location that an answer means for a target."""
        other = np.where(answer == n_locations + 1, self.other[target], answer)
        return np.where(answer == n_locations, self.nearer[target], other).astype(np.int32)


@dataclass(frozen=True)
class Trees:
    """All trees of a forest in one row of nodes; the children of a leaf are MISSING."""

    root: Int32
    """The first node of each tree."""
    left: Int32
    """The next node where the feature is at most the threshold."""
    right: Int32
    feature: Int32
    threshold: Float64
    start: Int64
    """(nodes + 1,) the answers of a leaf are answer[start[node]:start[node + 1]]."""
    answer: Int32
    share: Float32
    """Of each answer among the training targets of the leaf; a leaf's sum to one."""

    @classmethod
    def restored(cls, state: State, *, n_answers: int) -> Trees:
        """The trees of a run's arrays. Raises RunError where they cannot be any: every walk down must end in a leaf."""
        floats = ("threshold", "share")
        made = cls(**{name: taken(state, name, "f" if name in floats else "i") for name in cls.__dataclass_fields__})
        n = len(made.left)
        if not len(made.root) or not n == len(made.right) == len(made.feature) == len(made.threshold):
            raise RunError("arrays of trees that do not fit together")
        if len(made.start) != n + 1 or len(made.answer) != len(made.share):
            raise RunError("arrays of leaves that do not fit together")
        check_ranges(made.start, len(made.answer))
        check_within(made.root, 0, n)
        check_within(made.feature, 0, _N_FEATURES)
        check_within(made.answer, 0, n_answers)
        inner = np.flatnonzero(made.left != MISSING)
        children = np.stack([made.left[inner], made.right[inner]])
        if np.any(children <= inner) or np.any(children >= n):
            raise RunError("trees that lead nowhere")
        return made

    @property
    def n_trees(self) -> int:
        return len(self.root)

    def leaves(self, x: Float32) -> Int32:
        """(M, trees) the leaf of each row of features in each tree."""
        node = np.tile(self.root, (len(x), 1))
        row, tree = np.nonzero(self.left[node] != MISSING)
        while len(row):
            at = node[row, tree]
            goes_left = x[row, self.feature[at]] <= self.threshold[at]
            at = np.where(goes_left, self.left[at], self.right[at])
            node[row, tree] = at
            inner = self.left[at] != MISSING
            row, tree = row[inner], tree[inner]
        return node

    def answers(self, x: Float32) -> tuple[Int64, Int32, Float64]:
        """Row, answer and its share of the forest's vote, for every answer of every leaf that a row reaches."""
        leaf = self.leaves(x).ravel()
        which, entry = spread(self.start[leaf], self.start[leaf + 1])
        return which // self.n_trees, self.answer[entry], self.share[entry] / np.float64(self.n_trees)


def flatten(estimators: list[Any], classes: Int32) -> Trees:
    """The trees of scikit-learn as arrays; `classes` are the answers in the order of its columns."""
    parts = []
    for tree in (estimator.tree_ for estimator in estimators):
        leaf = tree.children_left == MISSING
        share = np.where(leaf[:, None], tree.value[:, 0, :], 0)
        node, column = np.nonzero(share)
        parts.append(
            Trees(
                root=np.zeros(1, dtype=np.int32),
                left=tree.children_left.astype(np.int32),
                right=tree.children_right.astype(np.int32),
                feature=np.where(leaf, 0, tree.feature).astype(np.int32),
                threshold=tree.threshold.astype(np.float64),
                start=np.searchsorted(node, np.arange(tree.node_count + 1)),
                answer=classes[column].astype(np.int32),
                share=share[node, column].astype(np.float32),
            )
        )
    return _one_forest(parts)


def _one_forest(parts: list[Trees]) -> Trees:
    """The trees of all parts, one part's nodes after the other's."""
    n_nodes = np.cumsum([0, *(len(part.left) for part in parts)])
    n_answers = np.cumsum([0, *(len(part.answer) for part in parts)])

    def moved(name: str) -> Int32:
        arrays = zip((getattr(part, name) for part in parts), n_nodes[:-1], strict=True)
        return np.concatenate([np.where(node == MISSING, MISSING, node + first) for node, first in arrays]).astype(
            np.int32
        )

    starts = [part.start[:-1] + first for part, first in zip(parts, n_answers[:-1], strict=True)]
    return Trees(
        root=moved("root"),
        left=moved("left"),
        right=moved("right"),
        feature=np.concatenate([part.feature for part in parts]),
        threshold=np.concatenate([part.threshold for part in parts]),
        start=np.concatenate([*starts, n_answers[-1:]]),
        answer=np.concatenate([part.answer for part in parts]),
        share=np.concatenate([part.share for part in parts]),
    )


def _grow(x: Float32, answer: Int32, config: ForestConfig, n_trees: int, rng: np.random.Generator) -> Trees:
    """A few trees, made small at once: while they grow they hold every answer at every node."""
    from sklearn.ensemble import RandomForestClassifier

    leaves = max(2, _CELLS_OF_A_TREE // (2 * len(np.unique(answer))))
    forest = RandomForestClassifier(
        n_estimators=n_trees,
        min_samples_leaf=config.min_leaf,
        max_features=config.tried,
        max_leaf_nodes=leaves if leaves * config.min_leaf < len(x) else None,
        max_samples=min(len(x), _ROWS_OF_A_TREE),
        random_state=int(rng.integers(2**31)),
        n_jobs=-1,
    ).fit(x, answer)
    return flatten(forest.estimators_, forest.classes_)


def _features(cases: Cases, around: _Around, habits: Habits) -> Float32:
    """(M, F) the paper's features of each target: entropy and radius of its day, slot, places around, times to them."""
    row, slot = cases.index.T
    plane = _plane(cases)
    rank = np.empty(len(habits.everyone))
    rank[np.argsort(-habits.everyone, kind="stable")] = np.arange(len(rank))
    entropy, radius_km = _spread_of_days(cases, plane)
    times = [slot, around.to_before, around.to_after, np.minimum(around.to_before, around.to_after)]
    columns: list[npt.NDArray[Any]] = [entropy[row], radius_km[row], *times, around.to_before + around.to_after]
    columns.append(np.hypot(*(plane[around.before] - plane[around.after]).T))
    for place in (around.before, around.after, around.nearer, around.other):
        east, north = plane[place].T
        # The diagonals let a tree cut across, too.
        columns += [east, north, east + north, east - north, np.where(place == MISSING, -1, rank[place])]
    return np.column_stack(columns).astype(np.float32)


def _plane(cases: Cases) -> Float64:
    """(L, 2) kilometres east and north of the middle location; 0 where a centre is not known."""
    lon, lat = np.radians(cases.locations.centres).T
    if not np.isfinite(lon).any():
        return np.zeros((len(lon), 2))
    middle_lon, middle_lat = np.nanmedian(lon), np.nanmedian(lat)
    east = (lon - middle_lon) * np.cos(middle_lat)
    plane: Float64 = np.nan_to_num(np.column_stack([east, lat - middle_lat])) * EARTH_RADIUS_M / 1000
    return plane


def _spread_of_days(cases: Cases, plane: Float64) -> tuple[Float64, Float64]:
    """(K,) the entropy of the visible places in nats and their radius of gyration in kilometres."""
    visible, n_rows, n_locations = cases.visible, len(cases), len(plane)
    row, slot = np.nonzero(visible != MISSING)
    place = visible[row, slot]
    n_seen = np.bincount(row, minlength=n_rows)
    pair, count = np.unique(row * n_locations + place, return_counts=True)
    of = pair // max(1, n_locations)
    share = count / n_seen[of]
    entropy = np.bincount(of, -share * np.log(share), minlength=n_rows).astype(np.float64)
    divisor = np.maximum(1, n_seen)
    middle = np.column_stack([np.bincount(row, axis[place], minlength=n_rows) / divisor for axis in plane.T])
    squares = ((plane[place] - middle[row]) ** 2).sum(axis=1)
    return entropy, np.sqrt(np.bincount(row, squares, minlength=n_rows) / divisor)


def _with_redraws(cases: Cases, times: int, rng: np.random.Generator) -> Cases:
    """The cases, and each of their days `times` more with as many other slots hidden."""
    if times == 0 or len(cases) == 0:
        return cases
    again = np.repeat(day_rows(cases), times)
    redrawn = redraw(cases.loc[again] != MISSING, cases.hidden[again].sum(axis=1), rng)
    whole = cases.rows(np.concatenate([np.arange(len(cases)), again]))
    return replace(whole, hidden=np.concatenate([cases.hidden, redrawn]))
