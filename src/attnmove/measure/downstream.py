"""Usefulness downstream: crowds, radii, places and flows from sparse and from recovered days, against the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from attnmove.measure.intervals import Interval, intervals_of_sums
from attnmove.measure.presence import (
    Counts,
    Presence,
    crowd,
    differences,
    expected,
    flows,
    most_likely,
    moves,
    n_places,
    presence_in,
    radius_m,
)
from attnmove.measure.table import Row
from attnmove.models.answers import best_answers
from attnmove.models.contract import Recoverer
from attnmove.models.habits import day_rows
from attnmove.nouns import EARTH_RADIUS_M, MISSING, Cases, Float64, Int64, Text

MEASURES = (
    *("crowd", "crowd_rms", "crowd_by_date", "crowd_by_date_rms", "radius_m", "radius_median_m", "places"),
    *("flows", "flows_rms", "flows_apart"),
)
SPARSE = ("sparse", "sparse_scaled")
RECOVERED = ("most_likely", "expected")
TOP = 5
"""Places over which an expected slot is spread: the answer and its alternatives, as many as `recover` gives."""
_HOURS = 24

Views = Mapping[str, Presence]
"""The same slots four times: truth, sparse, most_likely, expected."""
Errors = dict[str, float | None]
"""An error for each of SPARSE and RECOVERED; None where it is not defined."""


def evaluate_downstream(model: Recoverer, cases: Cases, *, intervals: bool = False) -> list[Row]:
    """How wrong crowds, radii, places and flows are on sparse, most likely and expected days: a row a measure.

    A row has `measure`, `n` (true slots, days or moves), the error of `sparse`, `sparse_scaled`, `most_likely` and
    `expected`, and `most_likely_reduction` and `expected_reduction`: the share of the error of the sparse days, scaled
    or not, whichever is smaller, that is gone. None stands for what is not defined: a scaled radius, a radius without
    centres, a reduction of no error. `intervals` adds `_low` and `_high`, 95 % over users, to the means over days.
    """
    views = views_of(model, cases)
    return [
        *_crowd_rows(views, cases),
        *_day_rows(views, cases, intervals=intervals),
        *_flow_rows(views, cases),
    ]


def views_of(model: Recoverer, cases: Cases) -> Views:
    """The slots of known place, as they are, as they were seen, and as the model fills them.

    The model is asked about days from which the hidden places are erased.
    """
    blind = replace(cases, loc=cases.visible)
    wanted = cases.hidden & (cases.loc != MISSING)
    answers = list(best_answers(model, blind, top=TOP))
    seen = presence_in(cases.visible)
    return {
        "truth": presence_in(cases.loc),
        "sparse": seen,
        "most_likely": most_likely(seen, answers, wanted),
        "expected": expected(seen, answers, wanted),
    }


def _crowd_rows(views: Views, cases: Cases) -> list[Row]:
    """Slots spent at each place in each hour of the day, all dates together and date by date."""
    hour = np.arange(cases.n_slots) * _HOURS // cases.n_slots
    draw, date = _draws(cases), np.unique(cases.date, return_inverse=True)[1]
    by_date = draw * (date.max(initial=0) + 1) + date
    scaled = {**views, "sparse_scaled": _scaled(views, hour)}
    rows: list[Row] = []
    for measure, group in (("crowd", draw), ("crowd_by_date", by_date)):
        cell = group[:, None] * _HOURS + hour
        counts = {name: crowd(presence, cell, len(cases.locations)) for name, presence in scaled.items()}
        rows += _count_rows(measure, len(views["truth"]), counts)
    return rows


def _scaled(views: Views, hour: Int64) -> Presence:
    """The sparse days with each hour's slots made as many as there are; how many is known, only not where."""
    sparse = views["sparse"]
    there, seen = (np.bincount(hour[views[name].slot], minlength=_HOURS) for name in ("truth", "sparse"))
    factor = there / np.maximum(seen, 1)
    return replace(sparse, share=sparse.share * factor[hour[sparse.slot]])


def _flow_rows(views: Views, cases: Cases) -> list[Row]:
    """Moves between places; the sparse days do not see what happened between their slots."""
    draw = _draws(cases)
    found = {name: moves(presence) for name, presence in views.items()}
    factor = found["truth"].n_pairs / max(1, found["sparse"].n_pairs)
    found["sparse_scaled"] = replace(found["sparse"], share=found["sparse"].share * factor)
    counts = {name: flows(one, draw, len(cases.locations)) for name, one in found.items()}
    return _count_rows("flows", len(found["truth"].row), counts, shared=True)


