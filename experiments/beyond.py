"""Beyond the released split: people who were never in training, fewer people and days to learn from, other gaps.

Each fit is asked on the test days; `settings` of a row says what is different: `unseen=2` (two halves of the users,
each asked with a model that learnt from the other), `users=0.25` (a share of the users to learn from and to choose on),
`days=0.25` (a share of each user's training days to learn from; all validation days to choose on), `gaps=burst` or
`gaps=night` (other slots hidden, as many of a day), `hide=0.8` (such a share of a day's known slots hidden; the model
learns from, and is calibrated on, days with as many as ever), `past=2` (of the earlier days only so many, the last,
are known of the user who asks). `practice=0` beside it: nobody made up is learnt from where there is little else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from attnmove.measure.compare import Job, provenance
from attnmove.measure.files import make_room
from attnmove.measure.outcomes import Outcomes, outcomes_of
from attnmove.measure.record import add_results, read_results, record
from attnmove.measure.table import Row, measure
from attnmove.models.habits import day_rows
from attnmove.models.registry import make_model
from attnmove.nouns import MISSING, Bool, Cases
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.prep.hide import redraw
from fits import Fit, fitted
from records import Asked, Task, finish, jobs_of, parse, run, tell

MODELS = ("nearest", "vote", "boost")
PARTS = 2
SHARES = (0.125, 0.25, 0.5)
"""All of them: own.py."""
FEW = (0.125, 0.25)
"""So little to learn from that boost practises on made-up people, too."""
GAPS = ("burst", "night")
HIDE = (0.2, 0.4, 0.6, 0.8)
PAST = (0, 1, 2, 4, 8)
PLAN = (
    Task(MODELS, settings={"unseen": PARTS}),
    *(Task(("boost",), settings={what: share}) for what in ("users", "days") for share in SHARES),
    *(Task(("boost",), settings={what: share, "practice": 0}) for what in ("users", "days") for share in FEW),
    *(Task(MODELS, settings={"gaps": gaps}) for gaps in GAPS),
    *(Task(MODELS, settings={"hide": share}) for share in HIDE),
    *(Task(("boost",), settings={"past": days}) for days in PAST),
)
SEEDS = 3


@dataclass(frozen=True)
class Asking:
    """What to learn from, what to choose on, what to ask."""

    train: Cases
    valid: Cases
    test: Cases
    usual: bool = False
    """Whether what is learnt from and chosen on is all there is, as ever."""


def main(argv: Sequence[str] | None = None) -> int:
    return measure_variants(parse(argv, __doc__, seeds=SEEDS))


def measure_variants(asked: Asked) -> int:
    path = make_room(asked.results / "beyond.csv")
    old = read_results(path)
    every = jobs_of(PLAN, asked)
    to_do = [job for job in every if job.key not in {_key(row) for row in old}]
    tell(f"beyond: {len(every)} fits, {len(every) - len(to_do)} done before")
    return finish(
        to_do, partial(fit_and_measure, runs=asked.runs), lambda rows: add_results(path, rows), n_workers=asked.jobs
    )


def fit_and_measure(job: Job, *, runs: Path | None = None) -> list[Row]:
    """Fit each part of the variant and measure all its answers together."""
    dataset = read_dataset(job.folder)
    fits: list[Fit] = []
    found: list[Outcomes] = []
    for asking in variants(dataset, job):
        usual = replace(job, settings=dict(list(job.settings.items())[1:]))
        fits.append(fitted(dataset, usual, runs) if asking.usual else _fit(usual, asking))
        found.append(outcomes_of(fits[-1].model, asking.test))
    facts = provenance(job, fits[-1].model, seconds_fit=sum(fit.seconds for fit in fits))
    return [record({**row, **facts}) for row in measure(joined(found), model=job.model, split="test")]


def _fit(job: Job, asking: Asking) -> Fit:
    start = time.perf_counter()
    model = make_model(job.model, settings=job.settings, seed=job.seed, device=job.device).fit(
        asking.train, asking.valid
    )
    return Fit(model, time.perf_counter() - start)


def variants(dataset: Dataset, job: Job) -> Iterator[Asking]:
    """The parts of a variant, which the first setting names: one, but for people who were never in training."""
    train, valid, test = (dataset.cases(split, protocol=job.protocol) for split in ("train", "valid", "test"))
    (what, value), *_ = job.settings.items()
    if what == "unseen":
        for part in range(int(str(value))):
            mine = [_in_part(cases, part, int(str(value))) for cases in (train, valid, test)]
            yield Asking(train.rows(~mine[0]), valid.rows(~mine[1]), test.rows(mine[2]))
    elif what == "users":
        kept = _some_users(train, float(str(value)), job.seed)
        yield Asking(*(cases.rows(np.isin(cases.user.astype(str), kept)) for cases in (train, valid)), test)
    elif what == "days":
        yield Asking(train.rows(_last_days(train, float(str(value)))), valid, test)
    elif what == "hide":
        yield Asking(
            train, valid, with_hidden(test, float(str(value)), np.random.default_rng([13, job.seed])), usual=True
        )
    elif what == "past":
        few = replace(test, first=np.maximum(test.first, test.end - int(str(value))))
        yield Asking(train, valid, few, usual=True)
    else:
        rng = np.random.default_rng([7, job.seed])
        yield Asking(train, *(with_gaps(cases, str(value), rng) for cases in (valid, test)))


def with_hidden(cases: Cases, share: float, rng: np.random.Generator) -> Cases:
    """The same days with such a share of their known slots hidden; one is left visible, and one is asked."""
    known = cases.loc != MISSING
    n = known.sum(axis=1)
    asked = np.clip(np.round(share * n).astype(np.int64), 1, np.maximum(1, n - 1))
    return replace(cases, hidden=redraw(known, asked, rng, pattern="uniform"))


def with_gaps(cases: Cases, pattern: str, rng: np.random.Generator) -> Cases:
    """The same days with as many slots hidden, in another pattern."""
    return replace(cases, hidden=redraw(cases.loc != MISSING, cases.hidden.sum(axis=1), rng, pattern=pattern))


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """The outcomes of all parts, one after the other."""
    return Outcomes(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in Outcomes.__match_args__}
    )


def _in_part(cases: Cases, part: int, n_parts: int) -> Bool:
    """True at the rows of the users of a part; users take turns in the order of their names."""
    users = np.unique(cases.user.astype(str))
    mine: Bool = np.isin(cases.user.astype(str), users[part::n_parts])
    return mine


def _some_users(cases: Cases, share: float, seed: int) -> list[str]:
    users = np.unique(cases.user.astype(str))
    chosen: list[str] = (
        np.random.default_rng([11, seed]).permutation(users)[: max(1, round(share * len(users)))].tolist()
    )
    return chosen


def _last_days(cases: Cases, share: float) -> Bool:
    """True at the last days of each user's training: so much of them."""
    days = day_rows(cases)
    user = cases.user.astype(str)
    kept = np.zeros(len(cases), dtype=np.bool_)
    for name in np.unique(user):
        mine = days[user[days] == name]
        first = cases.date[mine[len(mine) - max(1, round(share * len(mine)))]]
        kept |= (user == name) & (cases.date >= first)
    return kept


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("dataset_hash", "protocol", "model", "settings", "seed"))


if __name__ == "__main__":
    run(main)
