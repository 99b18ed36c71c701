"""What the dataset is like: how much is seen, when, of whom, and where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnmove.nouns import MISSING, Days, Float64, Int64
from attnmove.prep.dataset import Dataset
from attnmove.reporting.axes import axis_of, clock, steps_of, time_of
from attnmove.reporting.charts import bar_chart
from attnmove.reporting.maps import shaded_map, view_of
from attnmove.reporting.markup import Html, joined
from attnmove.reporting.page import Section, figure, figures, table, tiles

_GAPS = (1, 2, 4, 8, 16, 32)
"""Shortest gap of each bar, in slots."""


def data_section(dataset: Dataset | None) -> Section:
    """Coverage by hour and by user, gaps, days and the map of visits."""
    if dataset is None:
        return Section("data", "The data", left_out=["The data: name the dataset with --dataset DATASET."])
    days = dataset.days
    if len(days) == 0 or not days.observed.any():
        return Section("data", "The data", left_out=["The data: the dataset holds no observed slot."])
    left_out = []
    parts = [_by_hour(days), _by_user(days), _gaps(days), _days_per_user(days)]
    seen = _map(dataset)
    if seen is None:
        left_out.append(
            "Map of visits: the locations of this dataset have no known centres; prepare it with --centres."
        )
    else:
        parts.insert(0, seen)
    intro = (
        f"From {days.date.min()} to {days.date.max()}, in slots of {_minutes(days)} minutes. "
        "A gap is a run of slots in which nobody saw the user."
    )
    return Section("data", "The data", intro, joined([_facts(dataset), figures(parts)]), left_out)


def _facts(dataset: Dataset) -> Html:
    days, facts = dataset.days, dataset.facts
    counts = {name: int((days.split == name).sum()) for name in ("past", "train", "valid", "test")}
    visited = len(np.unique(days.loc[days.observed]))
    draws = dataset.targets.n_draws
    zone = str(facts.get("timezone") or "unknown zone")
    return tiles(
        {
            "users": (f"{len(set(days.user.tolist())):,}", f"days of {zone}"),
            "user-days": (f"{len(days):,}", ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)),
            "locations": (f"{len(dataset.locations):,}", f"{visited:,} of them visited"),
            "slots observed": (f"{days.observed.mean():.0%}", f"{int(days.observed.sum()):,} of {days.loc.size:,}"),
            "targets": (f"{len(dataset.targets.slot):,}", f"hidden slots in {draws} draw{'s' * (draws != 1)}"),
        }
    )


def _by_hour(days: Days) -> Html:
    share = days.observed.mean(axis=0)
    times = [time_of(slot, days.n_slots) for slot in range(days.n_slots)]
    best, worst = int(share.argmax()), int(share.argmin())
    drawn = bar_chart(
        share.tolist(),
        [f"{time}: {at:.0%} of the user-days" for time, at in zip(times, share, strict=True)],
        x_axis=clock("time of day", days.n_slots),
        y_axis=axis_of("user-days observed", 0, float(share.max()), percent=True),
        title="Coverage by time of day",
        about=f"Most at {times[best]} with {share[best]:.0%}, least at {times[worst]} with {share[worst]:.0%}.",
    )
    caption = (
        f"Share of the {len(days):,} user-days that have a fix in the slot: from {share[worst]:.0%} at {times[worst]} "
        f"to {share[best]:.0%} at {times[best]}."
    )
    rows = [[time, f"{at:.1%}"] for time, at in zip(times, share, strict=True)]
    return figure("Coverage by time of day", caption, drawn, numbers=table(["slot", "observed"], rows, "Coverage"))


def _by_user(days: Days) -> Html:
    users, code = np.unique(days.user.astype(str), return_inverse=True)
    share = np.bincount(code, days.observed.sum(axis=1)) / (np.bincount(code) * days.n_slots)
    count, edges = np.histogram(share, bins=np.linspace(0, 1, 21))
    labels = [f"{low:.0%}" for low in edges[:-1]]
    titles = [f"{low:.0%}–{low + 0.05:.0%} observed: {n:,} users" for low, n in zip(edges[:-1], count, strict=True)]
    drawn = bar_chart(
        count.tolist(),
        titles,
        x_axis=steps_of("share of a user's slots that is observed", labels),
        y_axis=axis_of("users", 0, float(count.max())),
        title="Coverage by user",
        about=f"The median user is observed in {np.median(share):.0%} of the slots.",
    )
    caption = (
        f"{len(users):,} users by the share of their slots that is observed: half of them below "
        f"{np.median(share):.0%}; the least {share.min():.0%}, the most {share.max():.0%}."
    )
    return figure("Coverage by user", caption, drawn, numbers=_counts("share observed", "users", labels, count))


def _gaps(days: Days) -> Html:
    length = gap_lengths(days)
    kind = np.searchsorted(_GAPS, length, side="right") - 1
    count = np.bincount(kind, minlength=len(_GAPS))
    slots = np.bincount(kind, length, minlength=len(_GAPS))
    last = max(1, int(np.flatnonzero(count).max(initial=0)) + 1)
    count, slots = count[:last], slots[:last]
    labels = _gap_labels(days.n_slots)[:last]
    total = max(1.0, float(slots.sum()))
    drawn = bar_chart(
        count.tolist(),
        [
            f"{text}: {n:,} gaps, {s / total:.0%} of all unseen slots"
            for text, n, s in zip(labels, count, slots, strict=True)
        ],
        x_axis=steps_of("length of the gap", labels),
        y_axis=axis_of("gaps", 0, float(count.max())),
        title="Length of gaps",
        about=f"{len(length):,} gaps in all.",
    )
    long = length >= 4 * days.n_slots / 24
    caption = (
        f"{len(length):,} gaps in {len(days):,} user-days, before anything is hidden. {long.mean():.0%} of them last "
        f"four hours or more and hold {length[long].sum() / total:.0%} of the unseen slots."
        if len(length)
        else "No slot of any day is unseen."
    )
    return figure("Length of gaps", caption, drawn, numbers=_counts("length", "gaps", labels, count))


def gap_lengths(days: Days) -> Int64:
    """The length in slots of every run of unobserved slots within a day.

    Midnight ends a run: a night without sight is two gaps.
    """
    edge = np.ones((len(days), 1), dtype=np.bool_)
    seen = np.concatenate([edge, days.observed, edge], axis=1)
    at = np.flatnonzero(seen.ravel())
    length = np.diff(at) - 1
    return length[length > 0]


def _days_per_user(days: Days) -> Html:
    count = np.unique(days.user.astype(str), return_counts=True)[1]
    step = max(1, int(np.ceil((count.max() + 1) / 30)))
    edges = np.arange(0, count.max() + step + 1, step)
    users, _ = np.histogram(count, bins=edges)
    first = int(np.flatnonzero(users).min())
    labels = [str(low) if step == 1 else f"{low}–{low + step - 1}" for low in edges[first:-1]]
    drawn = bar_chart(
        users[first:].tolist(),
        [f"{label} days: {n:,} users" for label, n in zip(labels, users[first:], strict=True)],
        x_axis=steps_of("days of a user", labels),
        y_axis=axis_of("users", 0, float(users.max())),
        title="Days per user",
        about=f"The median user has {np.median(count):.0f} days.",
    )
    caption = (
        f"{len(count):,} users by the number of their days: {count.min()} to {count.max()}, "
        f"the median {np.median(count):.0f}."
    )
    return figure("Days per user", caption, drawn, numbers=_counts("days", "users", labels, users[first:]))


def _map(dataset: Dataset) -> Html | None:
    visits = visits_of(dataset)
    view = view_of(dataset.locations, visits, tallest=560)
    if view is None:
        return None
    shown, total = int(view.inside.sum()), int((visits > 0).sum())
    kind = "Drawn as a density of squares" if view.is_density else "A square a location"
    drawn = shaded_map(
        view,
        visits,
        title="Map of visits",
        about=f"{shown:,} locations, darker or brighter where more slots were spent.",
        ends=("few visits", "", "most visits"),
    )
    beyond = f"; {total - shown:,} more lie beyond the edge" if total > shown else ""
    caption = (
        f"{kind}: {shown:,} visited locations{beyond}, in eight shades of equally many, by {int(visits.sum()):,} "
        "observed slots. North is up."
    )
    return figure("Map of visits", caption, drawn, looks="tall")


def visits_of(dataset: Dataset) -> Float64:
    """(L,) observed slots of each location."""
    seen = dataset.days.loc[dataset.days.loc != MISSING]
    return np.bincount(seen, minlength=len(dataset.locations)).astype(np.float64)


def _gap_labels(n_slots: int) -> list[str]:
    hours = [length * 24 / n_slots for length in _GAPS]
    ends = [(following - 1) * 24 / n_slots for following in _GAPS[1:]]
    between = [f"{a:.2g} h" if a == b else f"{a:.2g}–{b:.3g} h" for a, b in zip(hours, ends, strict=False)]
    return [*between, f"{hours[-1]:.2g}+ h"]


def _counts(what: str, of: str, labels: Sequence[str], count: Int64) -> Html:
    return table([what, of], [[label, f"{n:,}"] for label, n in zip(labels, count.tolist(), strict=True)], of)


def _minutes(days: Days) -> int:
    return 1440 // days.n_slots
