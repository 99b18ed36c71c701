"""Candidates as tensors: what the targets may be answered with, and the numbers that speak for each."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

NEVER = -1e9
"""The logit of a candidate that is not there."""


@dataclass(frozen=True)
class Candidates:
    """The E candidates of a batch's M targets, one target's after the other's."""

    target: Tensor
    """(E,) which target of the batch, ascending."""
    position: Tensor
    """(E,) which candidate of its target, from 0."""
    place: Tensor
    """(E,) its location, ascending within a target."""
    values: Tensor
    """(E, F) the numbers about it, standardised."""
    known: Tensor
    """(E, 2) whether the numbers tell of a sighting on the day, and on earlier days."""
    entry: Tensor
    """(E,) which of the stored candidates."""

    def to(self, device: torch.device) -> Candidates:
        """The candidates on the device."""
        return Candidates(**{part.name: getattr(self, part.name).to(device) for part in fields(self)})

    def padded(self, score: Tensor, n_targets: int) -> Tensor:
        """(M, K) the scores (E,) of each target side by side, NEVER where it has fewer candidates."""
        most = int(self.position.max()) + 1 if len(self.position) else 1
        out = score.new_full((n_targets, most), NEVER)
        return out.index_put((self.target, self.position), score)


@dataclass(frozen=True)
class CandidateTensors:
    """The candidates of stored targets, flat; those of a batch are cut from it without leaving the device."""

    number: Tensor
    """(K, T) the number of the target at a slot of a case, MISSING where none is stored."""
    truth: Tensor
    """(K, T) which of the target's candidates is true, MISSING where none is."""
    start: Tensor
    """(targets + 1,) the candidates of target n are start[n] … start[n + 1] - 1."""
    place: Tensor
    values: Tensor
    """(E, F) standardised; half precision holds twice as many."""
    known: Tensor

    @property
    def numbers_per_target(self) -> int:
        """Numbers about the candidates of one target, at most."""
        most = int(torch.diff(self.start).max()) if len(self.start) > 1 else 0
        return most * int(self.values.shape[1])

    def of(self, row: Tensor, slot: Tensor) -> Candidates:
        """Those of the targets (M,) at `slot` of case `row`."""
        number = self.number[row, slot].long()
        first, size = self.start[number], self.start[number + 1] - self.start[number]
        target = torch.repeat_interleave(size)  # (E,)
        position = torch.arange(len(target), device=size.device) - (size.cumsum(0) - size)[target]
        entry = first[target] + position
        return Candidates(
            target=target,
            position=position,
            place=self.place[entry],
            values=self.values[entry],
            known=self.known[entry],
            entry=entry,
        )
