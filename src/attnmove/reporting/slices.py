"""Recall kind by kind: by hour and places as in the paper's Figure 4, by gap, and by missing rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from attnmove.measure.slices import SLICES, in_order
from attnmove.reporting.axes import Series, axis_of, legend, steps_of
from attnmove.reporting.charts import Line, line_chart
from attnmove.reporting.inputs import Result
from attnmove.reporting.markup import Html, joined, tag
from attnmove.reporting.page import Section, figure, figures, table
from attnmove.reporting.scores import Group, few, shown

_SLICINGS = {
    "hour": ("Recall by hour (the paper's Figure 4a)", "hour in which the slot begins"),
    "places": ("Recall by number of places (the paper's Figure 4b)", "distinct places of the day"),
    "gap": ("Recall by gap", "unseen slots around the target"),
    "missing_rate": ("Recall by missing rate (the paper's Table 4)", "share of the day that is not seen"),
}


def slices_section(groups: Sequence[Group]) -> Section:
    """Recall by hour, places, gap and missing rate, for each group of results that has them."""
    parts: list[Html] = []
    for group in groups:
        charts = [chart for name in SLICES for chart in [_slicing(group, name)] if chart is not None]
        if charts:
            parts += [*([tag("h3", group.title, class_="group")] if len(groups) > 1 else []), figures(charts)]
    title = "When it is hard"
    if not parts:
        sentence = f"Slices: the results have none; measure with --by {','.join(SLICES)}, or name a run and --dataset."
        return Section("slices", title, left_out=[sentence])
    intro = (
        "The same targets, kind by kind. Soft bars behind the lines show how the targets spread over the kinds; "
        "whiskers, on the best model only, are the intervals of the table above."
    )
    return Section("slices", title, intro, joined(parts))


def _slicing(group: Group, name: str) -> Html | None:
    mine: dict[str, dict[str, Result]] = {}
    for result in group.results:
        slicing, _, label = result.slice.partition("=")
        if slicing == name and result.n:
            mine.setdefault(result.label, {})[label] = result
    names = list(dict.fromkeys([*(result.label for result in group.whole if result.label in mine), *mine]))
    if not names:
        return None
    chosen = few(names, group.runs)
    labels = _in_day_order(in_order({label for who in chosen for label in mine[who]}))
    n = [max(mine[who][label].n for who in chosen if label in mine[who]) for label in labels]
    lines = [_slice_line(group.looks[who], mine[who], labels) for who in chosen]
    # Whiskers of every line would hide the lines.
    lines = [lines[0], *(replace(line, low=(), high=()) for line in lines[1:])]
    recall = [value for line in lines for value in (*line.y, *line.low) if math.isfinite(value)]
    title, x_label = _SLICINGS[name]
    drawn = line_chart(
        lines,
        x_axis=steps_of(x_label, labels),
        y_axis=axis_of("recall", max(0.0, min(recall, default=0) - 0.05), 1.0, percent=True),
        title=title,
        about=f"{len(lines)} models over {len(labels)} kinds of target; the table below has the numbers.",
        shares=[count / max(1, sum(n)) for count in n],
    )
    rows = [
        [label, f"{count:,}", *(shown("recall", _value(mine[line.series.name], label)) for line in lines)]
        for label, count in zip(labels, n, strict=True)
    ]
    numbers = table([x_label, "targets", *(line.series.name for line in lines)], rows, title)
    return figure(
        title,
        _slice_caption(len(names) - len(lines), labels, n, lines),
        legend([line.series for line in lines]),
        drawn,
        numbers=numbers,
    )


def _slice_line(series: Series, row: dict[str, Result], labels: Sequence[str]) -> Line:
    known = [row.get(label) for label in labels]
    return Line(
        series,
        range(len(labels)),
        [_value(row, label) for label in labels],
        [f"{series.name}, {label}: {shown('recall', _value(row, label))}" for label in labels],
        [math.nan if result is None else result.low.get("recall", math.nan) for result in known],
        [math.nan if result is None else result.high.get("recall", math.nan) for result in known],
        apart=[i for i, label in enumerate(labels) if not label[:1].isdigit()],
    )


def _slice_caption(more: int, labels: Sequence[str], n: Sequence[int], lines: Sequence[Line]) -> str:
    best = lines[0]
    known = [i for i, value in enumerate(best.y) if math.isfinite(value) and n[i] >= 0.01 * sum(n)]
    text = f"{sum(n):,} targets in {len(labels)} kinds."
    if known:
        low, high = min(known, key=lambda i: best.y[i]), max(known, key=lambda i: best.y[i])
        text += (
            f" {best.series.name}: from {best.y[low]:.1%} ({labels[low]}, {n[low]:,} targets) to {best.y[high]:.1%} "
            f"({labels[high]}, {n[high]:,} targets), kinds with less than 1 % of the targets aside."
        )
    shown_few = (
        f" {len(lines)} of {len(lines) + more} models: the runs that were named, the best others, the naive rules."
    )
    return text + (shown_few if more > 0 else "")


def _in_day_order(labels: list[str]) -> list[str]:
    """The runs that are open on one side in the order of a day."""
    order = {"before first": 1, "after last": 2, "whole day": 3}
    return sorted(labels, key=lambda label: order.get(label, 0))


def _value(row: dict[str, Result], label: str) -> float:
    return row[label].values["recall"] if label in row else math.nan
