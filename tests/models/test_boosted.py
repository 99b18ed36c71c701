"""Boosted trees as arrays: bit for bit what LightGBM answers, and nothing that is not trees."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load, save

from attnmove.errors import ConfigError, RunError
from attnmove.models.boosted import BoostedTrees
from attnmove.nouns import Float32, Float64

lightgbm = pytest.importorskip("lightgbm")
N_FEATURES = 5


def table(seed: int, *, n_rows: int = 800) -> Float32:
    """Rows with zeros and NaN among the numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    x[rng.random(x.shape) < 0.15] = 0
    x[rng.random(x.shape) < 0.15] = np.nan
    return x


def target(x: Float32) -> Float64:
    """What depends on numbers, on zeros and on what is missing."""
    known = np.nan_to_num(x.astype(np.float64))
    return known[:, 0] * known[:, 1] + 2 * np.isnan(x[:, 2]) + (x[:, 3] == 0) + np.sin(3 * known[:, 4])


def grown(objective: str = "regression", *, rounds: int = 12, categories: tuple[int, ...] = (), **settings: Any) -> Any:
    x = table(0)
    y = target(x)
    labels = np.digitize(y, [0.0, 1.0, 2.0]) if objective in ("lambdarank", "multiclass") else y
    group = [20] * (len(x) // 20) if objective == "lambdarank" else None
    usual = {"objective": objective, "num_leaves": 9, "min_data_in_leaf": 10, "num_threads": 1, "verbosity": -1}
    data = lightgbm.Dataset(x, labels, group=group, categorical_feature=list(categories))
    return lightgbm.train(usual | settings, data, rounds)


def walked(trees: BoostedTrees, row: npt.NDArray[Any]) -> float:
    """The score of a row, node by node."""
    score, first_node, first_leaf = 0.0, 0, 0
    for n_leaves in trees.num_leaves.tolist():
        at = 0 if n_leaves > 1 else -1
        while at >= 0:
            node = first_node + at
            value, kind = float(row[trees.split_feature[node]]), int(trees.decision_type[node])
            if np.isnan(value) and not kind & 8:
                value = 0.0
            goes_left = bool(kind & 2) if np.isnan(value) else value <= trees.threshold[node]
            at = int((trees.left_child if goes_left else trees.right_child)[node])
        score += float(trees.leaf_value[first_leaf + ~at])
        first_node, first_leaf = first_node + n_leaves - 1, first_leaf + n_leaves
    return score


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        ({"objective": "regression"}, {8, 10}),
        ({"objective": "lambdarank"}, {8, 10}),
        ({"objective": "regression", "num_leaves": 32}, {8, 10}),
        ({"objective": "regression", "num_leaves": 80, "min_data_in_leaf": 1}, {8, 10}),
        ({"objective": "regression", "use_missing": False}, {2}),
    ],
)
def test_the_arrays_answer_what_the_booster_answers_to_the_last_bit(settings: dict[str, Any], kinds: set[int]) -> None:
    booster = grown(**settings)
    trees = BoostedTrees.of(booster)
    assert trees.n_trees == 12
    assert set(trees.decision_type.tolist()) == kinds
    x = table(1)
    for asked in (x, np.asfortranarray(x), x[:1], np.zeros_like(x), np.full_like(x, np.nan)):
        found = trees.predict(asked)
        assert found.dtype == np.float64
        assert np.array_equal(found, booster.predict(asked, raw_score=True))
    assert trees.predict(x[:60]).tolist() == [walked(trees, row) for row in x[:60]]
    assert trees.predict(x[:0]).shape == (0,)
    some = np.array([700, 3, 3])
    assert trees.predict(x, rows=some).tolist() == trees.predict(x[some]).tolist()
    with pytest.raises(ConfigError, match="rows of 5 features"):
        trees.predict(x[:, :4])


def test_a_split_of_the_missing_from_all_numbers_is_kept() -> None:
    x = np.array([[0.0], [1.0], [2.0], [np.nan]] * 30, dtype=np.float32)
    booster = lightgbm.train(
        {"min_data_in_leaf": 1, "num_leaves": 2, "verbosity": -1}, lightgbm.Dataset(x, np.isnan(x[:, 0])), 1
    )
    trees = BoostedTrees.restored(BoostedTrees.of(booster).state(), n_features=1)
    assert np.isinf(trees.threshold).all()
    assert np.array_equal(trees.predict(x), booster.predict(x, raw_score=True))
    assert len(np.unique(trees.predict(x))) == 2


@pytest.mark.parametrize("kind", [0, 2, 8, 10])
def test_the_missing_goes_where_the_arrays_say(kind: int) -> None:
    tree = by_hand(decision_type=np.array([kind, 10 - kind], dtype=np.int8))
    x = np.array([[value, other, 0] for value in (-1, 0, 1, np.nan) for other in (-1, 0, 1, np.nan)], dtype=np.float32)
    assert tree.predict(x).tolist() == [walked(tree, row) for row in x]


