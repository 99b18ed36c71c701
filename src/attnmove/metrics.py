"""Measures of recovered slots: pure functions on arrays. Without targets a measure is not defined and is NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from attnmove.nouns import Bool, Float64, Int32, Int64

Floats = npt.NDArray[np.floating[Any]]

_CONFIDENCE_BINS = 15


def ranks_of(log_prob: Floats, truth: Int32) -> Int64:
    """(M,) the place of the truth among the L locations of each row of (M, L), 1 for the best; ties: lower id first.

    >>> ranks_of(np.log([[0.2, 0.6, 0.2]] * 3), np.array([0, 1, 2], dtype=np.int32)).tolist()
    [2, 1, 3]
    """
    own = np.take_along_axis(log_prob, truth[:, None].astype(np.int64), axis=1)  # (M, 1)
    better = (log_prob > own).sum(axis=1)
    before = ((log_prob == own) & (np.arange(log_prob.shape[1]) < truth[:, None])).sum(axis=1)
    rank: Int64 = (1 + better + before).astype(np.int64)
    return rank


def recall_at(ranks: Int64, k: int) -> float:
    """Share of targets whose truth is among the best `k`; `k` = 1 is the paper's recall."""
    return _mean(ranks <= k)


def mean_average_precision(ranks: Int64) -> float:
    """Mean of 1 / rank over all locations: with one right answer a target, precision at its rank."""
    return _mean(1.0 / ranks)


def mean_distance_m(distance_m: Float64) -> float:
    """Mean metres between prediction and truth; NaN when one of them is not known, for every target counts."""
    return _mean(distance_m)


def mean_nll(log_prob: Floats) -> float:
    """Mean negative natural log-probability of the truth, in nats."""
    return -_mean(log_prob)


def calibration_error(confidence: Floats, right: Bool) -> float:
    """Expected calibration error of the first answers: how far confidence and accuracy are apart, from 0 to 1.

    Confidences fall into 15 equally wide bins, open below and closed above; each bin counts with its targets.
    """
    if len(confidence) == 0:
        return float("nan")
    bins = np.clip(np.ceil(confidence * _CONFIDENCE_BINS).astype(np.int64) - 1, 0, _CONFIDENCE_BINS - 1)
    surplus = np.bincount(bins, weights=confidence.astype(np.float64) - right, minlength=_CONFIDENCE_BINS)
    return float(np.abs(surplus).sum() / len(confidence))


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")
