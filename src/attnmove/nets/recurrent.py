"""LSTM and BiLSTM: read the day slot by slot, answer from the state at the target slot."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnmove.nets.batch import Batch
from attnmove.nets.config import RecurrentConfig
from attnmove.nets.layers import Dropout, Network, Places, slot_code


class Lstm(nn.LSTM):
    """An LSTM that always computes in full precision: processors have no half-precision one."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """(B, T, hidden of each direction) the state after every slot of (B, T, D)."""
        with torch.autocast(x.device.type, enabled=False):
            state: Tensor = super().forward(x.float())[0]
        return state


class Recurrent(Network):
    """From a batch to a logit for every target and location."""

    def __init__(self, config: RecurrentConfig, *, n_locations: int, n_slots: int) -> None:
        super().__init__()
        self.places = Places(n_locations, config.width)
        self.register_buffer("code", slot_code(n_slots, config.width), persistent=False)
        self.drop = Dropout(config.dropout)
        self.lstm = Lstm(
            config.width,
            config.hidden,
            config.layers,
            batch_first=True,
            dropout=config.dropout if config.layers > 1 else 0.0,
            bidirectional=config.both_ways,
        )
        self.project = nn.Linear(config.hidden * (1 + config.both_ways), config.width)

    def forward(self, batch: Batch) -> Tensor:
        """(M, L) logits; the input at a target slot is the missing location, so its state knows only the others."""
        x = self.drop(self.places(batch.visible) + self.code)  # (B, T, D)
        state = self.lstm(x)  # (B, T, hidden of each direction)
        return self.places.logits(self.project(self.drop(state[batch.row, batch.slot])))
