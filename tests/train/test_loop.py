"""The one loop: what an epoch does, how it ends, that nothing but seed and epoch decide it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from attnmove.errors import ConfigError, RunError
from attnmove.models.neural import Neural
from attnmove.models.registry import make_model
from attnmove.nets.batch import home_of, plan_of, tensors_of
from attnmove.nets.layers import Dropout
from attnmove.nouns import MISSING, Cases
from attnmove.prep.hide import redraw
from attnmove.train.checkpoint import load_checkpoint, save_checkpoint
from attnmove.train.config import Training
from attnmove.train.loop import Asked, accelerator_for, rank_of
from builders import asked

WEEK = asked(
    {
        "u": ["A A a B b . A", "A a A B B . a", "A A a b B . A", "A A A b b . A"],
        "v": ["C . c B b . C", "C c C B B . c", "C C c b B . C", "C C C b b . C"],
    }
)
SMALL = {"width": 8, "epochs": 6, "batch_days": 3, "patience": 0}


def model(name: str = "lstm", **settings: object) -> Neural:
    made = make_model(name, settings={**SMALL, **settings}, seed=1, device="cpu")
    assert isinstance(made, Neural)
    return made


def on_cpu(cases: Cases) -> Asked:
    device = torch.device("cpu")
    data = tensors_of(cases, np.zeros(len(cases), dtype=np.int64), device)
    return Asked(data, cases.hidden, cases.loc != MISSING)


def weights(trained: Neural) -> dict[str, Tensor]:
    return trained.network.state_dict()


def equal(one: Neural, other: Neural) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one).values(), weights(other).values(), strict=True))


def test_redrawn_masks_hide_as_many_observed_slots_as_before_and_others() -> None:
    known = on_cpu(WEEK)
    n = known.hidden.sum(axis=1)
    drawn = [redraw(known.observed, n, np.random.default_rng(seed)) for seed in range(20)]
    for hidden in drawn:
        assert np.array_equal(hidden.sum(axis=1), WEEK.hidden.sum(axis=1))
        assert not (hidden & (WEEK.loc == MISSING)).any()
    assert len({hidden.tobytes() for hidden in drawn}) == 20
    assert (np.mean(drawn, axis=0)[WEEK.loc != MISSING] > 0).all()


def test_a_batch_shows_the_day_without_its_targets_and_asks_for_them_in_order() -> None:
    data = on_cpu(WEEK).data
    plan = plan_of(data, WEEK.hidden, np.array([5, 0, 2, 1, 3, 4, 6, 7]))
    assert plan.cuts(3) == [(0, 3), (3, 6), (6, 8)]
    batch, truth = plan.cut(data, 0, 3, past_days=2)
    assert np.array_equal(batch.visible.numpy(), WEEK.visible[[5, 0, 2]])
    assert np.array_equal(batch.history.numpy(), WEEK.history[[5, 0, 2]])
    index = WEEK.rows(np.array([5, 0, 2])).index
    assert np.array_equal(torch.stack([batch.row, batch.slot]).T.numpy(), index)
    assert truth.tolist() == WEEK.rows(np.array([5, 0, 2])).truth.tolist()


def test_the_past_of_a_batch_is_the_days_just_before_and_never_another_users() -> None:
    data = on_cpu(WEEK).data
    plan = plan_of(data, WEEK.hidden, np.arange(8))
    past = plan.cut(data, 0, 8, past_days=2)[0].past.numpy()
    assert (past[0] == MISSING).all()
    assert (past[4] == MISSING).all()  # the first day of the second user
    assert np.array_equal(past[1], [np.full(7, MISSING), WEEK.loc[0]])
    assert np.array_equal(past[7], WEEK.loc[5:7])


def test_a_batch_moves_whole_and_days_live_where_they_fit() -> None:
    data = on_cpu(WEEK).data
    batch, _ = plan_of(data, WEEK.hidden, np.arange(8)).cut(data, 0, 8, past_days=1)
    moved = batch.to(torch.device("meta"))
    assert {tensor.device.type for tensor in vars(moved).values() if tensor is not None} == {"meta"}
    assert batch.to(torch.device("cpu")).visible is batch.visible
    assert home_of(WEEK, torch.device("cpu")).type == "cpu"


def test_ranks_count_better_ones_and_equals_with_a_lower_number() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 0.0]] * 4)
    assert rank_of(logits, torch.arange(4)).tolist() == [3, 1, 2, 4]


def test_processes_share_a_batch_without_overlap() -> None:
    data = on_cpu(WEEK).data
    plan = plan_of(data, WEEK.hidden, np.arange(8))
    parts = [plan.cuts(4, of=2, part=part) for part in range(2)]
    assert parts == [[(0, 2), (4, 6)], [(2, 4), (6, 8)]]


def test_training_lowers_the_loss_and_keeps_a_row_an_epoch() -> None:
    trained = model(lr=0.02, epochs=20).fit(WEEK, WEEK)
    assert trained.outcome is not None
    log = trained.outcome.log
    assert [row["epoch"] for row in log] == list(range(1, 21))
    assert log[-1]["loss"] < 0.7 * log[0]["loss"]
    assert set(log[0]) == {"epoch", "loss", "lr", "valid_recall", "valid_map", "valid_nll", "seconds"}


def test_the_best_epoch_is_that_of_the_chosen_metric_and_its_weights_are_kept() -> None:
    for choose in ("map", "recall", "nll"):
        trained = model(lr=0.05, epochs=12, choose=choose).fit(WEEK, WEEK)
        assert trained.outcome is not None
        values = [row[f"valid_{choose}"] for row in trained.outcome.log]
        best = min(values) if choose == "nll" else max(values)
        assert trained.outcome.best_epoch == values.index(best) + 1
        log_prob = np.concatenate([part.log_prob for part in trained.scores(WEEK)])
        nll = -log_prob[np.arange(len(log_prob)), WEEK.truth].mean()
        assert nll == pytest.approx(trained.outcome.log[trained.outcome.best_epoch - 1]["valid_nll"], rel=1e-4)


def test_patience_ends_a_training_that_no_longer_gains() -> None:
    trained = model(lr=1e-9, epochs=50, patience=3).fit(WEEK, WEEK)
    assert trained.outcome is not None
    assert len(trained.outcome.log) == trained.outcome.best_epoch + 3 < 50


def test_without_validation_the_last_epoch_is_taken() -> None:
    trained = model(patience=2).fit(WEEK)
    assert trained.outcome is not None
    assert trained.outcome.best_epoch == len(trained.outcome.log) == SMALL["epochs"]
    assert "valid_map" not in trained.outcome.log[0]


def test_the_learning_rate_rises_then_falls_to_nothing() -> None:
    trained = model(lr=0.01, epochs=10, warmup=0.3).fit(WEEK, WEEK)
    assert trained.outcome is not None
    rates = [row["lr"] for row in trained.outcome.log]
    top = int(np.argmax(rates))
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    flat = model(lr=0.01, epochs=5, warmup=0.0, decay="none").fit(WEEK, WEEK)
    assert flat.outcome is not None
    assert {row["lr"] for row in flat.outcome.log} == {0.01}


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    assert equal(model(dropout=0.5).fit(WEEK, WEEK), model(dropout=0.5).fit(WEEK, WEEK))
    other = make_model("lstm", settings=SMALL, seed=2, device="cpu").fit(WEEK, WEEK)
    assert isinstance(other, Neural)
    assert not equal(model().fit(WEEK, WEEK), other)


def test_training_leaves_the_random_numbers_of_its_caller_alone() -> None:
    torch.manual_seed(7)
    before = torch.rand(3)
    torch.manual_seed(7)
    model().fit(WEEK, WEEK)
    assert torch.equal(torch.rand(3), before)


def test_a_loss_that_is_no_number_stops_with_what_to_do() -> None:
    with pytest.raises(RunError, match=r"not a finite number in epoch \d+; try a lower lr"):
        model("attnmove", lr=1e30, clip=0.0, heads=2, epochs=10, blocks="relu", warmup=0.0).fit(WEEK, WEEK)


def test_weights_without_a_value_are_never_the_best(tmp_path: Path) -> None:
    """The last step of an epoch may ruin them after the loss was seen."""
    with pytest.raises(RunError, match="not a finite number in epoch 1"):
        model("bi-stddp", lr=1e38, clip=0.0, batch_days=1000, epochs=1, warmup=0.0).fit(WEEK, WEEK)


def test_slots_that_nobody_saw_are_not_learnt_from() -> None:
    strange = replace(WEEK, hidden=WEEK.hidden | (WEEK.loc == MISSING))
    for masks in ("redrawn", "stored"):
        trained = model(masks=masks).fit(strange, strange)
        assert equal(trained, model(masks=masks).fit(WEEK, WEEK))


def test_almost_everything_may_be_dropped() -> None:
    for dropout in (0.001, 0.999):
        assert all(torch.isfinite(w).all() for w in weights(model(dropout=dropout).fit(WEEK, WEEK)).values())


def test_dropout_keeps_the_mean_and_drops_its_share() -> None:
    torch.manual_seed(0)
    drop = Dropout(0.3)
    x = torch.ones(501, 401)
    out = drop(x)
    assert out.mean().item() == pytest.approx(1, abs=0.01)
    assert (out == 0).float().mean().item() == pytest.approx(0.3, abs=0.005)
    assert torch.equal(drop.eval()(x), x)


def test_half_precision_answers_as_the_run_it_leaves(tmp_path: Path) -> None:
    trained = model("attnmove", precision="bf16", heads=2).fit(WEEK, WEEK)
    read = model("attnmove", precision="bf16", heads=2).restore(trained.state())
    one, other = (np.concatenate([part.log_prob for part in m.scores(WEEK)]) for m in (trained, read))
    assert np.array_equal(one, other)


def test_days_without_targets_cannot_be_trained_on() -> None:
    with pytest.raises(RunError, match="nothing to train on"):
        model().fit(asked({"u": ["A A B"]}))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epochs": 0}, "epochs: expected 1 or more"),
        ({"lr": 0.0}, "lr: expected above 0"),
        ({"lr": math.nan}, "lr: expected above 0"),
        ({"choose": "loss"}, "map or recall or nll, found 'loss'"),
        ({"masks": "random"}, "redrawn or stored"),
        ({"precision": "fp8"}, "fp32 or bf16 or fp16"),
        ({"label_smoothing": 1.0}, "label_smoothing: expected 0 to below 1"),
        ({"patience": -1}, "patience: expected 0 or more"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Training(**wrong)  # type: ignore[arg-type]


def test_an_unknown_or_absent_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected one of auto, cpu, cuda, mps, found 'gpu'"):
        accelerator_for("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device here"):
            accelerator_for("cuda")


@pytest.mark.parametrize("name", ["lstm", "deepmove", "bi-stddp", "attnmove"])
def test_half_precision_trains_too(name: str) -> None:
    trained = model(name, precision="bf16").fit(WEEK, WEEK)
    assert all(torch.isfinite(tensor).all() for tensor in weights(trained).values())


# --- stopping and going on ------------------------------------------------------------------------------------------


def stop_in(epoch: float) -> object:
    def tell(now: dict[str, float]) -> None:
        if now["epoch"] > epoch:
            raise KeyboardInterrupt

    return tell


@pytest.mark.parametrize("name", ["attnmove", "deepmove"])
@pytest.mark.parametrize("when", [1.1, 2.9, 4.0])
def test_a_resumed_training_ends_with_the_weights_of_an_uninterrupted_one(
    tmp_path: Path, name: str, when: float
) -> None:
    heads = {"heads": 2} if name == "attnmove" else {}
    whole = model(name, **heads).fit(WEEK, WEEK)
    file = tmp_path / "checkpoint"
    stopped = model(name, **heads).fit(WEEK, WEEK, checkpoint=file, tell=stop_in(when))  # type: ignore[arg-type]
    assert stopped.outcome is not None
    assert stopped.outcome.interrupted
    resumed = model(name, **heads).fit(WEEK, WEEK, checkpoint=file, resume=True)
    assert resumed.outcome is not None
    assert whole.outcome is not None
    assert equal(whole, resumed)
    assert not resumed.outcome.interrupted

    def told(log: list[dict[str, float]]) -> list[dict[str, float]]:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in log]

    assert told(resumed.outcome.log) == told(whole.outcome.log)


def test_an_interrupt_before_the_first_epoch_ended_is_an_interrupt(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        model().fit(WEEK, WEEK, checkpoint=tmp_path / "checkpoint", tell=stop_in(0.0))  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def kept(tmp_path: Path, **settings: object) -> Path:
    file = tmp_path / "checkpoint"
    model(**settings).fit(WEEK, WEEK, checkpoint=file)
    return file


def test_a_checkpoint_that_is_cut_off_anywhere_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = kept(tmp_path)
    content = file.read_bytes()
    for size in (0, 4, 100, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(RunError, match="not a checkpoint, or cut off; remove it and leave out --resume"):
            model().fit(WEEK, WEEK, checkpoint=file, resume=True)


def test_a_checkpoint_of_another_training_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = kept(tmp_path)
    fewer = WEEK.rows(np.arange(6))
    for strange, cases in (
        (model(lr=0.5), WEEK),
        (model("bilstm"), WEEK),
        (model(width=16), WEEK),
        (make_model("lstm", settings=SMALL, seed=9, device="cpu"), WEEK),
        (model(), fewer),
    ):
        assert isinstance(strange, Neural)
        with pytest.raises(RunError, match="of another model, dataset, seed or setting"):
            strange.fit(cases, WEEK, checkpoint=file, resume=True)


def test_a_foreign_file_of_tensors_is_no_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_bytes(save({"x": torch.zeros(3)}))
    with pytest.raises(RunError, match="not a checkpoint of attnmove"):
        model().fit(WEEK, WEEK, checkpoint=file, resume=True)
    with pytest.raises(RunError, match="there is no checkpoint to resume"):
        model().fit(WEEK, WEEK, checkpoint=tmp_path / "nothing", resume=True)


def test_a_checkpoint_whose_tensors_do_not_fit_is_damaged(tmp_path: Path) -> None:
    from attnmove.train.checkpoint import Progress

    net = torch.nn.Linear(2, 3)
    optimizer = torch.optim.AdamW(net.parameters())
    file = tmp_path / "checkpoint"
    save_checkpoint(file, identity="me", progress=Progress(), net=net, best={}, optimizer=optimizer)
    with pytest.raises(RunError, match="damaged"):
        load_checkpoint(file, identity="me", net=torch.nn.Linear(2, 4), optimizer=optimizer)


def test_a_checkpoint_with_a_forged_state_of_the_optimizer_is_damaged(tmp_path: Path) -> None:
    """The fused step would read past the end of a shorter array."""
    file = kept(tmp_path)
    with safe_open(file, framework="pt") as opened:
        facts = opened.metadata()
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dict
    forgeries = [
        {"optimizer/0/exp_avg": torch.zeros(1)},
        {"optimizer/999/exp_avg": torch.zeros(1)},
        {"best/places.table": torch.zeros(2, 2)},
        {"net/stowaway": torch.zeros(2)},
    ]
    for forgery in forgeries:
        file.write_bytes(save({**tensors, **forgery}, metadata=facts))
        with pytest.raises(RunError, match="damaged"):
            model().fit(WEEK, WEEK, checkpoint=file, resume=True)
    for progress in ('{"epoch": "x"}', '{"epoch": 3}', "[" * 100_000, '{"step": 1, "other": 2}'):
        file.write_bytes(save(tensors, metadata={**facts, "progress": progress}))
        with pytest.raises(RunError, match="damaged"):
            model().fit(WEEK, WEEK, checkpoint=file, resume=True)


def test_two_trainings_do_not_share_a_folder(tmp_path: Path) -> None:
    file = kept(tmp_path)
    with pytest.raises(RunError, match="another training writes to this folder"):
        model(lr=0.5).fit(WEEK, WEEK, checkpoint=file)
