"""A run: a folder with what a model learnt, how, and from which data; readable without running code."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from attnmove import metrics as measures
from attnmove.errors import ConfigError, DataError, OutdatedRunError, RunError, check_names
from attnmove.models.answers import best_answers
from attnmove.models.contract import Recoverer
from attnmove.models.evidential import Evidential
from attnmove.models.registry import MODELS, make_model
from attnmove.models.settings import Settings, configure
from attnmove.nouns import MINUTES_PER_DAY, MISSING, Cases, Locations
from attnmove.prep.dataset import Dataset, check_folder, replaced_whole
from attnmove.space import write_locations
from attnmove.version import __version__

FORMAT_VERSION = 1
CHECKPOINT = "checkpoint.safetensors"
_FACTS = {"model": str, "settings": dict, "seed": int, "dataset_hash": str, "locations": int, "locations_hash": str}
"""What config.json must say, beside its version."""
LOCATIONS, THRESHOLDS = "locations.parquet", "thresholds.csv"
"""What a run brings for recovering: its locations, and which confidence reached which precision on validation days."""
_FILES = {"model.safetensors", "config.json", "metrics.json", "log.csv", LOCATIONS, THRESHOLDS, CHECKPOINT}
_SETTING = {"datum": "wgs84", "timezone": "UTC"}

Thresholds = list[tuple[float, float]]
"""Precision and the least confidence that reaches it, both rising."""


@dataclass(frozen=True)
class Run:
    """A trained model and where it comes from."""

    name: str
    model: Recoverer
    facts: Mapping[str, Any]
    """The content of config.json."""
    metrics: Mapping[str, Any]
    """The content of metrics.json."""
    folder: Path | None = None
    """Where it lies."""

    def check(self, dataset: Dataset) -> None:
        """Raise DataError when the dataset's locations or slots are not those the model was trained on."""
        why = self.misfit(dataset)
        if why:
            raise DataError(
                f"the run does not fit this dataset: {why}; train on this one, or evaluate the one it was trained on"
            )

    def misfit(self, dataset: Dataset) -> str:
        """Why the run cannot answer for days of this dataset; nothing where it can."""
        why = []
        if self.facts["locations_hash"] != locations_hash(dataset.locations):
            n_there, n_here = self.facts["locations"], len(dataset.locations)
            why.append(f"its locations are not those of the dataset ({n_there:,} there, {n_here:,} here)")
        setting = self.facts.get("setting")
        there = setting.get("slot_minutes") if isinstance(setting, dict) else None
        here = setting_of(dataset)["slot_minutes"]
        if there is not None and there != here:
            why.append(f"its slots are not those of the dataset ({there} minutes there, {here} here)")
        return " and ".join(why)


def train_run(
    dataset: Dataset,
    name: str,
    out: Path | str,
    *,
    settings: Settings | None = None,
    seed: int = 0,
    device: str = "auto",
    protocol: str = "paper",
    resume: bool = False,
    tell: Any = None,
) -> Run:
    """Train a model by name and write the run to `out`: complete or not at all.

    While a network trains, `out` holds a checkpoint of the last finished epoch; `resume` goes on from there. An
    interrupt (KeyboardInterrupt) leaves a usable run of the epochs so far, whose metrics say `interrupted`.
    """
    model, out = make_model(name, settings=settings, seed=seed, device=device), Path(out)
    _check_out(out, resume=resume)
    train = dataset.cases("train", protocol=protocol)
    valid = dataset.cases("valid", protocol=protocol)
    if len(train) == 0:
        raise RunError("the dataset has no training days; prepare it from more days of the same people")
    begun = time.perf_counter()
    log: list[dict[str, float]] = []
    metrics: dict[str, Any] = {"interrupted": False}
    if MODELS[name].kind == "network":
        network: Any = model
        _fit_network(network, train, valid, out, resume=resume, tell=tell)
        log, metrics = network.outcome.log, _metrics(network.outcome)
    elif isinstance(model, Evidential):
        model.fit(train, valid, tell=tell)
    else:
        model.fit(train, valid)
    if isinstance(model, Evidential):
        metrics |= model.lessons_learnt
    metrics["seconds"] = round(time.perf_counter() - begun, 1)
    facts = {
        "format_version": FORMAT_VERSION,
        "model": name,
        "settings": settings_of(name, settings),
        "seed": seed,
        "protocol": protocol,
        "dataset_hash": dataset.hash,
        "locations": len(dataset.locations),
        "locations_hash": locations_hash(dataset.locations),
        "setting": setting_of(dataset),
        "version": __version__,
    }
    run = Run(name, model, facts, metrics, out)
    if getattr(model, "writes", True):
        write_run(out, run, log, locations=dataset.locations, thresholds=_thresholds(model, valid))
    return run


