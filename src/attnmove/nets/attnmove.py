"""AttnMove, the network of the paper: four attentions from a sparse day and its history to the missing locations."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnmove.nets.batch import Batch
from attnmove.nets.config import AttnMoveConfig
from attnmove.nets.layers import BLOCK_OF, Dropout, Network, Places, slot_code
from attnmove.nouns import MISSING


class AttnMove(Network):
    """From a batch to a logit for every target and location."""

    def __init__(self, config: AttnMoveConfig, *, n_locations: int, n_slots: int) -> None:
        super().__init__()
        self.config = config
        self.places = Places(n_locations, config.width)
        self.register_buffer("code", slot_code(n_slots, config.width), persistent=False)  # e_t (T, D)
        self.drop = Dropout(config.dropout)

        def block(attend: bool, *, crosses: bool = False) -> nn.Module:
            make = BLOCK_OF[config.blocks]
            return make(config.width, config.heads, dropout=config.dropout, attend=attend, crosses=crosses)

        self.current = nn.ModuleList(block(config.current_attention) for _ in range(config.layers))
        if config.use_history:
            self.historical = nn.ModuleList(block(config.historical_attention) for _ in range(config.layers))
            self.inter = block(config.inter_attention, crosses=True)
        self.generation = block(config.generation_attention, crosses=True)
        # Pre-norm blocks leave their sum unnormalised; the ReLU blocks of the paper have no norm at all.
        self.norm = nn.LayerNorm(config.width) if config.blocks == "prenorm" else nn.Identity()

    def forward(self, batch: Batch) -> Tensor:
        """(M, L) logits. Eq. 14 divides inner products by their sum, which is no probability when one is negative;
        softmax is what the paper's code does, and what the loss of Eq. 15 needs."""
        embedded = self.embed(batch.visible)  # (B, T, D) e^n
        allowed = self._attendable(batch.visible)
        current = self._process(self.current, embedded, allowed)  # (B, T, D) e-bar^n
        fused = current
        if self.config.use_history:
            row = self._withheld(batch.history)
            history = self.embed(row)  # (B, T, D) e^p
            known = self._attendable(row)
            history = self._process(self.historical, history, known)  # (B, T, D) e-bar^p
            fused = self.inter(current, history, history, known)  # (B, T, D) e-check^n, Eqs. 9–13
        # Location generation: queries from the fused day, keys from the raw one. The paper says both that the values
        # are the fused day ("a combination of e-check") and that they follow Eq. 11, which makes them those of the
        # keys. Eq. 11 it is: validation is as good or a little better, and a target can point at a visible place.
        final = self.generation(fused, embedded, embedded, allowed)  # (B, T, D) e-hat^n
        return self.places.logits(self.norm(final[batch.row, batch.slot]))

    def embed(self, loc: Tensor) -> Tensor:
        """(B, T, D) Eq. 2: location plus slot."""
        return self.drop(self.places(loc) + self.code)  # type: ignore[no-any-return]

    def _withheld(self, history: Tensor) -> Tensor:
        share = self.config.history_dropout
        if not self.training or share == 0:
            return history
        return history.masked_fill(torch.rand(history.shape, device=history.device) < share, MISSING)

    def _process(self, layers: nn.ModuleList, x: Tensor, allowed: Tensor | None) -> Tensor:
        for layer in layers:
            x = layer(x, x, x, allowed)  # Eqs. 4–8
        return x

    def _attendable(self, loc: Tensor) -> Tensor | None:
        return None if self.config.attend_missing else loc != MISSING
