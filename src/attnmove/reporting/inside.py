"""What a network learnt, as in the paper's Figure 3: its locations on a map, and which slots look at which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans

from attnmove.models.contract import Recoverer
from attnmove.nouns import Cases, Float64, Int64
from attnmove.prep.dataset import Dataset
from attnmove.reporting.answers import Answered
from attnmove.reporting.axes import N_COLOURS, Axis
from attnmove.reporting.charts import heat_map
from attnmove.reporting.data import visits_of
from attnmove.reporting.examples import days_in
from attnmove.reporting.maps import coloured_map, view_of
from attnmove.reporting.markup import Html
from attnmove.reporting.page import Section, figure, figures

TITLE = "Inside the network (the paper's Figure 3)"
_MOST_DAYS = 1_000
_LEAST_DAYS = 10
"""A mean over fewer days says nothing about a slot."""
_DAYS_AT_ONCE = 100
"""Weights held at a time: those of this many days."""
_MOST_CELLS = 48
"""Rows and columns of the picture of attention; finer slots are averaged."""


def inside_section(dataset: Dataset | None, cases: Cases | None, answered: Sequence[Answered], *, seed: int) -> Section:
    """Figures 3a and 3b of every run that has an embedding of locations, and attention over slots."""
    runs = [one for one in answered if one.run is not None]
    if dataset is None or cases is None or not runs:
        sentence = "Figure 3, location embedding and attention: name the run of a network and its --dataset."
        return Section("inside", TITLE, left_out=[sentence])
    parts, left_out = [], []
    for one in runs:
        for chart in (_embedding(one, dataset, seed=seed), _attention(one, cases, seed=seed)):
            if isinstance(chart, Html):
                parts.append(chart)
            else:
                left_out.append(chart)
    intro = (
        "Nobody told the network where the locations are or which slots belong together: what is seen here was learnt."
    )
    return Section("inside", TITLE, intro, figures(parts) if parts else Html(""), left_out)


def embedding_of(model: Recoverer, n_locations: int) -> Float64 | None:
    """(L, D) a vector for each location, where the model has such; its row for the missing one is left out."""
    table = model.state().get("net/places.table")
    if table is None or table.ndim != 2 or len(table) != n_locations + 1:
        return None
    return table[:-1].astype(np.float64)


def clusters_of(vectors: Float64, used: Int64, n: int, *, seed: int) -> Int64:
    """(L,) the k-means cluster of each used location, 0 the largest; -1 for the others."""
    group = np.full(len(vectors), -1, dtype=np.int64)
    found = KMeans(min(n, len(used)), n_init=4, random_state=seed).fit_predict(vectors[used])
    order = np.argsort(-np.bincount(found), kind="stable")
    group[used] = np.argsort(order, kind="stable")[found]
    return group


def _embedding(one: Answered, dataset: Dataset, *, seed: int) -> Html | str:
    visits, locations = visits_of(dataset), dataset.locations
    vectors = embedding_of(one.model, len(locations))
    if vectors is None:
        return f"Figure 3a for {one.name}: it has no embedding of locations."
    view = view_of(locations, visits)
    if view is None:
        return f"Figure 3a for {one.name}: the locations of this dataset have no known centres."
    used = np.flatnonzero(visits > 0)
    group = clusters_of(vectors, used, N_COLOURS, seed=seed)
    same, chance = neighbours_alike(np.column_stack([view.x, view.y]), group)
    title = f"{one.name}: locations by embedding (Figure 3a)"
    drawn = coloured_map(view, group, title=title, about=f"{len(used):,} locations in {group.max() + 1} clusters.")
    caption = (
        f"{len(used):,} visited locations, coloured by k-means (k = {group.max() + 1}, seed {seed}) of their vectors. "
        f"Where the nearest location has the same colour the network has found out that they are close: {same:.0%} of "
        f"them, {chance:.0%} if colours were dealt at random."
    )
    return figure(title, caption, drawn)


def neighbours_alike(place: Float64, group: Int64) -> tuple[float, float]:
    """Share of locations in the group of their nearest one, and what chance would give."""
    known = np.isfinite(place).all(axis=1) & (group >= 0)
    mine = group[known]
    if len(mine) < 2:
        return float("nan"), float("nan")
    _, near = cKDTree(place[known]).query(place[known], k=2)
    other = np.where(near[:, 0] == np.arange(len(mine)), near[:, 1], near[:, 0])
    share = np.bincount(mine) / len(mine)
    return float((mine[other] == mine).mean()), float((share**2).sum())


def _attention(one: Answered, cases: Cases, *, seed: int) -> Html | str:
    network: Any = getattr(one.model, "network", None)
    layers = getattr(network, "current", None)
    if layers is None:
        return f"Figure 3b for {one.name}: it has no attention over the slots of a day."
    if not layers[-1].attention.attend:
        return f"Figure 3b for {one.name}: its attention over the day is switched off."
    asked = np.flatnonzero(cases.hidden.any(axis=1))
    rows = np.sort(np.random.default_rng(seed).permutation(asked)[:_MOST_DAYS])
    weights = coarser(mean_attention(one.model, layers[-1].attention, cases.rows(rows)), _MOST_CELLS)
    ticks = [(hour * len(weights) / 24, f"{hour:02}:00") for hour in range(0, 24, 3)]
    title = f"{one.name}: mean attention (Figure 3b)"
    drawn = heat_map(
        weights,
        axis=Axis("slot it looks at", -0.5, len(weights) - 0.5, ticks),
        y_axis=Axis("slot that looks", -0.5, len(weights) - 0.5, ticks),
        title=title,
        about="A grid of slots against slots; the diagonal is a slot that looks at itself and its neighbours.",
        middle="mean weight",
    )
    near = np.abs(np.subtract.outer(np.arange(len(weights)), np.arange(len(weights)))) <= len(weights) // 12
    known = np.isfinite(weights)
    share = np.nansum(weights[near & known]) / max(1e-12, np.nansum(weights[known]))
    caption = (
        f"Last attention of the current day, mean over heads and {days_in(cases.rows(rows))}; a slot counts on the "
        f"days on which it is visible, for others get no weight. {share:.0%} of the weight lies within two hours, "
        f"{near.mean():.0%} if it were even."
    )
    return figure(title, caption, drawn)


def mean_attention(model: Recoverer, attention: Any, cases: Cases) -> Float64:
    """(T, T) mean weight that the slot of the row gives that of the column, over heads and the days that allow it.

    NaN in the columns of slots that are hardly ever visible. The network is asked as always, its attention watched.
    """
    n_slots = cases.n_slots
    total, count = np.zeros((n_slots, n_slots)), np.zeros(n_slots)

    def watch(_: Any, given: tuple[Any, ...]) -> None:
        query, key, _, allowed = given
        weights = attention.weights(query, key, allowed).mean(dim=1).double().cpu().numpy()  # (B, T, T)
        may = np.ones((len(weights), n_slots)) if allowed is None else allowed.cpu().numpy().astype(float)
        np.add(total, (weights * may[:, None, :]).sum(axis=0), out=total)
        np.add(count, may.sum(axis=0), out=count)

    handle = attention.register_forward_pre_hook(watch)
    try:
        for start in range(0, len(cases), _DAYS_AT_ONCE):
            for _ in model.scores(cases.rows(np.arange(start, min(start + _DAYS_AT_ONCE, len(cases))))):
                pass
    finally:
        handle.remove()
    least = min(_LEAST_DAYS, len(cases) / 10)
    out: Float64 = total / np.where((count > 0) & (count >= least), count, np.nan)
    return out


def coarser(values: Float64, most: int) -> Float64:
    """(R, R) at most: means over blocks of slots, so that fine slots make no large page."""
    n = len(values)
    step = -(-n // most)
    if step == 1:
        return values
    edges = np.arange(0, n, step)
    known = np.isfinite(values)
    total = np.add.reduceat(np.add.reduceat(np.where(known, values, 0.0), edges, axis=0), edges, axis=1)
    count = np.add.reduceat(np.add.reduceat(known.astype(float), edges, axis=0), edges, axis=1)
    out: Float64 = total / np.where(count > 0, count, np.nan)
    return out
