"""Our own models beside those of Table 2: five seeds, slice by slice, both protocols; and what each kind of evidence is
worth, by leaving it out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from attnmove.measure.files import make_room
from attnmove.measure.record import add_results, read_results
from attnmove.models.evidence.features import FAMILIES
from kept import FOLDER, Kept, file_of, fit_and_ask, keep
from records import Asked, Task, finish, jobs_of, parse, run, tell
from table2 import SLICINGS

OWN = ("boost", "copymove")
SEEDS = 5
WITHOUT = (*FAMILIES, "others,space")
"""Kinds of evidence left out: one at a time, and all that is not the user's own."""

PLAN = (
    Task(OWN, by=SLICINGS),
    Task(OWN, protocol="strict", seeds=2),
    *(Task(("boost",), settings={"without": family}, seeds=1) for family in WITHOUT),
)


def main(argv: Sequence[str] | None = None) -> int:
    return measure_own(parse(argv, __doc__, seeds=SEEDS))


def measure_own(asked: Asked) -> int:
    path = make_room(asked.results / "own.csv")
    old, folder = read_results(path), asked.results / FOLDER
    every = jobs_of(PLAN, asked)
    to_do = [job for job in every if not (job.is_done(old) and (job.settings or file_of(folder, job).exists()))]
    tell(f"own: {len(every)} fits, {len(every) - len(to_do)} done before")

    def both(kept: Kept) -> None:
        add_results(path, kept.rows)
        keep(folder, kept)

    return finish(to_do, partial(fit_and_ask, runs=asked.runs), both, n_workers=asked.jobs)


if __name__ == "__main__":
    run(main)
