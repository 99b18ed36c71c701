"""Results of record: a CSV file of measured rows that grows from one comparison to the next."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attnmove.errors import RunError
from attnmove.measure.files import write_whole
from attnmove.measure.slices import in_order
from attnmove.measure.table import ALL, MEASURES, Row
from attnmove.models.registry import MODELS

RESULTS = "results.csv"
COLUMNS = (
    *("dataset", "dataset_hash", "protocol", "model", "seed", "split", "slice", "n", "recall", "map", "distance_m"),
    *("recall_at_3", "recall_at_5", "nll", "ece", "seconds_fit", "settings", "version", "device"),
)
JOB = ("dataset_hash", "protocol", "model", "settings", "seed")
"""Columns that say which fit a row comes from."""
_WHICH = (*JOB, "split", "slice")
_NUMBERS = (*MEASURES, "seconds_fit")
_DIGITS = 6
_MOST = 2**63 - 1


def record(row: Row) -> Row:
    """The row with the columns of record, in their order; numbers are rounded as they are stored."""
    out = {name: row[name] for name in COLUMNS}
    for name in _NUMBERS:
        if out[name] is not None:
            out[name] = round(float(out[name]), _DIGITS)
    return out


def read_results(path: Path) -> list[Row]:
    """The rows of a results file; none where there is no file. Raises RunError when it is not such a file."""
    if not path.exists():
        return []
    return read_table(path, COLUMNS, _typed, what="a results file", mend="mend or remove it")


def read_table(path: Path, columns: Iterable[str], typed: Callable[[Row], Row], *, what: str, mend: str) -> list[Row]:
    """The rows of a CSV file that has these columns, each made by `typed`, which may raise ValueError.

    Raises RunError that names the line where a row has too few or too many fields, or cannot be made.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error}); {mend}") from error
    except UnicodeDecodeError as error:
        raise RunError(f"{path}: not {what}, nor UTF-8 text at all; {mend}") from error
    table = csv.DictReader(io.StringIO(text, newline=""))
    out: list[Row] = []
    try:
        lost = [name for name in columns if name not in (table.fieldnames or ())]
        if lost:
            raise RunError(f"{path}: not {what}, no column {lost[0]}; name another file or folder")
        for row in table:
            if None in row or None in row.values():
                raise ValueError(f"too {'many' if None in row else 'few'} fields")
            out.append(typed(row))
    except (ValueError, csv.Error) as error:
        raise RunError(f"{path}, line {table.line_num}: a row is broken ({error}); {mend}") from error
    return out


def count_of(value: Any) -> int:
    """A number of targets or seeds. Raises ValueError on what is below 0 or beyond 64 bits."""
    number = int(value)
    if not 0 <= number <= _MOST:
        raise ValueError("expected a count, found a number below 0 or too large")
    return number


def add_results(path: Path, rows: Iterable[Row]) -> list[Row]:
    """Add rows to the file, in order, each in place of an older one of the same fit, split and slice.

    The file is replaced as a whole: readers see the old one or the new one. Returns all its rows.
    """
    merged = {tuple(row[name] for name in _WHICH): row for row in [*read_results(path), *rows]}
    out = sorted_results(merged.values())
    page = io.StringIO()
    table = csv.DictWriter(page, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(out)
    write_whole(path, page.getvalue())
    return out


def sorted_results(rows: Iterable[Row]) -> list[Row]:
    """Rows by dataset, protocol, model (in the order of MODELS), seed, split and slice."""
    rows = list(rows)
    models = {name: i for i, name in enumerate(MODELS)}
    slices = {name: i for i, name in enumerate(_slices_in_order({row["slice"] for row in rows}))}
    return sorted(
        rows,
        key=lambda row: (
            *(row[name] for name in ("dataset", "dataset_hash", "protocol")),
            models.get(row["model"], len(models)),
            *(row[name] for name in ("model", "settings", "seed", "split")),
            slices[row["slice"]],
        ),
    )


def summarise(rows: Iterable[Row]) -> list[Row]:
    """Mean and standard deviation over seeds of each model, split and slice: `recall`, `recall_sd`, and so on.

    The deviation is that of a sample, None with one seed. Rows come in the order in which models first appear.
    """
    groups: dict[tuple[object, ...], list[Row]] = {}
    same = [name for name in _WHICH if name != "seed"]
    for row in rows:
        groups.setdefault(tuple(row[name] for name in same), []).append(row)
    out = []
    for group in groups.values():
        summary: Row = {"dataset": group[0]["dataset"], **{name: group[0][name] for name in same}}
        summary |= {"n": group[0]["n"], "seeds": len(group)}
        for name in _NUMBERS:
            values = [row[name] for row in group if row[name] is not None]
            summary[name] = statistics.fmean(values) if values else None
            finite = all(math.isfinite(value) for value in values)
            summary[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 and finite else None
        out.append(summary)
    return out


def _slices_in_order(slices: Iterable[str]) -> list[str]:
    """All targets first, then each slicing's labels in their own order."""
    parts: dict[str, list[str]] = {}
    for text in slices:
        name, _, label = text.partition("=")
        parts.setdefault(name, []).append(label)
    names = sorted(parts, key=lambda name: (name != ALL, name))
    return [f"{name}={label}" if label else name for name in names for label in in_order(parts[name])]


def _typed(row: Row) -> Row:
    out: Row = {name: row[name] for name in COLUMNS}
    out |= {"seed": int(row["seed"]), "n": count_of(row["n"])}
    out |= {name: float(row[name]) if row[name] else None for name in _NUMBERS}
    return out