def setting_of(dataset: Dataset) -> dict[str, Any]:
    """What turns points into the slots and locations of the dataset; `tessellation` is None where it has no rule."""
    facts, n_slots = dataset.facts, dataset.days.n_slots
    return {
        "tessellation": facts.get("tessellation"),
        **{name: facts.get(name, usual) for name, usual in _SETTING.items()},
        "slot_minutes": MINUTES_PER_DAY // n_slots,
        "slot_rule": facts.get("preparation", {}).get("slot_rule", "mode"),
    }


def _thresholds(model: Recoverer, valid: Cases) -> Thresholds:
    parts = [
        (answers.probability[:, 0], answers.place[:, 0], valid.loc[tuple(answers.index.T)])
        for answers in best_answers(model, valid, top=1)
    ]
    if not parts:
        return []
    confidence, place, truth = (np.concatenate(column) for column in zip(*parts, strict=True))
    known = truth != MISSING
    # Rounding may leave a probability of 1 a little above it, where no confidence is accepted.
    return measures.thresholds(np.minimum(confidence, 1)[known], (place == truth)[known])


def _fit_network(network: Any, train: Cases, valid: Cases, out: Path, *, resume: bool, tell: Any) -> None:
    """Train with a checkpoint in `out`; a training that never came to one leaves no folder behind."""
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        network.fit(train, valid, checkpoint=out / CHECKPOINT, resume=resume, tell=tell)
    finally:
        if is_new and not any(out.iterdir()):
            out.rmdir()


def _metrics(outcome: Any) -> dict[str, Any]:
    best = outcome.log[outcome.best_epoch - 1]
    return {
        "interrupted": outcome.interrupted,
        "epochs": len(outcome.log),
        "best_epoch": outcome.best_epoch,
        **{key: value for key, value in best.items() if key.startswith("valid_")},
    }


def settings_of(name: str, settings: Settings | None) -> dict[str, Any]:
    """Every setting of the model by name, the changed ones as they are now."""
    check_names("model", [name], MODELS)
    configs = configure(MODELS[name].defaults, settings or {})
    return {key: value for config in configs for key, value in asdict(config).items()}


def locations_hash(locations: Locations) -> str:
    """SHA-256 over the names and centres of the locations."""
    digest = hashlib.sha256(json.dumps(locations.name.tolist()).encode())
    digest.update(np.ascontiguousarray(locations.centres).tobytes())
    return digest.hexdigest()


def write_run(
    folder: Path, run: Run, log: list[dict[str, float]], *, locations: Locations, thresholds: Thresholds
) -> None:
    """Write the folder at once. A checkpoint in it stays when the training was interrupted, and goes when not."""
    with replaced_whole(folder, "run") as new:
        arrays = {name: np.ascontiguousarray(array) for name, array in run.model.state().items()}
        (new / "model.safetensors").write_bytes(save(arrays))
        _write_json(new / "config.json", run.facts)
        _write_json(new / "metrics.json", run.metrics)
        _write_log(new / "log.csv", log)
        write_locations(new / LOCATIONS, locations)
        _write_thresholds(new / THRESHOLDS, thresholds)
        if run.metrics["interrupted"] and (folder / CHECKPOINT).exists():
            shutil.copyfile(folder / CHECKPOINT, new / CHECKPOINT)


def describe_run(folder: Path | str) -> dict[str, Any]:
    """What config.json and metrics.json of a run say."""
    return {**_read_json(Path(folder) / "config.json"), **_read_json(Path(folder) / "metrics.json")}


