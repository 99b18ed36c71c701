"""What a fit answered on the test days, kept as a file a fit, so that models can be compared target by target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnmove.measure.compare import Job, provenance
from attnmove.measure.files import replaced
from attnmove.measure.outcomes import Outcomes, outcomes_of
from attnmove.measure.record import record
from attnmove.measure.slices import labels_of
from attnmove.measure.table import Row, measure
from attnmove.nouns import Float64
from attnmove.prep.dataset import read_dataset
from fits import fitted

FOLDER = "outcomes"
"""Where answers are kept, beside the results; not in the repository."""


@dataclass(frozen=True)
class Kept:
    """One fit: its rows of record, and hits and reciprocal ranks on the test days."""

    job: Job
    rows: list[Row]
    values: Float64
    """(M, 2)"""


def fit_and_ask(job: Job, *, runs: Path | None = None) -> Kept:
    """Fit, measure on every split and slice, and keep what was answered on the test days."""
    dataset = read_dataset(job.folder)
    fit = fitted(dataset, job, runs)
    model, facts = fit.model, provenance(job, fit.model, seconds_fit=fit.seconds)
    rows: list[Row] = []
    values = np.zeros((0, 2))
    for split in job.splits:
        cases = dataset.cases(split, protocol=job.protocol)
        outcomes = outcomes_of(model, cases)
        found = measure(outcomes, labels_of(cases, job.by), model=job.model, split=split)
        rows += [record({**row, **facts}) for row in found]
        if split == "test":
            values = hits_and_ranks(outcomes)
    return Kept(job, rows, values)


def hits_and_ranks(outcomes: Outcomes) -> Float64:
    """(M, 2) 1 where the first answer is right, and one over the rank of the truth."""
    return np.column_stack([outcomes.right, 1.0 / outcomes.rank]).astype(np.float64)


def file_of(folder: Path, job: Job) -> Path:
    """Where the answers of a fit are kept; those of a model with changed settings are not."""
    return folder / f"{job.dataset}-{job.dataset_hash[:12]}-{job.protocol}-{job.model}-{job.seed}.npy"


def keep(folder: Path, kept: Kept) -> None:
    """Write the answers of a fit."""
    if kept.job.settings:
        return
    with replaced(file_of(folder, kept.job)) as new, new.open("wb") as file:
        np.save(file, kept.values)


def mean_answers(folder: Path, dataset: str, dataset_hash: str, model: str) -> tuple[Float64, int] | None:
    """(M, 2) what the model answered under the paper's protocol, in the mean over its seeds, and their number; None
    where there is no fit."""
    files = sorted(folder.glob(f"{dataset}-{dataset_hash[:12]}-paper-{model}-[0-9]*.npy"))
    if not files:
        return None
    return np.mean([np.load(file) for file in files], axis=0), len(files)
