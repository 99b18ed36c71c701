"""The synthetic city: reproducible, and alike to what is known of how people move and phones report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnmove.city import City, draw_places, synthesize, write_city
from attnmove.city.phones import Track
from attnmove.errors import ConfigError, RunError
from attnmove.nouns import EARTH_RADIUS_M, MISSING, Bool, Float64, Int64, Text, distance_m

N_USERS, N_DAYS, SLOTS = 300, 42, 48
LOCAL_S = 8 * 3600
WEEKEND = np.arange(N_DAYS) % 7 >= 5  # the default start is a Monday


@dataclass(frozen=True)
class Sample:
    """A city as arrays: points in one row, truth as (user, day, slot)."""

    who: Int64
    time_s: Int64
    lon: Float64
    lat: Float64
    truth_lon: Float64
    truth_lat: Float64
    kind: Text
    place: Int64
    observed: Bool


@pytest.fixture(scope="module")
def sample() -> Sample:
    chunks = list(synthesize(N_USERS, N_DAYS, seed=7))
    points = pa.concat_tables([chunk.points for chunk in chunks])
    truth = pa.concat_tables([chunk.truth for chunk in chunks])
    shape = (N_USERS, N_DAYS, SLOTS)
    who = np.unique(points["user"].to_numpy(), return_inverse=True)[1]
    time_s = points["time"].to_numpy().astype("datetime64[s]").astype(np.int64)
    since_start_s = time_s - truth["time"].to_numpy().astype("datetime64[s]").astype(np.int64)[0]
    observed = np.zeros(shape, dtype=np.bool_)
    observed[who, since_start_s // 86400, since_start_s // 1800 % SLOTS] = True
    return Sample(
        who=who,
        time_s=time_s,
        lon=points["lon"].to_numpy(),
        lat=points["lat"].to_numpy(),
        truth_lon=truth["lon"].to_numpy().reshape(shape),
        truth_lat=truth["lat"].to_numpy().reshape(shape),
        kind=truth["kind"].to_numpy(zero_copy_only=False).reshape(shape),
        place=truth["place"].to_numpy().reshape(shape),
        observed=observed,
    )


def tables(n_users: int, n_days: int = 5, **options: Any) -> tuple[pa.Table, pa.Table]:
    chunks = list(synthesize(n_users, n_days, **{"seed": 3, **options}))
    return pa.concat_tables([c.points for c in chunks]), pa.concat_tables([c.truth for c in chunks])


def first_users(table: pa.Table, n: int) -> pa.Table:
    return table.filter(pa.compute.less_equal(table["user"], f"u{n:06d}"))


def stays(place: Int64) -> Int64:
    """The places one after the other, one entry a visit."""
    at = place[place != MISSING]
    visited: Int64 = at[np.append(True, at[1:] != at[:-1])]
    return visited


def share(mask: Any) -> float:
    return float(np.mean(mask))


# --- tables -----------------------------------------------------------------------------------------------------------


def test_points_are_sorted_by_user_and_time_with_the_four_columns() -> None:
    points, _ = tables(20)
    assert points.schema.names == ["user", "time", "lon", "lat"]
    assert points.schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert points.schema.field("user").type == pa.string()
    pairs = list(zip(points["user"].to_pylist(), points["time"].cast(pa.int64()).to_pylist(), strict=True))
    assert all(a < b for a, b in pairwise(pairs))
    assert pairs[0][0] == "u000001"


def test_truth_has_every_slot_of_every_user_from_local_midnight() -> None:
    _, truth = tables(3, 2, start=date(2024, 5, 1), truth_minutes=60)
    assert truth.schema.names == ["user", "time", "lon", "lat", "kind", "place"]
    assert truth.num_rows == 3 * 2 * 24
    assert truth["time"][0].as_py().isoformat() == "2024-04-30T16:00:00+00:00"
    assert truth["time"][47].as_py().isoformat() == "2024-05-02T15:00:00+00:00"
    assert set(truth["kind"].to_pylist()) <= {"home", "work", "other", "moving"}


def test_points_lie_within_the_days_asked_for() -> None:
    points, _ = tables(30, 3, start=date(2024, 5, 1), points_per_day=300)
    time = points["time"].to_numpy()
    assert time.min() >= np.datetime64("2024-04-30T16:00:00")
    assert time.max() < np.datetime64("2024-05-03T16:00:00")


def test_truth_stands_at_its_place_and_moves_along_the_streets() -> None:
    city = City(n_towns=1)
    _, truth = tables(100, 7, city=city)
    places = draw_places(city, seed=3)
    place, lon, lat = truth["place"].to_numpy(), truth["lon"].to_numpy(), truth["lat"].to_numpy()
    rests = place != MISSING
    at_lon, at_lat = places.degrees(places.x[place[rests]], places.y[place[rests]])
    assert distance_m(lon[rests], lat[rests], at_lon, at_lat).max() < 0.2
    assert (np.array(truth["kind"].to_pylist()) == "moving").tolist() == (~rests).tolist()
    north = np.radians(lat[~rests] - city.lat) * EARTH_RADIUS_M
    east = np.radians(lon[~rests] - city.lon) * EARTH_RADIUS_M * np.cos(np.radians(city.lat))
    off_street = [np.abs(metres / city.street_m - np.round(metres / city.street_m)) for metres in (east, north)]
    assert (np.minimum(*off_street) * city.street_m).max() < 41


def test_fixes_agree_with_the_truth_but_for_noise() -> None:
    points, truth = tables(50, 5, points_per_day=400)
    slot_s = truth["time"].to_numpy().astype("datetime64[s]").astype(np.int64)
    time_s = points["time"].to_numpy().astype("datetime64[s]").astype(np.int64)
    who = np.unique(points["user"].to_numpy(), return_inverse=True)[1]
    row = who * 5 * SLOTS + (time_s - slot_s[0]) // 1800
    at_middle = np.abs(time_s - slot_s[row] - 900) <= 10
    row = row[at_middle]
    error_m = distance_m(
        points["lon"].to_numpy()[at_middle],
        points["lat"].to_numpy()[at_middle],
        truth["lon"].to_numpy()[row],
        truth["lat"].to_numpy()[row],
    )
    assert len(error_m) > 500
    assert 10 < np.median(error_m) < 60
    assert 100 < np.quantile(error_m, 0.995) < 1_500


def test_minutes_spent_moving_add_up_over_trips() -> None:
    corners = np.array([0.0, 0.0, 0.0, 0.0, 10.0, 12.0, 16.0, 20.0, 50.0, 50.0, 55.0, 60.0])
    track = Track(corners, np.zeros(12), np.zeros(12))
    asked = np.array([0.0, 10.0, 15.0, 20.0, 40.0, 55.0, 60.0, 99.0])
    assert track.moving_min(asked).tolist() == [0, 0, 5, 10, 10, 15, 20, 20]


# --- the same again ---------------------------------------------------------------------------------------------------


def test_same_seed_gives_the_same_city_and_another_seed_another() -> None:
    assert tables(20)[0].equals(tables(20)[0])
    assert not tables(20)[0].equals(tables(20, seed=4)[0])


@pytest.mark.parametrize("chunk_users", [1, 7, 300])
def test_chunks_do_not_change_what_is_in_them(chunk_users: int) -> None:
    points, truth = tables(270, 2)
    again_points, again_truth = tables(270, 2, chunk_users=chunk_users)
    assert again_points.equals(points)
    assert again_truth.equals(truth)


def test_users_do_not_depend_on_how_many_there_are() -> None:
    many, few = tables(280, 3), tables(10, 3)
    for large, small in zip(many, few, strict=True):
        assert first_users(large, 10).equals(small)


def test_a_larger_rate_gives_more_points_of_the_same_lives() -> None:
    sparse, dense = tables(100, points_per_day=60), tables(100, points_per_day=400)
    assert dense[1].equals(sparse[1])
    assert dense[0].num_rows / (100 * 5) == pytest.approx(400, rel=0.15)
    assert sparse[0].num_rows / (100 * 5) == pytest.approx(60, rel=0.15)


def test_written_files_are_byte_identical_and_hold_what_is_synthesized(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    for name in ("a", "b"):
        report = write_city(
            tmp_path / f"{name}.parquet",
            users=12,
            days=4,
            seed=3,
            truth=tmp_path / f"{name}-truth.parquet",
            progress=lambda n, total: done.append((n, total)),
        )
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (tmp_path / "a-truth.parquet").read_bytes() == (tmp_path / "b-truth.parquet").read_bytes()
    points, truth = tables(12, 4)
    assert pq.read_table(tmp_path / "a.parquet").equals(points)
    assert pq.read_table(tmp_path / "a-truth.parquet").equals(truth)
    assert (report.users, report.user_days, report.points, report.truth_rows) == (12, 48, points.num_rows, 48 * SLOTS)
    assert done[-1] == (12, 12)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_run_that_fails_leaves_no_file_and_keeps_the_old_one(tmp_path: Path) -> None:
    out = tmp_path / "points.parquet"
    out.write_bytes(b"old")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_city(out, users=2, days=2, seed=1, truth=tmp_path / "truth.parquet", progress=stop)
    assert out.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [out]


def test_a_missing_folder_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere"):
        write_city(tmp_path / "nowhere" / "points.parquet", users=1, days=1, seed=1)


# --- people -----------------------------------------------------------------------------------------------------------


def test_radius_of_gyration_is_heavy_tailed_across_people(sample: Sample) -> None:
    metres = np.radians(1) * EARTH_RADIUS_M
    east = sample.truth_lon.reshape(N_USERS, -1) * metres * np.cos(np.radians(39.9))
    north = sample.truth_lat.reshape(N_USERS, -1) * metres
    radius = np.sqrt(east.var(axis=1) + north.var(axis=1))
    assert 1_000 < np.median(radius) < 6_000
    assert np.quantile(radius, 0.95) > 3 * np.median(radius)
    assert np.quantile(radius, 0.25) < 0.7 * np.median(radius)
    assert np.log(radius).std() > 0.6


def test_distinct_places_grow_sublinearly(sample: Sample) -> None:
    days = np.arange(1, N_DAYS + 1)
    n_distinct = np.zeros(N_DAYS)
    for user in range(N_USERS):
        seen: set[int] = set()
        for day in range(N_DAYS):
            seen.update(stays(sample.place[user, day]).tolist())
            n_distinct[day] += len(seen) / N_USERS
    mu = np.polyfit(np.log(days), np.log(n_distinct), 1)[0]
    assert 0.4 < mu < 0.9


def test_visit_frequency_falls_like_zipf(sample: Sample) -> None:
    n_ranks = 15
    by_rank = np.zeros(n_ranks)
    for user in range(N_USERS):
        visits = np.sort(np.unique(stays(sample.place[user]), return_counts=True)[1])[::-1]
        by_rank[: len(visits)] += visits[:n_ranks] / visits.sum()
    exponent = -np.polyfit(np.log(np.arange(1, n_ranks + 1)), np.log(by_rank), 1)[0]
    assert 0.8 < exponent < 1.8


def test_home_takes_about_half_of_the_observed_slots(sample: Sample) -> None:
    assert 0.3 < share(sample.kind[sample.observed] == "home") < 0.6
    assert 0.5 < share(sample.kind == "home") < 0.68
    assert 0.02 < share(sample.kind == "moving") < 0.08
    assert 0.08 < share(sample.kind == "other") < 0.25


def test_people_sleep_at_home_and_are_out_on_weekdays(sample: Sample) -> None:
    home = sample.kind == "home"
    assert share(home[:, :, 6]) > 0.85
    assert share(home[:, ~WEEKEND, 28]) < 0.4
    assert share(home[:, WEEKEND, 28]) > share(home[:, ~WEEKEND, 28]) + 0.2
    work = sample.kind == "work"
    assert share(work[:, ~WEEKEND, 20:34]) > 4 * share(work[:, WEEKEND, 20:34])


def test_people_are_predictable_but_not_trivially(sample: Sample) -> None:
    hits = 0
    for user in range(N_USERS):
        for days in (WEEKEND, ~WEEKEND):
            for slot in range(SLOTS):
                hits += np.bincount(sample.place[user, days, slot] + 1)[1:].max(initial=0)
    assert 0.5 < hits / sample.place.size < 0.85


def test_weekdays_have_habits_of_their_own(sample: Sample) -> None:
    agreement = []
    evening = sample.place[:, 14:, 36:42]
    for lag in range(1, 8):
        before = sample.place[:, 14 - lag : N_DAYS - lag, 36:42]
        both_out = (sample.kind[:, 14:, 36:42] == "other") & (before != MISSING)
        agreement.append(share((evening == before)[both_out]))
    assert agreement[6] > 1.3 * float(np.mean(agreement[:6]))


def test_nobody_is_faster_than_a_train(sample: Sample) -> None:
    lon, lat = sample.truth_lon.reshape(N_USERS, -1), sample.truth_lat.reshape(N_USERS, -1)
    assert (distance_m(lon[:, :-1], lat[:, :-1], lon[:, 1:], lat[:, 1:]) / 1800 * 3.6).max() < 150
    gap_s = np.diff(sample.time_s)
    far_m = distance_m(sample.lon[:-1], sample.lat[:-1], sample.lon[1:], sample.lat[1:])
    apart = (np.diff(sample.who) == 0) & (gap_s > 300)
    assert (far_m[apart] / gap_s[apart] * 3.6).max() < 150


# --- phones -----------------------------------------------------------------------------------------------------------


def test_phones_are_silent_at_night(sample: Sample) -> None:
    by_hour = np.bincount((sample.time_s + LOCAL_S) // 3600 % 24, minlength=24)
    assert by_hour[9:21].mean() > 3 * by_hour[1:6].mean()


def test_phones_report_in_bursts(sample: Sample) -> None:
    gap_s = np.diff(sample.time_s)[np.diff(sample.who) == 0]
    mean, sigma = gap_s.mean(), gap_s.std()
    assert sigma / mean > 1
    assert (sigma - mean) / (sigma + mean) > 0.2


def test_phones_of_some_report_far_more_than_others(sample: Sample) -> None:
    per_day = np.bincount(sample.who, minlength=N_USERS) / N_DAYS
    assert per_day.mean() == pytest.approx(60, rel=0.1)
    assert np.quantile(per_day, 0.95) > 1.8 * np.median(per_day)


def test_typical_days_have_a_dozen_to_thirty_observed_slots(sample: Sample) -> None:
    n_observed = sample.observed.sum(axis=2)
    assert 12 < np.median(n_observed) < 30
    assert share((n_observed >= 12) & (n_observed <= 30)) > 0.6
    assert share(n_observed == SLOTS) < 0.01


def test_people_on_the_move_report_more(sample: Sample) -> None:
    by_day = slice(18, 42)
    moving = sample.kind[:, :, by_day] == "moving"
    observed = sample.observed[:, :, by_day]
    assert share(observed[moving]) > 1.2 * share(observed[~moving])


# --- configuration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lon", 181.0),
        ("lat", float("nan")),
        ("utc_offset_h", 15.0),
        ("size_m", 100.0),
        ("street_m", 9_000.0),
        ("n_homes", 0),
        ("n_works", 1),
        ("n_others", 3),
        ("n_subcentres", -1),
        ("n_towns", 0),
    ],
)
def test_a_city_out_of_range_is_an_error_that_names_the_field(field: str, value: float) -> None:
    options: dict[str, Any] = {field: value}
    with pytest.raises(ConfigError, match=field):
        City(**options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_users", 0),
        ("n_users", 10**6),
        ("n_days", 0),
        ("seed", -1),
        ("points_per_day", float("nan")),
        ("truth_minutes", 7),
        ("truth_minutes", 0),
        ("chunk_users", 0),
    ],
)
def test_an_argument_out_of_range_is_an_error_that_names_it(name: str, value: float) -> None:
    options: dict[str, Any] = {"n_users": 1, "n_days": 1, "seed": 1, name: value}
    with pytest.raises(ConfigError, match=name):
        synthesize(**options)


def test_points_and_truth_cannot_share_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two files"):
        write_city(tmp_path / "x.parquet", users=1, days=1, seed=1, truth=tmp_path / "x.parquet")


def test_another_city_lies_where_it_was_put() -> None:
    city = City(lon=-0.1, lat=51.5, utc_offset_h=0, size_m=4_000, street_m=200, n_homes=50, n_works=20, n_others=60)
    points, truth = tables(5, 3, city=city)
    assert points["lon"].to_numpy().mean() == pytest.approx(-0.1, abs=0.2)
    assert points["lat"].to_numpy().mean() == pytest.approx(51.5, abs=0.2)
    assert truth["time"][0].as_py().hour == 0


def test_files_may_be_named_by_text(tmp_path: Path) -> None:
    points, truth = tmp_path / "points.parquet", tmp_path / "truth.parquet"
    report = write_city(str(points), users=1, days=1, seed=1, truth=str(truth))
    assert pq.read_table(points).num_rows == report.points
    assert pq.read_table(truth).num_rows == report.truth_rows
