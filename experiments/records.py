"""What the scripts share: the arguments, the fits they ask for, and the results of record they leave."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from attnmove.errors import AttnMoveError, ConfigError, RunError
from attnmove.measure.compare import Job, compare
from attnmove.measure.files import make_room, write_whole
from attnmove.measure.record import add_results, read_results
from attnmove.measure.table import Row
from attnmove.models.registry import MODELS
from attnmove.prep.dataset import read_dataset

DATASETS = ("geolife", "city")
SPLITS = ("valid", "test")
RESULTS = Path(__file__).parent / "results"

FIT = ("dataset", "dataset_hash", "protocol", "model", "seed")
"""Columns that say which fit a row of a script's own file comes from."""
_DIGITS = 6

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Task:
    """Models that are fitted and measured in one way, each with every seed."""

    models: tuple[str, ...]
    protocol: str = "paper"
    by: tuple[str, ...] = ()
    """Slicings to measure beside all targets."""
    settings: Mapping[str, object] = field(default_factory=dict)
    seeds: int | None = None
    """Fits at most of each model; None: as many as are asked for."""


@dataclass(frozen=True)
class Asked:
    """What the command line of a script says."""

    datasets: Mapping[str, Path]
    """Folder by name."""
    seeds: int
    jobs: int
    """Fits at a time."""
    device: str
    results: Path
    """The folder of the results of record."""
    only: tuple[str, ...] = ()
    """Models to fit now; none: all."""
    runs: Path | None = None
    """Where fits that several scripts need are kept; None: nowhere."""


