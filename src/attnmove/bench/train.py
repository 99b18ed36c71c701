"""How fast AttnMove trains: user-days a second, beside the matrix products the same device can do; each shape in a
process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from attnmove.bench.child import measured_by
from attnmove.errors import ConfigError
from attnmove.nets.config import AttnMoveConfig
from attnmove.train.config import Training

N_SLOTS = 48
N_HIDDEN = 10
"""Hidden slots a day."""
BATCHES = {"cpu": (64, 256), "gpu": (64, 512, 4096)}
"""Days a step that are tried where none are asked for."""
PRECISIONS = {"cpu": ("fp32",), "gpu": ("fp32", "bf16")}
"""Likewise: a processor without instructions for bf16 is several times slower in it than in fp32."""


@dataclass(frozen=True)
class Shape:
    """What is trained and on what: one row of the benchmark."""

    width: int
    batch: int
    """User-days a step; 1 or more."""
    precision: str
    layers: int
    heads: int
    locations: int
    """1 or more."""
    days: int
    """User-days an epoch; 2 batches or more."""
    device: str
    seconds: float
    """How long steps are timed; above 0."""

    def __post_init__(self) -> None:
        self.network()
        self.training()
        if self.locations < 1:
            raise ConfigError(f"--locations: expected 1 or more, found {self.locations}")
        if self.days < 2 * self.batch:
            raise ConfigError(f"--days: expected two batches or more ({2 * self.batch:,}), found {self.days:,}")
        if not self.seconds > 0:
            raise ConfigError(f"--seconds: expected above 0, found {self.seconds}")

    def network(self) -> AttnMoveConfig:
        """The network's own shape."""
        return AttnMoveConfig(width=self.width, heads=self.heads, layers=self.layers)

    def training(self) -> Training:
        """As a user trains, without an end."""
        return Training(
            epochs=1_000_000, batch_days=self.batch, precision=self.precision, patience=0, warmup=0.0, decay="none"
        )


def parse_numbers(option: str, text: str) -> list[int]:
    """`64,128` as whole numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"{option} takes whole numbers such as 64,128; found {text!r}") from error


def measure(
    *,
    widths: Sequence[int],
    batches: Sequence[int],
    precisions: Sequence[str],
    layers: int,
    heads: int,
    locations: int,
    days: int,
    device: str,
    seconds: float,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """One row a (precision, width, batch): user-days a second, operations a second beside the ceiling, peak memory.

    Without `batches` or `precisions` those that suit the device are tried: `BATCHES`, `PRECISIONS`.
    """
    from attnmove.train.loop import accelerator_for

    say = progress or (lambda stage: None)
    found = accelerator_for(device).device.type
    kind = "cpu" if found == "cpu" else "gpu"
    shapes = [
        Shape(width, batch, precision, layers, heads, locations, days, found, seconds)
        for precision, width, batch in product(precisions or PRECISIONS[kind], widths, batches or BATCHES[kind])
    ]
    rows = []
    for shape in shapes:
        say(f"{found}, {shape.precision}, width {shape.width}, {shape.batch:,} days a step")
        rows.append(_row(shape, _run(shape)))
    return rows


def _row(shape: Shape, result: dict[str, Any]) -> dict[str, Any]:
    per_second = result["flop_per_step"] * result["steps"] / result["seconds"]
    asked = {name: value for name, value in asdict(shape).items() if name != "seconds"}
    return {
        **asked,
        **result,
        "days_per_second": shape.batch * result["steps"] / result["seconds"],
        "flop_per_second": per_second,
        "share_of_ceiling": per_second / result["ceiling_flop_per_second"],
    }


def _run(shape: Shape) -> dict[str, Any]:
    what = (
        f"training did not finish on {shape.device} in {shape.precision} with width {shape.width} and {shape.batch} "
        "days a step"
    )
    return measured_by("train_once", json.dumps(asdict(shape)), what=what)
