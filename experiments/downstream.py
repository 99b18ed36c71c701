"""What recovery is good for: crowds, radii, places and flows on the test days, sparse and recovered.

Earlier test days show only what their draw leaves visible, as they would to somebody who has sparse days and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attnmove.measure.compare import Job, device_of
from attnmove.measure.downstream import evaluate_downstream
from attnmove.measure.files import make_room
from attnmove.measure.table import Row
from attnmove.prep.dataset import read_dataset
from attnmove.version import __version__
from fits import fitted
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
    asked = parse(argv, __doc__, seeds=SEEDS)
    path = make_room(asked.results / "downstream.csv")
    every = jobs_of(PLAN, asked)
    to_do = not_in(path, every)
    tell(f"downstream: {len(every)} fits, {len(every) - len(to_do)} done before")
    return finish(to_do, partial(measure, runs=asked.runs), partial(add_rows, path, COLUMNS), n_workers=asked.jobs)


def measure(job: Job, *, runs: Path | None) -> list[Row]:
    """Fit, or take a run, and measure it downstream on the test days."""
    dataset = read_dataset(job.folder)
    model = fitted(dataset, job, runs).model
    facts = {name: getattr(job, name) for name in FIT} | {"version": __version__, "device": device_of(model)}
    found = evaluate_downstream(model, dataset.cases("test", protocol=job.protocol), intervals=True)
    return [{**row, **facts, "split": "test"} for row in found]


if __name__ == "__main__":
    run(main)
