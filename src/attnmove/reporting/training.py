"""How networks learnt: loss and validation, epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attnmove.reporting.axes import Axis, axis_of, legend, series_of
from attnmove.reporting.charts import Line, line_chart
from attnmove.reporting.inputs import RunFolder
from attnmove.reporting.markup import Html
from attnmove.reporting.page import Section, figure, figures, table

_TITLE = "Training"
_MOST_EPOCHS = 100_000


def training_section(runs: Sequence[RunFolder]) -> Section:
    """Two charts for each run that has a log of epochs."""
    if not runs:
        return Section("training", _TITLE, left_out=["Training curves: name the folder of a network's run."])
    charts: list[Html] = []
    left_out = []
    for run in runs:
        name = run.name
        if len(run.log) and all("loss" in row and 1 <= row.get("epoch", 0) <= _MOST_EPOCHS for row in run.log):
            charts += _charts(name, run)
        else:
            left_out.append(f"Training curves of {name}: it does not learn in epochs, so its run has no log of them.")
    intro = "The epoch that is kept is the best one on the validation days; test days are never looked at to choose."
    return Section("training", _TITLE, intro, figures(charts) if charts else Html(""), left_out)


def _charts(name: str, run: RunFolder) -> list[Html]:
    log = run.log
    best = run.facts.get("best_epoch")
    kept = f"Epoch {best} of {len(log)} was kept." if isinstance(best, int) else f"{len(log)} epochs."
    seconds = sum(row.get("seconds", 0.0) for row in log)
    return [
        _chart(
            f"{name}: loss", log, {"loss": "training loss", "valid_nll": "validation NLL"}, f"{kept} {seconds:,.0f} s."
        ),
        _chart(
            f"{name}: validation",
            log,
            {"valid_recall": "validation recall", "valid_map": "validation MAP"},
            f"{kept} Of the hidden slots of the validation days.",
        ),
    ]


def _chart(title: str, log: Sequence[object], columns: dict[str, str], caption: str) -> Html:
    rows = [row for row in log if isinstance(row, dict)]
    looks = series_of(list(columns.values()))
    epochs = [row["epoch"] for row in rows]
    lines = [
        Line(
            looks[text],
            epochs,
            [row.get(column, math.nan) for row in rows],
            [f"epoch {row['epoch']:.0f}: {text} {row.get(column, math.nan):.4f}" for row in rows],
        )
        for column, text in columns.items()
        if any(math.isfinite(row.get(column, math.nan)) for row in rows)
    ]
    values = [value for line in lines for value in line.y if math.isfinite(value)] or [0.0, 1.0]
    is_share = "valid_recall" in columns
    spare = 0.05 * (max(values) - min(values))
    y_axis = axis_of("share" if is_share else "nats", min(values) - spare, max(values) + spare, percent=is_share)
    drawn = line_chart(
        lines,
        x_axis=_epochs(int(max(epochs))),
        y_axis=y_axis,
        title=title,
        about=f"{' and '.join(columns.values())} over {len(rows)} epochs.",
    )
    numbers = table(
        ["epoch", *(line.series.name for line in lines)],
        [[f"{epoch:.0f}", *(f"{line.y[i]:.4f}" for line in lines)] for i, epoch in enumerate(epochs)],
        title,
    )
    return figure(title, caption, legend([line.series for line in lines]), drawn, numbers=numbers)


def _epochs(n: int) -> Axis:
    """Epochs from 1 to `n`, some of them named."""
    every = max(1, math.ceil(n / 12))
    return Axis("epoch", 0.5, n + 0.5, [(float(i), str(i)) for i in range(1, n + 1) if (i - 1) % every == 0])
