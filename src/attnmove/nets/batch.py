"""The one border between numpy and torch: cases become tensors here, all of them at once.

Shapes, everywhere in this package: B user-days in the batch, T slots, M targets, L locations, D width, A heads,
W earlier days, U users; where there are candidates, E of all targets together, K of one at most, F numbers about each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmove.nets.candidates import Candidates, CandidateTensors
from attnmove.nouns import MISSING, Bool, Cases, Dates, Int64


@dataclass(frozen=True)
class Batch:
    """B user-days and the M targets asked of them."""

    visible: Tensor
    """(B, T) locations, MISSING where not seen or hidden."""
    history: Tensor
    """(B, T) the history row; slot t of it belongs to slot t of the day."""
    user: Tensor
    """(B,) number of the user among the trained ones; U for a stranger."""
    past: Tensor
    """(B, W, T) the last W earlier days, the most recent last; MISSING where there is none. W may be 0."""
    row: Tensor
    """(M,) which day of the batch each target is in."""
    slot: Tensor
    """(M,) its slot."""
    date: Tensor | None = None
    """(B,) days since 1970; None where nobody said."""
    past_date: Tensor | None = None
    """(B, W) likewise of the earlier days; the day's own where there is none."""
    candidates: Candidates | None = None
    """What the targets may be answered with; None where it is all locations."""

    def to(self, device: torch.device) -> Batch:
        """The batch on the device; its tensors themselves where they are there already."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        moved: dict[str, Any] = {name: None if part is None else part.to(device) for name, part in parts.items()}
        return Batch(**moved)


@dataclass(frozen=True)
class CaseTensors:
    """Cases on a device; batches are cut from it without leaving the device."""

    loc: Tensor
    """(K, T) whole days."""
    history: Tensor
    user: Tensor
    pool: Tensor
    """(N, T) the days that may be looked back upon."""
    first: Tensor
    end: Tensor
    date: Tensor | None = None
    """(K,) days since 1970."""
    pool_date: Tensor | None = None
    """(N,) likewise."""
    candidates: CandidateTensors | None = None
    """Of the targets that may be asked, where not every location is one."""

    def __len__(self) -> int:
        return len(self.loc)

    def batch(self, rows: Tensor, row: Tensor, slot: Tensor, hidden: Tensor, *, past_days: int) -> Batch:
        """The cases at `rows` (B,) with the slots of `hidden` (B, T) hidden and the targets (row, slot) asked."""
        loc = self.loc[rows]
        at = self.end[rows][:, None] + torch.arange(-past_days, 0, device=rows.device)  # (B, W)
        there = at >= self.first[rows][:, None]
        date = None if self.date is None else self.date[rows]
        return Batch(
            visible=loc.masked_fill(hidden, MISSING),
            history=self.history[rows],
            user=self.user[rows],
            past=self._past(at, there),
            row=row,
            slot=slot,
            date=date,
            past_date=None if date is None else self._past_date(at, there, date),
        )

    def _past(self, at: Tensor, there: Tensor) -> Tensor:
        if len(self.pool) == 0:
            return self.pool.new_full((*at.shape, self.loc.shape[1]), MISSING)
        return self.pool[at.clamp(min=0)].masked_fill(~there[..., None], MISSING)

    def _past_date(self, at: Tensor, there: Tensor, date: Tensor) -> Tensor | None:
        if self.pool_date is None:
            return None
        own = date[:, None].expand(at.shape)
        return own if len(self.pool_date) == 0 else torch.where(there, self.pool_date[at.clamp(min=0)], own)


def home_of(cases: Cases, device: torch.device) -> torch.device:
    """Where to keep the cases: on the device if they take less than half of its free memory, else on the host."""
    if device.type != "cuda":
        return device
    size = sum(array.nbytes for array in (cases.loc, cases.history, cases.past, cases.first, cases.end))
    free, _ = torch.cuda.mem_get_info(device)
    return device if 2 * size < free else torch.device("cpu")


def tensors_of(cases: Cases, user: Int64, device: torch.device) -> CaseTensors:
    """The cases on the device; `user` (K,) numbers their users as the network knows them."""

    def put(array: np.ndarray[tuple[int, ...], np.dtype[np.integer]]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    return CaseTensors(
        loc=put(cases.loc),
        history=put(cases.history),
        user=put(user),
        pool=put(cases.past),
        first=put(cases.first),
        end=put(cases.end),
        date=put(_day_numbers(cases.date)),
        pool_date=put(_day_numbers(cases.past_date)),
    )


def _day_numbers(date: Dates) -> Int64:
    """Days since 1970."""
    return date.astype("datetime64[D]").astype(np.int64)


@dataclass(frozen=True)
class Plan:
    """One pass over all cases: which rows and targets each batch has. Made on the host once, then only sliced."""

    rows: Tensor
    """(K,) rows in the order of the pass."""
    hidden: Tensor
    """(K, T) what is hidden of them, in the same order."""
    row: Tensor
    """Which of `rows` each target is in, ascending."""
    slot: Tensor
    truth: Tensor
    """The answer to each target: its location, or its position among the target's candidates."""
    start: Int64
    """Targets of the rows before each row: the cumulative count, on the host."""

    def cuts(self, size: int, *, of: int = 1, part: int = 0) -> list[tuple[int, int]]:
        """First row and end row of each batch that asks something: rows in steps of `size`, of which this process
        takes one part in `of`."""
        mine = math.ceil(size / of)
        begins = range(part * mine, len(self.rows), size)
        ends = [(a, min(a + mine, len(self.rows))) for a in begins]
        return [(a, b) for a, b in ends if self.start[b] > self.start[a]]

    def cut(self, data: CaseTensors, a: int, b: int, *, past_days: int) -> tuple[Batch, Tensor]:
        """The batch of rows a…b-1 and the truth of its targets."""
        t = slice(int(self.start[a]), int(self.start[b]))
        rows, row = self.rows[a:b], self.row[t] - a
        batch = data.batch(rows, row, self.slot[t], self.hidden[a:b], past_days=past_days)
        if data.candidates is not None:
            batch = replace(batch, candidates=data.candidates.of(rows[row], self.slot[t]))
        return batch, self.truth[t]


def plan_of(data: CaseTensors, hidden: Bool, order: Int64) -> Plan:
    """A pass over the cases in `order` (K,), hiding `hidden` (K, T), both on the host."""
    device = data.loc.device
    row, slot = np.nonzero(hidden[order])
    rows = torch.from_numpy(order).to(device)
    target_row = torch.from_numpy(row).to(device)
    target_slot = torch.from_numpy(slot).to(device)
    answers = data.loc if data.candidates is None else data.candidates.truth
    return Plan(
        rows=rows,
        hidden=torch.from_numpy(hidden[order]).to(device),
        row=target_row,
        slot=target_slot,
        truth=answers[rows[target_row], target_slot].long(),
        start=np.concatenate([[0], np.cumsum(hidden[order].sum(axis=1))]),
    )
