"""One loop for all networks: cases in, the weights of the best epoch out."""

from __future__ import annotations

import atexit
import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs
from torch import Tensor

from attnmove.errors import ConfigError, RunError
from attnmove.nets.batch import Batch, CaseTensors, plan_of
from attnmove.nets.layers import Network
from attnmove.nouns import Bool, Int64
from attnmove.prep.hide import redraw
from attnmove.train.checkpoint import Progress, Weights, load_checkpoint, save_checkpoint, weights_of
from attnmove.train.config import Training, check_device

_SCORED_AT_ONCE = 1 << 24
"""Logits, or numbers about candidates, held at a time while validating."""


@dataclass(frozen=True)
class Asked:
    """Cases as tensors, on the device where they fit it, and what is hidden of them."""

    data: CaseTensors
    hidden: Bool
    """(K, T) on the host."""
    observed: Bool
    """(K, T) on the host; what may be hidden instead."""


@dataclass(frozen=True)
class Outcome:
    """How a training ended; the network holds the weights of the best epoch."""

    log: list[dict[str, float]]
    best_epoch: int
    interrupted: bool


Tell = Callable[[dict[str, float]], None]
"""Called after every step with the epochs done (a fraction), the loss of this one, and what validation said last."""


def accelerator_for(device: str, precision: str = "fp32") -> Accelerator:
    """The device, precision and processes to train with: `auto` takes the best device there is."""
    check_device(device)
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device: there is no CUDA device here; say cpu or auto")
    if device == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("device: there is no Apple GPU here; say cpu or auto")
    # Accelerate keeps the first choice of a process for good; another run in the same process may choose anew.
    AcceleratorState._reset_state(reset_partial_state=True)
    made = Accelerator(
        cpu=device == "cpu",
        mixed_precision="no" if precision == "fp32" else precision,
        # An ablated attention leaves the norm of its query unused.
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    if made.num_processes > 1:
        atexit.unregister(_leave)
        atexit.register(_leave)
    return made


def _leave() -> None:
    """Leave the other processes in time: threads that still wait for them would end this one with an abort."""
    if torch.distributed.is_initialized():
        gc.collect()  # a network that was wrapped for several processes holds on to their group
        torch.distributed.destroy_process_group()


def train_network(
    net: Network,
    train: Asked,
    valid: Asked | None,
    how: Training,
    *,
    seed: int,
    accelerator: Accelerator,
    checkpoint: Path | None = None,
    identity: str = "",
    resume: bool = False,
    tell: Tell | None = None,
) -> Outcome:
    """Train until the epochs or the patience are used up; the network ends with the weights of the best epoch.

    What happens in an epoch depends on the seed and the number of the epoch alone, so that a resumed training ends
    where an uninterrupted one does. An interrupt ends it early, after putting the best weights in place.
    """
    if len(train.data) == 0 or not train.hidden.any():
        raise RunError("there is nothing to train on: the dataset's training days have no targets")
    loop = _Loop(net, train, valid, how, seed=seed, accelerator=accelerator, tell=tell)
    keep = checkpoint if accelerator.is_main_process else None
    if resume and checkpoint is not None:
        loop.progress, loop.best = load_checkpoint(
            checkpoint, identity=identity, net=net, optimizer=loop.bare_optimizer
        )
        if accelerator.scaler and loop.progress.scaler:
            accelerator.scaler.load_state_dict(loop.progress.scaler)
    interrupted = False
    try:
        while loop.goes_on():
            loop.epoch()
            if keep is not None:
                loop.progress.scaler = dict(accelerator.scaler.state_dict()) if accelerator.scaler else {}
                save_checkpoint(
                    keep,
                    identity=identity,
                    progress=loop.progress,
                    net=net,
                    best=loop.best,
                    optimizer=loop.bare_optimizer,
                )
    except torch.OutOfMemoryError as error:
        raise RunError("the device has not enough memory; try smaller batch_days or width, or --device cpu") from error
    except KeyboardInterrupt:
        if not loop.best:
            raise
        interrupted = True
    # Takes back what accelerate put around `forward`: the trained network answers as the one that is read from its run.
    accelerator.unwrap_model(loop.model, keep_fp32_wrapper=False)
    net.load_state_dict(loop.best)
    net.eval()
    return Outcome(loop.progress.log, loop.progress.best_epoch, interrupted)


class _Loop:
    """The state of a training between two epochs."""

    def __init__(
        self,
        net: Network,
        train: Asked,
        valid: Asked | None,
        how: Training,
        *,
        seed: int,
        accelerator: Accelerator,
        tell: Tell | None,
    ) -> None:
        self.net, self.train, self.valid, self.how, self.seed = net, train, valid, how, seed
        self.accelerator, self.tell = accelerator, tell
        self.bare_optimizer = _optimizer(net, how)
        self.model, self.optimizer = accelerator.prepare(net, self.bare_optimizer)
        self.progress = Progress()
        self.best: Weights = {}
        self.asking: Int64 = np.flatnonzero(train.hidden.any(axis=1))
        self.steps_per_epoch = math.ceil(len(self.asking) / (how.batch_days * accelerator.num_processes))

    def goes_on(self) -> bool:
        """Whether another epoch is due."""
        done = self.progress
        waited = done.epoch - done.best_epoch
        return done.epoch < self.how.epochs and not (self.valid and 0 < self.how.patience <= waited)

    def epoch(self) -> None:
        """One pass over the training cases, then validation; the best weights are kept."""
        number = self.progress.epoch + 1
        begun = time.perf_counter()
        with _seeded(self.seed, number) as rng:
            loss = self._pass(number, rng)
        row = {"epoch": number, "loss": loss, "lr": self._lr(self.progress.step)}
        metric = float(number)  # without validation the last epoch is the best there is
        if self.valid is not None:
            measured = validate(self.net, self.valid, self.accelerator)
            self._must_be_finite(number, measured["nll"])
            row |= {f"valid_{name}": value for name, value in measured.items()}
            metric = measured[self.how.choose] * (-1 if self.how.choose == "nll" else 1)
        row["seconds"] = round(time.perf_counter() - begun, 3)
        self.progress.log.append(row)
        self.progress.epoch = number
        if metric > self.progress.best_metric:
            self.progress.best_metric, self.progress.best_epoch = metric, number
            self.best = weights_of(self.net)

    def _pass(self, number: int, rng: np.random.Generator) -> float:
        """Mean loss over the targets of the epoch."""
        how, accelerator, data = self.how, self.accelerator, self.train.data
        hidden = self.train.hidden
        if how.masks == "redrawn":
            hidden = redraw(self.train.observed, hidden.sum(axis=1), rng)
        shared = how.batch_days * accelerator.num_processes
        plan = plan_of(data, hidden, self._order(rng, shared))
        total, count = torch.zeros((), device=accelerator.device), 0
        cuts = plan.cuts(shared, of=accelerator.num_processes, part=accelerator.process_index)
        self.model.train()
        for done, (a, b) in enumerate(cuts, start=1):
            batch, truth = plan.cut(data, a, b, past_days=self.net.past_days)
            batch, truth = batch.to(accelerator.device), truth.to(accelerator.device)
            logits = self.model(batch)
            loss = loss_of(logits.float(), truth, batch, smoothing=how.label_smoothing)
            self._step(loss)
            total += loss.detach() * len(truth)
            count += len(truth)
            if self.tell:
                so_far = {"epoch": number - 1 + done / len(cuts), "loss": float(total) / count}
                self.tell({**(self.progress.log[-1] if self.progress.log else {}), **so_far})
        both = torch.stack([total, total.new_tensor(float(count))])
        summed, counted = accelerator.reduce(both, "sum").tolist()
        mean = summed / max(1.0, counted)
        self._must_be_finite(number, mean)
        return float(mean)

    def _must_be_finite(self, epoch: int, loss: float) -> None:
        # Every comparison with NaN is false, so that weights without a value would even rank every truth first.
        if not math.isfinite(loss):
            raise RunError(
                f"the loss is not a finite number in epoch {epoch}; try a lower lr ({self.how.lr} now), clip, or fp32"
            )

    def _order(self, rng: np.random.Generator, shared: int) -> Int64:
        """A random order of the rows that ask something; several processes must all have as much to do."""
        order = rng.permutation(self.asking)
        if self.accelerator.num_processes > 1:
            order = np.resize(order, math.ceil(len(order) / shared) * shared)
        return order

    def _step(self, loss: Tensor) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self._lr(self.progress.step)
        self.optimizer.zero_grad(set_to_none=True)
        self.accelerator.backward(loss)
        if self.how.clip > 0:
            self.accelerator.clip_grad_norm_(self.model.parameters(), self.how.clip)
        self.optimizer.step()
        self.progress.step += 1

    def _lr(self, step: int) -> float:
        """The learning rate of a step: a rise, then the decay."""
        steps = self.how.epochs * self.steps_per_epoch
        rise = max(1, round(self.how.warmup * steps))
        if step < rise:
            return float(self.how.lr * (step + 1) / rise)
        if self.how.decay == "none":
            return self.how.lr
        done = min(1.0, (step - rise) / max(1, steps - rise))
        return float(self.how.lr * (1 + math.cos(math.pi * done)) / 2)


def _optimizer(net: Network, how: Training) -> torch.optim.AdamW:
    matrices = [p for p in net.parameters() if p.ndim >= 2]
    others = [p for p in net.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": how.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=how.lr, betas=(0.9, 0.98), fused=True)


@contextmanager
def _seeded(seed: int, epoch: int) -> Iterator[np.random.Generator]:
    """The generator of an epoch; torch's own, which dropout draws from, is seeded alike and put back afterwards."""
    rng = np.random.default_rng([seed, epoch])
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(rng.integers(2**62)))
        yield rng


@torch.no_grad()
def validate(net: Network, asked: Asked, accelerator: Accelerator) -> dict[str, float]:
    """Recall, MAP and NLL over the hidden slots, summed where the scores are."""
    net.eval()
    sums = torch.zeros(4, device=accelerator.device, dtype=torch.float32)
    order: Int64 = np.arange(len(asked.data))[accelerator.process_index :: accelerator.num_processes]
    plan = plan_of(asked.data, asked.hidden, order)
    candidates = asked.data.candidates
    numbers = net.places.n_locations if candidates is None else candidates.numbers_per_target
    size = max(1, _SCORED_AT_ONCE // max(1, numbers * int(asked.hidden.sum(axis=1).max(initial=1))))
    for a, b in plan.cuts(size):
        batch, truth = plan.cut(asked.data, a, b, past_days=net.past_days)
        truth = truth.to(accelerator.device)
        logits = net(batch.to(accelerator.device)).float()
        rank = rank_of(logits, truth)
        log_prob = logits.log_softmax(-1).gather(1, truth[:, None])
        parts = ((rank == 1).sum(), (1.0 / rank).sum(), -log_prob.sum(), torch.tensor(len(truth)))
        sums += torch.stack([part.to(sums) for part in parts])
    recall, map_, nll, count = accelerator.reduce(sums, "sum").tolist()
    count = count or math.nan
    return {"recall": recall / count, "map": map_ / count, "nll": nll / count}


def loss_of(logits: Tensor, truth: Tensor, batch: Batch, *, smoothing: float) -> Tensor:
    """Mean cross-entropy; a share `smoothing` of the truth goes to all answers there are, to padding none."""
    if batch.candidates is None or smoothing == 0:
        return F.cross_entropy(logits, truth, label_smoothing=smoothing)
    chosen = batch.candidates
    each = logits.log_softmax(-1)[chosen.target, chosen.position]  # (E,)
    share = 1 / torch.bincount(chosen.target, minlength=len(truth))
    alike = -(each * share[chosen.target]).sum() / len(truth)
    return (1 - smoothing) * F.cross_entropy(logits, truth) + smoothing * alike


def rank_of(logits: Tensor, truth: Tensor) -> Tensor:
    """(M,) place of the truth among the logits, 1 the best; of equals the lower location comes first."""
    own = logits.gather(1, truth[:, None])
    lower = torch.arange(logits.shape[1], device=logits.device) < truth[:, None]
    return 1 + (logits > own).sum(1) + ((logits == own) & lower).sum(1)
