"""Where people were, slot by slot, and what is commonly asked of it: crowds, radii, places, moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from attnmove.errors import DataError
from attnmove.models.evidential import Answers
from attnmove.nouns import MISSING, Bool, Float64, Int32, Int64

_TINY = 1e-12
"""Below, a share is what rounding left."""


@dataclass(frozen=True)
class Presence:
    """Shares of slots spent at places, sorted by row and slot; a slot without an entry is not known."""

    row: Int64 = field(repr=False)
    """The user-day."""
    slot: Int64 = field(repr=False)
    place: Int64 = field(repr=False)
    share: Float64 = field(repr=False)
    """1 where the place is known, a probability where several are possible; those of a slot sum to one."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Counts:
    """How much there is of each key; a key may stand there more than once."""

    key: Int64 = field(repr=False)
    amount: Float64 = field(repr=False)

    @property
    def total(self) -> float:
        return float(self.amount.sum())

    @property
    def by_key(self) -> Float64:
        """The amount of each key, keys ascending."""
        key, inverse = np.unique(self.key, return_inverse=True)
        return np.bincount(inverse, self.amount, len(key)).astype(np.float64)


@dataclass(frozen=True)
class Moves:
    """Changes of place from one known slot of a day to the next."""

    row: Int64 = field(repr=False)
    origin: Int64 = field(repr=False)
    destination: Int64 = field(repr=False)
    share: Float64 = field(repr=False)
    n_pairs: int
    """Pairs of consecutive known slots that were looked at, with a change or without."""


@dataclass(frozen=True)
class _Pairs:
    """Every entry of a slot with every entry of the next known slot of the day."""

    one: Int64
    other: Int64
    number: Int64
    """Which pair of slots."""
    n: int


def presence_in(loc: Int32) -> Presence:
    """The known slots of days (K, T)."""
    row, slot = np.nonzero(loc != MISSING)
    return Presence(row, slot, loc[row, slot].astype(np.int64), np.ones(len(row)))


def most_likely(seen: Presence, answers: Iterable[Answers], wanted: Bool) -> Presence:
    """What is seen, and the best answer at the wanted slots (K, T)."""
    return _with(seen, answers, wanted, top=1)


def expected(seen: Presence, answers: Iterable[Answers], wanted: Bool) -> Presence:
    """What is seen, and at the wanted slots (K, T) the probabilities of the answers, brought to a sum of one."""
    return _with(seen, answers, wanted, top=None)


def crowd(presence: Presence, cell: Int64, n_locations: int) -> Counts:
    """Slots spent at each place in each cell of time; `cell` (K, T) says which cell a slot belongs to."""
    return Counts(cell[presence.row, presence.slot] * n_locations + presence.place, presence.share)


def radius_m(presence: Presence, n_rows: int, position_m: Float64) -> Float64:
    """(K,) radius of gyration of each day: root mean square metres from the centre of its slots, in straight lines.

    `position_m` (L, 3) are the places in space. NaN where one is not known, 0 for a day without a known slot.
    """
    row, share, at = presence.row, presence.share, position_m[presence.place]
    total = np.bincount(row, share, n_rows)
    divisor = np.where(total > 0, total, 1)
    centre = np.stack([np.bincount(row, share * part, n_rows) for part in at.T], axis=1) / divisor[:, None]
    squared = ((at - centre[row]) ** 2).sum(axis=1)
    out: Float64 = np.sqrt(np.bincount(row, share * squared, n_rows) / divisor)
    return out


def n_places(presence: Presence, n_rows: int, n_locations: int) -> Float64:
    """(K,) distinct places of each day, each with the probability of at least one visit, slots independent."""
    key, inverse = np.unique(presence.row * n_locations + presence.place, return_inverse=True)
    with np.errstate(divide="ignore"):  # what is certain leaves no chance of never
        never = np.exp(np.bincount(inverse, np.log1p(-presence.share), len(key)))
    return np.bincount(key // n_locations, 1 - never, n_rows).astype(np.float64)


def moves(presence: Presence) -> Moves:
    """Changes of place between consecutive known slots of a day, as few as the shares allow.

    Of two uncertain slots the share that both give to a place is a stay there; what is left of the one goes to what is
    left of the other, in proportion. So shares of certain slots, 1, make the moves that happened.
    """
    row, place, share = presence.row, presence.place, presence.share
    pair = _pairs(presence)
    stay = np.where(place[pair.one] == place[pair.other], np.minimum(share[pair.one], share[pair.other]), 0)
    leaving = share - np.bincount(pair.one, stay, len(share))  # an entry is the one of one pair, the other of another
    coming = share - np.bincount(pair.other, stay, len(share))
    left = 1 - np.bincount(pair.number, stay, pair.n)[pair.number]
    amount = leaving[pair.one] * coming[pair.other] / np.maximum(left, _TINY)
    some = amount > _TINY
    return Moves(row[pair.one[some]], place[pair.one[some]], place[pair.other[some]], amount[some], pair.n)


def flows(found: Moves, group: Int64, n_locations: int) -> Counts:
    """Moves from each place to each other in each group of days; `group` (K,) says which a day belongs to."""
    key = (group[found.row] * n_locations + found.origin) * n_locations + found.destination
    return Counts(key, found.share)


def differences(one: Counts, other: Counts) -> Float64:
    """How much more the one has than the other, of every key that one of them has."""
    return Counts(np.concatenate([one.key, other.key]), np.concatenate([one.amount, -other.amount])).by_key


def _with(seen: Presence, answers: Iterable[Answers], wanted: Bool, *, top: int | None) -> Presence:
    """What is seen, and the first `top` places of the answers, their probabilities brought to a sum of one."""
    parts = [seen]
    answered = np.zeros(wanted.shape, dtype=np.bool_)
    for part in answers:
        asked = wanted[tuple(part.index.T)]
        index, place = part.index[asked], part.place[asked, :top]
        answered[tuple(index.T)] = True
        share = np.where(place == MISSING, 0, part.probability[asked, :top]).astype(np.float64)
        share /= np.maximum(share.sum(axis=1, keepdims=True), _TINY)
        target, rank = np.nonzero(share)
        row, slot = index[target].T
        parts.append(Presence(row, slot, place[target, rank].astype(np.int64), share[target, rank]))
    if not answered[wanted].all():
        raise DataError(f"answers: {int((wanted & ~answered).sum())} targets have none; ask the model for all of them")
    return _sorted(parts)


def _sorted(parts: list[Presence]) -> Presence:
    """All entries together, by row and slot."""
    row, slot, place = (np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "slot", "place"))
    share = np.concatenate([part.share for part in parts])
    order = np.lexsort((slot, row))
    return Presence(row[order], slot[order], place[order], share[order])


def _pairs(presence: Presence) -> _Pairs:
    row, slot = presence.row, presence.slot
    new = np.ones(len(presence), dtype=np.bool_)
    new[1:] = (row[1:] != row[:-1]) | (slot[1:] != slot[:-1])
    start = np.flatnonzero(new)
    size = np.diff(start, append=len(presence))
    first = np.flatnonzero(row[start[1:]] == row[start[:-1]])
    n_each = size[first] * size[first + 1]
    number = np.repeat(np.arange(len(first)), n_each)
    within = np.arange(len(number)) - np.repeat(np.cumsum(n_each) - n_each, n_each)
    origin, next_size = first[number], size[first + 1][number]
    return _Pairs(start[origin] + within // next_size, start[origin + 1] + within % next_size, number, len(first))
