"""Many models on one dataset, with several seeds: fit each, measure it, keep the results of record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields
from functools import lru_cache
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from attnmove.errors import ConfigError, DataError, MissingExtra, RunError, check_names
from attnmove.measure.files import make_room
from attnmove.measure.record import JOB, RESULTS, add_results, read_results, record, sorted_results
from attnmove.measure.slices import SLICES
from attnmove.measure.table import ALL, Row, evaluate
from attnmove.models.contract import Recoverer
from attnmove.models.registry import MODELS, TABLE2, make_model
from attnmove.models.settings import Settings, configure
from attnmove.prep.cases import PROTOCOLS
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.version import __version__

Progress = Callable[[str, int, int], None]
"""Told what was just finished, how many are, and of how many."""
_TAKEN = {
    "dataset.json": "a dataset",
    "model.safetensors": "a run",
    "checkpoint.safetensors": "an unfinished training",
}
"""Files that say what a folder is, when it is none for results."""


@dataclass(frozen=True)
class Comparison:
    """What came out of a comparison."""

    rows: list[Row]
    """Results of record of everything asked for, measured now or before."""
    refused: Mapping[str, str]
    """Models that cannot be used on this dataset or machine, and why."""


@dataclass(frozen=True)
class Job:
    """One fit and where it is measured."""

    folder: Path
    dataset: str
    dataset_hash: str
    protocol: str
    model: str
    seed: int
    splits: tuple[str, ...]
    by: tuple[str, ...]
    device: str
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """What the columns JOB of its rows hold."""
        return (self.dataset_hash, self.protocol, self.model, _text(self.settings), self.seed)

    def is_done(self, rows: Iterable[Row]) -> bool:
        """True when the rows have every split and slicing of the job; an empty split has no slices."""
        mine = [row for row in rows if _key(row) == self.key]
        empty = {row["split"] for row in mine if row["n"] == 0}
        found = {(row["split"], slicing_of(row)) for row in mine}
        wanted = {(split, part) for split in self.splits for part in (ALL, *(() if split in empty else self.by))}
        return found >= wanted


@dataclass(frozen=True)
class _Answer:
    """Rows, or the reason why there are none."""

    rows: list[Row]
    refusal: str | None = None


def compare(
    folder: Path | str,
    models: Sequence[str] = TABLE2,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    protocol: str = "paper",
    splits: Sequence[str] = ("valid", "test"),
    by: Sequence[str] = (),
    jobs: int = 1,
    device: str = "auto",
    out: Path | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Fit every model with every seed on the dataset in `folder` and measure it on the splits.

    Rules have no chance in them and run once, with seed 0. `out` is a folder whose results.csv is brought up to date
    after every fit; what is there already is not done again. `jobs` fits run at a time, each in a process of its own. A
    setting goes to every model that has it. A model that cannot be used on this dataset is reported, not fatal, unless
    none can. A split without targets has a row with n = 0.
    """
    folder = Path(folder)
    given = _settings_of(models, settings or {})
    check_names("protocol", [protocol], PROTOCOLS)
    check_names("slicing", by, SLICES)
    for what, count in (("jobs", jobs), ("seeds", len(seeds)), ("models", len(models))):
        if count < 1:
            raise ConfigError(f"{what}: expected 1 or more, found {count}")
    if out is not None:
        _check_out(Path(out))
    dataset = read_dataset(folder)
    if not any(dataset.cases(split, protocol=protocol).hidden.any() for split in splits):
        raise DataError(f"{folder}: no targets in {' or '.join(splits)}, so nothing can be measured")
    every = [
        Job(
            folder=folder,
            dataset=str(dataset.facts.get("name") or folder.resolve().name),
            dataset_hash=dataset.hash,
            protocol=protocol,
            model=model,
            seed=seed,
            splits=tuple(splits),
            by=tuple(by),
            device=device,
            settings=given[model],
        )
        for model in dict.fromkeys(models)
        for seed in ([0] if MODELS[model].kind == "rule" else dict.fromkeys(seeds))
    ]
    path = None if out is None else make_room(Path(out) / RESULTS)
    return _run_all(every, dataset, n_workers=jobs, path=path, progress=progress)


def fit_model(
    dataset: Dataset, name: str, *, protocol: str, seed: int, device: str, settings: Settings | None = None
) -> Recoverer:
    """A model of this name, fitted on the training days; the validation days are there to choose on."""
    valid = dataset.cases("valid", protocol=protocol)
    model = make_model(name, settings=settings, seed=seed, device=device)
    model = model.fit(dataset.cases("train", protocol=protocol), valid if valid.hidden.any() else None)
    # A network that is interrupted keeps its best weights so far: good for a run, but no result of record.
    if getattr(getattr(model, "outcome", None), "interrupted", False):
        raise KeyboardInterrupt
    return model


