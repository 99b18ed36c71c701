"""One fit for every script that needs it: kept as a run with --runs FOLDER, and taken from there the next time."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from attnmove.errors import RunError
from attnmove.measure.compare import Job, fit_model
from attnmove.models.contract import Recoverer
from attnmove.models.registry import MODELS
from attnmove.models.runs import CHECKPOINT, load_run, settings_of, train_run
from attnmove.prep.dataset import Dataset
from attnmove.version import __version__


@dataclass(frozen=True)
class Fit:
    """A fitted model, and how many seconds fitting it took."""

    model: Recoverer
    seconds: float


def fitted(dataset: Dataset, job: Job, runs: Path | None) -> Fit:
    """The model of the job, learnt now or before; rules and models with changed settings always now."""
    if runs is None or job.settings or MODELS[job.model].kind == "rule":
        start = time.perf_counter()
        model = fit_model(
            dataset, job.model, protocol=job.protocol, seed=job.seed, device=job.device, settings=job.settings
        )
        return Fit(model, time.perf_counter() - start)
    folder = runs / f"{job.dataset}-{job.protocol}-{job.model}-{job.seed}"
    if (folder / CHECKPOINT).exists():  # a training that did not end
        shutil.rmtree(folder)
    if folder.exists():
        run = load_run(folder, device=job.device)
    else:
        run = train_run(dataset, job.model, folder, seed=job.seed, device=job.device, protocol=job.protocol)
        if run.metrics["interrupted"]:
            raise KeyboardInterrupt
    wanted = {name: getattr(job, name) for name in ("dataset_hash", "protocol", "seed")}
    wanted |= {"settings": settings_of(job.model, job.settings), "version": __version__}
    if {name: run.facts.get(name) for name in wanted} != wanted:
        raise RunError(
            f"{folder}: a run of other days, protocol, seed, settings or version than are asked for; remove it"
        )
    return Fit(run.model, float(run.metrics["seconds"]))
