"""Measures of recovered slots: pure functions on arrays. Without targets a measure is not defined and is NaN."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from attnmove.nouns import Bool, Float64, Int32, Int64

Floats = npt.NDArray[np.floating[Any]]

LEAST_ANSWERS = 30
"""Answers below which a share of right ones promises nothing: a few surest answers may all be right by luck."""
_CONFIDENCE_BINS = 15


@dataclass(frozen=True)
class RiskCoverage:
    """What answering only the surest targets gains, an entry a distinct confidence from the highest down."""

    confidence: Float64 = field(repr=False)
    """A target is answered when its confidence is this or more."""
    n: Int64 = field(repr=False)
    """Targets answered."""
    coverage: Float64 = field(repr=False)
    """Share of the targets that is answered."""
    precision: Float64 = field(repr=False)
    """Share of the answered targets that is right."""


@dataclass(frozen=True)
class Reliability:
    """Confidence beside accuracy, an entry a bin of confidences from the lowest up; NaN in an empty bin."""

    n: Int64 = field(repr=False)
    """Targets in the bin."""
    confidence: Float64 = field(repr=False)
    """Their mean confidence."""
    accuracy: Float64 = field(repr=False)
    """Share of them that is right."""


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

    Each bin of `reliability` counts with its targets.
    """
    if len(confidence) == 0:
        return float("nan")
    bins = reliability(confidence, right)
    used = bins.n > 0
    return float((bins.n * np.abs(bins.confidence - bins.accuracy))[used].sum() / len(confidence))


def reliability(confidence: Floats, right: Bool) -> Reliability:
    """Confidence and accuracy of the first answers in 15 equally wide bins, open below and closed above."""
    bins = np.clip(np.ceil(confidence * _CONFIDENCE_BINS).astype(np.int64) - 1, 0, _CONFIDENCE_BINS - 1)
    n = np.bincount(bins, minlength=_CONFIDENCE_BINS)
    total = np.bincount(bins, weights=confidence, minlength=_CONFIDENCE_BINS)
    hits = np.bincount(bins, weights=right, minlength=_CONFIDENCE_BINS)
    divisor = np.where(n > 0, n, np.nan)
    return Reliability(n, total / divisor, hits / divisor)


def risk_coverage(confidence: Floats, right: Bool) -> RiskCoverage:
    """Coverage and precision when only targets of at least a confidence are answered; equal ones come together.

    >>> curve = risk_coverage(np.array([0.9, 0.5, 0.5]), np.array([True, True, False]))
    >>> curve.confidence.tolist(), curve.n.tolist(), curve.precision.round(2).tolist()
    ([0.9, 0.5], [1, 3], [1.0, 0.67])
    """
    level, place = np.unique(confidence, return_inverse=True)
    n = np.bincount(place, minlength=len(level))[::-1].cumsum()
    n_right = np.bincount(place, weights=right, minlength=len(level))[::-1].cumsum()
    return RiskCoverage(level[::-1].astype(np.float64), n, n / max(1, len(confidence)), n_right / n)


def area_under_risk(confidence: Floats, right: Bool) -> float:
    """AURC, the mean over coverage of the share of wrong answers, from 0 to 1; smaller where sure answers are right.

    Each target counts with the wrong answers among all targets that are at least as sure as it is.
    """
    curve = risk_coverage(confidence, right)
    return float(((1 - curve.precision) * np.diff(curve.coverage, prepend=0)).sum()) if len(right) else float("nan")


def threshold_for(confidence: Floats, right: Bool, precision: float) -> float:
    """The lowest confidence such that of all answers at least as sure, at least the share `precision` was right.

    NaN when there is none. Fewer than 30 answers promise nothing, so no threshold leaves fewer.
    """
    curve = risk_coverage(confidence, right)
    kept = curve.confidence[(curve.n >= LEAST_ANSWERS) & (curve.precision >= precision)]
    return float(kept.min()) if len(kept) else float("nan")


def thresholds(confidence: Floats, right: Bool) -> list[tuple[float, float]]:
    """Pairs of a precision and the lowest confidence that reaches it, both rising: `threshold_for` as a table.

    At most one pair in a thousandth of precision: for a precision in between, the pair above it holds. Without a
    precision that at least 30 answers reach the table is empty.

    >>> thresholds(np.repeat([0.9, 0.5], 30), np.repeat([True, False], 30))
    [(0.5, 0.5), (1.0, 0.9)]
    """
    curve = risk_coverage(confidence, right)
    enough = np.flatnonzero(curve.n >= LEAST_ANSWERS)[::-1]  # the lowest confidence first
    precision, level = curve.precision[enough], curve.confidence[enough]
    best = np.maximum.accumulate(precision)
    first = np.unique(np.searchsorted(best, np.linspace(0, 1, 1_001)))
    return [(float(precision[i]), float(level[i])) for i in first.tolist() if i < len(level)]


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")
