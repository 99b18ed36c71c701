"""How times are read, and why rows are refused."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnmove import prepare
from attnmove.io.clock import load_zone
from point_files import HEADER, half_hours, micros, write_objects, write_parquet, write_rows

from .conftest import Reader

WHEN = micros(2008, 10, 23, 2, 53, 4)


def times(read: Reader, path: Path, texts: Iterable[str], **options: Any) -> dict[str | None, tuple[int | None, Any]]:
    """What each text of a time is read as: microseconds, or the reason why not."""
    found = read(write_rows(path / "p.csv", [["ann", text, "39.98", "116.31"] for text in texts]), **options)
    return {raw[1]: (row.time_us, row.reason) for row, raw in zip(found.rows, found.raw, strict=True)}


def test_iso_8601_is_read_in_all_its_dress(tmp_path: Path, read: Reader) -> None:
    same = {
        "2008-10-23T02:53:04Z",
        "2008-10-23 02:53:04z",
        "2008-10-23T10:53:04+08:00",
        "2008-10-23T10:53:04+0800",
        "2008-10-23 10:53:04+08",
        "2008-10-23T10:53:04 +08:00",
        "2008-10-22T21:23:04-05:30",
        "2008/10/23 02:53:04Z",
        "2008-10-23 02:53:04 UTC",
        "2008-10-23 02:53:04 GMT",
        "2008-10-23T02:53:04.000Z",
        "2008-10-23T02:53:04.0000009Z",
    }
    assert times(read, tmp_path, same) == dict.fromkeys(same, (WHEN, None))


def test_fractions_and_lacking_seconds_are_read(tmp_path: Path, read: Reader) -> None:
    expected = {
        "2008-10-23T02:53:04.5Z": WHEN + 500_000,
        '"2008-10-23T02:53:04,25Z"': WHEN + 250_000,
        "2008-10-23T10:53:04.123456+08:00": WHEN + 123_456,
        "2008-10-23T02:53:04.123456789Z": WHEN + 123_456,
        "2008-10-23T02:53Z": WHEN - 4_000_000,
        "2008/10/23 10:53+08:00": WHEN - 4_000_000,
    }
    found = times(read, tmp_path, expected)
    assert found == {text.strip('"'): (time, None) for text, time in expected.items()}


def test_text_that_is_no_time_is_refused(tmp_path: Path, read: Reader) -> None:
    texts = [
        "yesterday",
        "2008-02-30T02:53:04Z",
        "2008-10-23T25:53:04Z",
        "2008-10-23T02:53:04 PST",
        "2008-10-23",
        "23.10.2008 02:53:04",
        "10/23/2008 02:53:04",
        "2008-10-23T02:53:04Zulu",
        "02:53:04Z",
    ]
    assert times(read, tmp_path, texts) == dict.fromkeys(texts, (None, "unparsable_time"))


@pytest.mark.parametrize("good", ["2008-10-23T02:53:04Z", "1224730384"])
def test_words_that_say_no_number_do_not_make_a_column_of_numbers(tmp_path: Path, read: Reader, good: str) -> None:
    found = times(read, tmp_path, ["nan", "NaN", "inf", "1_000", good])
    assert found.pop(good) == (WHEN, None)
    assert {reason for _, reason in found.values()} == {"unparsable_time"}


def test_a_time_without_a_zone_is_refused_until_one_is_told(tmp_path: Path, read: Reader) -> None:
    texts = ["2008-10-23 10:53:04", "2008-10-23T10:53:04.5", "2008/10/23 10:53", "2008-10-23T02:53:04Z"]
    refused = times(read, tmp_path, texts)
    assert [refused[text] for text in texts] == [*[(None, "naive_time")] * 3, (WHEN, None)]
    told = times(read, tmp_path, texts, zone=load_zone("Asia/Shanghai"))
    assert [told[text][0] for text in texts] == [WHEN, WHEN + 500_000, WHEN - 4_000_000, WHEN]


@pytest.mark.parametrize(
    ("values", "words", "expected"),
    [
        ([1224730384, 1224730385], "epoch seconds", [WHEN, WHEN + 1_000_000]),
        ([1224730384.25, 1224730385.0], "epoch seconds", [WHEN + 250_000, WHEN + 1_000_000]),
        ([Decimal("1224730384.25")], "epoch seconds", [WHEN + 250_000]),
        ([1224730384000, 1224730384001], "epoch milliseconds", [WHEN, WHEN + 1_000]),
        ([1224730384000.0, 1224730384000.5], "epoch milliseconds", [WHEN, WHEN + 500]),
        ([WHEN], "epoch microseconds", [WHEN]),
        ([WHEN * 1_000 + 789], "epoch nanoseconds", [WHEN]),
        (["1224730384", " 1224730384.5 "], "epoch seconds", [WHEN, WHEN + 500_000]),
        (["1224730384000"], "epoch milliseconds", [WHEN]),
        (["1.224730384e9"], "epoch seconds", [WHEN]),
    ],
)
def test_epochs_are_read_in_the_unit_their_size_shows(
    values: list[Any], words: str, expected: list[int], tmp_path: Path, read: Reader
) -> None:
    n = len(values)
    path = write_parquet(tmp_path / "p.parquet", user=["ann"] * n, time=values, lat=[39.98] * n, lon=[116.31] * n)
    found = read(path)
    assert sorted(row.time_us or 0 for row in found.rows) == expected
    assert found.points.chosen["time"] == f"time ({words})"


def test_epochs_in_objects_are_read(tmp_path: Path, read: Reader) -> None:
    rows = [{"user": "ann", "time": time, "lat": 1.5, "lon": 2.5} for time in (1224730384, 1224730384.5, "1224730385")]
    found = read(write_objects(tmp_path / "p.ndjson", rows)).rows
    assert [row.time_us for row in found] == [WHEN, WHEN + 500_000, WHEN + 1_000_000]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([None, float("nan"), float("inf"), -float("inf"), 1e300, 1224730384.0, 1224730384.0], pa.float64()),
        pa.array([None, -(2**63), 2**63 - 1, -1 * 10**18, 10**18, *[1224730384] * 5], pa.int64()),
        pa.array([None, 2**64 - 1, *[1224730384] * 5], pa.uint64()),
        pa.array([None, "nan", "1e999", "inf", "0x5", "1_0", *["1224730384"] * 20], pa.string()),
    ],
)
def test_numbers_that_are_no_time_refuse_their_row_and_not_the_file(
    times: pa.Array, tmp_path: Path, read: Reader
) -> None:
    n = len(times)
    path = write_parquet(tmp_path / "p.parquet", user=["ann"] * n, time=times, lat=[39.98] * n, lon=[116.31] * n)
    good = [row for row in read(path).rows if row.reason is None]
    assert {row.time_us for row in good} == {WHEN}
    assert len(good) == sum(str(time) in ("1224730384", "1224730384.0") for time in times.to_pylist())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Shanghai"])
def test_typed_times_are_read_in_every_unit_and_a_naive_one_is_utc(
    unit: str, zone: str | None, tmp_path: Path, read: Reader
) -> None:
    value = WHEN // 1_000_000 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    column = pa.array([value, None], pa.timestamp(unit, zone))
    path = write_parquet(tmp_path / "p.parquet", user=["ann"] * 2, time=column, lat=[39.98] * 2, lon=[116.31] * 2)
    found = read(path)
    assert sorted((row.time_us or 0, row.reason) for row in found.rows) == [(0, "unparsable_time"), (WHEN, None)]
    assert ("taken as UTC" in found.points.chosen["time"]) == (zone is None)


def test_typed_times_without_a_zone_are_read_in_the_one_told_for_them(tmp_path: Path, read: Reader) -> None:
    column = pa.array([WHEN + 8 * 3_600_000_000], pa.timestamp("us"))
    path = write_parquet(tmp_path / "p.parquet", user=["ann"], time=column, lat=[39.98], lon=[116.31])
    shanghai = load_zone("Asia/Shanghai")
    told = read(path, zone=shanghai, typed_zone=shanghai)
    assert [row.time_us for row in told.rows] == [WHEN]
    assert told.points.chosen["time"] == "time (timestamp without zone, taken as Asia/Shanghai)"
    assert [row.time_us for row in read(path, zone=shanghai).rows] == [WHEN + 8 * 3_600_000_000]


@pytest.mark.parametrize(
    ("options", "hour"), [({}, 8), ({"naive_timezone": "UTC"}, 8), ({"naive_timezone": "Asia/Tokyo"}, 23)]
)
def test_prepare_reads_typed_naive_times_as_utc_unless_told(options: dict[str, str], hour: int, tmp_path: Path) -> None:
    rows = [row for row in half_hours("ann", 6) if row[1][11:13] == "00"]
    instants = pa.array([datetime.fromisoformat(row[1][:-1]) for row in rows], pa.timestamp("us"))
    degrees = {name: [float(row[i]) for row in rows] for i, name in ((2, "lat"), (3, "lon"))}
    path = write_parquet(tmp_path / "p.parquet", user=[row[0] for row in rows], time=instants, **degrees)
    made = prepare(path, timezone="Asia/Shanghai", min_slots=2, hide=1, **options)
    assert np.flatnonzero(made.days.observed[0]).tolist() == [2 * hour, 2 * hour + 1]


def test_prepare_reads_naive_text_in_the_zone_of_the_days_whatever_holds_it(tmp_path: Path) -> None:
    rows = [[user, time.removesuffix("Z"), lat, lon] for user, time, lat, lon in half_hours("ann", 6)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(HEADER)}
    for source in (
        write_rows(tmp_path / "p.csv", rows),
        write_parquet(tmp_path / "p.parquet", **columns),
        pa.table(columns),
    ):
        made = prepare(source, timezone="Asia/Shanghai")
        assert (made.facts["points_used"], made.facts["first_date"]) == (len(rows), "2020-06-01")


# Reasons

TOMORROW = f"{datetime.now(tz=UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
GOOD = "2008-10-23T02:53:04Z"
REFUSED = [
    ("no_user", ("", GOOD, "39.98", "116.31")),
    ("no_user", ("  ", GOOD, "39.98", "116.31")),
    ("unparsable_time", ("ann", "yesterday", "39.98", "116.31")),
    ("unparsable_time", ("ann", "", "39.98", "116.31")),
    ("naive_time", ("ann", "2008-10-23 02:53:04", "39.98", "116.31")),
    ("not_a_number", ("ann", GOOD, "north", "116.31")),
    ("not_a_number", ("ann", GOOD, "39.98", "")),
    ("not_a_number", ("ann", GOOD, "nan", "116.31")),
    ("not_a_number", ("ann", GOOD, "39°", "116.31")),
    ("out_of_range", ("ann", GOOD, "90.01", "116.31")),
    ("out_of_range", ("ann", GOOD, "39.98", "-180.5")),
    ("out_of_range", ("ann", GOOD, "1e400", "116.31")),
    ("null_island", ("ann", GOOD, "0", "0.0")),
    ("before_1990", ("ann", "1989-12-31T23:59:59Z", "39.98", "116.31")),
    ("future", ("ann", TOMORROW, "39.98", "116.31")),
]


def test_each_reason_is_given_and_the_row_kept_as_written(tmp_path: Path, read: Reader) -> None:
    good = [("bob", GOOD, "39.98", "116.31")] * 3
    found = read(write_rows(tmp_path / "p.csv", [*(row for _, row in REFUSED), *good]))
    refused = {
        (row.reason, *(text or "" for text in raw))
        for row, raw in zip(found.rows, found.raw, strict=True)
        if row.reason is not None
    }
    assert refused == {(reason, *row) for reason, row in REFUSED}
    assert len(found.rows) == len(REFUSED) + len(good)


def test_the_edges_of_the_world_are_on_it(tmp_path: Path, read: Reader) -> None:
    degrees = [("90", "180"), ("-90", "-180"), ("0", "5"), ("+1.5", ".5"), ("1e1", " 5 ")]
    found = read(write_rows(tmp_path / "p.csv", [("ann", GOOD, *pair) for pair in degrees])).rows
    assert {(row.lat, row.lon) for row in found} == {(float(lat), float(lon)) for lat, lon in degrees}
    assert {row.reason for row in found} == {None}


def test_every_refused_row_is_counted_and_kept(tmp_path: Path) -> None:
    good = half_hours("bob", 6)
    odd = [row for _, row in REFUSED]
    area = {"type": "Polygon", "coordinates": [[[116, 39.8], [117, 39.8], [117, 40], [116, 40], [116, 39.8]]]}
    shapes = tmp_path / "area.geojson"
    shapes.write_text(json.dumps({"type": "Feature", "properties": {"name": "city"}, "geometry": area}))
    far, again = ("bob", "2020-06-01T00:06:00Z", "-33.5", "-70.25"), good[0]
    source = write_rows(tmp_path / "p.csv", [*good, *odd, far, again])
    made = prepare(source, str(shapes), out=tmp_path / "dataset")
    expected = {"duplicate": 1, "outside": 1}
    for reason, _ in REFUSED:
        expected[reason] = expected.get(reason, 0) + 1
    assert made.facts["rejects"] == expected
    assert made.facts["points"] == len(good) + len(odd) + 2
    assert made.facts["points_used"] == len(good)
    kept = pq.read_table(tmp_path / "dataset" / "rejects.parquet").to_pylist()
    assert {name: sum(row["reason"] == name for row in kept) for name in expected} == expected
    texts = {(row["reason"], *(row[name] or "" for name in HEADER)) for row in kept}
    assert {(reason, *row) for reason, row in REFUSED} <= texts
    assert ("outside", "bob", "2020-06-01 00:06:00.000000Z", "-33.5", "-70.25") in texts
