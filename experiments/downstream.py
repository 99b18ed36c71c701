"""What recovery is good for: crowds, radii, places and flows on the test days, sparse and recovered.

Earlier test days show only what their draw leaves visible, as they would to somebody who has sparse days and no others.
With --runs FOLDER a fitted model is kept there as the run DATASET-MODEL-SEED, and taken from there the next time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attnmove.errors import RunError
from attnmove.measure.compare import Job, device_of, fit_model
from attnmove.measure.downstream import evaluate_downstream
from attnmove.measure.files import make_room
from attnmove.measure.table import Row
from attnmove.models.contract import Recoverer
from attnmove.models.registry import MODELS
from attnmove.models.runs import load_run, settings_of, train_run
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.version import __version__
from records import FIT, Task, add_rows, finish, jobs_of, not_in, parse, run, tell

PLAN = (Task(("boost", "vote"), protocol="strict"),)
SEEDS = 1
ERRORS = ("sparse", "sparse_scaled", "most_likely", "expected")
REDUCTIONS = ("most_likely_reduction", "expected_reduction")
COLUMNS = (
    *(*FIT, "split", "measure", "n", *ERRORS, *REDUCTIONS),
    *(f"{name}_{end}" for name in REDUCTIONS for end in ("low", "high")),
    *("version", "device"),
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--runs", type=Path)
    given, rest = parser.parse_known_args(argv)
    asked = parse(rest, __doc__, seeds=SEEDS)
    path = make_room(asked.results / "downstream.csv")
    every = jobs_of(PLAN, asked)
    to_do = not_in(path, every)
    tell(f"downstream: {len(every)} fits, {len(every) - len(to_do)} done before")
    return finish(to_do, partial(measure, runs=given.runs), partial(add_rows, path, COLUMNS), n_workers=asked.jobs)


def measure(job: Job, *, runs: Path | None) -> list[Row]:
    """Fit, or take a run, and measure it downstream on the test days."""
    dataset = read_dataset(job.folder)
    model = fitted(dataset, job, runs)
    facts = {name: getattr(job, name) for name in FIT} | {"version": __version__, "device": device_of(model)}
    found = evaluate_downstream(model, dataset.cases("test", protocol=job.protocol), intervals=True)
    return [{**row, **facts, "split": "test"} for row in found]


def fitted(dataset: Dataset, job: Job, runs: Path | None) -> Recoverer:
    """The model of the job, learnt now or before."""
    if runs is None or MODELS[job.model].kind == "rule":
        return fit_model(dataset, job.model, protocol=job.protocol, seed=job.seed, device=job.device)
    folder = runs / f"{job.dataset}-{job.model}-{job.seed}"
    if not folder.exists():
        how = {"seed": job.seed, "device": job.device, "protocol": job.protocol}
        return train_run(dataset, job.model, folder, **how).model
    found = load_run(folder, device=job.device)
    learnt = {name: found.facts.get(name) for name in ("dataset_hash", "protocol", "seed", "settings")}
    wanted = {"dataset_hash": job.dataset_hash, "protocol": job.protocol, "seed": job.seed}
    if learnt != wanted | {"settings": settings_of(job.model, job.settings)}:
        raise RunError(f"{folder}: a run of other days, protocol, seed or settings than are asked for; remove it")
    return found.model


if __name__ == "__main__":
    run(main)
