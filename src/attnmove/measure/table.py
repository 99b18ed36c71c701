"""Rows of measures: a model on a split, as a whole and slice by slice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from attnmove import metrics
from attnmove.measure.confidence import check_share, measures_of_answered, measures_of_sure
from attnmove.measure.intervals import intervals_of
from attnmove.measure.origins import origins_by_slice
from attnmove.measure.outcomes import Outcomes, outcomes_of
from attnmove.measure.slices import in_order, labels_of
from attnmove.models.contract import Recoverer
from attnmove.nouns import Cases, Text

Row = dict[str, Any]
"""What is measured (model, split, slice), the number of targets n, and the measures by name."""

MEASURES = ("recall", "recall_at_3", "recall_at_5", "map", "distance_m", "nll", "ece")
"""The measures of record; a row also has aurc, sure_n and sure_recall."""
ALL = "all"
"""The slice of every target."""


def evaluate(
    model: Recoverer,
    cases: Cases,
    *,
    by: Iterable[str] = (),
    intervals: bool = False,
    name: str | None = None,
    split: str | None = None,
    min_confidence: float | None = None,
) -> list[Row]:
    """Measures of a fitted model on the cases: a row of all targets, then a row for each slice of each slicing in `by`.

    `intervals` adds 95 % intervals over users. `name` and `split` only name the rows; a model has its class's name.
    `min_confidence`, from 0 to 1, adds what answering only from there on gives, see `measure`. Of a model that works
    with evidence come the shares of what its answers leaned on: origin_day, origin_past, origin_others, origin_space.
    """
    if min_confidence is not None:
        check_share("min_confidence", min_confidence)
    labels = labels_of(cases, by)
    outcomes = outcomes_of(model, cases)
    rng = np.random.default_rng(0) if intervals else None
    name = name or str(getattr(model, "name", type(model).__name__.lower()))
    rows = measure(outcomes, labels, model=name, split=split, rng=rng, min_confidence=min_confidence)
    origins = origins_by_slice(model, cases, labels)
    return [row | origins[row["slice"]] for row in rows]


def measure(
    outcomes: Outcomes,
    labels: Mapping[str, Text] | None = None,
    *,
    model: str,
    split: str | None = None,
    rng: np.random.Generator | None = None,
    min_confidence: float | None = None,
) -> list[Row]:
    """A row of all outcomes ("all"), then one for each label of each slicing ("hour=09").

    `labels` has an entry a target for each slicing. With a generator, the rows have intervals over users: recall_low,
    recall_high, map_low, map_high, distance_low, distance_high. `distance_m` is None where a centre is not known;
    without targets the measures are NaN.

    With `min_confidence`, targets of a lower confidence are left missing: the rows also have min_confidence, coverage
    (share answered) and precision (share right among the answered). All other measures are of every target still.
    """
    parts = {ALL: outcomes}
    for name, label in (labels or {}).items():
        for value in in_order(set(label.tolist())):
            parts[f"{name}={value}"] = outcomes.only(label == value)
    rows = [{"model": model, "split": split, "slice": name, **_measures(part)} for name, part in parts.items()]
    if min_confidence is not None:
        rows = [
            row | measures_of_answered(part, min_confidence) for row, part in zip(rows, parts.values(), strict=True)
        ]
    if rng is not None:
        # One seed for all rows: an interval does not depend on what was measured before it.
        seed = int(rng.integers(2**63))
        rows = [row | _ends(part, seed) for row, part in zip(rows, parts.values(), strict=True)]
    return rows


def _measures(outcomes: Outcomes) -> Row:
    distance_m = metrics.mean_distance_m(outcomes.distance_m)
    return {
        "n": len(outcomes),
        "recall": metrics.recall_at(outcomes.rank, 1),
        "recall_at_3": metrics.recall_at(outcomes.rank, 3),
        "recall_at_5": metrics.recall_at(outcomes.rank, 5),
        "map": metrics.mean_average_precision(outcomes.rank),
        "distance_m": None if len(outcomes) and math.isnan(distance_m) else distance_m,
        "nll": metrics.mean_nll(outcomes.log_prob),
        "ece": metrics.calibration_error(outcomes.confidence, outcomes.right),
        **measures_of_sure(outcomes),
    }


def _ends(outcomes: Outcomes, seed: int) -> Row:
    """Both ends of every interval, by name; None where there is none."""
    out: Row = {}
    for name, interval in intervals_of(outcomes, np.random.default_rng(seed)).items():
        ends = {"low": interval.low, "high": interval.high}
        out |= {f"{name.removesuffix('_m')}_{end}": None if math.isnan(at) else at for end, at in ends.items()}
    return out
