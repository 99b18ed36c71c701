"""Filters, numbering and counts of everything that was dropped."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnmove.errors import DataError
from attnmove.nouns import MISSING
from attnmove.prep.config import Preparation
from attnmove.prep.fold import FOLDED
from attnmove.prep.gather import Gathered, gather
from attnmove.prep.pipeline import prepare
from attnmove.prep.rejects import Rejects
from attnmove.space import parse_tessellation
from builders import PLACES, day, points, utc, write_points

HOW = Preparation(slot_minutes=120, min_slots=3, min_days=2, hide=1)


def folded(*rows: tuple[str, int, str]) -> pa.RecordBatch:
    """FOLDED rows from (user, day, slots as for `day`); the key of a location is ten times its number."""
    cells = [
        [{"slot": slot, "key": 10 * place} for slot, place in enumerate(day(text)) if place != MISSING]
        for _, _, text in rows
    ]
    return pa.RecordBatch.from_pylist(
        [
            {"user": user, "day": date, "fixes": len(some), "cells": some, "refused": []}
            for (user, date, _), some in zip(rows, cells, strict=True)
        ],
        schema=FOLDED,
    )


def gathered(tmp_path: Path, *batches: pa.RecordBatch) -> Gathered:
    with Rejects(tmp_path / "rejects.parquet") as rejects:
        return gather(batches, rejects, HOW)


def test_sparse_days_and_users_with_few_days_are_dropped_and_counted(tmp_path: Path) -> None:
    result = gathered(
        tmp_path,
        folded(("a", 1, "A A A"), ("a", 2, ". A A"), ("a", 3, "B . B B"), ("b", 1, "A A A"), ("c", 5, "A")),
    )
    assert result.user.tolist() == ["a", "a"]
    assert result.date.astype(str).tolist() == ["1970-01-02", "1970-01-04"]
    assert result.dropped == {"days_too_sparse": 2, "days_of_users_with_too_few": 1, "users_with_too_few_days": 2}
    assert (result.fixes, result.days, result.most_slots) == (12, 5, 3)


def test_a_user_may_come_in_several_batches(tmp_path: Path) -> None:
    rows = [("a", 1, "A A A"), ("a", 2, "B B B"), ("a", 3, "A C A"), ("b", 1, "C C C"), ("b", 2, "D D D")]
    whole = gathered(tmp_path, folded(*rows))
    for cut in range(1, 5):
        parts = gathered(tmp_path, folded(*rows[:cut]), folded(), folded(*rows[cut:]))
        assert parts.user.tolist() == whole.user.tolist()
        assert parts.dropped == whole.dropped
        # Numbers depend on what was met first; the keys they stand for do not.
        assert np.array_equal(parts.keys[parts.number], whole.keys[whole.number])


def test_slots_get_the_keys_of_their_cells(tmp_path: Path) -> None:
    result = gathered(tmp_path, folded(("a", 1, "C . A A"), ("a", 2, "B B B")))
    keys = np.append(result.keys, -1)[result.number]
    assert keys[:, :4].tolist() == [[20, -1, 0, 0], [10, 10, 10, -1]]
    assert (keys[:, 4:] == -1).all()


def test_nothing_gathered_is_empty(tmp_path: Path) -> None:
    result = gathered(tmp_path)
    assert result.number.shape == (0, 12)
    assert (result.fixes, result.days) == (0, 0)


def test_an_endless_tessellation_keeps_the_locations_that_occur(tmp_path: Path) -> None:
    dataset = prepare(points(week("u", "ABCABCABC")), "grid:500", min_slots=3, hide=1)
    assert len(dataset.locations) == 3
    assert sorted(np.unique(dataset.days.loc).tolist()) == [-1, 0, 1, 2]


def test_dropped_days_leave_no_location_behind(tmp_path: Path) -> None:
    rows = [*week("u", "ABCABCABC"), ("v", utc("2024-03-04 10:00"), "H")]
    dataset = prepare(points(rows), "grid:500", min_slots=3, hide=1)
    assert len(dataset.locations) == 3
    rule = parse_tessellation("grid:500")
    keys = rule.keys(*(np.array(column) for column in zip(*(PLACES[name] for name in "ABC"), strict=True)))
    assert sorted(dataset.locations.key.tolist()) == sorted(keys.tolist())


def week(user: str, places: str, n_days: int = 6) -> list[tuple[str, Any, str]]:
    """The same places every day, one an hour from nine."""
    start = utc("2024-03-04 09:00")
    return [
        (user, start + timedelta(days=i, hours=hour), place) for i in range(n_days) for hour, place in enumerate(places)
    ]


def test_refused_rows_are_kept_as_they_were_written(tmp_path: Path) -> None:
    rows = week("u", "ABCABC")
    source = tmp_path / "points.csv"
    lines = [f"{user},{when.isoformat()},{PLACES[place][1]},{PLACES[place][0]}" for user, when, place in rows]
    dirt = [",2024-03-04T09:00:00Z,1,1", "u,yesterday,1,1", "u,2024-03-04T09:00:00Z,x,1", "u,2024-03-04T09:00:00Z,91,1"]
    source.write_text("\n".join(["user,time,lat,lon", *lines, *dirt, lines[0], lines[0]]) + "\n")
    dataset = prepare(source, "grid:500", out=tmp_path / "dataset", min_slots=3, hide=1)
    counts = {"no_user": 1, "unparsable_time": 1, "not_a_number": 1, "out_of_range": 1, "duplicate": 2}
    assert dataset.facts["rejects"] == counts
    assert dataset.facts["points"] == len(rows) + 6
    assert dataset.facts["points_used"] == len(rows)
    kept = pq.read_table(tmp_path / "dataset" / "rejects.parquet").to_pylist()
    assert len(kept) == 6
    assert {"reason": "not_a_number", "user": "u", "time": "2024-03-04T09:00:00Z", "lat": "x", "lon": "1"} in kept
    duplicate = next(row for row in kept if row["reason"] == "duplicate")
    assert duplicate["time"].startswith("2024-03-04 09:00:00")
    assert duplicate["time"].endswith("Z")
    assert float(duplicate["lon"]) == PLACES["A"][0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_slots": 10, "hide": 1}, "the fullest of 6 user-days has 9"),
        ({"min_slots": 3, "hide": 1, "min_days": 7}, "no user has 7 days"),
    ],
)
def test_when_nothing_is_left_the_error_says_how_far_it_was(options: dict[str, int], words: str) -> None:
    with pytest.raises(DataError, match=words):
        prepare(points(week("u", "ABCABCABC")), "grid:500", **options)


def test_points_in_no_location_are_named_as_the_cause(tmp_path: Path) -> None:
    far = '{"type":"Polygon","coordinates":[[[0,10],[1,10],[1,11],[0,11],[0,10]]]}'
    areas = tmp_path / "areas.geojson"
    areas.write_text(
        f'{{"type":"FeatureCollection","features":[{{"type":"Feature","properties":{{}},"geometry":{far}}}]}}'
    )
    source = write_points(tmp_path / "points.parquet", points(week("u", "ABC")))
    with pytest.raises(DataError, match="none of the 18 fixes lies in a location"):
        prepare(source, str(areas), min_slots=3, hide=1)
