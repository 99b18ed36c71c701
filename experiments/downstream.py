"""What recovery is good for: crowds, radii, places and flows on the test days, sparse and recovered.

Earlier test days show only what their draw leaves visible, as they would to somebody who has sparse days and no others.
With --runs FOLDER a fitted model is kept there as the run DATASET-MODEL-SEED, and taken from there the next time.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from attnmove.measure.compare import Job, device_of, fit_model
from attnmove.measure.downstream import evaluate_downstream
from attnmove.measure.files import make_room
from attnmove.measure.table import Row
from attnmove.models.contract import Recoverer
from attnmove.models.registry import MODELS
from attnmove.models.runs import load_run, train_run
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.version import __version__
from records import Task, finish, jobs_of, parse, run, tell, write_table

PLAN = (Task(("boost", "vote"), protocol="strict"),)
SEEDS = 1
_FIT = ("dataset", "dataset_hash", "protocol", "model", "seed")
ERRORS = ("sparse", "sparse_scaled", "most_likely", "expected")
REDUCTIONS = ("most_likely_reduction", "expected_reduction")
COLUMNS = (
    *(*_FIT, "split", "measure", "n", *ERRORS, *REDUCTIONS),
    *(f"{name}_{end}" for name in REDUCTIONS for end in ("low", "high")),
    *("version", "device"),
)
_DIGITS = 6


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--runs", type=Path)
    given, rest = parser.parse_known_args(argv)
    asked = parse(rest, __doc__, seeds=SEEDS)
    path = make_room(asked.results / "downstream.csv")
    every = jobs_of(PLAN, asked)
    done = {_fit_of(row) for row in rows_in(path)}
    to_do = [job for job in every if tuple(str(getattr(job, name)) for name in _FIT) not in done]
    tell(f"downstream: {len(every)} fits, {len(every) - len(to_do)} done before")
    return finish(to_do, partial(measure, runs=given.runs), partial(add, path), n_workers=asked.jobs)


def measure(job: Job, *, runs: Path | None) -> list[Row]:
    """Fit, or take a run, and measure it downstream on the test days."""
    dataset = read_dataset(job.folder)
    model = fitted(dataset, job, runs)
    facts = {name: getattr(job, name) for name in _FIT} | {"version": __version__, "device": device_of(model)}
    found = evaluate_downstream(model, dataset.cases("test", protocol=job.protocol), intervals=True)
    return [_record({**row, **facts, "split": "test"}) for row in found]


def fitted(dataset: Dataset, job: Job, runs: Path | None) -> Recoverer:
    """The model of the job, learnt now or before."""
    if runs is None or MODELS[job.model].kind == "rule":
        return fit_model(dataset, job.model, protocol=job.protocol, seed=job.seed, device=job.device)
    folder = runs / f"{job.dataset}-{job.model}-{job.seed}"
    if not folder.exists():
        how = {"seed": job.seed, "device": job.device, "protocol": job.protocol}
        return train_run(dataset, job.model, folder, **how).model
    found = load_run(folder, device=job.device)
    found.check(dataset)
    return found.model


def rows_in(path: Path) -> list[Row]:
    """The rows of the file, as they are written; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to the file, by dataset and model."""
    every = [*rows_in(path), *rows]
    order = {name: i for i, name in enumerate(MODELS)}
    every.sort(key=lambda row: (row["dataset"], row["protocol"], order[row["model"]], int(row["seed"])))
    write_table(path, COLUMNS, every)


def _fit_of(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in _FIT)


def _record(row: Row) -> Row:
    values = {name: row.get(name) for name in COLUMNS}
    return {name: round(at, _DIGITS) if isinstance(at, float) else at for name, at in values.items()}


if __name__ == "__main__":
    run(main)
