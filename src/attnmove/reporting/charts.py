"""The charts of the report: lines with marks, bars, and grids of shades. Each is one drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from attnmove.nouns import Float64
from attnmove.reporting.axes import WIDTH, Axis, Frame, Series, boxes, drawing, way
from attnmove.reporting.markup import Html, joined, number, tag

N_SHADES = 8
"""Shades of a scale from little to much."""


@dataclass(frozen=True)
class Line:
    """A series of values; NaN is a gap in the line."""

    series: Series
    x: Sequence[float]
    y: Sequence[float]
    titles: Sequence[str] = ()
    """What each mark says when it is pointed at."""
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    """Ends of each value's interval."""
    marks: bool = True
    sizes: Sequence[float] = field(default=())
    """Of the marks, where they are not all alike."""
    apart: Sequence[int] = ()
    """Positions that no line leads to: they stand for themselves."""


def line_chart(
    lines: Sequence[Line],
    *,
    x_axis: Axis,
    y_axis: Axis,
    title: str,
    about: str,
    shares: Sequence[float] = (),
    diagonal: bool = False,
    height: int = 280,
) -> Html:
    """Lines over one pair of axes. `shares` stand behind as soft bars of their own height; `diagonal` is x = y."""
    frame = Frame(x_axis, y_axis, height)
    parts = [frame.back()]
    if len(shares):
        parts.append(_behind(frame, shares))
    if diagonal:
        ends = [(frame.x(value), frame.y(value)) for value in (0, 1)]
        parts.append(tag("path", class_="diagonal", d=way(ends)))
    parts += [_line(frame, line) for line in lines]
    return drawing(*parts, title=title, about=about, height=height)


def _behind(frame: Frame, shares: Sequence[float]) -> Html:
    """How the targets spread over the steps of x; the tallest bar takes a good third of the height."""
    x, y = frame.x, frame.y
    most = max(shares) or 1.0
    width = (x(1) - x(0)) * 0.82
    bars = []
    for i, share in enumerate(shares):
        tall = share / most * (y.start - y.end) * 0.36
        about = tag("title", f"{share:.1%} of the targets")
        size = {"width": number(width), "height": number(tall)}
        bars.append(tag("rect", about, x=number(x(i) - width / 2), y=number(y.start - tall), **size))
    return tag("g", *bars, class_="behind")


def _line(frame: Frame, line: Line) -> Html:
    spots = [(frame.x(x), frame.y(y)) for x, y in zip(line.x, line.y, strict=True)]
    known = [math.isfinite(y) for y in line.y]
    parts = []
    pieces: list[list[tuple[float, float]]] = [[]]
    for i, spot in enumerate(spots):
        if not known[i] or i in line.apart:
            pieces.append([])
        else:
            pieces[-1].append(spot)
    d = "".join(way(piece) for piece in pieces if len(piece) > 1)
    if d:
        parts.append(tag("path", class_="line", d=d))
    for i in range(len(line.low)):
        if known[i] and math.isfinite(line.low[i]) and math.isfinite(line.high[i]):
            at, ends = spots[i][0], (frame.y(line.low[i]), frame.y(line.high[i]))
            parts.append(tag("path", class_="whisker", d=way([(at, ends[0]), (at, ends[1])])))
    for i, (x, y) in enumerate(spots if line.marks else ()):
        if known[i]:
            about = line.titles[i] if len(line.titles) else None
            size = line.sizes[i] if len(line.sizes) else 3.4
            parts.append(line.series.mark(x, y, size=size, title=about))
    return tag("g", *parts, class_=line.series.looks)


def bar_chart(
    heights: Sequence[float], titles: Sequence[str], *, x_axis: Axis, y_axis: Axis, title: str, about: str
) -> Html:
    """Bars side by side, one a unit of x; each says its title when it is pointed at."""
    frame = Frame(x_axis, y_axis, 250)
    x, y = frame.x, frame.y
    width = (x(1) - x(0)) * 0.84
    bars = [
        tag(
            "rect",
            tag("title", about_bar),
            x=number(x(i) - width / 2),
            y=number(y(tall)),
            width=number(width),
            height=number(y.start - y(tall)),
        )
        for i, (tall, about_bar) in enumerate(zip(heights, titles, strict=True))
    ]
    return drawing(frame.back(), tag("g", *bars, class_="bars"), title=title, about=about, height=250)


def shades_of(values: Float64) -> Float64:
    """The shade of each value, 0 to 7, so that each has about as many; -1 where it is NaN."""
    known = np.isfinite(values)
    out = np.full(values.shape, -1.0)
    if known.any():
        edges = np.unique(np.quantile(values[known], np.linspace(0, 1, N_SHADES + 1)[1:-1]))
        out[known] = np.searchsorted(edges, values[known], side="right") * (N_SHADES - 1) / max(1, len(edges))
    return out.round()


def heat_map(values: Float64, *, axis: Axis, y_axis: Axis, title: str, about: str, middle: str) -> Html:
    """(R, C) values as a grid of shades, the first row on top; a scale below names both ends and the middle."""
    rows, columns = values.shape
    size = WIDTH - 76
    height = size * rows / columns + 96
    cell = size / columns
    left, up = 64.0, 8.0
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 1.0)
    share = (np.where(known, values, low) - low) / ((high - low) or 1.0)
    shade = np.where(known, np.minimum(np.floor(share * N_SHADES), N_SHADES - 1), -1)
    parts = [tag("rect", class_="ground", x=left, y=up, width=number(size), height=number(size * rows / columns))]
    for level in range(N_SHADES):
        corners = [(left + c * cell, up + r * cell) for r, c in np.argwhere(shade == level).tolist()]
        if corners:
            parts.append(tag("path", class_=f"shade q{level}", d=boxes(corners, cell + 0.15, cell + 0.15)))
    foot = up + size * rows / columns
    for value, text in axis.ticks:
        at = number(left + (value + 0.5) * cell)
        parts.append(tag("text", text, class_="tick middle", x=at, y=number(foot + 16)))
    for value, text in y_axis.ticks:
        at = number(up + (value + 0.5) * cell)
        parts.append(tag("text", text, class_="tick end", x=left - 6, y=at, dy="0.33em"))
    turn = f"translate(11 {number(up + size * rows / columns / 2)}) rotate(-90)"
    parts.append(tag("text", y_axis.label, class_="name middle", transform=turn))
    parts.append(tag("text", axis.label, class_="name middle", x=number(left + size / 2), y=number(foot + 35)))
    parts.append(shade_scale(left, foot + 52, size, (f"{low:.2g}", middle, f"{high:.2g}")))
    return drawing(joined(parts), title=title, about=about, height=round(height))


def shade_scale(x: float, y: float, width: float, texts: tuple[str, str, str]) -> Html:
    """The shades side by side, with what the least, the whole and the most of them mean."""
    step = width / N_SHADES
    parts = [
        tag("rect", class_=f"shade q{i}", x=number(x + i * step), y=number(y), width=number(step + 0.2), height=9)
        for i in range(N_SHADES)
    ]
    for text, at, side in zip(texts, (x, x + width / 2, x + width), ("start", "middle", "end"), strict=True):
        parts.append(tag("text", text, class_=f"tick {side}", x=number(at), y=number(y + 23)))
    return joined(parts)
