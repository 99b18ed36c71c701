"""How fast a trained run recovers: user-days a second and peak memory, each figure from a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from attnmove.bench.child import measured_by
from attnmove.errors import ConfigError, DataError, check_names
from attnmove.nouns import MISSING, Bool, Cases

SPLITS = ("train", "valid", "test")


def _stored(cases: Cases) -> Bool:
    return cases.hidden


def _all(cases: Cases) -> Bool:
    unseen: Bool = cases.visible == MISSING
    return unseen


HIDE: dict[str, Callable[[Cases], Bool]] = {"stored": _stored, "all": _all}
"""What is asked, (K, T). `stored`: the dataset's targets. `all`: every slot that is not visible, hidden or never
observed, which is what one asks who wants whole days."""


@dataclass(frozen=True)
class Errand:
    """What is recovered and with which run: one row of the benchmark."""

    dataset: str
    run: str
    split: str
    days: int
    """User-days, those of the dataset over and over; 1 or more."""
    hide: str
    """A name of HIDE."""
    top: int
    """Places a target; 1 or more."""

    def __post_init__(self) -> None:
        check_names("split", [self.split], SPLITS)
        check_names("hiding", [self.hide], HIDE)
        for name in ("days", "top"):
            if getattr(self, name) < 1:
                raise ConfigError(f"--{name}: expected 1 or more, found {getattr(self, name)}")


def measure(
    dataset: str,
    runs: Sequence[str],
    *,
    days: Sequence[int],
    split: str,
    hide: Sequence[str],
    top: int,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """One row a (run, what is asked, number of days): days and targets a second, memory before and at its highest.

    Raises ConfigError, RunError or DataError before anything is started: for an option that makes no sense, a folder
    that is not a run, a run of other locations, a split without days.
    """
    say = progress or (lambda stage: None)
    errands = [Errand(dataset, run, split, n, what, top) for run, what, n in product(runs, hide, days)]
    say("reading the dataset and the runs")
    model_of = _models(dataset, runs, split)
    rows = []
    for errand in errands:
        say(f"{errand.run}, {errand.hide} slots of {errand.days:,} days")
        result = _run(errand)
        rows.append(
            {
                **asdict(errand),
                "model": model_of[errand.run],
                **result,
                "days_per_second": errand.days / result["seconds"],
                "targets_per_second": result["targets"] / result["seconds"],
            }
        )
    return rows


def _models(dataset: str, runs: Sequence[str], split: str) -> dict[str, str]:
    """The model of each run, all of which can be asked for the days of the split."""
    from attnmove.models.runs import load_run
    from attnmove.prep.dataset import read_dataset

    data = read_dataset(dataset)
    if not np.any(data.days.split == split):
        raise DataError(f"{dataset}: no {split} days to recover; ask for another --split")
    model_of = {}
    for folder in runs:
        run = load_run(folder)
        try:
            run.check(data)
        except DataError as error:
            raise DataError(f"{folder}: {error}") from error
        model_of[folder] = run.name
    return model_of


def _run(errand: Errand) -> dict[str, Any]:
    what = f"{errand.run} did not recover {errand.hide} slots of {errand.days:,} days"
    return measured_by("recover_once", json.dumps(asdict(errand)), what=what)
