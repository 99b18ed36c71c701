"""CopyMove: attention over the visible day and the user's past points at places; the evidence says what that is worth.

A candidate is scored by itself, from the numbers about it and from how much attention its sightings get, so that its
score does not depend on which others there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from torch import Tensor, nn

from attnmove.nets.batch import Batch
from attnmove.nets.candidates import Candidates
from attnmove.nets.config import CopyMoveConfig
from attnmove.nets.layers import Dropout, Network, Places, PreNormBlock, slot_code
from attnmove.nouns import MISSING, SATURDAY, weekday

LEAST_WEIGHT = 1e-4
"""Attention below which it does not matter how little it is."""
N_AGES = 10
"""Ages of an earlier day, by powers of two: today, yesterday, 2–3 days ago, … a year and more."""
N_KINDS = 3
"""Same weekday; both on a weekend or neither; other."""
_SAMPLE = 100_000
"""Candidates whose numbers give the quantiles, or up to twice as many."""
_RANGE = 6.0
"""Deviations from the mean beyond which a number is as good as there."""


class CopyMove(Network):
    """From a batch with candidates to a logit for each of them."""

    code: Tensor
    mean: Tensor
    """(F,) of the numbers about candidates, after `_flattened`."""
    deviation: Tensor
    edges: Tensor
    """(F, steps + 1) rising quantiles of the standardised numbers."""

    def __init__(self, config: CopyMoveConfig, *, n_locations: int, n_slots: int, n_features: int) -> None:
        super().__init__()
        self.config, self.past_days, self.n_slots = config, config.past_days, n_slots
        width, hidden = config.width, config.hidden
        self.places = Places(n_locations if config.places else 1, width)
        self.register_buffer("code", slot_code(n_slots, width), persistent=False)
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("deviation", torch.ones(n_features))
        self.register_buffer("edges", torch.arange(config.steps + 1.0).repeat(n_features, 1))
        self.ages = nn.Embedding(N_AGES * N_KINDS, width)
        self.drop = Dropout(config.dropout)

        def block(*, crosses: bool) -> PreNormBlock:
            return PreNormBlock(width, config.heads, dropout=config.dropout, attend=True, crosses=crosses)

        self.day = nn.ModuleList(block(crosses=False) for _ in range(config.layers))
        self.recall = block(crosses=True)
        self.norm, self.norm_day, self.norm_past = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.copy_day = Pointer(width, n_slots, n_ages=1)
        self.copy_past = Pointer(width, n_slots, n_ages=N_AGES * N_KINDS)
        self.about = nn.Linear(n_features * (1 + config.steps) + 2, hidden)
        # The evidence speaks first: from nothing, state and place only grow as far as they help.
        self.asked = nn.Linear(width, hidden, bias=False)
        nn.init.zeros_(self.asked.weight)
        if config.places:
            self.where = nn.Linear(width, hidden, bias=False)
            nn.init.zeros_(self.where.weight)
        self.norm_hidden = nn.LayerNorm(hidden)
        self.second, self.last = nn.Linear(hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, batch: Batch) -> Tensor:
        """(M, K) logits, NEVER where a target has fewer candidates."""
        if batch.candidates is None:
            raise ValueError("CopyMove scores candidates, and the batch has none")
        chosen = batch.candidates
        there = (batch.past != MISSING).flatten(1)  # (B, W * T)
        age = self.age_of(batch)  # (B, W)
        today = self.drop(self._embed(batch.visible) + self.code)  # (B, T, D)
        memory = self._embed(batch.past) + self.code + self.ages(age)[:, :, None]  # (B, W, T, D)
        memory = self.drop(memory).flatten(1, 2)  # (B, W * T, D)
        x = today
        for layer in self.day:
            x = layer(x, x, x, batch.visible != MISSING)  # (B, T, D)
        x = self.norm(self.recall(x, memory, memory, there))  # (B, T, D)
        now = self.copy_day(x, self.norm_day(today), batch.visible != MISSING, None, batch)  # (M, T)
        then = self.copy_past(x, self.norm_past(memory), there, age, batch)  # (M, W * T)
        copies = [
            summed_by_place(now, batch.visible[batch.row], chosen),
            summed_by_place(then, batch.past.flatten(1)[batch.row], chosen),
        ]
        copied = torch.stack(copies, dim=-1).masked_fill(~chosen.known, 0)  # (E, 2)
        return chosen.padded(self._score(chosen, copied, x[batch.row, batch.slot]), len(batch.row))

    def standardised(self, values: Tensor) -> Tensor:
        """(E, F) the numbers about candidates as the network takes them, in half precision; 0 where not known."""
        x = (_flattened(values) - self.mean) / self.deviation
        return x.clamp(-_RANGE, _RANGE).nan_to_num(0.0).half()

    def standardise_by(self, parts: Sequence[Tensor]) -> None:
        """Take mean, deviation and quantiles of what is known of numbers (E, F), given in parts."""
        count, total, squares = (torch.zeros(len(self.mean), dtype=torch.float64) for _ in range(3))
        for part in parts:
            x = _flattened(part).double()
            count += (~x.isnan()).sum(0)
            total += x.nansum(0)
            squares += (x * x).nansum(0)
        mean = total / count.clamp(min=1)
        deviation = (squares / count.clamp(min=1) - mean * mean).clamp(min=0).sqrt()
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))
        every = max(1, sum(len(part) for part in parts) // _SAMPLE)
        sample = torch.cat([self.standardised(part[::every]) for part in parts]).float()
        self.edges.copy_(torch.stack([_edges(x, self.config.steps) for x in sample.T]))

    def age_of(self, batch: Batch) -> Tensor:
        """(B, W) age and kind of each earlier day as a row of `ages`."""
        if batch.date is None or batch.past_date is None:
            return torch.zeros(batch.past.shape[:2], dtype=torch.int64, device=batch.past.device)
        bucket = (batch.date[:, None] - batch.past_date + 0.5).clamp(min=0.5).log2().floor().long() + 1
        now_is, then_is = weekday(batch.date)[:, None], weekday(batch.past_date)
        same_kind = (now_is >= SATURDAY) == (then_is >= SATURDAY)
        kind = torch.where(now_is == then_is, 0, torch.where(same_kind, 1, 2))
        return bucket.clamp(max=N_AGES - 1) * N_KINDS + kind

    def _embed(self, loc: Tensor) -> Tensor:
        """(..., D) of locations; all the same where they are not told apart."""
        return self.places(loc if self.config.places else loc.clamp(max=0))  # type: ignore[no-any-return]

    def _score(self, chosen: Candidates, copied: Tensor, state: Tensor) -> Tensor:
        """(E,) from the numbers about a candidate, what is copied, the state of its target (M, D), and where it is."""
        weight = ((copied + LEAST_WEIGHT) / LEAST_WEIGHT).log() / 3  # about as long as a standardised number
        values = chosen.values.float()
        h = self.about(torch.cat([values, self._in_steps(values), weight], dim=-1))  # (E, hidden)
        h = h + self.asked(self.drop(state))[chosen.target]
        if self.config.places:
            h = h + self.where(self._sometimes(self._embed(chosen.place)))
        h = self.drop(F.gelu(self.norm_hidden(h)))
        h = self.drop(F.gelu(self.second(h)))
        return self.last(h)[:, 0]  # type: ignore[no-any-return]

    def _in_steps(self, values: Tensor) -> Tensor:
        """(E, F * steps) how far each number is from one edge to the next, from 0 to 2: thresholds come easier so."""
        low, high = self.edges[:, :-1], self.edges[:, 1:]
        return 2 * ((values[:, :, None] - low) / (high - low)).clamp(0, 1).flatten(1)

    def _sometimes(self, place: Tensor) -> Tensor:
        """The embedding of candidates (E, D), left out of half of them while training: new locations have none."""
        if not self.training:
            return place
        return place * (torch.rand(len(place), 1, device=place.device) < 0.5)


class Pointer(nn.Module):
    """Attention whose weights are the result: of a target, over sightings."""

    def __init__(self, width: int, n_slots: int, *, n_ages: int) -> None:
        super().__init__()
        self.n_slots = n_slots
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.apart = nn.Parameter(-0.1 * torch.arange(1 - n_slots, n_slots).abs())  # by slot difference
        self.age = nn.Parameter(torch.zeros(n_ages))

    def forward(self, x: Tensor, sightings: Tensor, there: Tensor, age: Tensor | None, batch: Batch) -> Tensor:
        """(M, S) weights of the targets of days x (B, T, D) over sightings (B, S, D) of whole days; they sum to one
        where one is `there` (B, S), else to nothing. `age` (B, S / T) numbers the days of sightings that age."""
        phi = self.query(x) @ self.key(sightings).transpose(1, 2) / math.sqrt(x.shape[-1])  # (B, T, S)
        phi = phi[batch.row, batch.slot]  # (M, S)
        difference = torch.arange(self.n_slots, device=phi.device) - batch.slot[:, None] + self.n_slots - 1  # (M, T)
        bias = self.apart[difference]
        if age is not None:
            bias = (bias[:, None, :] + self.age[age][batch.row][:, :, None]).flatten(1)  # (M, W * T)
        mine = there[batch.row]
        weight: Tensor = (phi + bias).float().masked_fill(~mine, -torch.inf).softmax(-1).nan_to_num(0.0) * mine
        return weight


def summed_by_place(weight: Tensor, place: Tensor, chosen: Candidates) -> Tensor:
    """(E,) the weights (M, S) of sightings at `place` (M, S), summed onto the candidate that is this place."""
    out = weight.new_zeros(len(chosen.place))
    if len(out) == 0:
        return out
    target, sighting = (place != MISSING).nonzero(as_tuple=True)
    seen = place[target, sighting].long()
    n = int(max(seen.max(), chosen.place.max())) + 1 if len(seen) else 1
    key = chosen.target * n + chosen.place  # ascends: by target, then place
    wanted = target * n + seen
    at = torch.searchsorted(key, wanted).clamp(max=len(key) - 1)
    found = key[at] == wanted
    return out.index_add(0, at[found], weight[target, sighting][found])


def _edges(x: Tensor, steps: int) -> Tensor:
    """(steps + 1,) rising quantiles of the numbers, the most common one left out where there are others."""
    others = x[x != x.mode().values] if len(x) else x
    known = others if len(others) else x.new_zeros(1)
    edges = known.quantile(torch.linspace(0.02, 0.98, steps + 1)).cummax(0).values
    return edges + 1e-3 * torch.arange(steps + 1)  # equal ones are set apart


def _flattened(values: Tensor) -> Tensor:
    """sign(x) log(1 + |x|): long tails become short."""
    return values.sign() * values.abs().log1p()
