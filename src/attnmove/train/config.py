"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass

from attnmove.errors import ConfigError

_CHOICES = {
    "masks": ("redrawn", "stored"),
    "choose": ("map", "recall", "nll"),
    "decay": ("cosine", "none"),
    "precision": ("fp32", "bf16", "fp16"),
}


DEVICES = ("auto", "cpu", "cuda", "mps")


def check_device(device: str) -> None:
    """Raise ConfigError for a name of no device; whether this machine has it is another matter."""
    if device not in DEVICES:
        raise ConfigError(f"device: expected one of {', '.join(DEVICES)}, found {device!r}")


@dataclass(frozen=True)
class Training:
    """Settings of the one loop."""

    epochs: int = 40
    """Passes over the training days; 1 or more."""
    patience: int = 10
    """Stop after so many epochs without a better validation metric; 0: never."""
    choose: str = "map"
    """The validation metric that chooses the epoch: map, recall or nll."""
    batch_days: int = 64
    """User-days a step; 1 or more."""
    lr: float = 1e-3
    """Highest learning rate of AdamW; above 0."""
    warmup: float = 0.05
    """Share of all steps over which the learning rate rises; 0 to below 1."""
    decay: str = "cosine"
    """cosine: falls to nothing at the last epoch; none: stays."""
    weight_decay: float = 0.01
    """Of AdamW, on matrices and embeddings, not on biases and norms; 0 or more."""
    label_smoothing: float = 0.1
    """Share of the truth given to all locations alike; 0 to below 1."""
    clip: float = 1.0
    """Longest gradient; 0: any length."""
    masks: str = "redrawn"
    """redrawn: other slots are hidden every epoch, as many of a day as the dataset hides; stored: the dataset's own."""
    precision: str = "fp32"
    """fp32, or bf16 or fp16 where the device has it."""

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(f"{name}: expected {' or '.join(known)}, found {getattr(self, name)!r}")
        for name in ("epochs", "batch_days"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected 1 or more, found {getattr(self, name)}")
        for name in ("patience", "weight_decay", "clip"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name}: expected 0 or more, found {getattr(self, name)}")
        for name in ("warmup", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected 0 to below 1, found {getattr(self, name)}")
        if not self.lr > 0:
            raise ConfigError(f"lr: expected above 0, found {self.lr}")
