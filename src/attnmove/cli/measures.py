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
_DOWNSTREAM = {
    "crowd": "crowd by hour",
    "crowd_rms": "  squared",
    "crowd_by_date": "crowd by date",
    "crowd_by_date_rms": "  squared",
    "radius_m": "radius, metres",
    "radius_median_m": "  median",
    "places": "places a day",
    "flows": "flows",
    "flows_rms": "  squared",
    "flows_apart": "  not in common",
}
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
        measures = [_number(name, row[name]) + _interval(name, row) for name in heads]
        table.add_row(escape(_model(row)), escape(row["slice"]), f"{row['n']:,}", *measures)
    print_table(table)
    for row in rows:
        if row["slice"] == "all" and row.get("origin_day") is not None:
            shares = ", ".join(f"{family} {row[f'origin_{family}']:.0%}" for family in FAMILIES)
            out.print(f"{escape(row['model'])} leaned on: {shares}", highlight=False)


def show_downstream(rows: list[dict[str, Any]]) -> None:
    """A table for each model that was measured downstream: errors of sparse and recovered days, and what is gained."""
    for row in rows:
        if "downstream" not in row:
            continue
        title = f"{_model(row)}: errors downstream"
        table = _table("", "n", "sparse", "scaled", "most likely", "less", "expected", "less", title=title, n_names=1)
        for found in row["downstream"]:
            numbers = [_error(found, name) for name in ("sparse", "sparse_scaled")]
            for name in ("most_likely", "expected"):
                numbers += [_error(found, name), _percent(found, f"{name}_reduction")]
            table.add_row(_DOWNSTREAM[found["measure"]], f"{found['n']:,}", *numbers)
        table.caption = "less: error than sparse or scaled, the better of both"
        table.caption_justify = "left"
        print_table(table)


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


def _model(row: dict[str, Any]) -> str:
    return str(row["model"]) if row["run"] is None else f"{row['model']} ({row['run']})"


def _table(*heads: str, title: str, n_names: int = _N_NAMES) -> Table:
    """Narrow enough for 80 columns, and where it is not, names fold before a number is cut."""
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for head in heads[:n_names]:
        table.add_column(head, overflow="fold")
    for head in heads[n_names:]:
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


def _error(row: dict[str, Any], name: str) -> str:
    return _number(name, row[name], digits=0 if row["measure"].startswith("radius") else 3)


def _percent(row: dict[str, Any], name: str) -> str:
    """A share in percent and, below, its interval."""
    values = [row.get(part) for part in (name, f"{name}_low", f"{name}_high")]
    value, *ends = ["–" if value is None else f"{round(100 * value)}%" for value in values]
    return value if "–" in ends else f"{value}\n{ends[0].removesuffix('%')}…{ends[1]}"
