"""Filling days: what must hold for any input, and what must not matter."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnmove.errors import ConfigError, DataError
from attnmove.filling.fill import Filler
from attnmove.filling.policy import Policy
from attnmove.filling.rows import STATUS, slot_starts
from attnmove.filling.timeline import Timelines
from attnmove.nouns import MISSING, Days
from attnmove.prep.config import Preparation
from filling.worlds import AWAY, HOME, SLOTS, column, days_from, fixes, letters_of, table_of, train_small

policies = st.builds(
    Policy,
    max_gap_minutes=st.none() | st.integers(30, 2000),
    min_confidence=st.none() | st.floats(0, 1),
)


@st.composite
def some_days(draw: st.DrawFn, n_locations: int) -> Days:
    """Up to three users with up to five days each, some of them empty, with days between them or not."""
    rows: list[tuple[str, int]] = []
    for user in sorted(draw(st.sets(st.sampled_from(["ann", "new", "x y", "ä", "😀"]), min_size=1, max_size=3))):
        rows += [(user, day) for day in sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=5)))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.floats(0, 1))
    loc = np.where(
        rng.random((len(rows), SLOTS)) < share, rng.integers(0, n_locations, (len(rows), SLOTS)), MISSING
    ).astype(np.int32)
    date = np.datetime64("2024-03-01") + np.array([day for _, day in rows])
    user = np.array([name for name, _ in rows], dtype=object)
    return Days(user, date.astype("datetime64[D]"), loc, np.full(len(rows), "past", dtype=object))


def check_filled(table: pa.Table, days: Days, filler: Filler) -> None:
    """Observed slots as they were, flags right, every known day whole."""
    table.validate(full=True)
    kept = days.rows(days.observed.any(axis=1))
    assert table.num_rows == len(kept) * SLOTS
    assert table["user"].to_pylist() == np.repeat(kept.user, SLOTS).tolist()
    assert table["slot"].to_pylist() == list(range(SLOTS)) * len(kept)
    names = [None if i == MISSING else filler.setting.locations.name[i] for i in kept.loc.ravel().tolist()]
    for row, seen in zip(table.to_pylist(), names, strict=True):
        assert row["status"] in STATUS
        assert (row["status"] == "observed") == (seen is not None)
        assert (row["location"] is None) == (row["status"] == "left_missing") == (row["reason"] is not None)
        assert (row["lon"] is None) == (row["location"] is None)
        if seen is not None:
            assert (row["location"], row["probability"], row["alternatives"], row["origin"]) == (seen, 1, None, None)
        elif row["status"] == "recovered":
            assert 0 < row["probability"] <= 1
            chances = [row["probability"], *(other["probability"] for other in row["alternatives"])]
            assert chances == sorted(chances, reverse=True)
            assert sum(chances) <= 1 + 1e-4
            assert row["location"] not in [other["location"] for other in row["alternatives"]]
        else:
            assert row["reason"] in filler.reasons
            assert row["probability"] is None or 0 <= row["probability"] <= 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), policy=policies, top=st.integers(1, 7))
@pytest.mark.parametrize("kind", ["run", "boost_run"])
def test_observed_slots_stay_and_flags_are_right(
    kind: str, request: pytest.FixtureRequest, data: st.DataObject, policy: Policy, top: int
) -> None:
    filler = _filler(request.getfixturevalue(kind), policy, top)
    days = data.draw(some_days(len(filler.setting.locations)))
    check_filled(filler.fill(days), days, filler)


_RUNS: dict[Path, Any] = {}


def _filler(folder: Path, policy: Policy, top: int) -> Filler:
    """A filler over a run that is loaded once."""
    from attnmove.models.runs import load_run

    if folder not in _RUNS:
        _RUNS[folder] = load_run(folder, device="cpu")
    return Filler(_RUNS[folder], policy=policy, top=top)


def a_week(filler: Filler) -> Days:
    letters = letters_of(filler.setting)
    return days_from(
        {
            "ann": {"2024-04-01": HOME[:8] + "........" + HOME[16:], "2024-04-03": "......" + HOME[6:18] + "......"},
            "new": {
                "2024-04-02": AWAY[:4] + "." * 16 + AWAY[20:],
                "2024-04-04": ".A.B.C.D" * 3,
                "2024-04-05": "." * 24,
            },
            "zoe": {"2024-04-02": "B" + "." * 23},
        },
        letters,
    )


@pytest.mark.parametrize("kind", ["run", "boost_run"])
def test_a_users_answers_do_not_depend_on_the_company(kind: str, request: pytest.FixtureRequest) -> None:
    filler = Filler.of(request.getfixturevalue(kind))
    days = a_week(filler)
    alone = [filler.fill(days.rows(days.user == user)) for user in ("ann", "new", "zoe")]
    assert filler.fill(days) == pa.concat_tables(alone)


@pytest.mark.parametrize("kind", ["run", "boost_run"])
def test_days_filled_some_at_a_time_are_the_same(kind: str, request: pytest.FixtureRequest) -> None:
    filler = Filler.of(request.getfixturevalue(kind))
    timelines = Timelines.of(a_week(filler))
    pieces = [filler.fill_timelines(piece) for piece in timelines.pieces(2)]
    assert len(pieces) == 3
    assert pa.concat_tables(pieces) == filler.fill_timelines(timelines)


@pytest.mark.parametrize("kind", ["run", "boost_run"])
def test_a_policy_takes_answers_away_and_changes_none(kind: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(kind)
    free = Filler.of(folder)
    every = free.fill(a_week(free)).to_pylist()
    least = float(np.median([row["probability"] for row in every if row["status"] == "recovered"]))
    strict = Filler.of(folder, policy=Policy(max_gap_minutes=900, min_confidence=least))
    some = strict.fill(a_week(strict)).to_pylist()
    same = [row for row in some if row["status"] != "left_missing"]
    assert same == [row for row, now in zip(every, some, strict=True) if now["status"] != "left_missing"]
    assert {row["status"] for row in some} == set(STATUS)


def test_later_days_do_not_matter(run: Path) -> None:
    filler = Filler.of(run)
    days = a_week(filler)
    first = days.rows(np.array([0, 2, 5]))
    whole = filler.fill(days).to_pylist()
    told = {(row["user"], row["date"]) for row in filler.fill(first).to_pylist()}
    assert filler.fill(first).to_pylist() == [row for row in whole if (row["user"], row["date"]) in told]


def test_a_history_is_looked_back_upon_and_not_filled(run: Path) -> None:
    filler = Filler.of(run)
    letters = letters_of(filler.setting)
    history = {"2024-04-01": "E" * 24, "2024-04-02": "E" * 24}
    to_fill = {"2024-04-08": "A" + "." * 23}
    day = days_from({"new": to_fill}, letters)
    told = filler.fill(day, history=days_from({"new": history, "other": history}, letters))
    joined = filler.fill(days_from({"new": {**history, **to_fill}}, letters))
    assert told.to_pylist() == joined.to_pylist()[48:]
    assert told != filler.fill(day)


def test_of_two_days_for_one_date_the_one_to_fill_counts(run: Path) -> None:
    filler = Filler.of(run)
    letters = letters_of(filler.setting)
    day = days_from({"new": {"2024-04-08": "A" + "." * 23}}, letters)
    assert filler.fill(day, history=days_from({"new": {"2024-04-08": "E" * 24}}, letters)) == filler.fill(day)


def test_origins_come_from_models_with_evidence_when_asked(run: Path, boost_run: Path) -> None:
    filler = Filler.of(boost_run)
    rows = filler.fill(a_week(filler)).to_pylist()
    given = [row["origin"] for row in rows if row["status"] == "recovered"]
    assert all(origin is not None for origin in given)
    assert {origin["kind"] for origin in given} <= {"day", "past", "others", "space", None}
    silent = filler.fill(a_week(filler), origins=False)
    assert silent["origin"].null_count == silent.num_rows
    assert silent.drop_columns("origin") == filler.fill(a_week(filler)).drop_columns("origin")
    other = Filler.of(run)
    assert other.fill(a_week(other))["origin"].null_count == silent.num_rows


def test_slots_begin_at_the_instants_of_the_local_clock(run: Path) -> None:
    filler = Filler.of(run)
    start = filler.fill(a_week(filler))["start"][:SLOTS].to_pylist()
    assert start[0] == datetime(2024, 4, 1, tzinfo=ZoneInfo("Asia/Shanghai"))
    assert str(filler.schema.field("start").type) == "timestamp[us, tz=Asia/Shanghai]"


def test_days_on_which_clocks_change_have_all_their_slots(tmp_path: Path) -> None:
    filler = Filler.of(train_small(tmp_path, zone="Europe/Berlin"))
    points = table_of(
        fixes("new", "2024-03-31", "AA.A........BBBB....AA..", zone="Europe/Berlin"),
        fixes("new", "2024-10-27", "AA.A........BBBB....AA..", zone="Europe/Berlin"),
    )
    table = filler.recover_points(points).table
    spring = {name: column(table, name, "new", "2024-03-31") for name in ("start", "status", "reason")}
    hours = [start.astimezone(ZoneInfo("UTC")).isoformat()[11:16] for start in spring["start"]]
    assert hours[:5] == ["23:00", "00:00", "01:00", "01:00", "02:00"]  # two o'clock never came
    assert (spring["status"][2], spring["reason"][2]) == ("left_missing", "skipped by the clock")
    assert spring["reason"].count("skipped by the clock") == 1
    autumn = {name: column(table, name, "new", "2024-10-27") for name in ("start", "status", "reason")}
    hours = [start.astimezone(ZoneInfo("UTC")).isoformat()[11:16] for start in autumn["start"]]
    assert hours[:5] == ["22:00", "23:00", "00:00", "02:00", "03:00"]  # the first of the two
    assert autumn["status"][2] == "recovered"


def test_slots_that_never_came_begin_when_the_clock_jumped_on(run: Path) -> None:
    how = Preparation(slot_minutes=30, timezone="Europe/Berlin")
    start = slot_starts(np.array(["2024-03-31"], dtype="datetime64[D]"), replace(Filler.of(run).setting, how=how))
    assert (np.diff(start) >= 0).all()
    hours = np.datetime_as_string(start.astype("datetime64[us]"), unit="m")
    assert [hour[11:] for hour in hours[3:8].tolist()] == ["00:30", "01:00", "01:00", "01:00", "01:30"]


def test_days_that_do_not_fit_the_run_are_refused(run: Path) -> None:
    filler = Filler.of(run)
    days = a_week(filler)
    with pytest.raises(DataError, match="location 99, the run has"):
        filler.fill(Days(days.user, days.date, np.full_like(days.loc, 99), days.split))
    with pytest.raises(DataError, match="12 slots a day, the run has 24"):
        filler.fill(Days(days.user, days.date, days.loc[:, :12].copy(), days.split))
    with pytest.raises(DataError, match="history: 12 slots a day"):
        filler.fill(days, history=Days(days.user, days.date, days.loc[:, :12].copy(), days.split))
    with pytest.raises(ConfigError, match="1 to 100 places, found 0"):
        Filler.of(run, top=0)


def test_no_days_are_no_rows(run: Path) -> None:
    filler = Filler.of(run)
    none = filler.fill(a_week(filler).rows(np.zeros(0, dtype=np.int64)))
    assert (none.num_rows, none.schema) == (0, filler.schema)
