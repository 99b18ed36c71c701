"""The named runs, and the two naive rules beside them, asked for every target of the dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from attnmove.errors import DataError
from attnmove.measure.compare import device_of, fit_model
from attnmove.measure.curves import curves_of
from attnmove.measure.outcomes import Outcomes, outcomes_of
from attnmove.measure.slices import SLICES, labels_of
from attnmove.measure.table import Row, measure
from attnmove.models.contract import Recoverer
from attnmove.models.runs import load_run
from attnmove.nouns import Cases
from attnmove.prep.dataset import Dataset
from attnmove.reporting.axes import NAIVE
from attnmove.reporting.inputs import Result, RunFolder, from_rows
from attnmove.version import __version__

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much is done, and of how much."""


@dataclass(frozen=True)
class Answered:
    """A model and what it answered."""

    name: str
    """As it is called in tables and legends."""
    model: Recoverer
    outcomes: Outcomes = field(repr=False)
    rows: list[Row] = field(repr=False)
    curves: list[Row] = field(repr=False)
    run: RunFolder | None = None
    device: str = "cpu"

    @property
    def results(self) -> list[Result]:
        return from_rows(self.rows, self.run.path.name if self.run else "fitted for this report")


@dataclass(frozen=True)
class Asked:
    """The cases of a split and the answers to them."""

    cases: Cases
    answered: list[Answered]
    unasked: dict[Path, str]
    """Folders of the runs that cannot answer here, and why."""


def ask(
    dataset: Dataset,
    runs: Sequence[RunFolder],
    *,
    name: str,
    split: str,
    protocol: str,
    device: str = "auto",
    progress: Progress | None = None,
) -> Asked:
    """The cases of the split, and each run's and naive rule's answers to them, measured as a whole and in slices.

    `name` is what the dataset is called in titles. A run of other locations or slots is not asked.
    """
    cases = dataset.cases(split, protocol=protocol)
    if not cases.hidden.any():
        raise DataError(f"the dataset has no targets in its {split} split; name another with --split")
    labels = labels_of(cases, SLICES)
    out: list[Answered] = []
    unasked: dict[Path, str] = {}
    asked: list[tuple[str, RunFolder | None]] = [*((run.name, run) for run in runs), *((rule, None) for rule in NAIVE)]
    for done, (who, run) in enumerate(asked):
        if progress is not None:
            progress(f"asking {who}", done, len(asked))
        if run is None:
            model = fit_model(dataset, who, protocol=protocol, seed=0, device=device)
        else:
            loaded = load_run(run.path, device=device)
            why = loaded.misfit(dataset)
            if why:
                unasked[run.path] = why
                continue
            model = loaded.model
        outcomes = outcomes_of(model, cases)
        facts = {
            "dataset": name,
            "dataset_hash": dataset.hash,
            "protocol": protocol,
            "version": __version__,
            "run": None if run is None else str(run.path),
        }
        rows = [
            {**row, **facts} for row in measure(outcomes, labels, model=who, split=split, rng=np.random.default_rng(0))
        ]
        curves = curves_of(outcomes, model=who, split=split)
        out.append(Answered(who, model, outcomes, rows, curves, run, device_of(model)))
    return Asked(cases, out, unasked)
