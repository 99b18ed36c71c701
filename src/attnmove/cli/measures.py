"""Tables of measures."""

from __future__ import annotations

import math
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from attnmove.cli.render import out, print_table
from attnmove.models.evidence.features import FAMILIES

_HEADS = {
    "recall": "recall",
    "recall_at_3": "@3",
    "recall_at_5": "@5",
    "map": "MAP",
    "distance_m": "metres",
    "nll": "NLL",
    "ece": "ECE",
}
_ABSTAINING_HEADS = {
    "recall": "recall",
    "map": "MAP",
    "min_confidence": "from",
    "coverage": "coverage",
    "precision": "precision",
}
"""Where models leave targets out; with intervals and slices, more does not fit into 80 columns."""
_SMALLER_IS_BETTER = ("distance_m", "nll", "ece")
_N_NAMES = 2
"""Columns of names before those of numbers."""


def show_measures(rows: list[dict[str, Any]], *, title: str, precision: float | None = None) -> None:
    """A row for each model and slice; an interval stands below its measure.

    Where models leave targets out, the caption says what the confidence from which on they answer was chosen for.
    """
    abstaining = "min_confidence" in rows[0]
    heads = _ABSTAINING_HEADS if abstaining else _HEADS
    table = _table("model", "slice", "n", *heads.values(), title=title)
    if abstaining:
        chosen = "" if precision is None else f", for {precision:g} right on valid"
        table.caption = f"from: least confidence answered{chosen}"
        table.caption_justify = "left"
    for row in rows:
        model = row["model"] if row["run"] is None else f"{row['model']} ({row['run']})"
        measures = [_number(name, row[name]) + _interval(name, row) for name in heads]
        table.add_row(escape(model), escape(row["slice"]), f"{row['n']:,}", *measures)
    print_table(table)
    for row in rows:
        if row["slice"] == "all" and row.get("origin_day") is not None:
            shares = ", ".join(f"{family} {row[f'origin_{family}']:.0%}" for family in FAMILIES)
            out.print(f"{escape(row['model'])} leaned on: {shares}", highlight=False)


def show_comparison(summary: list[dict[str, Any]], *, title: str) -> None:
    """A row for each model on all test targets: mean and, below, ± standard deviation over seeds; the best in bold."""
    rows = [row for row in summary if row["split"] == "test" and row["slice"] == "all"]
    best = {name: _best(name, [row[name] for row in rows]) for name in _HEADS}
    table = _table("model", "seeds", "n", *_HEADS.values(), title=title)
    for row in rows:
        cells = []
        for name in _HEADS:
            text = _number(name, row[name])
            if row[f"{name}_sd"] is not None:
                text += f"\n±{_number(name, row[f'{name}_sd'])}"
            cells.append(f"[bold]{text}[/]" if row[name] is not None and row[name] == best[name] else text)
        table.add_row(escape(row["model"]), str(row["seeds"]), f"{row['n']:,}", *cells)
    print_table(table)


def _table(*heads: str, title: str) -> Table:
    """Narrow enough for 80 columns, and where it is not, names fold before a number is cut."""
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for head in heads[:_N_NAMES]:
        table.add_column(head, overflow="fold")
    for head in heads[_N_NAMES:]:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _best(name: str, values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    return min(known) if name in _SMALLER_IS_BETTER else max(known)


def _number(name: str, value: float | None, *, digits: int | None = None) -> str:
    if value is None or math.isnan(value):
        return "–"
    if digits is None:
        digits = {"distance_m": 0, "nll": 3}.get(name, 4)
    return f"{value:,.{digits}f}"


def _interval(name: str, row: dict[str, Any]) -> str:
    short = name.removesuffix("_m")
    ends = [row.get(f"{short}_{end}") for end in ("low", "high")]
    if None in ends:
        return ""
    digits = 0 if name == "distance_m" else 2
    return "\n" + "–".join(_number(name, end, digits=digits) for end in ends)
