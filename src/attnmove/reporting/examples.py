"""Example days, drawn by lot: what was seen, what was recovered and how surely, what was true."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from attnmove.measure.outcomes import Outcomes
from attnmove.nouns import MISSING, Cases, Int32, Int64
from attnmove.reporting.answers import Answered
from attnmove.reporting.axes import N_COLOURS, drawing, time_of, way
from attnmove.reporting.markup import Html, joined, number, tag
from attnmove.reporting.page import Section, figure, note, scrolling

_TITLE = "Example days"
_EACH = 3
"""Days of each kind."""
_WIDTH = 960
_LEFT = 96
_DARK_FROM = 0.62
"""How sure an answer is whose letter stands on its colour alone."""
_LEAST_ROOM = 9.0
"""Width that a letter needs."""
_ROW, _STEP = 26, 36
"""Height of a strip, and from one strip to the next."""


@dataclass(frozen=True)
class Kind:
    """A third of the days, and some of them drawn by lot."""

    name: str
    rows: Int64


def examples_section(cases: Cases | None, answered: list[Answered], *, seed: int) -> Section:
    """Days of the first run named, or of vote where no run was."""
    if cases is None or not answered:
        return Section("days", _TITLE, left_out=["Example days: name a run and --dataset DATASET."])
    one = next((some for some in answered if some.run is not None), answered[-1])
    parts = []
    for kind in drawn_days(one.outcomes, seed=seed):
        parts += [_day(cases, one, row, kind.name) for row in kind.rows.tolist()]
    rule = (
        f"Not picked: the {days_in(cases)} are ordered by the share of targets that {one.name} got right (then by user "
        f"and date) and cut into thirds; up to {_EACH} days of each are drawn by lot with seed {seed}. A different "
        "--seed draws others."
    )
    intro = (
        "A colour and a letter stand for a place, within a day. Recovered slots are filled as high as the model is "
        "sure; a cross marks a wrong one. Grey: nobody saw the user."
    )
    return Section("days", _TITLE, intro, joined([note(rule), tag("div", *parts, class_="days")]))


def days_in(cases: Cases) -> str:
    """How many days the cases are of, and how often what is hidden of them was drawn."""
    n_days = len(set(zip(cases.user.tolist(), cases.date.tolist(), strict=True)))
    n_draws = round(len(cases) / max(1, n_days))
    return f"{n_days:,} days" if n_draws == 1 else f"{n_days:,} days in {n_draws} draws"


def drawn_days(outcomes: Outcomes, *, seed: int) -> list[Kind]:
    """Rows of the best, the middle and the worst third of the days, three of each drawn with the seed."""
    rows, code = np.unique(outcomes.row, return_inverse=True)
    share = np.bincount(code, outcomes.right) / np.bincount(code)
    order = rows[np.argsort(-share, kind="stable")]
    rng = np.random.default_rng(seed)
    names = ("among the best third", "among the middle third", "among the worst third")
    return [
        Kind(name, np.sort(rng.permutation(third)[:_EACH]))
        for name, third in zip(names, np.array_split(order, 3), strict=True)
    ]


def _day(cases: Cases, one: Answered, row: int, kind: str) -> Html:
    mine = one.outcomes.only(one.outcomes.row == row)
    truth = cases.loc[row]
    recovered = np.full(cases.n_slots, MISSING, dtype=np.int32)
    recovered[mine.slot] = mine.predicted
    letters = _letters(cases, row, recovered)
    n_right = int(mine.right.sum())
    title = joined(
        [
            f"{cases.user[row]}, {cases.date[row]} ",
            tag("span", f"· {n_right} of {len(mine)} right, {kind}", class_="verdict"),
        ]
    )
    about = f"{n_right} of {len(mine)} recovered slots are right; mean confidence {float(mine.confidence.mean()):.0%}."
    parts = [
        _names(),
        _strip(cases, cases.visible[row], letters, 0),
        _recovered(cases, mine, letters),
        _strip(cases, truth, letters, 2),
        _hours(),
    ]
    figure_name = f"{cases.user[row]}, {cases.date[row]}"
    drawn = drawing(*parts, title=figure_name, about=about, width=_WIDTH, height=3 * _STEP + 22)
    caption = f"Mean confidence {float(mine.confidence.mean()):.0%}. {_key(cases, letters, truth, recovered)}"
    return figure(title, caption, scrolling(tag("div", drawn, class_="strip"), f"Day of {figure_name}"), looks="wide")


def _letters(cases: Cases, row: int, recovered: Int32) -> dict[int, int]:
    """A number for each place of the day, in the order in which they come: true places first, then wrong guesses."""
    every = np.concatenate([cases.loc[row], recovered])
    return {place: i for i, place in enumerate(dict.fromkeys(every[every != MISSING].tolist()))}


def letter(i: int) -> str:
    """A, B, …, Z, then A1, B1, …"""
    return chr(ord("A") + i % 26) + (str(i // 26) if i >= 26 else "")


def _key(cases: Cases, letters: dict[int, int], truth: Int32, recovered: Int32) -> str:
    true = set(truth.tolist())
    wrong = set(recovered.tolist()) - true
    names = [
        f"{letter(i)} {cases.locations.name[place]}{' (not visited)' if place in wrong else ''}"
        for place, i in letters.items()
    ]
    return f"Places: {', '.join(names[:12])}{' …' if len(names) > 12 else '.'}"


def _left(cases: Cases, slot: float) -> float:
    return _LEFT + slot * (_WIDTH - _LEFT - 6) / cases.n_slots


def _strip(cases: Cases, places: Int32, letters: dict[int, int], line: int) -> Html:
    """A row of slots; the same place side by side is one piece."""
    top = 4 + line * _STEP
    cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), len(places)]
    parts = []
    for start, end in pairwise(cuts):
        place = int(places[start])
        x, width = _left(cases, start), _left(cases, end) - _left(cases, start)
        when = f"{time_of(start, cases.n_slots)}–{time_of(end, cases.n_slots)}"
        size = {"x": number(x), "y": top, "width": number(width), "height": _ROW}
        if place == MISSING:
            parts.append(tag("rect", tag("title", f"{when}: not seen"), class_="cell unseen", **size))
            continue
        i = letters[place]
        about = tag("title", f"{when}: {letter(i)}, {cases.locations.name[place]}")
        piece = tag("rect", about, class_="cell fill", **size)
        parts.append(tag("g", piece, _letter(i, x, width, top + _ROW / 2), class_=_colour(i)))
    return joined(parts)


def _recovered(cases: Cases, mine: Outcomes, letters: dict[int, int]) -> Html:
    """The targets of the day: hollow, filled as high as the answer is sure, crossed where it is wrong."""
    foot = 4 + _STEP + _ROW
    base = tag("line", class_="grid", x1=_LEFT, x2=_WIDTH - 6, y1=foot, y2=foot)
    return joined([base, *(_answer(cases, mine, k, letters) for k in range(len(mine)))])


def _answer(cases: Cases, mine: Outcomes, k: int, letters: dict[int, int]) -> Html:
    slot, place, sure = int(mine.slot[k]), int(mine.predicted[k]), min(1.0, float(mine.confidence[k]))
    i, top, x = letters[place], 4 + _STEP, _left(cases, slot) + 1
    width, tall = max(1.0, _left(cases, 1) - _left(cases, 0) - 2), (_ROW - 2) * sure
    said = f"{time_of(slot, cases.n_slots)}: {letter(i)}, {cases.locations.name[place]}, {sure:.0%} sure"
    truth = "right" if mine.right[k] else f"wrong, it was {letter(letters[int(mine.truth[k])])}"
    across = {"x": number(x), "width": number(width)}
    parts = [
        tag("title", f"{said}; {truth}"),
        tag("rect", class_="fill", y=number(top + _ROW - 1 - tall), height=number(tall), **across),
        tag("rect", class_="hollow", y=top + 1, height=_ROW - 2, **across),
        _letter(i, x, width, top + _ROW / 2 + 3, outside=sure < _DARK_FROM),
    ]
    return tag("g", *parts, None if mine.right[k] else _cross(x + width / 2, top + _ROW + 5), class_=_colour(i))


def _cross(x: float, y: float) -> Html:
    arms = [[(x - 3, y - 3), (x + 3, y + 3)], [(x - 3, y + 3), (x + 3, y - 3)]]
    return tag("path", class_="wrong", d="".join(way(arm) for arm in arms))


def _letter(i: int, left: float, width: float, y: float, *, outside: bool = False) -> Html | None:
    """The letter of a place in the middle of a piece, where there is room for it."""
    if width < _LEAST_ROOM:
        return None
    looks = "letter out" if outside else "letter"
    return tag("text", letter(i), class_=looks, x=number(left + width / 2), y=number(y), dy="0.35em")


def _colour(i: int) -> str:
    return f"s{i % N_COLOURS}"


def _names() -> Html:
    rows = ("seen", "recovered", "true")
    middles = [4 + line * _STEP + _ROW / 2 for line in range(3)]
    return joined(
        tag("text", name, class_="tick start", x=2, y=number(middle), dy="0.35em")
        for name, middle in zip(rows, middles, strict=True)
    )


def _hours() -> Html:
    foot = 3 * _STEP + 14
    across = _WIDTH - _LEFT - 6
    return joined(
        tag("text", f"{hour:02}:00", class_="tick middle", x=number(_LEFT + across * hour / 24), y=foot)
        for hour in range(0, 24, 3)
    )
