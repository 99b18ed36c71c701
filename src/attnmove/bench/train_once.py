"""One timed training in this process: `python -m attnmove.bench.train_once SHAPE`, a `Shape` as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attnmove.bench.child import peak_mib
from attnmove.bench.train import N_HIDDEN, N_SLOTS, Shape
from attnmove.nets.attnmove import AttnMove
from attnmove.nets.batch import CaseTensors
from attnmove.nouns import MISSING, Bool, Int32
from attnmove.train.loop import Asked, Tell, accelerator_for, train_network

_N_OBSERVED = 30
"""Observed slots of a made-up day."""
_N_HISTORY = 40
"""Filled slots of its history row."""
_WARM_UP_STEPS = 5
_CEILING_SECONDS = 1.0
"""How long products of one size are timed."""
_SIDES = {"cpu": (1024, 2048), "gpu": (4096, 8192)}
"""Matrices of the ceiling."""
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Enough(Exception):  # noqa: N818 - not an error: it is how a training without an end is left
    """The training has gone on for as long as it was asked to."""


@dataclass
class Meter:
    """Told after every step; times those after the warm-up, and ends the training when the time is up.

    The first step of an epoch comes after the drawing of what it hides, so the clock of the steps only starts behind
    it; `whole_seconds` has everything.
    """

    seconds: float
    """Of steps and of what lies between epochs together."""
    steps_per_epoch: int
    wait: Callable[[], None]
    """Returns when the device has done what was asked of it."""
    steps: int = 0
    step_seconds: float = 0.0
    whole_steps: int = 0
    whole_seconds: float = 0.0
    epochs: int = 0
    """Begun after the warm-up."""
    _seen: int = 0
    _began: float = 0.0
    _from: float = 0.0
    _counted: int = 0

    def __call__(self, told: dict[str, float]) -> None:
        self._seen += 1
        if self._seen < _WARM_UP_STEPS:
            return
        if self._seen == _WARM_UP_STEPS:
            self._began = self._restart()
            return
        self.whole_steps += 1
        if self._seen % self.steps_per_epoch == 1:
            self.epochs += 1
            self._restart()
            return
        self._counted += 1
        due = time.perf_counter() - self._began >= self.seconds
        if due or self._seen % self.steps_per_epoch == 0:
            self._settle()
        if due:
            raise Enough

    def _restart(self) -> float:
        self.wait()
        self._from, self._counted = time.perf_counter(), 0
        return self._from

    def _settle(self) -> None:
        self.wait()
        now = time.perf_counter()
        self.steps += self._counted
        self.step_seconds += now - self._from
        self.whole_seconds = now - self._began
        self._from, self._counted = now, 0


def made_up_days(n: int, n_locations: int, device: torch.device, rng: np.random.Generator) -> Asked:
    """User-days of random locations: nothing to learn from, but as much to compute as with real ones."""

    def first(k: int) -> Bool:
        """(n, T) k slots of each day, chosen at random."""
        rank = rng.random((n, N_SLOTS)).argsort(axis=1).argsort(axis=1)
        chosen: Bool = rank < k
        return chosen

    def day(there: Bool) -> Int32:
        return np.where(there, rng.integers(n_locations, size=there.shape, dtype=np.int32), np.int32(MISSING))

    observed = first(_N_OBSERVED)
    loc = day(observed)
    hidden: Bool = observed & (observed.cumsum(axis=1) <= N_HIDDEN)  # how many matters: the loop draws its own
    nothing = torch.zeros(n, dtype=torch.int64, device=device)
    data = CaseTensors(
        loc=torch.from_numpy(loc).to(device),
        history=torch.from_numpy(day(first(_N_HISTORY))).to(device),
        user=nothing,
        pool=torch.empty((0, N_SLOTS), dtype=torch.int32, device=device),
        first=nothing,
        end=nothing,
    )
    return Asked(data, hidden, observed)


def train_until(shape: Shape, days: Asked, tell: Tell) -> None:
    """Train a fresh network in the loop that all networks are trained in, until `tell` has had Enough."""
    accelerator = accelerator_for(shape.device, shape.precision)
    net = AttnMove(shape.network(), n_locations=shape.locations, n_slots=N_SLOTS).to(accelerator.device)
    try:
        train_network(net, days, None, shape.training(), seed=0, accelerator=accelerator, tell=tell)
    except Enough:
        return


def flop_of_step(shape: Shape, days: Asked) -> int:
    """Operations of the matrix products of one step, forward and backward; a multiplication and an addition are two."""

    def once(told: dict[str, float]) -> None:
        raise Enough

    # The counter knows no formula for every fused attention; the plain one is products it can count.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        train_until(shape, days, once)
    return int(counter.get_total_flops())


def ceiling(device: torch.device, dtype: torch.dtype, wait: Callable[[], None]) -> float:
    """Operations a second of the fastest product of two large square matrices: more than any training can reach."""
    best = 0.0
    for side in _SIDES["cpu" if device.type == "cpu" else "gpu"]:
        a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
        torch.mm(a, b)
        wait()
        began = time.perf_counter()
        while time.perf_counter() - began < _CEILING_SECONDS:
            start = time.perf_counter()
            torch.mm(a, b)
            wait()
            best = max(best, 2 * side**3 / (time.perf_counter() - start))
    return best


def measure_once(shape: Shape) -> dict[str, Any]:
    """What one training took: steps timed and their seconds, operations, the ceiling, peak memory."""
    device = accelerator_for(shape.device, shape.precision).device

    def wait() -> None:
        if device.type != "cpu":
            torch.accelerator.synchronize()

    steps = shape.days // shape.batch  # whole batches only: every step is then as large
    days = made_up_days(steps * shape.batch, shape.locations, device, np.random.default_rng(0))
    meter = Meter(shape.seconds, steps, wait)
    train_until(shape, days, meter)
    highest = _highest_mib(device)  # before anything else is computed
    return {
        "steps": meter.steps,
        "seconds": meter.step_seconds,
        "whole_days_per_second": shape.batch * meter.whole_steps / meter.whole_seconds if meter.epochs else None,
        "peak_mib": round(highest, 1),
        "flop_per_step": flop_of_step(shape, days),
        "ceiling_flop_per_second": ceiling(device, _DTYPES[shape.precision], wait),
        "threads": torch.get_num_threads() if device.type == "cpu" else None,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "torch": torch.__version__,
    }


def _highest_mib(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1024**2
    return peak_mib()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure_once(Shape(**json.loads(sys.argv[1])))))