def by_hand(**changes: npt.NDArray[Any]) -> BoostedTrees:
    """A single leaf, then a tree of three leaves whose second node is left of the first."""
    arrays: dict[str, Any] = {
        "num_leaves": np.array([1, 3], dtype=np.int32),
        "split_feature": np.array([0, 1], dtype=np.int32),
        "threshold": np.array([0.5, -0.25]),
        "decision_type": np.array([8, 10], dtype=np.int8),
        "left_child": np.array([1, -1], dtype=np.int32),
        "right_child": np.array([-2, -3], dtype=np.int32),
        "leaf_value": np.array([0.1, 1.0, 2.0, 4.0]),
    }
    return BoostedTrees.restored(arrays | changes, n_features=3)


def test_a_row_goes_where_the_arrays_say() -> None:
    x = np.array([[0.5, -0.25, 0], [0.5, 0, 0], [0.6, 0, 0], [0, np.nan, 0], [np.nan, 0, 0]], dtype=np.float32)
    assert by_hand().predict(x, first=1).tolist() == [1, 4, 2, 1, 2]
    assert by_hand().predict(x, first=0, n_trees=1).tolist() == [0.1] * 5
    assert by_hand().predict(x).tolist() == [1.1, 4.1, 2.1, 1.1, 2.1]


def test_a_threshold_between_two_numbers_of_32_bits_parts_them() -> None:
    third = np.float32(1 / 3)
    numbers = np.array([np.nextafter(third, np.float32(0)), third, np.nextafter(third, np.float32(1))])
    x = np.zeros((3, 3), dtype=np.float32)
    x[:, 1] = numbers
    for threshold in (*numbers.astype(np.float64), 1 / 3, 1e300, -1e300, 1e-300, -1e-300, np.inf, -np.inf):
        tree = by_hand(threshold=np.array([0.5, threshold]))
        assert tree.predict(x).tolist() == [walked(tree, row) for row in x]


def test_a_booster_that_finds_no_split_is_a_leaf() -> None:
    booster = grown(min_data_in_leaf=1000)
    trees = BoostedTrees.of(booster)
    assert trees.num_leaves.tolist() == [1] * trees.n_trees
    again = BoostedTrees.restored(trees.state(), n_features=N_FEATURES)
    assert np.array_equal(again.predict(table(1)), booster.predict(table(1), raw_score=True))


def test_a_part_of_the_trees_can_be_asked() -> None:
    booster, x = grown(), table(1)
    trees = BoostedTrees.of(booster)
    for first, n_trees in ((0, 5), (5, 7), (11, 1)):
        theirs = booster.predict(x, start_iteration=first, num_iteration=n_trees, raw_score=True)
        assert np.array_equal(trees.predict(x, first=first, n_trees=n_trees), theirs)
    for first, n_trees in ((0, 0), (0, 13), (12, None), (-1, 2)):
        with pytest.raises(ConfigError, match="of 12"):
            trees.predict(x, first=first, n_trees=n_trees)


def test_rounds_are_those_asked_for_or_the_best() -> None:
    booster, x = grown(), table(1)
    assert BoostedTrees.of(booster, n_rounds=4).n_trees == 4
    booster.best_iteration = 7
    trees = BoostedTrees.of(booster)
    assert trees.n_trees == 7
    assert np.array_equal(trees.predict(x), booster.predict(x, raw_score=True))
    for n_rounds in (0, 13):
        with pytest.raises(ConfigError, match="that has 12"):
            BoostedTrees.of(booster, n_rounds=n_rounds)


def test_averaged_boosters_score_the_mean_and_their_trees_take_turns() -> None:
    boosters, x = [grown(rounds=3), grown("lambdarank", rounds=4)], table(1)
    both = BoostedTrees.averaged([BoostedTrees.of(booster) for booster in boosters])
    each = [booster.predict(x, raw_score=True) for booster in boosters]
    assert both.n_trees == 7
    assert np.allclose(both.predict(x), (each[0] + each[1]) / 2)
    halves = [booster.predict(x, raw_score=True, num_iteration=2) / 2 for booster in boosters]
    assert np.allclose(both.predict(x, n_trees=4), halves[0] + halves[1])
    with pytest.raises(ConfigError, match=r"\[3, 5\] features"):
        BoostedTrees.averaged([both, by_hand()])


def test_the_first_trees_are_those_of_fewer_rounds() -> None:
    booster, x = grown(rounds=5), table(1)
    few = BoostedTrees.of(booster).first(2)
    assert np.array_equal(few.predict(x), booster.predict(x, raw_score=True, num_iteration=2))
    assert BoostedTrees.restored(few.state(), n_features=N_FEATURES).n_trees == 2


def test_flat_trees_score_nothing() -> None:
    assert BoostedTrees.flat(N_FEATURES).predict(table(1)).tolist() == [0.0] * len(table(1))


