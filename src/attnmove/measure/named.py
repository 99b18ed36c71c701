"""Models by name and runs by folder, measured on one split of a dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnmove.errors import ConfigError, DataError, check_names
from attnmove.measure.compare import Progress, device_of, fit_model
from attnmove.measure.confidence import check_enough, check_share, confidence_for
from attnmove.measure.curves import curves_of
from attnmove.measure.downstream import evaluate_downstream
from attnmove.measure.origins import answers_of, origins_by_slice
from attnmove.measure.outcomes import outcomes_of
from attnmove.measure.slices import SLICES, labels_of
from attnmove.measure.table import Row, measure
from attnmove.models.contract import Recoverer
from attnmove.models.registry import MODELS
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Evaluation:
    """What models are worth on one split."""

    rows: list[Row]
    """Measures, as `evaluate` gives them, with where they come from."""
    curves: list[Row]
    """Points of the curves of confidence on all targets, as `curves_of` gives them."""
    refused: Mapping[str, str]
    """Models that reach the wanted precision from no confidence on, and how near they come."""
    answers: list[pa.Table]
    """Every answer of each model, as `answers_of` gives them, where they were asked for."""


@dataclass(frozen=True)
class _Ready:
    """A model that has learnt, and where it comes from."""

    model: Recoverer
    name: str
    seed: int
    trained_on: str
    """Hash of the dataset it learnt from."""
    run: str | None = None


def evaluate_named(
    folder: Path | str,
    names: Sequence[str],
    *,
    split: str = "test",
    protocol: str = "paper",
    by: Sequence[str] = (),
    intervals: bool = False,
    min_confidence: float | None = None,
    precision: float | None = None,
    answers: bool = False,
    downstream: bool = False,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
) -> Evaluation:
    """Measures of each model, with where they come from.

    A name of MODELS is fitted on the dataset's training days first; any other name is the folder of a run, which may
    have been trained on another dataset of the same locations: `trained_on` and `dataset_hash` differ then.

    From `min_confidence` on a model answers, see `measure`; or `precision` chooses that confidence for each model on
    the validation days. A model that reaches it from no confidence on is refused: it answers nothing and its
    min_confidence is None. Raises ConfigError when that is so of all. With `downstream`, the row of all targets has the
    rows of `evaluate_downstream` under that name.
    """
    check_names("slicing", by, SLICES)
    check_names("model or run", [name for name in names if not Path(name).is_dir()], MODELS)
    _check_abstention(min_confidence, precision)
    dataset = read_dataset(folder)
    cases = dataset.cases(split, protocol=protocol)
    if not cases.hidden.any():
        raise DataError(f"{folder}: no targets in its {split} split, so nothing can be measured there")
    valid = dataset.cases("valid", protocol=protocol)
    if precision is not None:
        check_enough(valid)
    labels = labels_of(cases, by)
    rows: list[Row] = []
    curves: list[Row] = []
    tables: list[pa.Table] = []
    refused: dict[str, str] = {}
    for done, name in enumerate(names):
        if progress is not None:
            progress(name, done, len(names))
        ready = _ready(dataset, name, protocol=protocol, seed=seed, device=device)
        if precision is not None:
            try:
                min_confidence = confidence_for(ready.model, valid, precision)
            except ConfigError as error:
                refused[name], min_confidence = str(error), math.inf
        outcomes = outcomes_of(ready.model, cases)
        rng = np.random.default_rng(0) if intervals else None
        measured = measure(outcomes, labels, model=ready.name, split=split, rng=rng, min_confidence=min_confidence)
        facts = _facts(ready, protocol=protocol, dataset_hash=dataset.hash)
        origins = origins_by_slice(ready.model, cases, labels)
        rows += [{**row, **origins[row["slice"]], **facts} for row in measured]
        if downstream:
            rows[-len(measured)]["downstream"] = evaluate_downstream(ready.model, cases, intervals=intervals)
        if answers:
            tables.append(answers_of(ready.model, cases, name=name))
        curves += curves_of(outcomes, model=ready.name, run=ready.run, split=split)
    if refused and refused.keys() == set(names):
        raise ConfigError("; ".join(f"{name}: {why}" for name, why in refused.items()))
    return Evaluation(rows, curves, refused, tables)


def _check_abstention(min_confidence: float | None, precision: float | None) -> None:
    if min_confidence is not None and precision is not None:
        raise ConfigError("expected a least confidence or a precision it is chosen for, found both; leave one out")
    for what, share in (("min_confidence", min_confidence), ("precision", precision)):
        if share is not None:
            check_share(what, share)


def _facts(ready: _Ready, *, protocol: str, dataset_hash: str) -> Row:
    """Where the measures of a model come from."""
    return {
        "run": ready.run,
        "seed": ready.seed,
        "protocol": protocol,
        "dataset_hash": dataset_hash,
        "trained_on": ready.trained_on,
        "version": __version__,
        "device": device_of(ready.model),
    }


def _ready(dataset: Dataset, name: str, *, protocol: str, seed: int, device: str) -> _Ready:
    if name in MODELS:
        model = fit_model(dataset, name, protocol=protocol, seed=seed, device=device)
        return _Ready(model, name, seed, dataset.hash)
    from attnmove.models.runs import load_run

    run = load_run(Path(name), device=device)
    run.check(dataset)
    return _Ready(run.model, run.name, run.facts["seed"], run.facts["dataset_hash"], name)
