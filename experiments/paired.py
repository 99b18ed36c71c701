"""Our default model against every other, slice by slice: differences in recall and MAP with 95 % intervals over users.

The other models are fitted here, our own by own.py. What each fit answered on the test days is kept in outcomes/ beside
the results (one file a fit, not in the repository), so that fits can be made on several machines; from all that are
there comes paired.csv: the default minus the other model, each target's mean over the seeds first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from attnmove.measure.intervals import intervals_of_sums
from attnmove.measure.slices import in_order, labels_of
from attnmove.measure.table import ALL, Row
from attnmove.nouns import MISSING, Bool, Cases
from attnmove.prep.dataset import Dataset, read_dataset
from kept import FOLDER, file_of, fit_and_ask, keep, mean_answers
from own import OWN, SLICINGS
from records import Task, finish, jobs_of, parse, run, tell, write_table
from table2 import SLICED, WHOLE

DEFAULT = OWN[0]
OTHERS = (*SLICED, *(name for name in WHOLE if name not in ("attnmove-relu", "attnmove-missing")))
PLAN = (Task(OTHERS),)
SEEDS = 3
METRICS = ("recall", "map")
HASH = 12
"""Characters of the dataset's hash in a row, as file names and tables have them."""
COLUMNS = ("dataset", "dataset_hash", "model", "slice", "n", "users", "metric", "difference", "low", "high", "seeds")


def main(argv: Sequence[str] | None = None) -> int:
    asked = parse(argv, __doc__, seeds=SEEDS)
    every, folder = jobs_of(PLAN, asked), asked.results / FOLDER
    to_do = [job for job in every if not file_of(folder, job).exists()]
    tell(f"paired: {len(every)} fits, {len(every) - len(to_do)} done before")
    ask = partial(fit_and_ask, runs=asked.runs)
    failed = finish(to_do, ask, lambda kept: keep(folder, kept), n_workers=asked.jobs)
    datasets = {name: read_dataset(path) for name, path in asked.datasets.items()}
    rows = [row for name, made in datasets.items() for row in differences(folder, name, made, made.cases("test"))]
    write_table(asked.results / "paired.csv", COLUMNS, rows)
    return failed


def differences(
    folder: Path, name: str, dataset: Dataset, cases: Cases, more: Mapping[str, Bool] | None = None
) -> Iterator[Row]:
    """A row for each other model, slice and measure; none without answers of the default model.

    `more` are slices of the rows of the cases, by name.
    """
    known = cases.truth != MISSING
    users, user = np.unique(cases.user[cases.index[known, 0]].astype(str), return_inverse=True)
    parts: dict[str, Bool] = {ALL: np.ones(int(known.sum()), dtype=np.bool_)}
    for slicing, label in labels_of(cases, SLICINGS).items():
        parts |= {f"{slicing}={value}": label == value for value in in_order(set(label.tolist()))}
    parts |= {label: rows[cases.index[known, 0]] for label, rows in (more or {}).items()}
    mine = mean_answers(folder, name, dataset.hash, DEFAULT)
    for model in (*OWN[1:], *OTHERS):
        other = mean_answers(folder, name, dataset.hash, model)
        if mine is None or other is None:
            continue
        gained = mine[0] - other[0]
        for label, part in parts.items():
            sums = np.stack([np.bincount(user[part], column[part], len(users)) for column in gained.T], axis=1)
            n = np.bincount(user[part], minlength=len(users)).astype(float)
            ends = intervals_of_sums(sums[n > 0], n[n > 0], np.random.default_rng(0))
            for metric, total, end in zip(METRICS, sums.sum(axis=0).tolist(), ends, strict=True):
                numbers = [round(value, 6) for value in (total / n.sum(), end.low, end.high)]
                facts = (name, dataset.hash[:HASH], model, label, int(n.sum()), int((n > 0).sum()), metric)
                yield dict(zip(COLUMNS, (*facts, *numbers, f"{mine[1]}-{other[1]}"), strict=True))


if __name__ == "__main__":
    run(main)
