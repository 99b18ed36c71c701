"""What a report is made of: results files, JSON of evaluate, curves and runs, told apart by what they hold."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnmove.errors import RunError
from attnmove.measure.curves import COLUMNS as CURVE_COLUMNS
from attnmove.measure.record import RESULTS, count_of, read_results, read_table, summarise
from attnmove.measure.table import MEASURES, Row
from attnmove.models.runs import describe_run
from attnmove.reporting.axes import NAIVE

CURVES = ("reliability", "risk_coverage")
_SHARES = ("recall", "map", "recall_at_3", "recall_at_5", "ece")
_ROUNDING = 1e-3
"""How far beyond 0 and 1 a share may lie."""
_EXPECTED = "a results folder, a results.csv, a file of evaluate --json or --curves, or the folder of a run"


@dataclass(frozen=True)
class Result:
    """A model on one slice of a split: its measures and how far they may be off."""

    model: str
    split: str
    slice: str
    n: int
    values: Mapping[str, float] = field(repr=False)
    """Of MEASURES; NaN where not defined."""
    low: Mapping[str, float] = field(default_factory=dict, repr=False)
    high: Mapping[str, float] = field(default_factory=dict, repr=False)
    """Ends of 95 % intervals over users, or of mean ± standard deviation over seeds; empty where there is neither."""
    seeds: int = 1
    settings: str = ""
    source: str = ""
    """The file or run it comes from."""
    run: str | None = None
    dataset: str = ""
    dataset_hash: str = ""
    protocol: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        """The model, with its settings where some were changed."""
        return f"{self.model} ({self.settings})" if self.settings else self.model

    @property
    def group(self) -> tuple[str, str]:
        """Results of one group stand in one table: same dataset, same protocol."""
        return (self.dataset_hash, self.protocol)


@dataclass(frozen=True)
class RunFolder:
    """A run that was named, not loaded yet."""

    path: Path
    model: str
    facts: Mapping[str, Any] = field(repr=False)
    """Of config.json and metrics.json."""
    log: Sequence[Mapping[str, float]] = field(repr=False)
    """An entry an epoch; none where the model has no epochs."""
    name: str = ""
    """What it is called in the report."""


@dataclass(frozen=True)
class Inputs:
    """Everything that was named, in the order it was named."""

    results: list[Result]
    curves: list[Row]
    """Points as `curves_of` gives them."""
    runs: list[RunFolder]


def read_inputs(paths: Sequence[Path]) -> Inputs:
    """Read what the paths hold. Raises RunError on one that is none of what a report is made of."""
    found = Inputs([], [], [])
    for path in paths:
        if not path.exists():
            raise RunError(f"{path}: not there; name {_EXPECTED}")
        if path.is_dir():
            _read_folder(path, found)
        elif path.suffix == ".json":
            found.results.extend(_read_json(path))
        else:
            _read_csv(path, found)
    return replace(found, runs=_named(found.runs, {result.label for result in found.results}))


def _named(runs: Sequence[RunFolder], taken: set[str]) -> list[RunFolder]:
    """The runs, each called as its model, with its folder where that name is another's too or a naive rule's."""
    models = [run.model for run in runs]
    shared = {model for model in models if models.count(model) > 1} | taken | set(NAIVE)
    return [
        replace(run, name=f"{run.model} ({run.path.resolve().name})" if run.model in shared else run.model)
        for run in runs
    ]


def from_rows(rows: Iterable[Row], source: str) -> list[Result]:
    """Results of rows as `evaluate` gives them, with intervals where the rows have them."""
    return [_result(row, source) for row in rows]


def _read_folder(path: Path, found: Inputs) -> None:
    if (path / RESULTS).is_file():
        _read_csv(path / RESULTS, found)
    elif (path / "config.json").is_file():
        found.runs.append(_read_run(path))
    elif (path / "dataset.json").is_file():
        raise RunError(f"{path}: a dataset; name it with --dataset, beside {_EXPECTED}")
    else:
        raise RunError(f"{path}: neither results nor a run; name {_EXPECTED}")


def _read_run(path: Path) -> RunFolder:
    facts = describe_run(path)
    return RunFolder(path, str(facts.get("model", "?")), facts, _read_log(path / "log.csv"))


def _read_log(path: Path) -> list[dict[str, float]]:
    """The epochs of a training; none where there is no log."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [{str(key): float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error}); train the run again") from error
    except (ValueError, TypeError, csv.Error) as error:
        raise RunError(f"{path}: broken ({error}); train the run again") from error


