"""The paper's Figure 5: what the width of the embedding, the heads and the layers do to AttnMove."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from attnmove.measure.table import ALL
from attnmove.reporting.axes import axis_of, legend, series_of, steps_of
from attnmove.reporting.charts import Line, line_chart
from attnmove.reporting.inputs import Result
from attnmove.reporting.markup import Html
from attnmove.reporting.page import Section, figure, figures, table
from attnmove.reporting.scores import STUDIED, settings_of, shown, study_of


def study_section(results: Iterable[Result]) -> Section:
    """The paper's Figure 5: recall by width, and by heads and layers, on validation and test days."""
    mine = [result for result in study_of(results) if result.slice == ALL]
    title = "Settings (the paper's Figure 5)"
    if not mine:
        sentence = (
            "Figure 5, the study of settings: name results of the same model with several values of width, heads and "
            "layers (attnmove compare --set width=64)."
        )
        return Section("settings", title, left_out=[sentence])
    charts = []
    for name, about in zip(STUDIED, ("embedding size", "heads of each attention", "layers"), strict=True):
        for group in dict.fromkeys((*result.group, result.model) for result in mine):
            one = [result for result in mine if (*result.group, result.model) == group]
            chart = _study_chart(name, about, _varying(one, name))
            if chart is not None:
                charts.append(chart)
    intro = "One setting varies, the others stay. Choose on validation; the test days show what the choice is worth."
    return Section("settings", title, intro, figures(charts))


def _varying(results: Sequence[Result], name: str) -> list[Result]:
    """The largest set of results in which only this setting differs."""
    sets: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for result in results:
        settings = settings_of(result)
        if settings.pop(name, "").isdigit():
            sets.setdefault(tuple(sorted(settings.items())), []).append(result)
    best = max(sets.values(), key=lambda one: len({result.settings for result in one}), default=[])
    return best if len({result.settings for result in best}) > 1 else []


def _study_chart(name: str, about: str, results: Sequence[Result]) -> Html | None:
    if not results:
        return None
    values = sorted({int(settings_of(result)[name]) for result in results})
    splits = [split for split in ("valid", "test") if any(result.split == split for result in results)]
    looks = series_of([f"{measure}, {split}" for measure in ("recall", "MAP") for split in splits])
    lines = []
    for key, measure in (("recall", "recall"), ("map", "MAP")):
        for split in splits:
            at = {int(settings_of(result)[name]): result for result in results if result.split == split}
            y = [at[value].values[key] if value in at else math.nan for value in values]
            ends = [
                [getattr(at[value], end).get(key, math.nan) if value in at else math.nan for value in values]
                for end in ("low", "high")
            ]
            titles = [
                f"{measure} on {split}, {name} {value}: {shown(key, one)}" for value, one in zip(values, y, strict=True)
            ]
            lines.append(Line(looks[f"{measure}, {split}"], range(len(values)), y, titles, ends[0], ends[1]))
    known = [value for line in lines for value in line.y if math.isfinite(value)] or [0.0, 1.0]
    title = f"{results[0].model}: {name}"
    drawn = line_chart(
        lines,
        x_axis=steps_of(about, [str(value) for value in values]),
        y_axis=axis_of("recall and MAP", min(known) - 0.01, max(known) + 0.01, percent=True),
        title=title,
        about=f"Values {', '.join(map(str, values))}.",
    )
    others = {key: value for key, value in settings_of(results[0]).items() if key != name}
    fixed = ", ".join(f"{key} {value}" for key, value in others.items()) or "the defaults elsewhere"
    counts = "; ".join(f"{next(r.n for r in results if r.split == split):,} {split} targets" for split in splits)
    seeds = max(result.seeds for result in results)
    caption = (
        f"{fixed}. {counts}; {seeds} seed{'s' * (seeds != 1)}, whiskers one standard deviation. "
        f"Dataset {results[0].dataset}."
    )
    rows = [[str(value), *(shown("recall", line.y[i]) for line in lines)] for i, value in enumerate(values)]
    numbers = table([name, *(line.series.name for line in lines)], rows, title)
    return figure(title, caption, legend([line.series for line in lines]), drawn, numbers=numbers)
