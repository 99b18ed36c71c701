"""Runs on disk: what is written, read back, resumed after a kill, and refused."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors import numpy as safetensors

from attnmove.errors import ConfigError, DataError, NotFittedError, RunError
from attnmove.models.registry import make_model
from attnmove.models.runs import load_model, load_run, train_run
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.prep.pipeline import prepare
from measure.datasets import write_small

SMALL = {"width": 8, "epochs": 5, "batch_days": 4, "patience": 0}
FILES = {"model.safetensors", "config.json", "metrics.json", "log.csv", "locations.parquet", "thresholds.csv"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("data") / "dataset")


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return read_dataset(folder)


def answers(model: object, dataset: Dataset) -> np.ndarray:  # type: ignore[type-arg]
    return np.concatenate([part.log_prob for part in model.scores(dataset.test)])  # type: ignore[attr-defined]


def stop_after(epoch: float) -> object:
    def tell(now: dict[str, float]) -> None:
        if now["epoch"] > epoch:
            raise KeyboardInterrupt

    return tell


@pytest.mark.parametrize(("name", "settings"), [("lstm", SMALL), ("vote", {"habit": 0.5}), ("rf", {"trees": 2})])
def test_a_run_reads_back_with_equal_answers(
    tmp_path: Path, dataset: Dataset, name: str, settings: dict[str, object]
) -> None:
    made = train_run(dataset, name, tmp_path / "run", settings=settings, seed=3, device="cpu")
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
    read = load_run(tmp_path / "run", device="cpu")
    assert (read.name, read.facts, read.metrics) == (made.name, made.facts, made.metrics)
    assert np.array_equal(answers(read.model, dataset), answers(made.model, dataset))
    assert read.facts["settings"].items() >= settings.items()
    assert (read.facts["dataset_hash"], read.facts["seed"]) == (dataset.facts["hash"], 3)


def test_the_log_has_a_row_an_epoch_and_the_metrics_those_of_the_best(tmp_path: Path, dataset: Dataset) -> None:
    made = train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu")
    with (tmp_path / "run" / "log.csv").open() as file:
        log = list(csv.DictReader(file))
    assert [row["epoch"] for row in log] == ["1", "2", "3", "4", "5"]
    best = log[made.metrics["best_epoch"] - 1]
    assert float(best["valid_map"]) == made.metrics["valid_map"] == max(float(row["valid_map"]) for row in log)


def test_a_run_remembers_no_name_of_a_user(tmp_path: Path, dataset: Dataset) -> None:
    for name in ("deepmove", "top"):
        train_run(dataset, name, tmp_path / name, settings=SMALL if name == "deepmove" else {}, device="cpu")
        content = b"".join(path.read_bytes() for path in (tmp_path / name).iterdir())
        assert not [user for user in set(dataset.days.user) - {"cy"} if user.encode() in content]


def test_an_interrupt_leaves_a_usable_run_that_can_go_on(tmp_path: Path, dataset: Dataset) -> None:
    whole = train_run(dataset, "lstm", tmp_path / "whole", settings=SMALL, device="cpu")
    stopped = train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu", tell=stop_after(2))
    assert stopped.metrics["interrupted"]
    usable = load_run(tmp_path / "run", device="cpu")
    assert np.isfinite(answers(usable.model, dataset)).all()
    with pytest.raises(RunError, match="unfinished training; go on with --resume, or remove the folder"):
        train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu")
    resumed = train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu", resume=True)
    assert not resumed.metrics["interrupted"]
    same = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "run")]
    assert same[0] == same[1]
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
    assert whole.metrics["best_epoch"] == resumed.metrics["best_epoch"]
    with pytest.raises(RunError, match="finished, there is nothing to resume"):
        train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu", resume=True)


def test_an_interrupt_in_the_first_epoch_leaves_nothing(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu", tell=stop_after(0))
    assert not list(tmp_path.iterdir())


def test_a_training_killed_at_once_goes_on_to_the_same_weights(tmp_path: Path, folder: Path, dataset: Dataset) -> None:
    """kill -9 between two epochs or within one, whenever it comes."""
    settings = {**SMALL, "epochs": 60}
    pairs = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "attnmove.cli", "train", str(folder), "-o", str(tmp_path / "run"), *pairs]
    command += ["--model", "lstm", "--device", "cpu"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    waited = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < waited:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert checkpoint.exists()
    assert not (tmp_path / "run" / "model.safetensors").exists(), "it was not killed in the middle"
    subprocess.run([*command, "--resume"], check=True, capture_output=True)
    train_run(dataset, "lstm", tmp_path / "whole", settings=settings, device="cpu")
    same = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "run")]
    assert same[0] == same[1]


def test_resume_without_a_checkpoint_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(RunError, match="has no checkpoint to resume"):
        train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu", resume=True)


def test_a_folder_with_other_things_is_not_written_over(tmp_path: Path, dataset: Dataset) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match=r"holds other things \(thesis.txt\)"):
        train_run(dataset, "top", tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_run_in_the_way_is_replaced_whole(tmp_path: Path, dataset: Dataset) -> None:
    train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu")
    train_run(dataset, "top", tmp_path / "run")
    assert load_run(tmp_path / "run").name == "top"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def broken(run: Path, how: str) -> None:
    weights, config = run / "model.safetensors", run / "config.json"
    facts = json.loads(config.read_text())
    match how:
        case "cut off":
            weights.write_bytes(weights.read_bytes()[:200])
        case "no weights":
            weights.unlink()
        case "no config":
            config.unlink()
        case "broken config":
            config.write_text("{")
        case "list as config":
            config.write_text("[]")
        case "another version":
            config.write_text(json.dumps({**facts, "format_version": 99}))
        case "another model":
            config.write_text(json.dumps({**facts, "model": "deepmove"}))
        case "unknown model":
            config.write_text(json.dumps({**facts, "model": "gpt"}))
        case "other settings":
            config.write_text(json.dumps({**facts, "settings": {**facts["settings"], "hidden": 3}}))


@pytest.mark.parametrize(
    ("how", "said"),
    {
        "cut off": "cut off, or not a file of weights; train it again",
        "no weights": "not a run .no model.safetensors.; make one with attnmove train",
        "no config": "not a run .no config.json.; make one with attnmove train",
        "broken config": "config.json: broken; train it again",
        "list as config": "config.json: broken; train it again",
        "another version": "written by another version of attnmove",
        "another model": "damaged, its files do not fit together",
        "unknown model": "damaged, its files do not fit together .no model 'gpt'",
        "other settings": "damaged, its files do not fit together",
    }.items(),
)
def test_a_damaged_run_is_refused_in_a_sentence(tmp_path: Path, dataset: Dataset, how: str, said: str) -> None:
    train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu")
    broken(tmp_path / "run", how)
    with pytest.raises(RunError, match=said):
        load_run(tmp_path / "run", device="cpu")


def test_a_run_is_not_used_on_other_locations(tmp_path: Path, dataset: Dataset) -> None:
    run = train_run(dataset, "vote", tmp_path / "run")
    run.check(dataset)
    shutil.rmtree(tmp_path / "run")
    other = read_dataset(write_small(tmp_path / "other", centres=False))
    with pytest.raises(DataError, match="its locations are not those of the dataset"):
        run.check(other)


def test_a_model_is_loaded_by_name_or_by_run(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(NotFittedError):
        answers(load_model("vote"), dataset)
    train_run(dataset, "vote", tmp_path / "run")
    fitted = load_model("vote").fit(dataset.train)
    assert np.array_equal(answers(load_model(tmp_path / "run"), dataset), answers(fitted, dataset))
    with pytest.raises(ConfigError, match="no model or run 'vot'; did you mean vote"):
        load_model("vot")
    with pytest.raises(ConfigError, match="has its settings already"):
        load_model(tmp_path / "run", settings={"habit": 1.0})


def test_a_dataset_without_training_days_is_refused(tmp_path: Path) -> None:
    empty = read_dataset(write_small(tmp_path / "data", splits=("past", "past", "valid", "test")))
    with pytest.raises(RunError, match="no training days"):
        train_run(empty, "lstm", tmp_path / "run", settings=SMALL)


def test_a_part_of_a_checkpoint_left_by_a_kill_is_cleared_away(tmp_path: Path, dataset: Dataset) -> None:
    train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu", tell=stop_after(2))
    (tmp_path / "run" / ".checkpoint.safetensors.4711").write_bytes(b"half of")
    train_run(dataset, "lstm", tmp_path / "run", settings=SMALL, device="cpu", resume=True)
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES


def forged(run: Path, changes: dict[str, np.ndarray], facts: dict[str, object]) -> None:  # type: ignore[type-arg]
    """Put other arrays and facts into a run."""
    weights, config = run / "model.safetensors", run / "config.json"
    weights.write_bytes(safetensors.save({**safetensors.load(weights.read_bytes()), **changes}))
    config.write_text(json.dumps({**json.loads(config.read_text()), **facts}))


def whole(*numbers: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(
    ("name", "changes", "facts"),
    [
        ("lstm", {"n_slots": whole(20_000_000)}, {}),
        ("lstm", {"n_slots": whole()}, {}),
        ("lstm", {"users": np.zeros((2, 2), dtype=np.int64)}, {}),
        ("lstm", {"net/places.table": np.zeros((6, 8), dtype=np.int8)}, {}),
        ("lstm", {"net/stowaway": np.zeros(3, dtype=np.float32)}, {}),
        ("lstm", {}, {"locations_hash": None}),
        ("lstm", {}, {"seed": "one"}),
        ("lstm", {}, {"seed": -1}),
        ("lstm", {}, {"settings": []}),
        ("lstm", {}, {"settings": {"width": 8, "hidden": 10**7}}),
        ("vote", {"start": whole(0, 10**15)}, {}),
        ("vote", {"place": whole(10**6) * np.ones(30, dtype=np.int64)}, {}),
        ("vote", {"count": np.zeros((3, 3), dtype=np.int64)}, {}),
        ("vote", {"everyone": np.zeros(5)}, {}),
        ("rf", {"trees/left": np.zeros(3, dtype=np.int32), "trees/right": np.zeros(3, dtype=np.int32)}, {}),
        ("rf", {"trees/root": np.zeros(0, dtype=np.int32)}, {}),
        ("rf", {"trees/root": whole(10**9)}, {}),
    ],
)
def test_a_forged_run_is_refused_in_a_sentence(
    tmp_path: Path,
    dataset: Dataset,
    name: str,
    changes: dict[str, np.ndarray],  # type: ignore[type-arg]
    facts: dict[str, object],
) -> None:
    settings = {"lstm": SMALL, "rf": {"trees": 2}}.get(name, {})
    train_run(dataset, name, tmp_path / "run", settings=settings, device="cpu")
    forged(tmp_path / "run", changes, facts)
    with pytest.raises(RunError, match="train it again"):
        load_run(tmp_path / "run", device="cpu")


@pytest.mark.parametrize("names", [whole(1, 2), whole()])
def test_a_run_that_learnt_from_other_evidence_is_not_called_damaged(
    tmp_path: Path,
    dataset: Dataset,
    names: np.ndarray,  # type: ignore[type-arg]
) -> None:
    train_run(dataset, "boost", tmp_path / "run", settings={"rounds": 2, "draws": 0, "practice": 0})
    assert load_run(tmp_path / "run").metrics.keys() == {"interrupted", "lessons", "made_up_lessons", "seconds"}
    forged(tmp_path / "run", {"evidence/names": names}, {})
    with pytest.raises(RunError, match=r"learnt from other evidence than this version .* train it again") as caught:
        load_run(tmp_path / "run")
    assert "damaged" not in str(caught.value)


def test_a_tree_that_leads_back_to_itself_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    train_run(dataset, "rf", tmp_path / "run", settings={"trees": 2})
    state = safetensors.load((tmp_path / "run" / "model.safetensors").read_bytes())
    circle = np.where(state["trees/left"] == -1, -1, 0).astype(np.int32)
    assert (circle == 0).any()
    forged(tmp_path / "run", {"trees/left": circle}, {})
    with pytest.raises(RunError, match="trees that lead nowhere"):
        load_run(tmp_path / "run")


def test_deeply_nested_facts_and_pipes_are_refused(tmp_path: Path, dataset: Dataset) -> None:
    train_run(dataset, "top", tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    config.write_text("[" * 100_000)
    with pytest.raises(RunError, match="broken"):
        load_run(tmp_path / "run")
    config.unlink()
    os.mkfifo(config)
    with pytest.raises(RunError, match="not a run"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("model", ["boost", "vote", "attnmove"])
def test_a_device_that_cannot_be_is_refused_by_every_model(model: str) -> None:
    with pytest.raises(ConfigError, match="device: expected one of auto, cpu, cuda, mps, found 'nonsense'"):
        make_model(model, device="nonsense")


def test_what_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, folder: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rights themselves are not taken away: who runs the tests may have all of them."""
    train_run(dataset, "vote", tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr("attnmove.models.runs.os.access", lambda path, mode: False)
        with pytest.raises(RunError, match=r"^\S+model\.safetensors: may not be read; ask its owner"):
            load_run(tmp_path / "run")

    def refuse(path: object, *parts: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("attnmove.prep.dataset.pq.read_table", refuse)
    with pytest.raises(RunError, match=r"parquet: may not be read; ask its owner"):
        read_dataset(folder)
    monkeypatch.setattr("attnmove.io.tabular.pq.read_schema", refuse)
    with pytest.raises(DataError, match=r"days\.parquet: may not be read; ask its owner"):
        prepare(folder / "days.parquet", timezone="UTC")


def test_a_seed_that_cannot_be_is_refused() -> None:
    for seed in (-1, 2**32):
        with pytest.raises(ConfigError, match="seed: expected 0 to 4294967295"):
            load_model("lstm", seed=seed)


def test_two_processes_train_one_network_and_write_one_run(tmp_path: Path, folder: Path, dataset: Dataset) -> None:
    """On processors, with gloo; the same launcher starts a process a GPU."""
    pairs = [part for key, value in {**SMALL, "heads": 2, "epochs": 2}.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    command += ["attnmove.cli", "train", str(folder), "-o", str(tmp_path / "run"), "--device", "cpu"]
    command += ["--model", "attnmove", *pairs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Wrote") == 1
    assert np.isfinite(answers(load_run(tmp_path / "run", device="cpu").model, dataset)).all()
