"""What every chart stands on: a drawing, scales, axes with ticks, series that differ in more than colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attnmove.reporting.markup import Html, joined, number, tag

WIDTH = 460
"""Units across a drawing: letters stay readable when a phone shows it 350 pixels wide."""
_LETTER = 6.6
"""Width of a letter of a tick, about."""
N_COLOURS = 8
NAIVE = ("nearest", "vote")
"""The rules that stand beside every model."""


@dataclass(frozen=True)
class Series:
    """How a model looks in every chart."""

    name: str
    place: int
    """Number of its colour and mark."""

    @property
    def looks(self) -> str:
        """The classes that give it its colour."""
        return f"naive naive{self.place}" if self.is_naive else f"series s{self.place % N_COLOURS}"

    @property
    def is_naive(self) -> bool:
        return self.name in NAIVE

    def mark(self, x: float, y: float, *, size: float = 3.4, title: str | None = None) -> Html:
        """Its mark at a place of the drawing."""
        kind = 0 if self.is_naive else (self.place + self.place // N_COLOURS) % 4
        about = None if title is None else tag("title", title)
        if kind == 0:
            return tag("circle", about, class_="mark", cx=number(x), cy=number(y), r=number(size))
        r = size * (1.15 if kind == 1 else 1.45)
        corners = {
            1: [(-r, -r), (r, -r), (r, r), (-r, r)],
            2: [(0, -r), (r, r * 0.8), (-r, r * 0.8)],
            3: [(0, -r), (r, 0), (0, r), (-r, 0)],
        }[kind]
        return tag("path", about, class_="mark", d=outline([(x + dx, y + dy) for dx, dy in corners]))


def series_of(names: Sequence[str]) -> dict[str, Series]:
    """A look for each name, in this order; nearest and vote have their own."""
    others = [name for name in dict.fromkeys(names) if name not in NAIVE]
    return {name: Series(name, i) for i, name in enumerate(others)} | {
        name: Series(name, NAIVE.index(name)) for name in names if name in NAIVE
    }


def legend(series: Sequence[Series]) -> Html:
    """The series by name, to stand above a chart; it wraps where the page is narrow."""
    items = []
    for one in series:
        line = tag("line", class_="line", x1=1, x2=27, y1=6, y2=6)
        swatch = tag(
            "svg", line, one.mark(14, 6), viewBox="0 0 28 12", class_=f"swatch {one.looks}", aria_hidden="true"
        )
        items.append(tag("li", swatch, one.name))
    return tag("ul", *items, class_="legend")


@dataclass(frozen=True)
class Scale:
    """From values to places of the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)


@dataclass(frozen=True)
class Axis:
    """The values an axis goes through and the ticks it names."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    stacked: bool = False
    """True where the words of a tick stand below each other."""


def axis_of(label: str, low: float, high: float, *, n: int = 5, percent: bool = False) -> Axis:
    """An axis with about `n` round ticks that begins and ends at one.

    >>> [text for _, text in axis_of("share", 0, 0.93, percent=True).ticks]
    ['0%', '20%', '40%', '60%', '80%', '100%']
    """
    if not high > low:
        high = low + 1
    rough = (high - low) / max(1, n)
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    values = [i * step for i in range(first, last + 1)]
    unit = step * 100 if percent else step
    digits = next((d for d in range(9) if abs(round(unit, d) - unit) < unit * 1e-6), 9)
    texts = [f"{value:.{digits}%}" if percent else f"{value:,.{digits}f}" for value in values]
    return Axis(label, values[0], values[-1], list(zip(values, texts, strict=True)))


def steps_of(label: str, labels: Sequence[str]) -> Axis:
    """An axis of labels, one a unit; their words are stacked where that helps, and of many as many are named as fit."""
    room = (WIDTH - 70) / max(1, len(labels))
    longest = max((len(text) for text in labels), default=1)
    word = max((len(part) for text in labels for part in text.split()), default=1)
    stacked = (longest + 1) * _LETTER > room >= (word + 0.5) * _LETTER
    every = 1 if stacked else max(1, math.ceil((longest + 1) * _LETTER / room))
    ticks = [(float(i), text) for i, text in enumerate(labels) if i % every == 0]
    return Axis(label, -0.5, len(labels) - 0.5, ticks, stacked)


def time_of(slot: int, n_slots: int) -> str:
    """What the clock shows when the slot begins."""
    minutes = slot * 1440 // n_slots
    return f"{minutes // 60:02}:{minutes % 60:02}"


def clock(label: str, n_slots: int, *, every_hours: int = 3) -> Axis:
    """An axis of a day's slots that names some of the hours."""
    hours = range(0, 24, every_hours)
    return Axis(label, -0.5, n_slots - 0.5, [(hour * n_slots / 24, f"{hour:02}:00") for hour in hours])


@dataclass(frozen=True)
class Frame:
    """The inside of a chart: both scales, and the grid, ticks and names around them."""

    x_axis: Axis
    y_axis: Axis
    height: int = 280
    width: int = WIDTH

    @property
    def left(self) -> float:
        longest = max((len(text) for _, text in self.y_axis.ticks), default=1)
        return 32 + _LETTER * max(2, longest)

    @property
    def x(self) -> Scale:
        return Scale(self.x_axis.low, self.x_axis.high, self.left, self.width - 18)

    @property
    def y(self) -> Scale:
        return Scale(self.y_axis.low, self.y_axis.high, self.height - (58 if self.x_axis.stacked else 44), 12)

    def back(self) -> Html:
        """Grid, ticks and names: what is drawn first."""
        x, y = self.x, self.y
        parts = []
        for value, text in self.y_axis.ticks:
            at = number(y(value))
            parts.append(tag("line", class_="grid", x1=number(x.start), x2=number(x.end), y1=at, y2=at))
            parts.append(tag("text", text, class_="tick end", x=number(x.start - 7), y=at, dy="0.33em"))
        for value, text in self.x_axis.ticks:
            for line, words in enumerate(text.split() if self.x_axis.stacked else [text]):
                down = number(y.start + 17 + 13 * line)
                parts.append(tag("text", words, class_="tick middle", x=number(x(value)), y=down))
        middle = number((x.start + x.end) / 2)
        parts.append(tag("line", class_="base", x1=number(x.start), x2=number(x.end), y1=y.start, y2=y.start))
        parts.append(tag("text", self.x_axis.label, class_="name middle", x=middle, y=self.height - 8))
        turn = f"translate(11 {number((y.start + y.end) / 2)}) rotate(-90)"
        parts.append(tag("text", self.y_axis.label, class_="name middle", transform=turn))
        return joined(parts)


def drawing(*parts: Html, title: str, about: str, width: int = WIDTH, height: int) -> Html:
    """A figure that fills its place and tells what it is to those who cannot see it."""
    size = f"0 0 {width} {height}"
    names = (tag("title", title), tag("desc", about))
    return tag("svg", *names, *parts, viewBox=size, role="img", aria_label=f"{title}. {about}", class_="drawing")


def outline(points: Sequence[tuple[float, float]]) -> str:
    """A closed path through the points."""
    return f"{way(points)}Z"


def way(points: Sequence[tuple[float, float]]) -> str:
    """A path through the points, in order."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) if points else ""


def boxes(corners: Sequence[tuple[float, float]], width: float, height: float) -> str:
    """Many rectangles of one size as one path: short, however many there are."""
    w, h = number(width), number(height)
    return "".join(f"M{number(x)} {number(y)}h{w}v{h}h-{w}z" for x, y in corners)
