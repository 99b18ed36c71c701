"""The parts networks are made of: embeddings, attention, the two kinds of block."""

from __future__ import annotations

import math
from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from torch import Tensor, nn

from attnmove.nouns import MISSING


def slot_code(n_slots: int, width: int) -> Tensor:
    """(T, D) Eq. 1: sine on even, cosine on odd dimensions, wave lengths from 2 pi to 10,000 times that."""
    pair = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(n_slots, dtype=torch.float64)[:, None] / 10_000 ** (pair / width)  # (T, D / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(n_slots, -1)[:, :width].float()


class Places(nn.Module):
    """The location embedding, with a row for the missing one, used at both ends of a network."""

    def __init__(self, n_locations: int, width: int) -> None:
        super().__init__()
        self.n_locations = n_locations
        self.table = nn.Parameter(torch.randn(n_locations + 1, width) / math.sqrt(width))  # e_l; the last is null

    def forward(self, loc: Tensor) -> Tensor:
        """(..., D) of locations (...); MISSING becomes the last row here and nowhere else.

        Scaled so that a location is as long as the code of its slot: unscaled, the slot drowns it.
        """
        rows = torch.where(loc == MISSING, self.n_locations, loc)
        return F.embedding(rows, self.table) * math.sqrt(self.table.shape[1])

    def logits(self, x: Tensor) -> Tensor:
        """(M, L) inner products of (M, D) with every location; the missing one cannot be an answer."""
        return x @ self.table[:-1].T


class Dropout(nn.Dropout):
    """Drops a share of the activations while training, in steps of 1/256 on a processor.

    There, torch draws a number of 64 bits for each activation, which takes a third of a training step; a byte will do.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0 or x.device.type != "cpu":
            return super().forward(x)
        cut, n = min(255, max(1, round(self.p * 256))), x.numel()
        numbers = torch.empty((n + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        keep = numbers.view(torch.uint8)[:n].view(x.shape) >= cut
        return x * (keep * (256 / (256 - cut)))


class Network(nn.Module):
    """What the loop and the models ask of a network: `forward(batch)` gives (M, L) logits of the batch's targets, or
    (M, K) where the batch has candidates, with candidates.NEVER beyond the last of a target."""

    places: Places
    past_days: int = 0
    """Earlier days it wants to see in a batch, beside the history row."""


class Attention(nn.Module):
    """Eqs. 4–7 and 9–12: every head weighs the values by <W_Q query, W_K key>; heads are put side by side.

    The inner product is divided by the square root of the head's width. The paper does not write this; it is a factor
    that W_Q can take up, and training starts better with it.
    With `attend=False` the weighted combination gives way to the value of the same slot: the ablations of Table 3.
    """

    def __init__(self, width: int, heads: int, *, attend: bool) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.value = nn.Linear(width, width, bias=False)  # W_V of all heads
        if attend:
            self.query = nn.Linear(width, width, bias=False)  # W_Q
            self.key = nn.Linear(width, width, bias=False)  # W_K

    def forward(self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, T, D); `allowed` (B, T) is True where a key may be attended, None for everywhere."""
        v = self.value(value)
        if not self.attend:
            return v  # type: ignore[no-any-return]
        q, k, v = (self._split(x) for x in (self.query(query), self.key(key), v))  # (B, A, T, D / A)
        mask = None if allowed is None else _somewhere(allowed)[:, None, None, :]
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return out.transpose(1, 2).flatten(2)  # (B, T, D)

    def weights(self, query: Tensor, key: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, A, T, T) how much slot t (third) leans on slot k (last): the alpha of Eq. 4."""
        q, k = self._split(self.query(query)), self._split(self.key(key))
        phi = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if allowed is not None:
            phi = phi.masked_fill(~_somewhere(allowed)[:, None, None, :], -math.inf)
        return phi.softmax(-1)

    def _split(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        return x.view(b, t, self.heads, d // self.heads).transpose(1, 2)


def _somewhere(allowed: Tensor) -> Tensor:
    """A row in which nothing may be attended attends everything: there is nothing but missing slots to see."""
    return allowed | ~allowed.any(-1, keepdim=True)


class Block(Protocol):
    """A step of a processor: slots in, slots out, looking at a context slot by slot."""

    attention: Attention

    def __call__(self, x: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> Tensor: ...


class ReluBlock(nn.Module):
    """The paper's block, Eqs. 8 and 13: ReLU(attention + W x). It has no norms, whether it `crosses` or not."""

    def __init__(self, width: int, heads: int, *, dropout: float, attend: bool, crosses: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, attend=attend)
        self.raw = nn.Linear(width, width, bias=False)  # W, of the residual connection
        self.drop = Dropout(dropout)

    def forward(self, x: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> Tensor:
        return F.relu(self.drop(self.attention(x, key, value, allowed)) + self.raw(x))


class PreNormBlock(nn.Module):
    """What the authors' code used: residual attention and feed-forward, each behind a layer norm.

    `crosses` says that the context is not the slots themselves, so that it needs a norm of its own.
    """

    def __init__(self, width: int, heads: int, *, dropout: float, attend: bool, crosses: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, attend=attend)
        self.join = nn.Linear(width, width, bias=False)  # mixes the heads
        self.norm_x, self.norm_out = nn.LayerNorm(width), nn.LayerNorm(width)
        self.norm_context = nn.LayerNorm(width) if crosses else nn.Identity()
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), Dropout(dropout), nn.Linear(4 * width, width))
        self.drop = Dropout(dropout)

    def forward(self, x: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> Tensor:
        own = self.norm_x(x)
        k = own if key is x else self.norm_context(key)
        v = own if value is x else k if value is key else self.norm_context(value)
        x = x + self.drop(self.join(self.attention(own, k, v, allowed)))
        return x + self.drop(self.feed(self.norm_out(x)))  # type: ignore[no-any-return]


BLOCK_OF: dict[str, type[ReluBlock] | type[PreNormBlock]] = {"relu": ReluBlock, "prenorm": PreNormBlock}
