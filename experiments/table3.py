"""Table 3: AttnMove without one of its attentions, and how much each costs, on both datasets.

Beside results/table3.csv it keeps the sums of each user's outcomes on the test days in table3_users.csv (users are
numbers), and from them writes table3_paired.csv: the ablation minus the full model, with 95 % intervals over users.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnmove.measure.compare import Job, fit_model, provenance
from attnmove.measure.files import make_room
from attnmove.measure.intervals import intervals_of_sums
from attnmove.measure.outcomes import Outcomes, outcomes_of
from attnmove.measure.record import add_results, read_results, record
from attnmove.measure.table import Row, measure
from attnmove.nouns import Float64
from attnmove.prep.dataset import read_dataset
from records import Asked, Task, finish, jobs_of, parse, run, tell, write_table

FULL = "attnmove"
PLAN = (
    Task(
        (
            FULL,
            "attnmove-no-historical",
            "attnmove-no-current",
            "attnmove-no-inter",
            "attnmove-no-generation",
            "attnmove-h",
        )
    ),
)
SEEDS = 3
METRICS = ("recall", "map", "distance_m")
FIT = ("dataset", "dataset_hash", "model", "seed")
USERS = (*FIT, "user", "n", *METRICS)
PAIRED = ("dataset", "dataset_hash", "model", "metric", "difference", "low", "high", "seeds")


@dataclass(frozen=True)
class Fitted:
    """What is kept of one fit."""

    rows: list[Row]
    users: list[Row]


def main(argv: Sequence[str] | None = None) -> int:
    return compare_ablations(parse(argv, __doc__, seeds=SEEDS))


def compare_ablations(asked: Asked) -> int:
    path, users = make_room(asked.results / "table3.csv"), asked.results / "table3_users.csv"
    old, summed = read_results(path), {_fit(row) for row in read_users(users)}
    every = jobs_of(PLAN, asked)
    to_do = [job for job in every if not (job.is_done(old) and _fit_of(job) in summed)]
    tell(f"table3: {len(every)} fits, {len(every) - len(to_do)} done before")

    def keep(fitted: Fitted) -> None:
        add_results(path, fitted.rows)
        new = {_fit(row) for row in fitted.users}
        kept = [row for row in read_users(users) if _fit(row) not in new]
        write_table(users, USERS, sorted([*kept, *fitted.users], key=lambda row: (*_fit(row), int(row["user"]))))

    status = finish(to_do, fit_and_sum, keep, n_workers=asked.jobs)
    write_table(asked.results / "table3_paired.csv", PAIRED, paired_rows(read_users(users)))
    return status


def fit_and_sum(job: Job) -> Fitted:
    """Fit, measure on every split, and sum up each user's test outcomes."""
    dataset, start = read_dataset(job.folder), time.perf_counter()
    model = fit_model(dataset, job.model, protocol=job.protocol, seed=job.seed, device=job.device)
    facts = provenance(job, model, seconds_fit=time.perf_counter() - start)
    found = {split: outcomes_of(model, dataset.cases(split, protocol=job.protocol)) for split in job.splits}
    rows = [
        record({**row, **facts})
        for split, outcomes in found.items()
        for row in measure(outcomes, model=job.model, split=split)
    ]
    names = dict(zip(FIT, _fit_of(job), strict=True))
    return Fitted(rows, [{**names, **row} for row in sums_of(found["test"])])


def sums_of(outcomes: Outcomes) -> list[Row]:
    """For each user the number of targets and the sums of hits, reciprocal ranks and metres."""
    users, code = np.unique(outcomes.user.astype(str), return_inverse=True)
    values = (np.ones(len(outcomes)), outcomes.right, 1.0 / outcomes.rank, outcomes.distance_m)
    sums = np.column_stack([np.bincount(code, weights=value, minlength=len(users)) for value in values])
    return [
        {"user": user, "n": int(n), **{name: round(value, 6) for name, value in zip(METRICS, row, strict=True)}}
        for user, (n, *row) in enumerate(sums.tolist())
    ]


def paired_rows(users: Iterable[Row]) -> list[Row]:
    """Each ablation minus the full model, each user's mean over the seeds that both have, users drawn again."""
    sums: dict[tuple[str, str, str], dict[str, Float64]] = {}
    for (dataset, dataset_hash, model, seed), rows in _grouped(users).items():
        sums.setdefault((dataset, dataset_hash, model), {})[seed] = rows
    out = []
    for (dataset, dataset_hash, model), mine in sums.items():
        full = sums.get((dataset, dataset_hash, FULL), {})
        seeds = sorted(mine.keys() & full.keys())
        if model == FULL or not seeds:
            continue
        gained = np.mean([mine[seed][:, 1:] - full[seed][:, 1:] for seed in seeds], axis=0)  # (U, metrics)
        n = mine[seeds[0]][:, 0]
        ends = intervals_of_sums(gained, n, np.random.default_rng(0))
        for metric, total, end in zip(METRICS, gained.sum(axis=0).tolist(), ends, strict=True):
            numbers = [round(value, 6) for value in (total / n.sum(), end.low, end.high)]
            out.append(dict(zip(PAIRED, (dataset, dataset_hash, model, metric, *numbers, len(seeds)), strict=True)))
    return out


def read_users(path: Path) -> list[Row]:
    """The rows of table3_users.csv as texts; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _grouped(users: Iterable[Row]) -> dict[tuple[str, ...], Float64]:
    """(U, 1 + metrics) the counts and sums of each fit."""
    groups: dict[tuple[str, ...], list[list[float]]] = {}
    for row in users:
        groups.setdefault(_fit(row), []).append([float(row[name]) for name in ("n", *METRICS)])
    return {fit: np.array(rows) for fit, rows in groups.items()}


def _fit(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in FIT)


def _fit_of(job: Job) -> tuple[str, ...]:
    return (job.dataset, job.dataset_hash, job.model, str(job.seed))


if __name__ == "__main__":
    run(main)
