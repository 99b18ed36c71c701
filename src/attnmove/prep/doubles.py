"""People who are in the data twice: two names that are always at the same places at the same time.

One person's days under two names, or two people with one phone, leak from split to split: what is hidden of the one is
in the other's training days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.nouns import MISSING, Bool, Days, Int64

_LEAST_SLOTS, _LEAST_PLACES, _LEAST_SHARE = 24, 5, 0.95
"""Slots in which both are at one place, the places these are, and the share of the slots in which both are seen."""
_CROWDED = 16
"""Where more people are at once, being there does not tell who is who."""


@dataclass(frozen=True)
class Double:
    """Two names that seem to be one person."""

    users: tuple[str, str]
    slots: int
    """Slots in which both are seen."""
    same: int
    """Of these, at the same place."""


def doubles(days: Days) -> list[Double]:
    """Pairs of users who are at the same place nearly whenever both are seen, those with most such slots first."""
    names, user = np.unique(days.user.astype(str), return_inverse=True)
    one, other, place = _meetings(days, user)
    pair, number, met = np.unique(one * len(names) + other, return_inverse=True, return_counts=True)
    places = np.unique(np.stack([number, place]), axis=1)[0]  # once for every place at which a pair met
    likely = (met >= _LEAST_SLOTS) & (np.bincount(places, minlength=len(pair)) >= _LEAST_PLACES)
    found = []
    for code, same in zip(pair[likely].tolist(), met[likely].tolist(), strict=True):
        first, second = divmod(code, len(names))
        slots = _both_seen(days, user == first, user == second)
        if same >= _LEAST_SHARE * slots:
            found.append(Double((str(names[first]), str(names[second])), slots, same))
    return sorted(found, key=lambda double: -double.same)


def _meetings(days: Days, user: Int64) -> tuple[Int64, Int64, Int64]:
    """Two users and a place for every slot of a date in which both are there, the lower user first."""
    row, slot = np.nonzero(days.loc != MISSING)
    place = days.loc[row, slot].astype(np.int64)
    date = days.date.astype("datetime64[D]").astype(np.int64)[row]
    order = np.lexsort((user[row], place, slot, date))
    who, place = user[row][order], place[order]
    key = np.stack([date[order], slot[order], place])
    new = np.ones(len(who), dtype=np.bool_)
    new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    begins = np.flatnonzero(new)
    size = np.diff(np.append(begins, len(who)))
    crowded = np.repeat(size > _CROWDED, size)
    left = np.repeat(begins + size, size) - np.arange(len(who)) - 1  # people of the same group after this one
    parts = []
    for step in range(1, _CROWDED):
        at = np.flatnonzero((left >= step) & ~crowded)
        parts.append((who[at], who[at + step], place[at]))
    one, other, where = (np.concatenate(column) for column in zip(*parts, strict=True))
    return one, other, where


def _both_seen(days: Days, first: Bool, second: Bool) -> int:
    """Slots of a date in which both users are seen."""
    _, one, other = np.intersect1d(days.date[first], days.date[second], assume_unique=True, return_indices=True)
    seen = days.loc != MISSING
    return int((seen[first][one] & seen[second][other]).sum())