def parse(argv: Sequence[str] | None, about: str | None, *, seeds: int, names: Sequence[str] = DATASETS) -> Asked:
    """The arguments of a script; `argv` None means those of the process. Ends it with status 2 on wrong usage."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("datasets", nargs="+", metavar="NAME=FOLDER", help=f"a prepared dataset: {' or '.join(names)}")
    parser.add_argument("--seeds", type=int, default=seeds, help="fits of each model that has chance in it")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time, each in a process of its own")
    parser.add_argument("--device", default="auto", help="where networks compute: auto, cpu, cuda")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder that is written to")
    parser.add_argument("--only", default="", help="fit these models now, separated by commas; the others another time")
    parser.add_argument("--runs", type=Path, help="keep fits that several scripts need there, and take them from there")
    given = parser.parse_args(argv)
    datasets = {}
    for text in given.datasets:
        name, _, folder = text.partition("=")
        if name not in names or not folder:
            parser.error(f"expected {'=FOLDER or '.join(names)}=FOLDER, found {text!r}")
        datasets[name] = Path(folder)
    if given.jobs < 1 or given.seeds < 1:
        parser.error("--seeds and --jobs must be 1 or more")
    only = tuple(name for name in given.only.split(",") if name)
    return Asked(datasets, given.seeds, given.jobs, given.device, given.results, only, given.runs)


def jobs_of(plan: Sequence[Task], asked: Asked) -> list[Job]:
    """Every fit of the plan on every dataset; rules have no chance in them and run once."""
    out = []
    for name, folder in asked.datasets.items():
        dataset_hash = read_dataset(folder).hash
        out += [
            Job(
                folder=folder,
                dataset=name,
                dataset_hash=dataset_hash,
                protocol=task.protocol,
                model=model,
                seed=seed,
                splits=SPLITS,
                by=task.by,
                device=asked.device,
                settings=task.settings,
            )
            for task in plan
            for model in task.models
            if not asked.only or model in asked.only
            for seed in ([0] if MODELS[model].kind == "rule" else range(min(asked.seeds, task.seeds or asked.seeds)))
        ]
    return out


def bring_up_to_date(name: str, plan: Sequence[Task], asked: Asked) -> int:
    """Do the fits of the plan that results/NAME.csv does not have, adding each as it ends; 1 where one failed."""
    path = make_room(asked.results / f"{name}.csv")
    old = read_results(path)
    every = jobs_of(plan, asked)
    to_do = [job for job in every if not job.is_done(old)]
    tell(f"{name}: {len(every)} fits, {len(every) - len(to_do)} done before")
    return finish(to_do, _compare, lambda rows: add_results(path, rows), n_workers=asked.jobs)


def finish(
    to_do: Sequence[Job], work: Callable[[Job], Answer], keep: Callable[[Answer], object], *, n_workers: int
) -> int:
    """Do every job and keep its answer at once, so that a stopped script loses only what was under way.

    A job that fails is told and the others go on; 1 then, otherwise 0.
    """
    failed = 0
    with closing(_outcomes(to_do, work, n_workers)) as outcomes:  # whatever ends the loop ends the waiting fits
        for done, (job, outcome) in enumerate(outcomes, 1):
            what = " ".join(filter(None, [job.dataset, job.protocol, job.model, f"seed {job.seed}", _text(job)]))
            try:
                keep(outcome())
                tell(f"{done}/{len(to_do)} {what}")
            except AttnMoveError as error:
                failed = 1
                tell(f"{done}/{len(to_do)} {what} failed: {error}")
            except BrokenProcessPool as error:
                raise RunError("a process was killed, perhaps for memory; try fewer jobs") from error
    return failed


def not_in(path: Path, jobs: Sequence[Job]) -> list[Job]:
    """The fits of which the file has no row."""
    done = {tuple(row[name] for name in FIT) for row in rows_in(path)}
    return [job for job in jobs if tuple(str(getattr(job, name)) for name in FIT) not in done]


def rows_in(path: Path) -> list[Row]:
    """The rows of the file, as they are written; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add_rows(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Add rows to the file, by dataset, protocol, model and seed, numbers rounded."""
    new = [{name: row.get(name) for name in columns} for row in rows]
    new = [{name: round(at, _DIGITS) if isinstance(at, float) else at for name, at in row.items()} for row in new]
    every = [*rows_in(path), *new]
    order = {name: i for i, name in enumerate(MODELS)}
    every.sort(key=lambda row: (row["dataset"], row["protocol"], order[row["model"]], int(row["seed"])))
    write_table(path, columns, every)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a CSV file as a whole."""
    page = io.StringIO()
    table = csv.DictWriter(page, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_whole(path, page.getvalue())


def tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def run(main: Callable[[], int]) -> None:
    """End the process with the status of `main`; an error of ours is one sentence and status 1, Ctrl-C one and 130."""
    try:
        sys.exit(main())
    except AttnMoveError as error:
        tell(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        tell("stopped; the same command goes on after the last fit that ended")
        sys.exit(130)


def _compare(job: Job) -> list[Row]:
    """Fit and measure, under the dataset's name in the experiments."""
    made = compare(
        job.folder,
        [job.model],
        seeds=[job.seed],
        protocol=job.protocol,
        splits=job.splits,
        by=job.by,
        device=job.device,
        settings=job.settings,
    )
    if {row["dataset_hash"] for row in made.rows} != {job.dataset_hash}:
        raise ConfigError(f"{job.folder}: the dataset changed while the script ran; run it again")
    return [row | {"dataset": job.dataset} for row in made.rows]


def _outcomes(
    to_do: Sequence[Job], work: Callable[[Job], Answer], n_workers: int
) -> Generator[tuple[Job, Callable[[], Answer]], None, None]:
    """Jobs as they end, each with what gives its answer or raises what went wrong."""
    if n_workers == 1:
        for job in to_do:
            yield job, partial(work, job)
        return
    threads = max(1, (os.cpu_count() or 1) // n_workers)
    with ProcessPoolExecutor(n_workers, get_context("spawn"), initializer=_limit_threads, initargs=(threads,)) as pool:
        waiting: dict[Future[Answer], Job] = {pool.submit(work, job): job for job in to_do}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _limit_threads(threads: int) -> None:
    """Share the cores between the processes; torch reads it when it is loaded, with the first network."""
    os.environ["OMP_NUM_THREADS"] = str(threads)


def _text(job: Job) -> str:
    return " ".join(f"{name}={value}" for name, value in job.settings.items())
