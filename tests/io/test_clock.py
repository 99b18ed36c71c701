"""Time zones as expressions, against Python's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnmove.engine import Engine
from attnmove.errors import ConfigError
from attnmove.io.clock import Zone, load_zone, local_of, local_seconds, never_occurs, utc_of, utc_seconds

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAIVE_EPOCH = EPOCH.replace(tzinfo=None)
FIRST = int(datetime(1990, 1, 2, tzinfo=UTC).timestamp())
LAST = int(datetime(2059, 12, 30, tzinfo=UTC).timestamp())
ZONES = [
    "UTC",
    "Asia/Shanghai",  # summer time until 1991
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # midnight does not exist on some days
    "Australia/Lord_Howe",  # summer time of half an hour
    "Asia/Kathmandu",  # five hours and three quarters
    "Africa/Casablanca",  # summer time turned off during Ramadan
    "Pacific/Apia",  # one whole day left out
]


def evaluate(engine: Engine, seconds: list[int], zone: Zone, *, to_local: bool) -> list[int]:
    path = engine.scratch / f"seconds-{uuid4().hex}.parquet"
    pq.write_table(pa.table({"n": np.arange(len(seconds)), "s": pa.array(seconds, pa.int64())}), path)
    table = engine.scan_parquet([path])
    answer = local_seconds(table.s, zone) if to_local else utc_seconds(table.s, zone)
    batches = engine.batches(table.select("n", answer=answer).order_by("n"))
    return [value for batch in batches for value in batch.column("answer").to_pylist()]


def to_local(second: int, zone: ZoneInfo) -> int:
    offset = (EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    assert offset is not None
    return second + int(offset.total_seconds())


def to_utc(second: int, zone: ZoneInfo) -> int:
    """With fold=0: the first of two, and the offset before the jump for a time that never was."""
    offset = (NAIVE_EPOCH + timedelta(seconds=second)).replace(tzinfo=zone, fold=0).utcoffset()
    assert offset is not None
    return second - int(offset.total_seconds())


def around_changes(zone: Zone) -> list[int]:
    """Seconds before, at and after each change, and through the hours that occur twice or never."""
    steps = (-90_000, -7_200, -3_601, -3_600, -1_800, -1, 0, 1, 1_799, 1_800, 3_599, 3_600, 7_200, 90_000)
    return [change + step for change in zone.changes for step in steps if FIRST < change + step < LAST]


@pytest.mark.parametrize("name", ZONES)
def test_the_days_of_a_change_are_those_of_zoneinfo_both_ways(name: str, engine: Engine) -> None:
    zone, python = load_zone(name), ZoneInfo(name)
    seconds = around_changes(zone) or [FIRST]
    assert evaluate(engine, seconds, zone, to_local=True) == [to_local(second, python) for second in seconds]
    walls = sorted({second + offset for second in seconds for offset in (zone.offsets[0], zone.offsets[-1])})
    assert evaluate(engine, walls, zone, to_local=False) == [to_utc(second, python) for second in walls]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(ZONES), seconds=st.lists(st.integers(FIRST, LAST), min_size=1, max_size=300))
def test_any_time_is_that_of_zoneinfo_both_ways(name: str, seconds: list[int], engine: Engine) -> None:
    zone, python = load_zone(name), ZoneInfo(name)
    assert evaluate(engine, seconds, zone, to_local=True) == [to_local(second, python) for second in seconds]
    assert evaluate(engine, seconds, zone, to_local=False) == [to_utc(second, python) for second in seconds]


def test_a_local_time_that_occurs_twice_is_the_first_and_one_that_never_does_keeps_the_old_offset(
    engine: Engine,
) -> None:
    berlin = load_zone("Europe/Berlin")
    twice = int(datetime(2021, 10, 31, 2, 30, tzinfo=UTC).timestamp())
    never = int(datetime(2021, 3, 28, 2, 30, tzinfo=UTC).timestamp())
    assert evaluate(engine, [twice, never], berlin, to_local=False) == [twice - 7_200, never - 3_600]


def test_a_zone_without_changes_has_one_offset() -> None:
    assert load_zone("UTC") == Zone("UTC", (), (0,))
    assert load_zone("Asia/Kathmandu").offsets == (20_700,)


@pytest.mark.parametrize(
    ("name", "near"),
    [("Asia/Shangai", "Asia/Shanghai"), ("europe/berlin", "Europe/Berlin"), ("Berlin", "Europe/Berlin")],
)
def test_an_unknown_zone_brings_the_nearest_to_mind(name: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"{name!r} is not an IANA time zone .*did you mean .*{near}"):
        load_zone(name)


@pytest.mark.parametrize("name", ["", "???", "+08:00", "../../etc/passwd"])
def test_what_is_no_zone_at_all_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not an IANA time zone such as Asia/Shanghai or UTC"):
        load_zone(name)


@pytest.mark.parametrize("name", ZONES)
def test_arrays_are_told_the_same_time_as_tables(engine: Engine, name: str) -> None:
    zone = load_zone(name)
    near = [change + step for change in zone.changes[:40] for step in (-3601, -1, 0, 1, 1799, 3600, 7200)]
    seconds = [*near, FIRST, LAST]
    assert local_of(np.array(seconds), zone).tolist() == evaluate(engine, seconds, zone, to_local=True)
    local = local_of(np.array(seconds), zone).tolist()
    assert utc_of(np.array(local), zone).tolist() == evaluate(engine, local, zone, to_local=False)


def test_an_hour_the_clock_skips_never_occurs() -> None:
    midnight = int(datetime(2024, 3, 31, tzinfo=UTC).timestamp())
    start = midnight + np.arange(0, 5) * 3600
    assert never_occurs(start, start + 3600, load_zone("Europe/Berlin")).tolist() == [False, False, True, False, False]
    assert not never_occurs(start, start + 7200, load_zone("Europe/Berlin")).any()
    assert not never_occurs(start, start + 3600, load_zone("UTC")).any()
    half = int(datetime(2024, 10, 6, 2, tzinfo=UTC).timestamp()) + np.arange(2) * 1800
    assert never_occurs(half, half + 1800, load_zone("Australia/Lord_Howe")).tolist() == [True, False]
