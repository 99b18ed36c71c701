"""DeepMove: a recurrent state of the day so far, attention over the user's earlier days, and who the user is."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnmove.nets.batch import Batch
from attnmove.nets.config import DeepMoveConfig
from attnmove.nets.layers import Dropout, Network, Places, slot_code
from attnmove.nets.recurrent import Lstm
from attnmove.nouns import MISSING


class DeepMove(Network):
    """From a batch to a logit for every target and location."""

    def __init__(self, config: DeepMoveConfig, *, n_locations: int, n_slots: int, n_users: int) -> None:
        super().__init__()
        self.config, self.past_days = config, config.past_days
        self.places = Places(n_locations, config.width)
        self.register_buffer("code", slot_code(n_slots, config.width), persistent=False)
        self.drop = Dropout(config.dropout)
        self.lstm = Lstm(config.width, config.hidden, batch_first=True)
        self.remember = nn.Linear(config.width, config.hidden)
        self.users = Users(n_users, config.user_width, stranger=config.stranger)
        self.project = nn.Linear(2 * config.hidden + config.user_width, config.width)

    def forward(self, batch: Batch) -> Tensor:
        """(M, L) logits from the day up to each target, the earlier days, and the user."""
        x = self.drop(self.places(batch.visible) + self.code)  # (B, T, D)
        state = self.lstm(x)  # (B, T, hidden)
        past = self.drop(self.places(batch.past) + self.code).flatten(1, 2)  # (B, W * T, D)
        memory = torch.tanh(self.remember(past))  # (B, W * T, hidden)
        seen = (batch.past != MISSING).flatten(1)  # (B, W * T)
        phi = state @ memory.transpose(1, 2) / math.sqrt(state.shape[-1])  # (B, T, W * T)
        alpha = phi.masked_fill(~seen[:, None], -torch.inf).softmax(-1).nan_to_num(0.0)  # no past: nothing recalled
        recalled = alpha @ memory  # (B, T, hidden)
        user = self.users(batch.user)[:, None].expand(-1, x.shape[1], -1)
        joined = torch.cat([state, recalled, user], dim=-1)[batch.row, batch.slot]
        return self.places.logits(self.project(self.drop(joined)))


class Users(nn.Module):
    """The user embedding, with a row for strangers that is trained on users whose name is withheld."""

    def __init__(self, n_users: int, width: int, *, stranger: float) -> None:
        super().__init__()
        self.n_users, self.stranger = n_users, stranger
        self.table = nn.Embedding(n_users + 1, width)

    def forward(self, user: Tensor) -> Tensor:
        """(B, width) of user numbers (B,)."""
        if self.training and self.stranger > 0:
            withheld = torch.rand(user.shape, device=user.device) < self.stranger
            user = user.masked_fill(withheld, self.n_users)
        return self.table(user)  # type: ignore[no-any-return]
