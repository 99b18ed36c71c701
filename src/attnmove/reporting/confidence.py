"""Can a probability be believed: confidence beside accuracy, and what answering only the surest slots gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attnmove.measure.table import Row
from attnmove.metrics import LEAST_ANSWERS
from attnmove.reporting.axes import Series, axis_of, legend, series_of
from attnmove.reporting.charts import Line, line_chart
from attnmove.reporting.inputs import CURVES
from attnmove.reporting.markup import Html
from attnmove.reporting.page import Section, figure, figures, table
from attnmove.reporting.scores import Group, few, shown

TITLE = "How sure it is"
_COVERAGES = (0.25, 0.5, 0.75, 1.0)


def confidence_section(curves: Sequence[Row], groups: Sequence[Group], *, split: str) -> Section:
    """Reliability and risk against coverage of the models that have curves; the groups say which are the best."""
    order = [result.label for group in groups for result in group.whole]
    mine = [row for row in curves if str(row["split"] or split) == split]
    names = list(dict.fromkeys(curve_name(row) for row in mine))
    if not names:
        sentence = "Calibration and risk–coverage: name a run and --dataset, or a file of evaluate --curves."
        return Section("confidence", TITLE, left_out=[sentence])
    ranked = [name for name in order if name in names] + [name for name in names if name not in order]
    kept = few(ranked, [name for group in groups for name in group.runs])
    looks = series_of([*order, *ranked])
    by_curve = {
        curve: {
            name: points
            for name in kept
            if (points := [row for row in mine if row["curve"] == curve and curve_name(row) == name])
        }
        for curve in CURVES
    }
    intro = (
        "Each answer comes with a probability. A calibrated model is right as often as it says; a useful one is right "
        "more often where it is surer, so that unsure slots can be left missing."
    )
    charts = {"reliability": _reliability, "risk_coverage": _risk}
    body = figures([draw(by_curve[curve], looks) for curve, draw in charts.items() if by_curve[curve]])
    return Section("confidence", TITLE, intro, body)


def curve_name(row: Row) -> str:
    """The model of a curve, with its run's folder where a file names one."""
    run = row.get("run")
    return f"{row['model']} ({run})" if run else str(row["model"])


def calibration_error(bins: Sequence[Row]) -> float:
    """ECE from the bins of a reliability curve."""
    total = sum(row["n"] for row in bins)
    return sum(row["n"] * abs(row["confidence"] - row["precision"]) for row in bins) / total if total else math.nan


def _reliability(by_name: dict[str, list[Row]], looks: Mapping[str, Series]) -> Html:
    lines, rows = [], []
    for name, bins in by_name.items():
        total = sum(row["n"] for row in bins) or 1
        lines.append(
            Line(
                looks[name],
                [row["confidence"] for row in bins],
                [row["precision"] for row in bins],
                [
                    f"{name}: said {row['confidence']:.0%}, right {row['precision']:.0%}, {row['n']:,} targets"
                    for row in bins
                ],
                sizes=[2 + 5.5 * math.sqrt(row["n"] / total) for row in bins],
            )
        )
        rows.append([name, shown("ece", calibration_error(bins)), f"{sum(row['n'] for row in bins):,}"])
    title = "Reliability"
    drawn = line_chart(
        lines,
        x_axis=axis_of("what the model says: mean confidence", 0, 1, percent=True),
        y_axis=axis_of("share right", 0, 1, percent=True),
        title=title,
        about="Confidence of the first answer against the share that is right, in 15 bins; the diagonal is perfect.",
        diagonal=True,
        height=380,
    )
    errors = ", ".join(f"{row[0]} {row[1]}" for row in rows)
    caption = (
        f"First answers to {rows[0][2]} targets in 15 equal bins of confidence, larger marks where more of them are. "
        "On the diagonal a model is right as often as it says; below it, it is too sure. Expected calibration error: "
        f"{errors}."
    )
    numbers = table(["model", "ECE", "targets"], rows, title)
    return figure("Reliability", caption, legend([line.series for line in lines]), drawn, numbers=numbers)


def _risk(by_name: dict[str, list[Row]], looks: Mapping[str, Series]) -> Html:
    lines = []
    for name, points in by_name.items():
        # The share of a few surest answers jumps about and says nothing.
        enough = [row for row in points if row["n"] >= LEAST_ANSWERS] or points
        x, y = [row["coverage"] for row in enough], [1 - row["precision"] for row in enough]
        lines.append(Line(looks[name], x, y, marks=False))
    high = max((value for line in lines for value in line.y), default=1.0)
    title = "Risk against coverage"
    drawn = line_chart(
        lines,
        x_axis=axis_of("share of the targets that is answered, the surest first", 0, 1, percent=True),
        y_axis=axis_of("share wrong among the answered", 0, high, percent=True),
        title=title,
        about="The lower, the better: fewer wrong answers at the same coverage.",
        height=380,
    )
    rows = [
        [name, *(_percent(risk_at(points, coverage)) for coverage in _COVERAGES)] for name, points in by_name.items()
    ]
    n = max((row["n"] for points in by_name.values() for row in points), default=0)
    name, points = next(iter(by_name.items()))
    caption = (
        f"{n:,} targets; a line begins at {LEAST_ANSWERS} answers. Answering only the surest half, {name} is wrong in "
        f"{_percent(risk_at(points, 0.5))} of the answers instead of {_percent(risk_at(points, 1.0))}."
    )
    heads = ["model", *(f"wrong at {coverage:.0%}" for coverage in _COVERAGES)]
    legends = legend([line.series for line in lines])
    return figure(title, caption, legends, drawn, numbers=table(heads, rows, title))


def _percent(value: float) -> str:
    """A share as it is written; a dash where it is not defined."""
    return f"{value:.1%}" if math.isfinite(value) else "–"


def risk_at(points: Sequence[Row], coverage: float) -> float:
    """Share wrong at the first point that answers this share of the targets or more."""
    return next((1 - float(row["precision"]) for row in points if row["coverage"] >= coverage - 1e-9), math.nan)
