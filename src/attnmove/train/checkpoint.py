"""What a training run needs to go on after a kill: one file, replaced whole, readable without running code."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from attnmove.errors import RunError

Weights = dict[str, Tensor]


@dataclass
class Progress:
    """How far training came: everything but weights and optimizer."""

    epoch: int = 0
    """Finished epochs."""
    step: int = 0
    best_epoch: int = 0
    best_metric: float = float("-inf")
    log: list[dict[str, float]] = field(default_factory=list)
    """A row an epoch: the content of log.csv."""


def weights_of(net: nn.Module) -> Weights:
    """A copy of the weights on the host."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in net.state_dict().items()}


def save_checkpoint(
    path: Path, *, identity: str, progress: Progress, net: nn.Module, best: Weights, optimizer: torch.optim.Optimizer
) -> None:
    """Write the state at the end of an epoch; the file is the old one or the new one, never half of either."""
    tensors: Weights = {f"net/{name}": tensor for name, tensor in weights_of(net).items()}
    tensors |= {f"best/{name}": tensor for name, tensor in best.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": value.detach().cpu().contiguous() for name, value in state.items()}
    facts = {"identity": identity, "progress": json.dumps(vars(progress))}
    # Named after the process, so that nobody else's half-written file is taken for ours.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(save(tensors, metadata=facts))
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"{path}: the checkpoint cannot be written ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


def load_checkpoint(
    path: Path, *, identity: str, net: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Progress, Weights]:
    """Put net and optimizer back where the file left them; gives the progress and the best weights so far.

    Raises RunError, in one sentence, when the file is cut off, no checkpoint, or of another training.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except FileNotFoundError as error:
        raise RunError(f"{path}: there is no checkpoint to resume; leave out --resume to start anew") from error
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path}: not a checkpoint, or cut off; leave out --resume to start anew") from error
    if "identity" not in facts or "progress" not in facts:
        raise RunError(f"{path}: not a checkpoint of attnmove; leave out --resume to start anew")
    if facts["identity"] != identity:
        raise RunError(f"{path}: of another model, dataset, seed or setting; resume with the same, or start anew")
    try:
        progress = Progress(**json.loads(facts["progress"]))
        net.load_state_dict(_under("net/", tensors))
        optimizer.load_state_dict({**optimizer.state_dict(), "state": _optimizer_state(tensors)})
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise RunError(f"{path}: damaged; leave out --resume to start anew") from error
    return progress, _under("best/", tensors)


def _under(prefix: str, tensors: Weights) -> Weights:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _optimizer_state(tensors: Weights) -> dict[int, dict[str, Any]]:
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in _under("optimizer/", tensors).items():
        number, part = name.split("/")
        state.setdefault(int(number), {})[part] = tensor
    return state