def device_of(model: Recoverer) -> str:
    """Where the fitted model computes: a network where its weights are, everything else on the processor."""
    network = getattr(model, "network", None)
    return "cpu" if network is None else str(next(network.parameters()).device)


def provenance(job: Job, model: Recoverer, *, seconds_fit: float) -> Row:
    """The columns of record that say which fit a row comes from."""
    return {
        **dict(zip(JOB, job.key, strict=True)),
        "dataset": job.dataset,
        "seconds_fit": seconds_fit,
        "version": __version__,
        "device": device_of(model),
    }


def _run_all(
    every: list[Job], dataset: Dataset, *, n_workers: int, path: Path | None, progress: Progress | None
) -> Comparison:
    old = read_results(path) if path else []
    to_do = [job for job in every if not job.is_done(old)]
    rows = {_row_key(row): row for row in old}
    refused: dict[str, str] = {}
    done = len(every) - len(to_do)
    for job, answer in _answers(to_do, dataset, n_workers):
        done += 1
        if answer.refusal is not None:
            refused[job.model] = answer.refusal
        rows |= {_row_key(row): row for row in answer.rows}
        if path is not None and answer.rows:
            add_results(path, answer.rows)
        if progress is not None:
            progress(f"{job.model} {job.seed}", done, len(every))
    wanted = {job.key for job in every}
    parts = {(split, part) for job in every for split in job.splits for part in (ALL, *job.by)}
    out = [row for row in rows.values() if _key(row) in wanted and (row["split"], slicing_of(row)) in parts]
    if not out and refused:
        raise DataError("; ".join(dict.fromkeys(refused.values())))
    return Comparison(sorted_results(out), refused)


def _answers(every: list[Job], dataset: Dataset, n_workers: int) -> Iterator[tuple[Job, _Answer]]:
    """The jobs' answers as they come: one after the other here, or several at a time in processes of their own."""
    if n_workers == 1 or len(every) < 2:
        for job in every:
            yield job, _run(job, dataset)
        return
    n_workers = min(n_workers, len(every))
    threads = max(1, (os.cpu_count() or 1) // n_workers)
    others = set(active_children())
    pool = ProcessPoolExecutor(n_workers, get_context("spawn"), initializer=_limit_threads, initargs=(threads,))
    try:
        waiting: dict[Future[_Answer], Job] = {pool.submit(_run_apart, job): job for job in every}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool as error:
        raise RunError("a process of the comparison was killed, perhaps for memory; try fewer jobs") from error
    except BaseException:
        # Whoever stops the comparison does not want to wait for the fits under way.
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _limit_threads(threads: int) -> None:
    """Share the cores between the processes; read by libraries that are loaded later, such as torch."""
    os.environ["OMP_NUM_THREADS"] = str(threads)


def _run_apart(job: Job) -> _Answer:
    return _run(job, _dataset(job.folder))


def _run(job: Job, dataset: Dataset) -> _Answer:
    """Fit and measure. A model that cannot be used here is an answer too."""
    start = time.perf_counter()
    try:
        model = fit_model(
            dataset, job.model, protocol=job.protocol, seed=job.seed, device=job.device, settings=job.settings
        )
    except (DataError, MissingExtra, RunError) as error:
        return _Answer([], str(error))
    facts = provenance(job, model, seconds_fit=time.perf_counter() - start)
    rows = [
        record({**row, **facts})
        for split in job.splits
        for row in evaluate(model, dataset.cases(split, protocol=job.protocol), by=job.by, name=job.model, split=split)
    ]
    return _Answer(rows)


@lru_cache(maxsize=1)
def _dataset(folder: Path) -> Dataset:
    """Read once in a process, however many jobs it does."""
    return read_dataset(folder)


def _settings_of(models: Sequence[str], settings: Settings) -> dict[str, dict[str, object]]:
    """For each model the settings it has. Raises ConfigError on a model, a setting or a value there is not."""
    check_names("model", models, MODELS)
    names = {model: [part.name for config in MODELS[model].defaults for part in fields(config)] for model in models}
    check_names("setting", settings, dict.fromkeys(name for mine in names.values() for name in mine))
    out = {model: {name: settings[name] for name in settings if name in names[model]} for model in models}
    for model, mine in out.items():
        configure(MODELS[model].defaults, mine)
    return out


def _check_out(out: Path) -> None:
    """Raise RunError when the folder is that of a dataset or a run, which would not be replaced with results in it."""
    for name, what in _TAKEN.items():
        if (out / name).exists():
            raise RunError(f"{out}: the folder of {what}; name another one for the results")


def _text(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={settings[name]}" for name in sorted(settings))


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in JOB)


def _row_key(row: Row) -> tuple[object, ...]:
    return (*_key(row), row["split"], row["slice"])


def slicing_of(row: Row) -> str:
    """The slicing that a row's slice belongs to."""
    return str(row["slice"]).partition("=")[0]
