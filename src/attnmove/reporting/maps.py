"""Locations on a map without a map below them: centres, shaded or coloured, with a ruler in kilometres."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from attnmove.nouns import EARTH_RADIUS_M, Bool, Float64, Int64, Locations
from attnmove.reporting.axes import WIDTH, boxes, drawing, way
from attnmove.reporting.charts import N_SHADES, shade_scale, shades_of
from attnmove.reporting.markup import Html, number, tag

_MOST_SPOTS = 4_000
"""Beyond, locations are drawn as a density: a page stays small whatever the dataset."""
_BIN = 4.0
"""Side of a cell of the density, in units of the drawing."""
_MARGIN = 8.0
_SPOTS = (2.6, 16.0)
"""Least and greatest side of a location that is drawn by itself."""
_EDGE = 0.01
"""Share of the visits that may lie beyond each edge."""


@dataclass(frozen=True)
class View:
    """Where locations lie on the drawing."""

    x: Float64 = field(repr=False)
    y: Float64 = field(repr=False)
    """(L,) NaN where not known."""
    inside: Bool = field(repr=False)
    """(L,) True for those that are drawn."""
    height: float
    unit_km: float
    """Kilometres of a unit of the drawing."""
    side: float
    """Of the square that stands for a location."""

    @property
    def is_density(self) -> bool:
        return int(self.inside.sum()) > _MOST_SPOTS


def view_of(locations: Locations, weight: Float64, *, tallest: float = 400.0) -> View | None:
    """A view of the locations with weight that leaves out a little of it at each edge; None without any known "
    "centre."""
    known = np.isfinite(locations.lon) & np.isfinite(locations.lat) & (weight > 0)
    if not known.any():
        return None
    east, north = _kilometres(locations, known)
    (west, right), (south, top) = (_ends(axis[known], weight[known]) for axis in (east, north))
    inside = known & (east >= west) & (east <= right) & (north >= south) & (north <= top)
    span = (max(right - west, 0.5), max(top - south, 0.25))
    unit_km = max(span[0] / (WIDTH - 2 * _MARGIN), span[1] / (tallest - 2 * _MARGIN))
    height = max(160.0, span[1] / unit_km + 2 * _MARGIN)
    x = WIDTH / 2 + (east - (west + right) / 2) / unit_km
    y = height / 2 - (north - (south + top) / 2) / unit_km
    return View(x, y, inside, height, unit_km, _side(x[inside], y[inside]))


def _kilometres(locations: Locations, known: Bool) -> tuple[Float64, Float64]:
    """East and north of the middle of the locations; those on both sides of the date line stay together."""
    lon, lat = np.radians(locations.lon), np.radians(locations.lat)
    middle = np.arctan2(np.sin(lon[known]).mean(), np.cos(lon[known]).mean())
    turned = (lon - middle + np.pi) % (2 * np.pi) - np.pi
    radius_km = EARTH_RADIUS_M / 1000
    return radius_km * turned * np.cos(np.median(lat[known])), radius_km * lat


def _ends(values: Float64, weight: Float64) -> tuple[float, float]:
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    low, high = np.searchsorted(share, [_EDGE, 1 - _EDGE])
    ends = values[order[[low, min(high, len(order) - 1)]]]
    spare = 0.04 * (ends[1] - ends[0])
    return float(ends[0] - spare), float(ends[1] + spare)


def _side(x: Float64, y: Float64) -> float:
    """About the distance between neighbours, so that the cells of a grid tile and none is too small to see."""
    if len(x) < 2:
        return _SPOTS[1]
    near, _ = cKDTree(np.column_stack([x, y])).query(np.column_stack([x, y]), k=2)
    return float(np.clip(1.03 * np.median(near[:, 1]), *_SPOTS))


def shaded_map(view: View, values: Float64, *, title: str, about: str, ends: tuple[str, str, str]) -> Html:
    """Locations darker where `values` (L,) are larger; a density sums them."""
    x, y, value, side = _drawn(view, values)
    shade = shades_of(value)
    parts = [_spots(x, y, side, shade == level, f"shade q{level}") for level in range(N_SHADES)]
    parts.append(_ruler(view))
    parts.append(shade_scale(_MARGIN, view.height + 14, WIDTH - 2 * _MARGIN, ends))
    ground = tag("rect", class_="ground", x=0, y=0, width=WIDTH, height=number(view.height), rx=8)
    return drawing(ground, *parts, title=title, about=about, height=round(view.height + 44))


def coloured_map(view: View, group: Int64, *, title: str, about: str) -> Html:
    """Locations in the colour of their group (L,), -1 for none; in a density the largest group gives the colour."""
    x, y, colour, side = _drawn_groups(view, group)
    parts = [_spots(x, y, side, colour == one, f"s{one}") for one in range(int(group.max()) + 1)]
    ground = tag("rect", class_="ground", x=0, y=0, width=WIDTH, height=number(view.height), rx=8)
    spots = tag("g", *parts, class_="spots")
    return drawing(ground, spots, _ruler(view), title=title, about=about, height=round(view.height + 6))


def _spots(x: Float64, y: Float64, side: float, mine: Bool, looks: str) -> Html:
    corners = list(zip((x[mine] - side / 2).tolist(), (y[mine] - side / 2).tolist(), strict=True))
    return tag("path", class_=looks, d=boxes(corners, side, side)) if corners else Html("")


def _drawn(view: View, values: Float64) -> tuple[Float64, Float64, Float64, float]:
    """Places, values and side of the squares to draw: the locations, or the cells of a density."""
    x, y, value = view.x[view.inside], view.y[view.inside], values[view.inside]
    if not view.is_density:
        return x, y, np.log1p(value), view.side
    cell, code = _cells(x, y)
    return cell[:, 0], cell[:, 1], np.log1p(np.bincount(code, value)), _BIN


def _drawn_groups(view: View, group: Int64) -> tuple[Float64, Float64, Int64, float]:
    shown = view.inside & (group >= 0)
    x, y, mine = view.x[shown], view.y[shown], group[shown]
    if not view.is_density:
        return x, y, mine, view.side
    cell, code = _cells(x, y)
    votes = np.zeros((len(cell), int(group.max()) + 1), dtype=np.int64)
    np.add.at(votes, (code, mine), 1)
    return cell[:, 0], cell[:, 1], votes.argmax(axis=1), _BIN


def _cells(x: Float64, y: Float64) -> tuple[Float64, npt.NDArray[np.intp]]:
    """Middles of the cells in use, and the cell of each place."""
    at = np.floor(np.column_stack([x, y]) / _BIN).astype(np.int64)
    cell, code = np.unique(at, axis=0, return_inverse=True)
    middle = ((cell + 0.5) * _BIN).astype(np.float64)
    return middle, code.reshape(-1)


def _ruler(view: View) -> Html:
    """A length to measure distances by, about a fifth of the width."""
    rough = view.unit_km * WIDTH / 5
    power = 10.0 ** np.floor(np.log10(rough))
    km = max(power * m for m in (1, 2, 5) if power * m <= rough * 1.001)
    start, foot = _MARGIN + 4, view.height - 12
    end = start + km / view.unit_km
    line = tag("path", class_="ruler", d=way([(start, foot - 4), (start, foot), (end, foot), (end, foot - 4)]))
    name = f"{km:g} km" if km >= 1 else f"{1000 * km:g} m"
    return tag("g", line, tag("text", name, class_="tick start", x=number(start), y=number(foot - 8)))
