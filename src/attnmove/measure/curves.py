"""Curves of confidence as one tidy table: risk against coverage, and confidence beside accuracy."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from attnmove.measure.files import write_whole
from attnmove.measure.outcomes import Outcomes
from attnmove.measure.table import Row
from attnmove.metrics import RiskCoverage, reliability, risk_coverage
from attnmove.nouns import Int64

COLUMNS = ("model", "run", "split", "curve", "confidence", "coverage", "precision", "n")
_MOST_POINTS = 200
_DIGITS = 6


def curves_of(outcomes: Outcomes, *, model: str, run: str | None = None, split: str | None = None) -> list[Row]:
    """A row for each point of the curve risk_coverage, at most 200 of them, then for each bin of reliability in use.

    risk_coverage: answering from `confidence` on answers the share `coverage`, `n` targets, of which the share
    `precision` is right. reliability: the same of the targets of one bin, with their mean confidence.
    """
    curve, bins = risk_coverage(outcomes.confidence, outcomes.right), reliability(outcomes.confidence, outcomes.right)
    at, used = _thinned(curve), np.flatnonzero(bins.n)
    share = bins.n / max(1, len(outcomes))
    points = {
        "risk_coverage": (curve.confidence[at], curve.coverage[at], curve.precision[at], curve.n[at]),
        "reliability": (bins.confidence[used], share[used], bins.accuracy[used], bins.n[used]),
    }
    return [
        dict(zip(COLUMNS, (model, run, split, name, *point), strict=True))
        for name, columns in points.items()
        for point in zip(*(column.tolist() for column in columns), strict=True)
    ]


def write_curves(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows of curves as a CSV file, at once. Raises RunError when that fails."""
    page = io.StringIO()
    table = csv.DictWriter(page, COLUMNS, lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: round(at, _DIGITS) if isinstance(at, float) else at for name, at in row.items()})
    write_whole(path, page.getvalue())


def _thinned(curve: RiskCoverage) -> Int64:
    """Positions of the points to keep: all of a short curve, else evenly spread over coverage with both ends."""
    n = len(curve.coverage)
    if n <= _MOST_POINTS:
        return np.arange(n)
    return np.unique(np.searchsorted(curve.coverage, np.linspace(curve.coverage[0], curve.coverage[-1], _MOST_POINTS)))
