"""From a dataset to the cases of a split: each day with what a model may see of it and of the days before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnmove.errors import check_names
from attnmove.nouns import MISSING, Bool, Cases, Int32, Int64
from attnmove.prep.history import kept_secret, strict_history

if TYPE_CHECKING:
    from attnmove.prep.dataset import Dataset

PROTOCOLS = ("paper", "strict")
"""What earlier validation and test days show. `paper`: everything. `strict`: what the draw leaves visible."""


def cases_of(dataset: Dataset, split: str, *, protocol: str = "paper") -> Cases:
    """The cases of one split (train, valid or test), a row for each day and draw."""
    check_names("protocol", [protocol], PROTOCOLS)
    check_names("split", [split], ("train", "valid", "test"))
    days, targets = dataset.days, dataset.targets
    at = targets.rows_in(days)
    mine = np.flatnonzero(days.split[at] == split)
    at = at[mine]
    past, offset = days.loc, np.zeros(len(mine), dtype=np.int64)
    history = targets.history
    if protocol == "strict":
        past, offset = _strict_past(dataset, mine)
        history = strict_history(days, targets)
    return Cases(
        user=days.user[at],
        date=days.date[at],
        loc=days.loc[at],
        hidden=_hidden(dataset, mine),
        history=history[mine],
        past=past,
        past_date=np.tile(days.date, len(past) // max(1, len(days))),
        first=days.first_of_user[at] + offset,
        end=at + offset,
        locations=dataset.locations,
    )


def _hidden(dataset: Dataset, rows: Int64) -> Bool:
    targets = dataset.targets
    hidden = np.zeros((len(targets), dataset.days.n_slots), dtype=np.bool_)
    hidden[np.repeat(np.arange(len(targets)), np.diff(targets.start)), targets.slot] = True
    return hidden[rows]


def _strict_past(dataset: Dataset, rows: Int64) -> tuple[Int32, Int64]:
    """The days as each draw shows them, one draw below the other, and where the draw of each row begins."""
    days, targets = dataset.days, dataset.targets
    draws = np.unique(targets.draw)
    shown = [np.where(kept_secret(days, targets, draw), np.int32(MISSING), days.loc) for draw in draws.tolist()]
    past = np.concatenate(shown) if shown else days.loc
    return past, np.searchsorted(draws, targets.draw[rows]) * len(days)
