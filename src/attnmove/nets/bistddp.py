"""Bi-STDDP: the places before and after, how far everything is from them, the user and the time of day."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnmove.nets.batch import Batch
from attnmove.nets.config import BiSTDDPConfig
from attnmove.nets.deepmove import Users
from attnmove.nets.layers import Dropout, Network, Places
from attnmove.nouns import MISSING


class BiSTDDP(Network):
    """From a batch to a logit for every target and location.

    `position` (L, 3) is where each location is, in kilometres from the centre of the Earth; NaN where not known.
    """

    def __init__(
        self, config: BiSTDDPConfig, *, n_locations: int, n_slots: int, n_users: int, position: Tensor
    ) -> None:
        super().__init__()
        self.n_slots = n_slots
        self.position: Tensor
        self.places = Places(n_locations, config.width)
        self.slots = nn.Embedding(n_slots, config.width)
        self.users = Users(n_users, config.width, stranger=config.stranger)
        self.from_user, self.from_before, self.from_after, self.from_slot = (
            nn.Linear(config.width, config.hidden) for _ in range(4)
        )
        self.answer = nn.Linear(config.hidden, n_locations)
        self.drop = Dropout(config.dropout)
        # How much a kilometre (log) from the place before and after counts, by the time since and until it.
        self.pull = nn.Linear(1, 2, bias=False)
        self.strength = nn.Parameter(torch.full((2,), -1.0))
        self.register_buffer("position", position)

    def forward(self, batch: Batch) -> Tensor:
        """(M, L) tanh(user) + tanh(before) + tanh(after) + tanh(time), then what the distances say."""
        before, after = around(batch.visible)  # (B, T)
        slot = batch.slot
        before, after = before[batch.row, slot], after[batch.row, slot]  # (M,)
        place_before = _place(batch, before)
        place_after = _place(batch, after.masked_fill(after == self.n_slots, -1))
        sources = (
            self.from_user(self.users(batch.user)[batch.row]),
            self.from_before(self.places(place_before)),
            self.from_after(self.places(place_after)),
            self.from_slot(self.slots(slot)),
        )
        mixed = torch.stack([source.tanh() for source in sources]).sum(0)  # (M, hidden)
        logits: Tensor = self.answer(self.drop(mixed))
        logits = logits + self._far(place_before, slot - before, 0)
        return logits + self._far(place_after, after - slot, 1)

    def _far(self, place: Tensor, slots: Tensor, side: int) -> Tensor:
        """(M, L) strength x tanh(w x time + 1) x logarithm of the distance; nothing where it is not known."""
        here = self.position[place.clamp(min=0)]  # (M, 3)
        # Not by way of a matrix product: squares of thousands of kilometres leave no digits for a kilometre.
        exact = "donot_use_mm_for_euclid_dist"
        km = torch.cdist(here.nan_to_num(0.0), self.position.nan_to_num(0.0), compute_mode=exact)
        known = (place != MISSING)[:, None] & here.isfinite().all(-1)[:, None] & self.position.isfinite().all(-1)
        weight = torch.tanh(self.pull.weight[side, 0] * slots.clamp(min=1) / self.n_slots + 1.0)  # (M,)
        return self.strength[side] * weight[:, None] * km.log1p().masked_fill(~known, 0.0)


def around(visible: Tensor) -> tuple[Tensor, Tensor]:
    """(B, T) the nearest visible slot before and after each slot; -1 and T where there is none."""
    b, t = visible.shape
    slot = torch.arange(t, device=visible.device)
    seen = visible != MISSING
    upto = torch.where(seen, slot, -1).cummax(1).values
    since = torch.where(seen, slot, t).flip(1).cummin(1).values.flip(1)
    none_before = torch.full((b, 1), -1, device=visible.device, dtype=upto.dtype)
    none_after = torch.full((b, 1), t, device=visible.device, dtype=upto.dtype)
    return torch.cat([none_before, upto[:, :-1]], 1), torch.cat([since[:, 1:], none_after], 1)


def _place(batch: Batch, slot: Tensor) -> Tensor:
    """(M,) the location at a slot of each target's day, MISSING where the slot is -1."""
    place = batch.visible[batch.row, slot.clamp(min=0)]
    return place.masked_fill(slot < 0, MISSING)