def load_run(folder: Path | str, *, device: str = "auto") -> Run:
    """The run in `folder`. Raises RunError, in one sentence, when it is not one or is damaged."""
    folder = Path(folder)
    facts = _read_json(folder / "config.json")
    metrics = _read_json(folder / "metrics.json")
    if facts.get("format_version") != FORMAT_VERSION:
        raise RunError(f"{folder}: written by another version of attnmove; train it again")
    lost = [name for name, kind in _FACTS.items() if type(facts.get(name)) is not kind]
    if lost:
        raise RunError(f"{folder}/config.json: no {lost[0]}, or not such as it should be; train it again")
    weights = folder / "model.safetensors"
    if weights.is_file() and not os.access(weights, os.R_OK):  # the library would say that it is not there
        raise RunError(f"{weights}: may not be read; ask its owner for the right to")
    try:
        if not weights.is_file():
            raise FileNotFoundError
        state = load_file(weights)
        model = make_model(facts["model"], settings=facts["settings"], seed=facts["seed"], device=device)
        return Run(facts["model"], model.restore(state), facts, metrics, folder)
    except FileNotFoundError as error:
        raise RunError(f"{folder}: not a run (no model.safetensors); make one with attnmove train") from error
    except (SafetensorError, OSError) as error:
        raise RunError(f"{folder}/model.safetensors: cut off, or not a file of weights; train it again") from error
    except OutdatedRunError as error:
        raise RunError(f"{folder}: {error}") from error
    except (ConfigError, RunError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder}: damaged, its files do not fit together ({error}); train it again") from error


def read_thresholds(folder: Path) -> Thresholds:
    """The table of a run. Raises RunError when it has none, or one that is not such a table."""
    path = folder / THRESHOLDS
    try:
        with path.open(newline="", encoding="utf-8") as file:
            pairs = [(float(row["precision"]), float(row["confidence"])) for row in csv.DictReader(file)]
    except FileNotFoundError as error:
        raise RunError(f"{folder}: trained before runs told which confidence to trust; train it again") from error
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        raise RunError(f"{path}: broken; train it again") from error
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(pairs))
    if not rising or not all(0 <= share <= 1 for pair in pairs for share in pair):
        raise RunError(f"{path}: expected shares that rise from 0 to 1; train it again")
    return pairs


def load_model(
    name_or_run: str | Path, *, settings: Settings | None = None, seed: int = 0, device: str = "auto"
) -> Recoverer:
    """A new model by its name, ready to `fit`; or, from the folder of a run, one that has learnt.

    >>> load_model("vote", settings={"decay_slots": 2.0}).config.decay_slots
    2.0
    """
    if str(name_or_run) in MODELS:
        return make_model(str(name_or_run), settings=settings, seed=seed, device=device)
    if not Path(name_or_run).is_dir():
        check_names("model or run", [str(name_or_run)], MODELS)
    if settings:
        raise ConfigError("a run has its settings already; give none, or train a new one")
    return load_run(name_or_run, device=device).model


def _check_out(out: Path, *, resume: bool) -> None:
    # A kill in the moment of writing leaves a part of a checkpoint; whose training it was does not matter any more.
    for part in out.glob(f".{CHECKPOINT}.*") if out.is_dir() else ():
        part.unlink(missing_ok=True)
    check_folder(out, _FILES)
    half_done = (out / CHECKPOINT).exists()
    if half_done and not resume:
        raise RunError(f"{out}: holds an unfinished training; go on with --resume, or remove the folder")
    if resume and not half_done:
        done = (out / "model.safetensors").exists()
        state = "is finished, there is nothing to resume" if done else "has no checkpoint to resume"
        raise RunError(f"{out}: {state}; leave out --resume to train anew")


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_log(path: Path, log: list[dict[str, float]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(log[0]) if log else ["epoch"])
        writer.writeheader()
        writer.writerows(log)


def _write_thresholds(path: Path, pairs: Thresholds) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["precision", "confidence"])
        writer.writerows(pairs)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():
            raise FileNotFoundError(path)
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunError(f"{path.parent}: not a run (no {path.name}); make one with attnmove train") from error
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: broken; train it again") from error
    if not isinstance(content, dict):
        raise RunError(f"{path}: broken; train it again")
    return content
