"""The measures, on values worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnmove.metrics import (
    calibration_error,
    mean_average_precision,
    mean_distance_m,
    mean_nll,
    ranks_of,
    recall_at,
)

RANKS = np.array([1, 2, 4, 1], dtype=np.int64)
NOTHING = np.zeros(0)


def truth(*places: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(places, dtype=np.int32)


def test_the_rank_is_the_number_of_better_locations_and_one() -> None:
    log_prob = np.log([[0.1, 0.6, 0.3]] * 3)
    assert ranks_of(log_prob, truth(0, 1, 2)).tolist() == [3, 1, 2]


def test_ties_rank_the_lower_id_first() -> None:
    log_prob = np.log([[0.25, 0.25, 0.25, 0.25]] * 4)
    assert ranks_of(log_prob, truth(0, 1, 2, 3)).tolist() == [1, 2, 3, 4]


def test_the_rank_of_an_impossible_location_is_among_the_impossible_ones() -> None:
    log_prob = np.array([[0.0, -np.inf, -np.inf]])
    assert ranks_of(log_prob, truth(2)).tolist() == [3]


def test_ranks_agree_with_a_stable_sort() -> None:
    rng = np.random.default_rng(1)
    log_prob = rng.integers(0, 4, (50, 7)).astype(np.float32)  # many ties
    places = rng.integers(0, 7, 50).astype(np.int32)
    slow = [
        np.argsort(-row, kind="stable").tolist().index(place) + 1 for row, place in zip(log_prob, places, strict=True)
    ]
    assert ranks_of(log_prob, places).tolist() == slow


def test_recall_at_k_is_the_share_of_ranks_up_to_k() -> None:
    assert [recall_at(RANKS, k) for k in (1, 3, 5)] == [0.5, 0.75, 1.0]


def test_mean_average_precision_is_the_mean_reciprocal_rank() -> None:
    assert mean_average_precision(RANKS) == pytest.approx((1 + 1 / 2 + 1 / 4 + 1) / 4)


def test_the_distance_is_unknown_when_one_is_unknown() -> None:
    assert mean_distance_m(np.array([0.0, 500.0])) == 250.0
    assert math.isnan(mean_distance_m(np.array([0.0, np.nan])))


def test_nll_is_in_nats() -> None:
    assert mean_nll(np.log(np.array([0.5, 0.25]))) == pytest.approx(1.5 * math.log(2))


def test_the_calibration_error_weighs_each_bin_by_its_targets() -> None:
    confidence = np.array([0.95, 0.95, 0.95, 0.10])
    right = np.array([True, True, False, False])
    # Bin of 0.95: 2 of 3 right. Bin of 0.10: 0 of 1 right.
    expected = 3 / 4 * abs(2 / 3 - 0.95) + 1 / 4 * abs(0 - 0.10)
    assert calibration_error(confidence, right) == pytest.approx(expected)


def test_a_confidence_on_the_edge_of_a_bin_falls_into_the_lower_one() -> None:
    # 3/15 belongs to (2/15, 3/15], so the two do not make up for each other.
    apart = calibration_error(np.array([3 / 15, 3 / 15 + 0.01]), np.array([True, False]))
    assert apart == pytest.approx((12 / 15 + 3 / 15 + 0.01) / 2)


def test_certainty_and_impossibility_have_a_bin() -> None:
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0.0
    assert calibration_error(np.array([1.0 + 1e-7]), np.array([True])) == pytest.approx(0.0, abs=1e-6)


def test_without_targets_every_measure_is_nan() -> None:
    none = NOTHING.astype(np.int64)
    found = [
        recall_at(none, 1),
        mean_average_precision(none),
        mean_distance_m(NOTHING),
        mean_nll(NOTHING),
        calibration_error(NOTHING, NOTHING.astype(np.bool_)),
    ]
    assert all(math.isnan(value) for value in found)
