"""Abstention: from which confidence on a model answers, and what such answers are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnmove import metrics
from attnmove.errors import ConfigError, DataError
from attnmove.measure.outcomes import Outcomes, outcomes_of
from attnmove.models.contract import Recoverer
from attnmove.nouns import MISSING, Cases

SURE = 0.9
"""An answer of this confidence or more is a sure one."""


def confidence_for(model: Recoverer, cases: Cases, precision: float) -> float:
    """The lowest confidence from which on at least the share `precision` of the fitted model's answers was right.

    `cases` are of the validation split: chosen on the days that are measured, it would be optimistic. Raises
    ConfigError when no confidence reaches it, DataError on too few targets to tell.
    """
    check_share("precision", precision)
    check_enough(cases)
    outcomes = outcomes_of(model, cases)
    # Rounding may leave a probability of 1 a little above it, where no confidence is accepted.
    confidence = np.minimum(outcomes.confidence, 1)
    chosen = metrics.threshold_for(confidence, outcomes.right, precision)
    if math.isnan(chosen):
        curve = metrics.risk_coverage(confidence, outcomes.right)
        best = curve.precision[curve.n >= metrics.LEAST_ANSWERS].max()
        raise ConfigError(
            f"precision {precision:g} is not reached on the {len(outcomes):,} validation targets, "
            f"{math.floor(best * 1e4) / 1e4:g} at most; ask for that or less"
        )
    return chosen


def check_enough(cases: Cases) -> None:
    """Raise DataError when the validation cases have too few targets to choose a confidence on."""
    n = int((cases.truth != MISSING).sum())
    if n < metrics.LEAST_ANSWERS:
        raise DataError(
            f"precision: expected {metrics.LEAST_ANSWERS} validation targets or more to choose a confidence on, "
            f"found {n}; name a confidence instead"
        )


def measures_of_sure(outcomes: Outcomes) -> dict[str, Any]:
    """How well confidence tells right from wrong: the area under the risk, how many answers are sure, and their recall.

    The recall is None when no answer is sure.
    """
    sure = outcomes.confidence >= SURE
    return {
        "aurc": metrics.area_under_risk(outcomes.confidence, outcomes.right),
        "sure_n": int(sure.sum()),
        "sure_recall": metrics.recall_at(outcomes.rank[sure], 1) if sure.any() else None,
    }


def measures_of_answered(outcomes: Outcomes, min_confidence: float) -> dict[str, Any]:
    """Share of the targets that is answered from this confidence on, and share of the answers that is right.

    The precision is None when nothing is answered; so is the confidence when it is infinite, for then nothing ever is.
    """
    answered = outcomes.confidence >= min_confidence
    return {
        "min_confidence": min_confidence if math.isfinite(min_confidence) else None,
        "coverage": float(answered.mean()) if len(outcomes) else float("nan"),
        "precision": metrics.recall_at(outcomes.rank[answered], 1) if answered.any() else None,
    }


def check_share(what: str, value: float) -> None:
    """Raise ConfigError unless the value is from 0 to 1."""
    if not (isinstance(value, int | float) and 0 <= value <= 1):
        raise ConfigError(f"{what}: expected a number from 0 to 1, found {value!r}")
