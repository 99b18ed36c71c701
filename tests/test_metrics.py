"""The measures, on values worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnmove.metrics import (
    LEAST_ANSWERS,
    area_under_risk,
    calibration_error,
    mean_average_precision,
    mean_distance_m,
    mean_nll,
    ranks_of,
    recall_at,
    reliability,
    risk_coverage,
    threshold_for,
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


def test_reliability_has_a_mean_and_an_accuracy_for_each_bin_in_use() -> None:
    found = reliability(np.array([0.95, 0.99, 0.10, 0.95]), np.array([True, True, False, False]))
    assert found.n.tolist() == [0, 1, *[0] * 12, 3]
    assert found.confidence[[1, 14]] == pytest.approx([0.10, 2.89 / 3])
    assert found.accuracy[[1, 14]] == pytest.approx([0.0, 2 / 3])
    assert np.isnan(found.confidence[found.n == 0]).all()
    assert np.isnan(found.accuracy[found.n == 0]).all()


def test_the_curve_answers_ever_more_targets_the_surest_first() -> None:
    curve = risk_coverage(np.array([0.2, 0.9, 0.6, 0.4]), np.array([False, True, False, True]))
    assert curve.confidence.tolist() == [0.9, 0.6, 0.4, 0.2]
    assert curve.n.tolist() == [1, 2, 3, 4]
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.precision == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])


def test_targets_that_are_equally_sure_are_answered_together_in_whatever_order_they_come() -> None:
    confidence, right = np.array([0.5, 0.8, 0.5, 0.8]), np.array([True, True, False, False])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        curve = risk_coverage(confidence[order], right[order])
        assert (curve.confidence.tolist(), curve.n.tolist()) == ([0.8, 0.5], [2, 4])
        assert curve.precision.tolist() == [0.5, 0.5]
        assert area_under_risk(confidence[order], right[order]) == 0.5


def test_the_area_is_the_mean_risk_over_coverage() -> None:
    confidence, right = np.array([0.9, 0.6, 0.4, 0.2]), np.array([True, False, True, False])
    assert area_under_risk(confidence, right) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert area_under_risk(confidence, np.array([True, True, False, False])) == pytest.approx((1 / 3 + 1 / 2) / 4)


def test_one_confidence_for_all_tells_nothing_so_the_area_is_the_share_of_wrong_answers() -> None:
    assert area_under_risk(np.full(4, 0.7), np.array([True, False, False, False])) == 0.75


def test_the_threshold_is_the_lowest_with_the_wanted_precision() -> None:
    # 40 sure answers, all right; 10 less sure, all wrong; 50 hardly sure, all right.
    confidence = np.repeat([0.9, 0.6, 0.3], [40, 10, 50])
    right = np.repeat([True, False, True], [40, 10, 50])
    # From 0.9 on: 40 of 40. From 0.6 on: 40 of 50. From 0.3 on: 90 of 100.
    assert threshold_for(confidence, right, 0.91) == 0.9
    assert threshold_for(confidence, right, 0.9) == 0.3
    assert threshold_for(confidence[:50], right[:50], 0.8) == 0.6
    assert math.isnan(threshold_for(confidence[40:], right[40:], 0.9))


def test_a_handful_of_lucky_answers_is_no_threshold() -> None:
    confidence = np.repeat([0.9, 0.5], [LEAST_ANSWERS - 1, 71])
    right = confidence > 0.6
    assert math.isnan(threshold_for(confidence, right, 0.99))
    right[-1], confidence[-1] = True, 0.8
    assert threshold_for(confidence, right, 0.99) == 0.8


@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_keeps_its_precision_on_the_data_it_was_chosen_on(seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence = (rng.integers(0, 40, 300) / 39).astype(np.float32)  # many ties
    right = rng.random(300) < confidence
    curve = risk_coverage(confidence, right)
    assert (np.diff(curve.confidence) < 0).all()
    assert (np.diff(curve.coverage) > 0).all()
    assert curve.coverage[-1] == 1.0
    for wanted in (0.0, 0.6, 0.8, 0.9, 1.0):
        least = threshold_for(confidence, right, wanted)
        kept = {at: right[confidence >= at] for at in np.unique(confidence).tolist()}
        good = [at for at, hits in kept.items() if len(hits) >= LEAST_ANSWERS and hits.mean() >= wanted]
        assert (math.isnan(least) and not good) or least == min(good)


def test_without_targets_there_is_no_curve_and_no_threshold() -> None:
    none = NOTHING.astype(np.bool_)
    assert len(risk_coverage(NOTHING, none).confidence) == 0
    assert reliability(NOTHING, none).n.tolist() == [0] * 15
    assert math.isnan(threshold_for(NOTHING, none, 0.0))


def test_without_targets_every_measure_is_nan() -> None:
    none = NOTHING.astype(np.int64)
    found = [
        recall_at(none, 1),
        mean_average_precision(none),
        mean_distance_m(NOTHING),
        mean_nll(NOTHING),
        calibration_error(NOTHING, NOTHING.astype(np.bool_)),
        area_under_risk(NOTHING, NOTHING.astype(np.bool_)),
    ]
    assert all(math.isnan(value) for value in found)
