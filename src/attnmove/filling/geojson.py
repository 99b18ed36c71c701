"""A recovery as lines on a map: a feature a user-day, and one a recovered stretch of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from attnmove.nouns import Bool

_DIGITS = 6
"""Of degrees: a tenth of a metre."""

Feature = dict[str, Any]


def features(table: pa.Table, n_slots: int) -> Iterator[str]:
    """The features of every user-day, as JSON: first the whole day, then its recovered stretches.

    A day is broken where a slot is left missing. A stretch reaches from the known place before it to the one after it.
    """
    user, date = (table[name].to_pylist()[::n_slots] for name in ("user", "date"))
    shape = (len(user), n_slots)
    place = np.stack([table[side].to_numpy().reshape(shape).round(_DIGITS) for side in ("lon", "lat")], axis=-1)
    probability = table["probability"].to_numpy().reshape(shape)
    status = np.array(table["status"].to_pylist(), dtype=object).reshape(shape)
    for i in range(len(user)):
        known = ~np.isnan(place[i]).any(axis=1)
        whose = {"user": user[i], "date": str(date[i])}
        yield json.dumps(_day(whose, known, place[i], status[i], probability[i]), ensure_ascii=False)
        for first, last in _runs(known & (status[i] == "recovered")):
            stretch = _stretch(whose, known, place[i], probability[i], first, last)
            yield json.dumps(stretch, ensure_ascii=False)


def _day(whose: Feature, known: Bool, place: Any, status: Any, probability: Any) -> Feature:
    slots = np.flatnonzero(known)
    counts = {name: int((status == name).sum()) for name in ("observed", "recovered", "left_missing")}
    vertices = {
        "slots": slots.tolist(),
        "statuses": status[slots].tolist(),
        "probabilities": [round(float(p), 4) for p in probability[slots]],
    }
    lines = [place[first : last + 1].tolist() for first, last in _runs(known)]
    return _feature(_lines(lines), {**whose, "kind": "day", **counts, **vertices})


def _stretch(whose: Feature, known: Bool, place: Any, probability: Any, first: int, last: int) -> Feature:
    begin = first - 1 if first > 0 and known[first - 1] else first
    end = last + 1 if last + 1 < len(known) and known[last + 1] else last
    sure = probability[first : last + 1]
    facts = {"first_slot": first, "last_slot": last, "probability": round(float(sure.mean()), 4)}
    return _feature(_lines([place[begin : end + 1].tolist()]), {**whose, "kind": "recovered", **facts})


def _runs(mask: Bool) -> list[tuple[int, int]]:
    """The first and last position of each run of True."""
    edge = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [(int(a), int(b) - 1) for a, b in zip(edge[::2], edge[1::2], strict=True)]


def _lines(lines: list[list[list[float]]]) -> Feature | None:
    """One line or several; a line of a single place is drawn as one that stays there."""
    lines = [line if len(line) > 1 else line * 2 for line in lines]
    if not lines:
        return None
    if len(lines) == 1:
        return {"type": "LineString", "coordinates": lines[0]}
    return {"type": "MultiLineString", "coordinates": lines}


def _feature(geometry: Feature | None, properties: Feature) -> Feature:
    return {"type": "Feature", "geometry": geometry, "properties": properties}
