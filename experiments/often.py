"""Our default model against every other, slice by slice, on test days that are asked about many times.

A slice of the stored hidden slots may hold no more than twenty targets, and then says little. Here other slots of the
same days are hidden, as many a day, many times more, and all is measured as in paired.py; nothing is chosen here.
Answers are kept in outcomes/often/ beside the results (one file a fit, not in the repository); from all that are there
comes often.csv.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from attnmove.measure.compare import Job
from attnmove.measure.outcomes import outcomes_of
from attnmove.measure.table import Row
from attnmove.models.habits import day_rows
from attnmove.nouns import MISSING, Cases
from attnmove.prep.dataset import read_dataset
from attnmove.prep.doubles import doubles
from attnmove.prep.hide import redraw
from fits import fitted
from kept import FOLDER, Kept, file_of, hits_and_ranks, keep
from paired import COLUMNS, DEFAULT, OTHERS, differences
from records import Task, finish, jobs_of, parse, run, tell, write_table

PLAN = (Task((DEFAULT, *OTHERS)),)
SEEDS = 3
ONCE = "there=once"
"""The slice of the people who are in the data under one name only, where some are there under two."""
DRAWS = {"geolife": 20, "city": 8}
"""How often each test day is asked about."""
_SEED = 20_210
"""Of the draws, which are the same for every model."""


def main(argv: Sequence[str] | None = None) -> int:
    asked = parse(argv, __doc__, seeds=SEEDS)
    every, folder = jobs_of(PLAN, asked), asked.results / FOLDER / "often"
    to_do = [job for job in every if not file_of(folder, job).exists()]
    tell(f"often: {len(every)} fits, {len(every) - len(to_do)} done before")
    ask = partial(fit_and_ask_often, runs=asked.runs)
    failed = finish(to_do, ask, lambda kept: keep(folder, kept), n_workers=asked.jobs)
    rows: list[Row] = []
    for name, path in asked.datasets.items():
        dataset = read_dataset(path)
        cases = drawn_often(dataset.cases("test"), DRAWS[name])
        twice = {user for double in doubles(dataset.days) for user in double.users}
        once = np.array([user not in twice for user in cases.user])
        rows += differences(folder, name, dataset, cases, {ONCE: once} if twice else None)
    write_table(asked.results / "often.csv", COLUMNS, rows)
    return failed


def fit_and_ask_often(job: Job, *, runs: Path | None = None) -> Kept:
    """Fit, and keep what is answered about other slots of the test days."""
    dataset = read_dataset(job.folder)
    model = fitted(dataset, job, runs).model
    cases = drawn_often(dataset.cases("test", protocol=job.protocol), DRAWS[job.dataset])
    return Kept(job, [], hits_and_ranks(outcomes_of(model, cases)))


def drawn_often(cases: Cases, draws: int) -> Cases:
    """Each day so many times, every time with as many slots hidden at random as the first stored draw hides."""
    rows = np.repeat(day_rows(cases), draws)
    some = cases.rows(rows)
    hidden = redraw(some.loc != MISSING, some.hidden.sum(axis=1), np.random.default_rng(_SEED))
    return replace(some, hidden=hidden)


if __name__ == "__main__":
    run(main)
