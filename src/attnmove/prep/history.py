"""The history row: for each slot of a day, the location the user was most often seen at on strictly earlier days."""

from __future__ import annotations

import numpy as np

from attnmove.nouns import MISSING, Bool, Days, Int32, Int64, Targets

_ROWS_AT_ONCE = 20_000


def history_rows(loc: Int32, first_of_user: Int64, *, counted: Bool | None = None) -> Int32:
    """(N, T) the most frequent location of the slot over the user's earlier rows, MISSING where there is none.

    On a tie the location that reached the count first keeps its place. `counted` (N, T) says which observed slots are
    history at all (the strict protocol leaves out the hidden ones); None: every one.

    >>> history_rows(np.array([[5], [7], [7], [-1]], dtype=np.int32), np.zeros(4, dtype=np.int64)).ravel().tolist()
    [-1, 5, 5, 7]
    """
    seen = loc != MISSING if counted is None else (loc != MISSING) & counted
    out = np.full(loc.shape, MISSING, dtype=np.int32)
    start = 0
    while start < len(loc):
        # Whole users at a time, so that memory does not grow with the number of days.
        stop = min(start + _ROWS_AT_ONCE, len(loc))
        while stop < len(loc) and first_of_user[stop] < stop:
            stop += 1
        block = slice(start, stop)
        out[block] = _block(loc[block], seen[block], first_of_user[block] - start)
        start = stop
    return out


def strict_history(days: Days, targets: Targets) -> Int32:
    """(K, T) the history row of each target row in the strict protocol.

    Earlier training days count in full: their truth is known. Earlier validation and test days count only where the
    row's own draw leaves them visible.
    """
    at = targets.rows_in(days)
    out = np.full(targets.history.shape, MISSING, dtype=np.int32)
    for draw in np.unique(targets.draw).tolist():
        mine = targets.draw == draw
        rows = history_rows(days.loc, days.first_of_user, counted=~kept_secret(days, targets, draw))
        out[mine] = rows[at[mine]]
    return out


def kept_secret(days: Days, targets: Targets, draw: int) -> Bool:
    """(N, T) True at the slots that the strict protocol never shows: those the draw hides outside of training."""
    measured = (days.split == "valid") | (days.split == "test")
    secret: Bool = targets.hidden(days, draw) & measured[:, None]
    return secret


def _block(loc: Int32, seen: Bool, first: Int64) -> Int32:
    n, t = loc.shape
    leader = np.full((n, t), MISSING, dtype=np.int32)
    slot, row = np.nonzero(seen.T)  # by slot, then by row: user after user, day after day
    if len(row):
        place = loc[row, slot].astype(np.int64)
        series = first[row] * t + slot  # one series a (user, slot)
        count = _nth_occurrence(series, place)
        leads = _new_records(series, count)
        last_lead = np.maximum.accumulate(np.where(leads, np.arange(len(row)), 0))
        leader[row, slot] = place[last_lead]
    # What leads after day i is what day i + 1 sees, and every later day until it changes.
    at = np.where(leader != MISSING, np.arange(n)[:, None], -1)
    before = np.full((n, t), -1, dtype=np.int64)
    before[1:] = np.maximum.accumulate(at, axis=0)[:-1]
    known = before >= first[:, None]
    return np.where(known, np.take_along_axis(leader, np.maximum(before, 0), axis=0), MISSING).astype(np.int32)


def _nth_occurrence(series: Int64, place: Int64) -> Int64:
    """For each element, how often its place has occurred in its series up to and with it."""
    order = np.lexsort((place, series))
    same = (series[order][1:] == series[order][:-1]) & (place[order][1:] == place[order][:-1])
    starts = np.maximum.accumulate(np.where(np.concatenate([[False], same]), 0, np.arange(len(order))))
    nth = np.empty(len(order), dtype=np.int64)
    nth[order] = np.arange(len(order)) - starts + 1
    return nth


def _new_records(series: Int64, count: Int64) -> Bool:
    """True where the count is higher than any before it in the same series (elements of a series are adjacent)."""
    new = np.concatenate([[True], series[1:] != series[:-1]])
    height = np.cumsum(new) * (int(count.max()) + 1) + count
    before = np.concatenate([[0], np.maximum.accumulate(height)[:-1]])
    return height > before