def _count_rows(measure: str, n: int, counts: Mapping[str, Counts], *, shared: bool = False) -> list[Row]:
    """Differences of counts to the truth: absolute, squared and, with `shared`, as the part that is not common."""
    truth = counts["truth"]
    absolute, squared, not_common = Errors(), Errors(), Errors()
    for name in (*SPARSE, *RECOVERED):
        off = differences(counts[name], truth)
        absolute[name] = _ratio(np.abs(off).sum(), truth.total)
        squared[name] = _ratio(np.sqrt((off**2).sum()), np.sqrt((truth.by_key**2).sum()))
        not_common[name] = _ratio(np.abs(off).sum(), truth.total + counts[name].total)
    rows = [_row(measure, n, absolute), _row(f"{measure}_rms", n, squared)]
    return [*rows, _row(f"{measure}_apart", n, not_common)] if shared else rows


def _ratio(one: float, other: float) -> float | None:
    return float(one / other) if other else None


def _day_rows(views: Views, cases: Cases, *, intervals: bool) -> list[Row]:
    """Radius of gyration and number of places, day by day."""
    n, n_locations = len(cases), len(cases.locations)
    position_m = cases.locations.on_sphere * EARTH_RADIUS_M
    radius = {name: radius_m(presence, n, position_m) for name, presence in views.items()}
    places = {name: n_places(presence, n, n_locations) for name, presence in views.items()}
    days = (cases.loc != MISSING).any(axis=1)
    off_radius, off_places = (
        {name: np.abs(found[name] - found["truth"])[days] for name in found if name != "truth"}
        for found in (radius, places)
    )
    user = cases.user[days] if intervals else None
    return [
        _mean_row("radius_m", off_radius, user),
        _row("radius_median_m", int(days.sum()), {name: _defined(np.median, off) for name, off in off_radius.items()}),
        _mean_row("places", off_places, user),
    ]


def _mean_row(measure: str, off: Mapping[str, Float64], user: Text | None) -> Row:
    """A row of means over days and, with the user of each, intervals over users."""
    row = _row(measure, len(off["sparse"]), {name: _defined(np.mean, error) for name, error in off.items()})
    if user is None:
        return row
    users, code = np.unique(user.astype(str), return_inverse=True)
    n = np.bincount(code, minlength=len(users)).astype(np.float64)
    sums = {name: np.bincount(code, error, len(users)).astype(np.float64) for name, error in off.items()}
    for name in off:
        row |= _ends(name, _interval(sums[name], n))
    for name in RECOVERED:
        kept = _interval(sums[name], sums["sparse"])
        row |= _ends(f"{name}_reduction", Interval(1 - kept.high, 1 - kept.low))
    return row


def _interval(sums: Float64, n: Float64) -> Interval:
    """Of the ratio of two sums over users; the same users are drawn for all."""
    with np.errstate(divide="ignore", invalid="ignore"):  # users without any error may be all that is drawn
        return intervals_of_sums(sums[:, None], n, np.random.default_rng(0))[0]


def _ends(name: str, interval: Interval) -> Row:
    ends = {"low": interval.low, "high": interval.high}
    return {f"{name}_{end}": at if math.isfinite(at) else None for end, at in ends.items()}


def _row(measure: str, n: int, errors: Errors) -> Row:
    errors = {name: errors.get(name) for name in (*SPARSE, *RECOVERED)}
    best = min((error for name in SPARSE if (error := errors[name]) is not None), default=None)
    reductions = {f"{name}_reduction": _reduction(errors[name], best) for name in RECOVERED}
    return {"measure": measure, "n": n, **errors, **reductions}


def _reduction(error: float | None, before: float | None) -> float | None:
    return None if error is None or not before else 1 - error / before


def _defined(middle: Callable[[Float64], np.floating[Any]], values: Float64) -> float | None:
    value = float(middle(values)) if len(values) else math.nan
    return None if math.isnan(value) else value


def _draws(cases: Cases) -> Int64:
    """(K,) the how-manieth row of its day each row is: draws of one day are not people beside each other."""
    first = day_rows(cases)
    return np.arange(len(cases)) - np.repeat(first, np.diff(first, append=len(cases)))