def _read_csv(path: Path, found: Inputs) -> None:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            columns = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"{path}: cannot be read; name {_EXPECTED}") from error
    if set(CURVE_COLUMNS) <= set(columns):
        mend = "write it again with evaluate --curves"
        found.curves.extend(read_table(path, CURVE_COLUMNS, _curve_point, what="a file of curves", mend=mend))
        return
    rows = read_results(path)
    versions = {_fit(row): row["version"] for row in rows}
    try:
        for row in summarise(rows):
            found.results.append(_result(_with_spread(row) | {"version": versions[_fit(row)]}, str(path)))
    except (ValueError, OverflowError) as error:
        raise RunError(f"{path}: a row is broken ({error}); mend or remove it") from error


def _fit(row: Row) -> tuple[object, ...]:
    return (row["dataset_hash"], row["protocol"], row["model"], row["settings"])


def _with_spread(row: Row) -> Row:
    """Ends of mean ± standard deviation under the names that intervals have."""
    ends: Row = {}
    for name in MEASURES:
        deviation = row[f"{name}_sd"]
        if deviation is not None:
            short = name.removesuffix("_m")
            ends |= {f"{short}_low": row[name] - deviation, f"{short}_high": row[name] + deviation}
    return row | ends


def _curve_point(row: Row) -> Row:
    if row["curve"] not in CURVES:
        raise ValueError(f"no curve {row['curve']!r}; expected {' or '.join(CURVES)}")
    numbers = {name: float(row[name]) for name in ("confidence", "coverage", "precision")}
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise ValueError(f"{name}: expected a share, found {value}")
        _check_share(name, value)
    return row | numbers | {"n": count_of(row["n"])}


def _check_share(name: str, value: float, spare: float = _ROUNDING) -> None:
    """Raise ValueError when a number lies further than `spare` beyond 0 and 1."""
    if math.isfinite(value) and not -spare <= value <= 1 + spare:
        raise ValueError(f"{name}: expected a share from 0 to 1, found {value:g}")


def _read_json(path: Path) -> list[Result]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: not JSON, or cut off; write it again with evaluate --json") from error
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and {"model", "slice", "n"} <= set(row) for row in rows
    ):
        raise RunError(f"{path}: not the rows of evaluate --json; name {_EXPECTED}")
    try:
        return from_rows(rows, str(path))
    except (ValueError, TypeError, OverflowError) as error:
        raise RunError(f"{path}: a row is broken ({error}); write it again with evaluate --json") from error


def _result(row: Row, source: str) -> Result:
    ends: dict[str, dict[str, float]] = {"low": {}, "high": {}}
    for name in MEASURES:
        for end, kept in ends.items():
            at = row.get(f"{name.removesuffix('_m')}_{end}")
            if at is not None:
                kept[name] = float(at)
    values = {name: math.nan if row.get(name) is None else float(row[name]) for name in MEASURES}
    for name in _SHARES:
        _check_share(name, values[name])
        for kept in ends.values():
            _check_share(name, kept.get(name, math.nan), spare=1)  # a deviation may lead beyond both
    return Result(
        model=str(row["model"]),
        split=str(row.get("split") or "test"),
        slice=str(row["slice"]),
        n=count_of(row["n"]),
        values=values,
        low=ends["low"],
        high=ends["high"],
        seeds=count_of(row.get("seeds") or 1),
        settings=str(row.get("settings") or ""),
        source=source,
        run=None if row.get("run") is None else str(row["run"]),
        dataset=str(row.get("dataset") or ""),
        dataset_hash=str(row.get("dataset_hash") or ""),
        protocol=str(row.get("protocol") or ""),
        version=str(row.get("version") or ""),
    )
