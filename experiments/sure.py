"""How sure our default is, and how right when it is: calibration, the sure answers, and what a wanted precision gives.

The confidence for a wanted precision is chosen on the validation days, as `--precision` does; the rest is on the test
days.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attnmove.errors import ConfigError, DataError
from attnmove.measure.compare import Job, device_of
from attnmove.measure.confidence import confidence_for, measures_of_answered
from attnmove.measure.files import make_room
from attnmove.measure.outcomes import outcomes_of
from attnmove.measure.table import Row, measure
from attnmove.prep.dataset import read_dataset
from attnmove.version import __version__
from fits import fitted
from records import FIT, Task, add_rows, finish, jobs_of, not_in, parse, run, tell

PLAN = (Task(("boost",)),)
SEEDS = 5
PRECISIONS = (0.7, 0.8, 0.9)
MEASURES = ("n", "recall", "ece", "aurc", "sure_n", "sure_recall")
COLUMNS = (
    *(*FIT, "split", *MEASURES),
    *(f"{name}_{wanted}" for wanted in PRECISIONS for name in ("precision", "coverage")),
    *("version", "device"),
)


def main(argv: Sequence[str] | None = None) -> int:
    asked = parse(argv, __doc__, seeds=SEEDS)
    path = make_room(asked.results / "sure.csv")
    every = jobs_of(PLAN, asked)
    to_do = not_in(path, every)
    tell(f"sure: {len(every)} fits, {len(every) - len(to_do)} done before")
    return finish(to_do, partial(fit_and_ask, runs=asked.runs), partial(add_rows, path, COLUMNS), n_workers=asked.jobs)


def fit_and_ask(job: Job, *, runs: Path | None = None) -> list[Row]:
    """One row: the measures of the fit."""
    dataset = read_dataset(job.folder)
    model = fitted(dataset, job, runs).model
    valid, test = (dataset.cases(split, protocol=job.protocol) for split in ("valid", "test"))
    outcomes = outcomes_of(model, test)
    (row,) = measure(outcomes, model=job.model, split="test")
    for wanted in PRECISIONS:
        try:
            answered = measures_of_answered(outcomes, confidence_for(model, valid, wanted))
        except (ConfigError, DataError):  # a precision that validation does not reach
            continue
        row |= {f"{name}_{wanted}": answered[name] for name in ("precision", "coverage")}
    return [row | {name: getattr(job, name) for name in FIT} | {"version": __version__, "device": device_of(model)}]


if __name__ == "__main__":
    run(main)