def test_a_run_keeps_them_to_the_last_bit() -> None:
    booster, x = grown(), table(1)
    state = load(save(dict(BoostedTrees.of(booster).state())))
    again = BoostedTrees.restored(state, n_features=N_FEATURES)
    assert np.array_equal(again.predict(x), booster.predict(x, raw_score=True))


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "multiclass", "num_class": 4},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"categories": (3,), "min_data_per_group": 1, "cat_smooth": 0},
        {"linear_tree": True},
        {"zero_as_missing": True},
    ],
)
def test_a_booster_that_is_more_than_a_sum_of_leaves_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="a booster is kept where"):
        BoostedTrees.of(grown(rounds=2, **settings))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"threshold": np.array([1, 2])}, "no array threshold"),
        ({"left_child": np.array([[1], [-1]])}, "no array left_child"),
        ({"num_leaves": np.array([], dtype=np.int32)}, "leaves that do not fit"),
        ({"num_leaves": np.array([1, 2])}, "leaves that do not fit"),
        ({"num_leaves": np.array([0, 4])}, "numbers from 0 to 4"),
        ({"num_leaves": np.array([-(2**62), 2**62 + 4])}, "numbers from -4611"),
        ({"leaf_value": np.ones(5)}, "leaves that do not fit"),
        ({"num_leaves": np.array([1, 1, 2])}, "trees that do not fit"),
        ({"threshold": np.ones(3)}, "trees that do not fit"),
        ({"decision_type": np.array([8], dtype=np.int8)}, "trees that do not fit"),
        ({"split_feature": np.array([0, 3])}, "numbers from 0 to 3"),
        ({"split_feature": np.array([-1, 0])}, "numbers from -1 to 0"),
        ({"threshold": np.array([np.nan, 0])}, "values that are not numbers"),
        ({"leaf_value": np.array([0, 1, 2, np.nan])}, "values that are not numbers"),
        ({"leaf_value": np.array([0, 1, 2, -np.inf])}, "values that are not numbers"),
        ({"leaf_value": np.array([1e308, 1e308, 0, 0])}, "add up to none"),
        ({"decision_type": np.array([8, 9], dtype=np.int8)}, "not on numbers"),
        ({"decision_type": np.array([4, 8], dtype=np.int8)}, "not on numbers"),
        ({"decision_type": np.array([264, 8])}, "not on numbers"),
        ({"left_child": np.array([0, -1])}, "lead nowhere"),  # to itself
        ({"right_child": np.array([-2, 0])}, "lead nowhere"),  # round in a circle
        ({"left_child": np.array([2, -1])}, "lead nowhere"),  # past the nodes
        ({"right_child": np.array([-2, -4])}, "lead nowhere"),  # past the leaves
        ({"right_child": np.array([-2, -(2**63)])}, "lead nowhere"),
        ({"left_child": np.array([1 + 2**32, -1])}, "lead nowhere"),
        ({"left_child": np.array([1, -2])}, "reached in two ways"),
        ({"left_child": np.array([1, -1]), "right_child": np.array([1, -3])}, "reached in two ways"),
    ],
)
def test_forged_arrays_are_refused(changes: dict[str, npt.NDArray[Any]], said: str) -> None:
    with pytest.raises(RunError, match=said):
        by_hand(**changes)


def test_a_child_in_another_tree_is_refused() -> None:
    two = BoostedTrees.averaged([by_hand(), by_hand()])
    with pytest.raises(RunError, match="lead nowhere"):
        BoostedTrees.restored(replace(two, left_child=np.array([1, 2, 1, -1])).state(), n_features=3)


def test_arrays_of_other_widths_are_taken_for_what_they_say() -> None:
    x = np.array([[0.5, -0.25, 0]], dtype=np.float32)
    wide = by_hand(left_child=np.array([1, -1], dtype=np.int64), threshold=np.array([0.5, -0.25], dtype=np.float32))
    assert wide.left_child.dtype == wide.right_child.dtype == np.int32
    assert wide.predict(x).tolist() == by_hand().predict(x).tolist()


def test_a_tree_of_more_leaves_than_memory_has_room_for_is_refused() -> None:
    n = 70_000
    chain: dict[str, Any] = {
        "num_leaves": np.array([n], dtype=np.int32),
        "split_feature": np.zeros(n - 1, dtype=np.int32),
        "threshold": np.zeros(n - 1),
        "decision_type": np.full(n - 1, 8, dtype=np.int8),
        "left_child": ~np.arange(n - 1, dtype=np.int32),
        "right_child": np.append(np.arange(1, n - 1), ~(n - 1)).astype(np.int32),
        "leaf_value": np.zeros(n),
    }
    with pytest.raises(RunError, match="more leaves than"):
        BoostedTrees.restored(chain, n_features=3)


def test_a_missing_array_is_refused() -> None:
    state = dict(by_hand().state())
    del state["leaf_value"]
    with pytest.raises(RunError, match="no array leaf_value"):
        BoostedTrees.restored(state, n_features=3)


def test_a_machine_without_lightgbm_can_import_the_module() -> None:
    code = "import sys; sys.modules['lightgbm'] = None; import attnmove.models.boosted"
    subprocess.run([sys.executable, "-c", code], check=True)
