"""Models by name and runs by folder, measured on one split of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnmove.errors import DataError, check_names
from attnmove.measure.compare import Progress, device_of, fit_model
from attnmove.measure.slices import SLICES
from attnmove.measure.table import Row, evaluate
from attnmove.models.contract import Recoverer
from attnmove.models.registry import MODELS
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.version import __version__


@dataclass(frozen=True)
class _Ready:
    """A model that has learnt, and where it comes from."""

    model: Recoverer
    name: str
    seed: int
    trained_on: str
    """Hash of the dataset it learnt from."""
    run: str | None = None


def evaluate_named(
    folder: Path | str,
    names: Sequence[str],
    *,
    split: str = "test",
    protocol: str = "paper",
    by: Sequence[str] = (),
    intervals: bool = False,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
) -> list[Row]:
    """Measures of each model, as `evaluate` gives them, with where they come from.

    A name of MODELS is fitted on the dataset's training days first; any other name is the folder of a run, which may
    have been trained on another dataset of the same locations: `trained_on` and `dataset_hash` differ then.
    """
    check_names("slicing", by, SLICES)
    check_names("model or run", [name for name in names if not Path(name).is_dir()], MODELS)
    dataset = read_dataset(folder)
    cases = dataset.cases(split, protocol=protocol)
    if not cases.hidden.any():
        raise DataError(f"{folder}: no targets in its {split} split, so nothing can be measured there")
    rows: list[Row] = []
    for done, name in enumerate(names):
        if progress is not None:
            progress(name, done, len(names))
        ready = _ready(dataset, name, protocol=protocol, seed=seed, device=device)
        facts = {
            "run": ready.run,
            "seed": ready.seed,
            "protocol": protocol,
            "dataset_hash": dataset.hash,
            "trained_on": ready.trained_on,
            "version": __version__,
            "device": device_of(ready.model),
        }
        measured = evaluate(ready.model, cases, by=by, intervals=intervals, name=ready.name, split=split)
        rows += [{**row, **facts} for row in measured]
    return rows


def _ready(dataset: Dataset, name: str, *, protocol: str, seed: int, device: str) -> _Ready:
    if name in MODELS:
        model = fit_model(dataset, name, protocol=protocol, seed=seed, device=device)
        return _Ready(model, name, seed, dataset.hash)
    from attnmove.models.runs import load_run

    run = load_run(Path(name), device=device)
    run.check(dataset)
    return _Ready(run.model, run.name, run.facts["seed"], run.facts["dataset_hash"], name)
