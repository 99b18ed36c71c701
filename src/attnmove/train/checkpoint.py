"""What a training run needs to go on after a kill: one file, replaced whole, readable without running code."""

from __future__ import annotations

import json
import math
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
    scaler: dict[str, float] = field(default_factory=dict)
    """The state of the loss scaler, where precision is fp16."""

    def check(self) -> None:
        """Raise ValueError unless the numbers can be those of a training that finished an epoch."""
        whole = all(type(n) is int for n in (self.epoch, self.step, self.best_epoch))
        rows = isinstance(self.log, list) and all(isinstance(row, dict) for row in self.log)
        if not whole or not rows or not 1 <= self.best_epoch <= self.epoch == len(self.log):
            raise ValueError("the progress of no training")
        if not isinstance(self.best_metric, float) or not math.isfinite(self.best_metric):
            raise ValueError("a metric that is no number")


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
    if path.exists() and _identity_of(path) not in (identity, None):
        raise RunError(f"{path}: another training writes to this folder; each needs one of its own")
    # Named after the process, so that nobody else's half-written file is taken for ours.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(save(tensors, metadata=facts))
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"{path}: the checkpoint cannot be written ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


def _identity_of(path: Path) -> str | None:
    """Of the training that wrote the file; None where it is not readable."""
    try:
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("identity")
    except (SafetensorError, OSError):
        return None


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
        raise RunError(
            f"{path}: not a checkpoint, or cut off; remove it and leave out --resume to start anew"
        ) from error
    if "identity" not in facts or "progress" not in facts:
        raise RunError(f"{path}: not a checkpoint of attnmove; remove it and leave out --resume to start anew")
    if facts["identity"] != identity:
        raise RunError(f"{path}: of another model, dataset, seed or setting; resume with the same, or remove it")
    try:
        progress = Progress(**json.loads(facts["progress"]))
        progress.check()
        best, state = _under("best/", tensors), _optimizer_state(tensors)
        _check_shapes(net, _under("net/", tensors), best)
        _check_optimizer(optimizer, state)
        net.load_state_dict(_under("net/", tensors))
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    except (KeyError, RuntimeError, TypeError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: damaged; remove it and leave out --resume to start anew") from error
    return progress, best


def _check_shapes(net: nn.Module, *every: Weights) -> None:
    wanted = {name: (tensor.shape, tensor.dtype) for name, tensor in net.state_dict().items()}
    for weights in every:
        if {name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()} != wanted:
            raise ValueError("the weights of another network")


def _check_optimizer(optimizer: torch.optim.Optimizer, state: dict[int, dict[str, Any]]) -> None:
    """The fused step trusts the shapes it is given, so they are checked here."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    for number, part in state.items():
        shape = params[number].shape if 0 <= number < len(params) else None
        shapes = {name: tuple(tensor.shape) for name, tensor in part.items()}
        if shape is None or shapes != {"step": (), "exp_avg": tuple(shape), "exp_avg_sq": tuple(shape)}:
            raise ValueError("the state of another optimizer")
        if any(tensor.dtype != torch.float32 for tensor in part.values()):
            raise ValueError("the state of an optimizer in another precision")


def _under(prefix: str, tensors: Weights) -> Weights:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _optimizer_state(tensors: Weights) -> dict[int, dict[str, Any]]:
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in _under("optimizer/", tensors).items():
        number, part = name.split("/")
        state.setdefault(int(number), {})[part] = tensor
    return state
