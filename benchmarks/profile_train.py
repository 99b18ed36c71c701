"""Where a training step spends its time: `python profile_train.py WIDTH BATCH LOCATIONS [DEVICE] [PRECISION]`.

Prints the operations that take longest, over five steps of the loop after the warm-up.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from attnmove.bench.train import Shape
from attnmove.bench.train_once import Enough, made_up_days, train_until
from attnmove.train.loop import accelerator_for

WARM_UP = 3
STEPS = 5
SHOWN = 20


def main(width: str, batch: str, locations: str, device: str = "auto", precision: str = "fp32") -> None:
    """Train for a few steps under torch's profiler and print its table."""
    shape = Shape(
        width=int(width), batch=int(batch), precision=precision, layers=4, heads=8, locations=int(locations),
        days=int(batch) * (WARM_UP + STEPS + 1), device=device, seconds=1.0,
    )  # fmt: skip
    where = accelerator_for(device, precision).device
    days = made_up_days(shape.days, shape.locations, where, np.random.default_rng(0))
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (where.type == "cuda")
    n_steps = 0

    def tell(told: dict[str, float]) -> None:
        nonlocal n_steps
        n_steps += 1
        profiler.step()
        if n_steps == WARM_UP + STEPS:
            raise Enough

    plan = schedule(wait=0, warmup=WARM_UP, active=STEPS, repeat=1)
    with profile(activities=activities, schedule=plan, acc_events=True) as profiler:
        train_until(shape, days, tell)
    key = "self_cuda_time_total" if where.type == "cuda" else "self_cpu_time_total"
    table = profiler.key_averages().table(sort_by=key, row_limit=SHOWN, max_name_column_width=48)
    sys.stdout.write(f"{shape}\ntorch {torch.__version__}, {STEPS} steps\n{table}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
