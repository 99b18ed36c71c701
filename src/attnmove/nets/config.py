"""Shapes of the networks: what `--set` can change. No torch here, so that naming a network loads nothing."""

from __future__ import annotations

from dataclasses import dataclass

from attnmove.errors import ConfigError

BLOCKS = ("relu", "prenorm")


@dataclass(frozen=True)
class AttnMoveConfig:
    """Shape of AttnMove; its variants and ablations are other values of the same fields."""

    width: int = 128
    """d: numbers per location and slot; even, and divisible by heads."""
    heads: int = 8
    """H: attention heads."""
    layers: int = 2
    """N: stacked intra-trajectory attentions, of the history and of the day alike; 1 or more."""
    dropout: float = 0.3
    """Share of activations dropped while training; 0 to below 1."""
    blocks: str = "prenorm"
    """relu: ReLU(attention + W x), as the paper writes; prenorm: residual, layer norm, feed-forward, as its code."""
    attend_missing: bool = False
    """Whether missing slots may be attended, as in the paper's code, or only visible ones."""
    history_dropout: float = 0.3
    """Share of the history row's slots left out while training; 0 to below 1."""
    use_history: bool = True
    """False: AttnMove-H, without history processor and inter-trajectory attention."""
    historical_attention: bool = True
    """False: ablation of the historical intra-trajectory attention."""
    current_attention: bool = True
    """False: ablation of the current intra-trajectory attention."""
    inter_attention: bool = True
    """False: ablation of the inter-trajectory attention."""
    generation_attention: bool = True
    """False: ablation of the location generation attention."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2 or self.heads < 1 or self.width % self.heads:
            raise ConfigError(f"attnmove: width {self.width} must be even and divisible by heads {self.heads}")
        if self.layers < 1:
            raise ConfigError(f"attnmove: layers must be 1 or more, found {self.layers}")
        for name in ("dropout", "history_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"attnmove: {name} must be from 0 to below 1, found {getattr(self, name)}")
        if self.blocks not in BLOCKS:
            raise ConfigError(f"attnmove: blocks must be {' or '.join(BLOCKS)}, found {self.blocks!r}")


@dataclass(frozen=True)
class RecurrentConfig:
    """Shape of the recurrent baselines."""

    width: int = 64
    """Numbers per location and slot; even."""
    hidden: int = 128
    """Numbers of the state, in each direction."""
    layers: int = 1
    """Stacked recurrent layers."""
    dropout: float = 0.4
    """Share of activations dropped while training; 0 to below 1."""
    both_ways: bool = False
    """True: BiLSTM, which also reads from the evening back; False: LSTM, which knows the past of the day only."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2 or self.hidden < 1 or self.layers < 1:
            raise ConfigError("lstm: width must be even and above 0, hidden and layers 1 or more")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"lstm: dropout must be from 0 to below 1, found {self.dropout}")


@dataclass(frozen=True)
class DeepMoveConfig:
    """Shape of DeepMove."""

    width: int = 64
    """Numbers per location and slot; even."""
    hidden: int = 128
    """Numbers of the recurrent state."""
    user_width: int = 16
    """Numbers per user."""
    past_days: int = 10
    """Earlier days the attention sees, the most recent ones; 1 or more."""
    dropout: float = 0.4
    """Share of activations dropped while training; 0 to below 1."""
    stranger: float = 0.1
    """Share of training days whose user is not told, so that new users are no surprise; 0 to below 1."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2 or min(self.hidden, self.user_width, self.past_days) < 1:
            raise ConfigError("deepmove: width must be even, hidden, user_width and past_days 1 or more")
        if not (0 <= self.dropout < 1 and 0 <= self.stranger < 1):
            raise ConfigError("deepmove: dropout and stranger must be from 0 to below 1")


@dataclass(frozen=True)
class BiSTDDPConfig:
    """Shape of Bi-STDDP; widths and dropout as in its paper."""

    width: int = 64
    """Numbers per location, slot and user."""
    hidden: int = 256
    """Numbers of the layer in which the four sources meet."""
    dropout: float = 0.5
    """Share of activations dropped while training; 0 to below 1."""
    stranger: float = 0.1
    """Share of training days whose user is not told, so that new users are no surprise; 0 to below 1."""

    def __post_init__(self) -> None:
        if min(self.width, self.hidden) < 1:
            raise ConfigError("bi-stddp: width and hidden must be 1 or more")
        if not (0 <= self.dropout < 1 and 0 <= self.stranger < 1):
            raise ConfigError("bi-stddp: dropout and stranger must be from 0 to below 1")


@dataclass(frozen=True)
class CopyMoveConfig:
    """Shape of CopyMove."""

    width: int = 32
    """Numbers per location and slot; even, and divisible by heads."""
    heads: int = 4
    """Attention heads."""
    layers: int = 1
    """Stacked attentions over the visible day; 1 or more."""
    past_days: int = 16
    """Earlier days the attention sees, the most recent ones; 1 to 64, beyond which the evidence does not look."""
    hidden: int = 128
    """Numbers per candidate in the layers that score it; 1 or more."""
    dropout: float = 0.3
    """Share of activations dropped while training; 0 to below 1."""
    steps: int = 4
    """Pieces from one quantile to the next in which each number of the evidence is given too; 0 or more."""
    places: bool = False
    """Whether locations are told apart by an embedding; False: only by the evidence and by what can be copied, which on
    Geolife is better, as what is learnt about one place says nothing of others."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2 or self.heads < 1 or self.width % self.heads:
            raise ConfigError(f"copymove: width {self.width} must be even and divisible by heads {self.heads}")
        if min(self.layers, self.hidden) < 1 or self.steps < 0 or not 1 <= self.past_days <= 64:
            raise ConfigError("copymove: layers and hidden must be 1 or more, steps 0 or more, past_days 1 to 64")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"copymove: dropout must be from 0 to below 1, found {self.dropout}")
