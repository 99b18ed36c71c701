"""Slicings: what kind of target each one is, so that a measure can be taken kind by kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from attnmove.errors import check_names
from attnmove.nouns import MISSING, Cases, Int64, Text

_HOURS_PER_DAY = 24
_MOST_PLACES = 10
_GAP_LENGTHS = ((1, "1"), (2, "2-3"), (4, "4-7"), (8, "8-15"), (16, "16+"))
"""Shortest gap in slots of each label."""


def missing_rate(cases: Cases) -> Text:
    """Share of the day's slots that a model does not see, hidden or never observed, in steps of 10 %: "60-70%".

    The lower end belongs to a step; "90-100%" has both ends.
    """
    unseen = (cases.visible == MISSING).sum(axis=1)
    step = np.minimum(unseen * 10 // max(1, cases.n_slots), 9)
    return _labels([f"{10 * low}-{10 * low + 10}%" for low in range(10)], step[cases.index[:, 0]])


def hour(cases: Cases) -> Text:
    """Hour in which the slot begins, "00" to "23", on the clock of the dataset's days."""
    begins = cases.index[:, 1] * _HOURS_PER_DAY // cases.n_slots
    return _labels([f"{h:02}" for h in range(_HOURS_PER_DAY)], begins)


def places(cases: Cases) -> Text:
    """Distinct locations of the whole day, hidden slots with it: "1" to "9", then "10+"."""
    ordered = np.sort(cases.loc, axis=1)
    first = ordered[:, :1] != MISSING
    new = (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] != MISSING)
    count = np.concatenate([first, new], axis=1).sum(axis=1)
    names = [str(n) for n in range(_MOST_PLACES)] + [f"{_MOST_PLACES}+"]
    return _labels(names, np.minimum(count, _MOST_PLACES)[cases.index[:, 0]])


def gap(cases: Cases) -> Text:
    """The run of slots without sight in which the target lies.

    Between two visible slots, its length in slots: "1", "2-3", "4-7", "8-15", "16+". A run that is open on one side has
    no such length: "before first" and "after last" visible slot of the day; "whole day" where nothing is visible.
    """
    before, after = (side[cases.hidden] for side in cases.around())
    length = after - before - 1
    kind = np.searchsorted([shortest for shortest, _ in _GAP_LENGTHS], length, side="right") - 1
    opens, closes = before < 0, after >= cases.n_slots
    names = [name for _, name in _GAP_LENGTHS] + ["before first", "after last", "whole day"]
    n = len(_GAP_LENGTHS)
    return _labels(names, np.select([opens & closes, opens, closes], [n + 2, n, n + 1], kind))


SLICES: dict[str, Callable[[Cases], Text]] = {
    "missing_rate": missing_rate,
    "hour": hour,
    "places": places,
    "gap": gap,
}
"""Name of a slicing and the function that labels every target of the cases, in the order of `cases.index`."""


def labels_of(cases: Cases, by: Iterable[str]) -> dict[str, Text]:
    """Labels of the targets with known truth, for each of the slicings. Raises ConfigError on one there is not."""
    known = cases.truth != MISSING
    by = list(by)
    check_names("slicing", by, SLICES)
    return {name: SLICES[name](cases)[known] for name in by}


def in_order(labels: Iterable[str]) -> list[str]:
    """Labels sorted by the number they begin with; words last.

    >>> in_order(["10+", "whole day", "2-3", "1"])
    ['1', '2-3', '10+', 'whole day']
    """

    def key(label: str) -> tuple[float, str]:
        number = re.match(r"\d+", label)
        return (float(number.group()) if number else float("inf"), label)

    return sorted(labels, key=key)


def _labels(names: list[str], code: Int64) -> Text:
    return np.array(names, dtype=object)[code]
