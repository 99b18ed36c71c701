"""Our default model against every other, slice by slice: differences in recall and MAP with 95 % intervals over users.

What each fit answered on the test days is kept in outcomes/ beside the results (one file a fit, not in the
repository), so that fits can be made on several machines; from all that are there comes paired.csv: the default minus
the other model, each target's mean over the seeds first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnmove.measure.compare import Job, fit_model
from attnmove.measure.files import replaced
from attnmove.measure.intervals import intervals_of_sums
from attnmove.measure.outcomes import outcomes_of
from attnmove.measure.slices import in_order, labels_of
from attnmove.measure.table import ALL, Row
from attnmove.nouns import MISSING, Bool, Float64
from attnmove.prep.dataset import read_dataset
from own import OWN, SLICINGS
from records import Asked, Task, finish, jobs_of, parse, run, tell, write_table
from table2 import SLICED, WHOLE

DEFAULT = OWN[0]
PLAN = (Task((*OWN, *SLICED, *(name for name in WHOLE if not name.startswith("attnmove-")), "attnmove-h")),)
SEEDS = 3
METRICS = ("recall", "map")
COLUMNS = ("dataset", "dataset_hash", "model", "slice", "n", "users", "metric", "difference", "low", "high", "seeds")


@dataclass(frozen=True)
class Kept:
    """What one fit answered: hits and reciprocal ranks."""

    path: Path
    values: Float64
    """(M, 2)"""


def main(argv: Sequence[str] | None = None) -> int:
    asked = parse(argv, __doc__, seeds=SEEDS)
    every = jobs_of(PLAN, asked)
    folder = asked.results / "outcomes"
    folder.mkdir(parents=True, exist_ok=True)
    to_do = [job for job in every if not _file(folder, job).exists()]
    tell(f"paired: {len(every)} fits, {len(every) - len(to_do)} done before")
    failed = finish(to_do, answer, lambda kept: _keep(folder, kept), n_workers=asked.jobs)
    write_table(
        asked.results / "paired.csv",
        COLUMNS,
        [row for name in asked.datasets for row in differences(asked, name, folder)],
    )
    return failed


def answer(job: Job) -> Kept:
    """Fit, and ask on the test days."""
    dataset = read_dataset(job.folder)
    model = fit_model(dataset, job.model, protocol=job.protocol, seed=job.seed, device=job.device)
    outcomes = outcomes_of(model, dataset.cases("test", protocol=job.protocol))
    return Kept(_file(Path(), job), np.column_stack([outcomes.right, 1.0 / outcomes.rank]).astype(np.float64))


def differences(asked: Asked, name: str, folder: Path) -> Iterator[Row]:
    """A row for each other model, slice and measure."""
    dataset = read_dataset(asked.datasets[name])
    cases = dataset.cases("test")
    known = cases.truth != MISSING
    users, user = np.unique(cases.user[cases.index[known, 0]].astype(str), return_inverse=True)
    parts: dict[str, Bool] = {ALL: np.ones(int(known.sum()), dtype=np.bool_)}
    for slicing, label in labels_of(cases, SLICINGS).items():
        parts |= {f"{slicing}={value}": label == value for value in in_order(set(label.tolist()))}
    mine = _mean(folder, name, dataset.hash, DEFAULT)
    for model in PLAN[0].models:
        other = _mean(folder, name, dataset.hash, model)
        if model == DEFAULT or mine is None or other is None:
            continue
        gained = mine[0] - other[0]
        for label, part in parts.items():
            sums = np.stack([np.bincount(user[part], column[part], len(users)) for column in gained.T], axis=1)
            n = np.bincount(user[part], minlength=len(users)).astype(float)
            there = n > 0
            ends = intervals_of_sums(sums[there], n[there], np.random.default_rng(0))
            for metric, total, end in zip(METRICS, sums.sum(axis=0).tolist(), ends, strict=True):
                numbers = [round(value, 6) for value in (total / n.sum(), end.low, end.high)]
                facts = (name, dataset.hash, model, label, int(n.sum()), int(there.sum()), metric)
                yield dict(zip(COLUMNS, (*facts, *numbers, f"{mine[1]}-{other[1]}"), strict=True))


def _mean(folder: Path, dataset: str, dataset_hash: str, model: str) -> tuple[Float64, int] | None:
    """(M, 2) what the model answered, in the mean over its seeds, and their number; None where there is no fit."""
    files = sorted(folder.glob(f"{dataset}-{dataset_hash[:12]}-paper-{model}-[0-9]*.npy"))
    if not files:
        return None
    return np.mean([np.load(file) for file in files], axis=0), len(files)


def _file(folder: Path, job: Job) -> Path:
    return folder / f"{job.dataset}-{job.dataset_hash[:12]}-{job.protocol}-{job.model}-{job.seed}.npy"


def _keep(folder: Path, kept: Kept) -> None:
    with replaced(folder / kept.path) as new, new.open("wb") as file:
        np.save(file, kept.values)


if __name__ == "__main__":
    run(main)
