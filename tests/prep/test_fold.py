"""Fixes to user-days: worked by hand, and against a slow loop written from the rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmove.nouns import MISSING
from attnmove.prep.config import Preparation
from attnmove.prep.dataset import Dataset
from attnmove.prep.fold import FOLDED, fold_days
from attnmove.prep.pipeline import prepare
from builders import METRES_OF_A_CELL, PLACES, fixes, points, utc, whole_degrees, write_points

Row = tuple[str, int, int, int, float, float]


def folded(*rows: Row, rule: str = "mode", n_slots: int = 4) -> list[dict[str, Any]]:
    return fold_days(fixes(*rows), keys=whole_degrees, n_slots=n_slots, slot_rule=rule).to_pylist()


def cells(*rows: Row, rule: str = "mode") -> dict[int, int]:
    """The slots of the one user-day among the rows."""
    [only] = folded(*rows, rule=rule)
    return {cell["slot"]: cell["key"] for cell in only["cells"]}


def seen(second: int, lon: float, *, slot: int = 0, lat: float = 10.0, user: str = "u", day: int = 7) -> Row:
    return (user, day, slot, second, lon, lat)


def test_mode_takes_the_location_with_most_fixes() -> None:
    assert cells(seen(1, 5), seen(2, 9), seen(3, 9)) == {0: 9}


def test_mode_takes_the_earlier_of_two_with_as_many_fixes() -> None:
    assert cells(seen(1, 9), seen(2, 5), seen(3, 5), seen(4, 9)) == {0: 9}


def test_mode_takes_the_lower_key_when_both_were_first_seen_at_one_instant() -> None:
    assert cells(seen(1, 9), seen(1, 5)) == {0: 5}


def test_last_takes_the_location_of_the_last_fix() -> None:
    assert cells(seen(1, 5), seen(2, 5), seen(3, 9), rule="last") == {0: 9}


def test_last_takes_the_one_with_more_fixes_when_two_are_last_at_one_instant() -> None:
    assert cells(seen(1, 9), seen(3, 5), seen(3, 9), rule="last") == {0: 9}


def test_last_takes_the_lower_key_when_everything_else_is_equal() -> None:
    assert cells(seen(3, 9), seen(3, 5), rule="last") == {0: 5}


def test_a_duplicate_counts_once_and_is_set_aside() -> None:
    [only] = folded(seen(1, 9), seen(1, 9), seen(1, 9), seen(2, 5), seen(3, 5))
    assert only["cells"] == [{"slot": 0, "key": 5}]
    assert only["fixes"] == 5
    assert only["refused"] == [{"reason": "duplicate", "time_us": 1, "lat": 10.0, "lon": 9.0}] * 2


def test_fixes_of_one_instant_at_two_places_are_no_duplicates() -> None:
    [only] = folded(seen(1, 9), seen(1, 9, lat=11.0), seen(1, 5))
    assert only["cells"] == [{"slot": 0, "key": 9}]
    assert only["refused"] == []


def test_duplicates_are_found_when_another_fix_of_the_instant_lies_between_them() -> None:
    [only] = folded(seen(1, 9), seen(1, 5), seen(1, 9))
    assert [row["reason"] for row in only["refused"]] == ["duplicate"]


def test_two_users_at_one_time_and_place_are_no_duplicates() -> None:
    rows = folded(seen(1, 9, user="a"), seen(1, 9, user="b"))
    assert [row["refused"] for row in rows] == [[], []]


def test_a_fix_in_no_location_is_set_aside_and_takes_no_part_in_the_vote() -> None:
    [only] = folded(seen(1, 5), seen(2, 9, lat=-1.0), seen(3, 9, lat=-1.0))
    assert only["cells"] == [{"slot": 0, "key": 5}]
    assert [row["reason"] for row in only["refused"]] == ["outside", "outside"]


def test_a_day_with_no_fix_in_a_location_is_a_row_without_cells() -> None:
    [only] = folded(seen(1, 5, lat=-1.0))
    assert (only["cells"], only["fixes"]) == ([], 1)


def test_no_fixes_make_no_rows() -> None:
    batch = fold_days(fixes(), keys=whole_degrees, n_slots=4, slot_rule="mode")
    assert len(batch) == 0
    assert batch.schema == FOLDED


def test_rows_come_by_user_and_day_with_ascending_slots() -> None:
    rows = folded(
        seen(30, 1, slot=3), seen(10, 2, slot=1), seen(5, 3, day=8), seen(1, 4, user="a", day=9), seen(2, 5, user="v")
    )
    assert [(row["user"], row["day"]) for row in rows] == [("a", 9), ("u", 7), ("u", 8), ("v", 7)]
    assert rows[1]["cells"] == [{"slot": 1, "key": 2}, {"slot": 3, "key": 1}]


def test_slots_that_come_back_later_in_the_day_are_one_slot() -> None:
    # The hour that clocks repeat: slots 1 2, then 1 2 again.
    rows = [seen(1, 5, slot=1), seen(2, 6, slot=2), seen(3, 7, slot=1), seen(4, 7, slot=1), seen(5, 6, slot=2)]
    assert cells(*rows) == {1: 7, 2: 6}
    assert cells(*rows, rule="last") == {1: 7, 2: 6}


def slow_fold(rows: list[Row], rule: str) -> list[dict[str, Any]]:
    """The rules, one fix after the other."""
    per_day: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        per_day[row[0], row[1]].append(row)
    answer = []
    for (user, day), of_day in sorted(per_day.items()):
        met: set[tuple[int, float, float]] = set()
        slots: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        refused: Counter[tuple[str, int, float, float]] = Counter()
        for _, _, slot, time, lon, lat in of_day:
            if (time, lon, lat) in met:
                refused["duplicate", time, lat, lon] += 1
            elif lat < 0:
                refused["outside", time, lat, lon] += 1
            else:
                slots[slot][int(lon)].append(time)
            met.add((time, lon, lat))
        chosen = {}
        for slot, times in slots.items():
            if rule == "mode":
                chosen[slot] = min(times, key=lambda key: (-len(times[key]), min(times[key]), key))
            else:
                chosen[slot] = min(times, key=lambda key: (-max(times[key]), -len(times[key]), key))
        answer.append({"user": user, "day": day, "fixes": len(of_day), "cells": chosen, "refused": refused})
    return answer


some_rows = st.lists(
    st.builds(
        # The slot follows from the time except on a day of 25 hours, which is here a day of number 3.
        lambda user, day, time, lon, lat: (user, day, time % 4 if day == 3 else time // 4, time, lon, lat),
        st.sampled_from(["a", "b", "ä", "u10", "u9"]),
        st.integers(1, 3),
        st.integers(0, 11),
        st.sampled_from([1.0, 1.5, 2.0, 3.0]),
        st.sampled_from([5.0, 6.0, -1.0]),
    ),
    max_size=40,
)


@given(rows=some_rows, rule=st.sampled_from(["mode", "last"]), cut=st.integers(1, 7))
def test_fold_days_equals_a_slow_loop(rows: list[Row], rule: str, cut: int) -> None:
    table = fixes(*rows)
    in_chunks = pa.concat_tables([table.slice(0, cut), table.slice(cut)])  # as batches of an engine come
    fast = fold_days(in_chunks, keys=whole_degrees, n_slots=4, slot_rule=rule).to_pylist()
    for row in fast:
        slots = [cell["slot"] for cell in row["cells"]]
        assert slots == sorted(set(slots))
        row["cells"] = {cell["slot"]: cell["key"] for cell in row["cells"]}
        row["refused"] = Counter((r["reason"], r["time_us"], r["lat"], r["lon"]) for r in row["refused"])
    assert fast == slow_fold(rows, rule)


def test_a_user_column_of_a_dictionary_is_the_same_as_one_of_text() -> None:
    table = fixes(seen(1, 5, user="a"), seen(2, 6, user="b"))
    coded = table.set_column(0, "user", table["user"].dictionary_encode())
    both = [fold_days(t, keys=whole_degrees, n_slots=4, slot_rule="mode") for t in (table, coded)]
    assert both[0].equals(both[1])


# The odd days of a year, through the whole of prepare.


def prepared(tmp_path: Path, rows: list[tuple[str, Any, str]], zone: str, rule: str = "mode") -> Dataset:
    how = Preparation(timezone=zone, slot_rule=rule, min_slots=2, min_days=1, hide=1, first_days=0)
    source = write_points(tmp_path / "points.parquet", points(rows))
    return prepare(source, f"grid:{METRES_OF_A_CELL}", timezone=zone, how=how)


def places_of(dataset: Dataset, row: int = 0) -> dict[int, str]:
    """Slot -> letter of the place, by the nearest of the lettered places."""
    row_loc = dataset.days.loc[row]
    letters = list(PLACES)
    lons = np.array([PLACES[name][0] for name in letters])
    return {
        int(slot): letters[int(np.abs(lons - dataset.locations.lon[row_loc[slot]]).argmin())]
        for slot in np.flatnonzero(row_loc != MISSING)
    }


@pytest.mark.parametrize(("rule", "answer"), [("mode", "B"), ("last", "A")])
def test_the_repeated_hour_of_a_day_of_25_hours_shares_its_slots(tmp_path: Path, rule: str, answer: str) -> None:
    zone = "Europe/Berlin"  # 2024-10-27: 03:00 becomes 02:00
    rows = [
        ("u", utc("2024-10-27 01:45", zone), "C"),
        ("u", utc("2024-10-27 02:05", zone), "B"),
        ("u", utc("2024-10-27 02:10", zone), "B"),
        ("u", utc("2024-10-27 02:40", zone), "D"),
        ("u", utc("2024-10-27 02:20", zone, fold=1), "A"),
        ("u", utc("2024-10-27 03:10", zone), "C"),
    ]
    dataset = prepared(tmp_path, rows, zone, rule)
    assert dataset.days.date.astype(str).tolist() == ["2024-10-27"]
    assert places_of(dataset) == {3: "C", 4: answer, 5: "D", 6: "C"}


def test_the_skipped_hour_of_a_day_of_23_hours_has_missing_slots(tmp_path: Path) -> None:
    zone = "Europe/Berlin"  # 2024-03-31: 02:00 becomes 03:00
    start = utc("2024-03-31 00:00", zone)
    rows = [("u", start + timedelta(minutes=10 * i), "A") for i in range(23 * 6)]
    dataset = prepared(tmp_path, rows, zone)
    assert len(dataset.days) == 1
    assert np.flatnonzero(~dataset.days.observed[0]).tolist() == [4, 5]


def test_clocks_that_go_back_across_midnight_return_to_the_day_before(tmp_path: Path) -> None:
    zone = "America/St_Johns"  # 2008-11-02: 00:01 becomes 23:01 of the first of November
    rows = [
        ("u", utc("2008-11-01 12:00", zone), "A"),
        ("u", utc("2008-11-01 23:40", zone), "B"),
        ("u", utc("2008-11-02 00:00:30", zone), "C"),
        ("u", utc("2008-11-01 23:35", zone, fold=1), "D"),
        ("u", utc("2008-11-01 23:50", zone, fold=1), "D"),
        ("u", utc("2008-11-02 00:10", zone), "E"),
        ("u", utc("2008-11-02 00:20", zone), "E"),
        ("u", utc("2008-11-02 09:00", zone), "A"),
    ]
    dataset = prepared(tmp_path, rows, zone)
    assert dataset.days.date.astype(str).tolist() == ["2008-11-01", "2008-11-02"]
    assert places_of(dataset, 0) == {24: "A", 47: "D"}
    assert places_of(dataset, 1) == {0: "E", 18: "A"}
