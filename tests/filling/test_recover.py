"""The verb: any source, any output, the same answers; and nothing lost without a word."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attnmove as am
from attnmove.cli import app
from attnmove.errors import ConfigError
from attnmove.filling import stream
from attnmove.filling.fill import Filler
from attnmove.models.runs import load_run
from attnmove.prep.pipeline import prepare
from builders import points, utc
from filling.worlds import AWAY, HOME, SLOTS, ZONE, a_month, column, fixes, table_of, train_small


@pytest.fixture
def fresh() -> pa.Table:
    """Two users of the training days and a new one, some days later."""
    return table_of(
        fixes("ann", "2024-04-01", "AAAA....BB..CBB...DD...."),
        fixes("ann", "2024-04-02", "....AAAABBBB............"),
        fixes("bob", "2024-04-01", AWAY),
        fixes("new", "2024-04-01", "A......................."),
        fixes("new", "2024-04-03", "..AA..BB..CC..BB..DD..AA"),
    )


@pytest.fixture
def source(tmp_path: Path, fresh: pa.Table) -> Path:
    path = tmp_path / "points.parquet"
    pq.write_table(fresh, path)
    return path


def cli(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["recover", *map(str, arguments)])


@pytest.mark.parametrize("kind", ["run", "boost_run"])
def test_command_python_and_a_handful_of_points_agree(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, source: Path, fresh: pa.Table
) -> None:
    folder = request.getfixturevalue(kind)
    expected = Filler.of(folder).recover_points(fresh)
    assert expected.table.num_rows == 5 * SLOTS
    assert am.recover(source, folder) == expected.table
    assert am.recover(fresh, load_run(folder)) == expected.table
    done = cli(source, folder, "-o", tmp_path / "out.parquet", "--json")
    assert done.exit_code == 0, done.output
    assert pq.read_table(tmp_path / "out.parquet") == expected.table
    facts = json.loads(done.stdout)
    assert facts["user_days"] == 5
    assert facts["users"] == 3
    assert facts["slots_observed"] + facts["slots_recovered"] == 5 * SLOTS
    assert facts["points"] == expected.folded.points == len(fresh)


@pytest.mark.filterwarnings("ignore:fetch_:DeprecationWarning")  # Ibis calls DuckDB by an old name
def test_the_same_kind_of_table_comes_back(run: Path, fresh: pa.Table) -> None:
    expected = am.recover(fresh, run)
    assert isinstance(expected, pa.Table)
    frame = am.recover(fresh.to_pandas(), run)
    assert isinstance(frame, pd.DataFrame)
    assert frame["status"].tolist() == expected["status"].to_pylist()
    assert str(frame["start"].dt.tz) == ZONE
    polars = am.recover(pl.from_arrow(fresh), run)
    assert isinstance(polars, pl.DataFrame)
    assert polars["location"].to_list() == expected["location"].to_pylist()
    lazy = am.recover(ibis.memtable(fresh), run)
    assert isinstance(lazy, ibis.Table)
    assert lazy.count().execute() == expected.num_rows


def test_chunks_do_not_matter(run: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = am.recover(source, run)
    monkeypatch.setattr(stream, "DAYS_A_CHUNK", 1)
    monkeypatch.setattr(stream, "DAYS_A_PIECE", 1)
    assert am.recover(source, run) == expected


def test_points_and_the_dataset_made_of_them_agree(run: Path, tmp_path: Path, source: Path) -> None:
    how = {"timezone": ZONE, "slot_minutes": 60, "min_slots": 1, "min_days": 1, "hide": 1}
    prepare(source, out=tmp_path / "dataset", **how)  # type: ignore[arg-type]
    assert am.recover(tmp_path / "dataset", run) == am.recover(source, run)


def test_a_dataset_may_have_locations_the_run_has_not(run: Path, tmp_path: Path) -> None:
    days = table_of(fixes("new", "2024-04-01", "AAAAHHHHAAAA............"))
    prepare(days, out=tmp_path / "dataset", timezone=ZONE, slot_minutes=60, min_slots=1, min_days=1, hide=1)
    report = am.recover(tmp_path / "dataset", run, out=tmp_path / "out.parquet")
    assert report.facts()["slots_outside"] == 4
    assert report.facts()["slots_observed"] == 8


def test_a_history_dataset_is_known_and_not_filled(run: Path, tmp_path: Path) -> None:
    earlier = table_of(fixes("new", "2024-03-25", "E" * 24), fixes("other", "2024-03-25", "E" * 24))
    history = tmp_path / "history"
    prepare(earlier, out=history, timezone=ZONE, slot_minutes=60, min_slots=1, min_days=1, hide=1)
    today = table_of(fixes("new", "2024-04-01", "A......................."))
    both = am.recover(table_of(fixes("new", "2024-03-25", "E" * 24), fixes("new", "2024-04-01", "A" + "." * 23)), run)
    told = am.recover(today, run, history=history)
    assert told.to_pylist() == both.to_pylist()[SLOTS:]
    assert told != am.recover(today, run)


def test_every_point_is_used_or_counted(run: Path, tmp_path: Path) -> None:
    """The same rows on the engine and in memory: in no location, refused, twice, of a day nothing is left of."""
    good = fixes("ann", "2024-04-01", "AAAA....BB......HH......")
    rows = [*good, good[0], *fixes("far", "2024-04-02", "HHHH"), (" ", utc("2024-04-01 10:00"), "A")]
    rows += [("old", utc("1980-04-01 10:00"), "A"), ("late", utc("2059-04-01 10:00"), "A")]
    table = points(rows)
    lon, lat = table["lon"].to_pylist(), table["lat"].to_pylist()
    more = [("zero", 0.0, 0.0), ("pole", 10.0, 91.0), ("none", None, 39.9), ("nan", float("nan"), 39.9)]
    table = pa.table(
        {
            "user": table["user"].to_pylist() + [user for user, _, _ in more] + ["untimed"],
            "time": pa.array(
                [*table["time"].to_pylist(), *[utc("2024-04-01 10:00")] * 4, None], pa.timestamp("us", "UTC")
            ),
            "lon": [*lon, *(x for _, x, _ in more), 116.3],
            "lat": [*lat, *(y for _, _, y in more), 39.9],
        }
    )
    small = Filler.of(run).recover_points(table)
    pq.write_table(table, tmp_path / "points.parquet")
    report = am.recover(tmp_path / "points.parquet", run, out=tmp_path / "out.parquet")
    facts = report.facts()
    assert facts["points_refused"] == small.folded.refused
    assert facts["points_refused"] == {
        "no_user": 1,
        "unparsable_time": 1,
        "not_a_number": 2,
        "out_of_range": 1,
        "null_island": 1,
        "before_1990": 1,
        "future": 1,
        "duplicate": 1,
        "outside": 6,
    }
    assert facts["user_days_without_location"] == small.folded.days_lost == 1
    assert facts["points"] == len(table)
    assert pq.read_table(tmp_path / "out.parquet") == small.table


def test_a_day_that_begins_twice_is_one_day_on_the_engine_and_in_memory(tmp_path: Path) -> None:
    """Clocks in Brazil went back from midnight to eleven: the day after is begun, left, and begun again."""
    folder = train_small(tmp_path, zone="America/Sao_Paulo")
    passes = [utc(f"2018-02-18 {minute}") for minute in ("01:10", "01:50", "02:10", "02:50", "03:10")]
    table = points([("new", when, place) for when, place in zip(passes, "ABBBC", strict=True)])
    filled = Filler.of(folder).recover_points(table).table
    assert filled == am.recover(table, folder)
    assert filled.num_rows == 2 * SLOTS
    assert column(filled, "status", "new", "2018-02-17")[23] == "observed"


@pytest.mark.filterwarnings("ignore:fetch_:DeprecationWarning")  # Ibis calls DuckDB by an old name
def test_a_table_with_points_that_cannot_be_used_comes_with_a_warning(run: Path) -> None:
    with pytest.warns(UserWarning, match="recover used not all of 6 points: 2 outside"):
        am.recover(table_of(fixes("ann", "2024-04-01", "AAAAHH")), run)


def test_text_formats_say_what_parquet_says(boost_run: Path, tmp_path: Path, source: Path) -> None:
    options = {"max_gap": "6h", "min_confidence": 0.1}
    expected = am.recover(source, boost_run, **options)
    for ending in ("csv", "ndjson", "geojson"):
        am.recover(source, boost_run, out=tmp_path / f"out.{ending}", **options)
    lines = (tmp_path / "out.ndjson").read_text().splitlines()
    for line, row in zip(lines, expected.to_pylist(), strict=True):
        told = json.loads(line)
        assert list(told) == expected.column_names
        assert told["start"] == row["start"].isoformat()
        assert told["date"] == str(row["date"])
        assert (told["user"], told["slot"], told["status"], told["reason"]) == (
            row["user"],
            row["slot"],
            row["status"],
            row["reason"],
        )
        assert told["probability"] == pytest.approx(row["probability"], abs=1e-6)
        assert [other["location"] for other in told["alternatives"] or []] == [
            other["location"] for other in row["alternatives"] or []
        ]
        assert (told["origin"] is None) == (row["origin"] is None)
        assert told["origin"] is None or told["origin"]["kind"] == row["origin"]["kind"]
    with (tmp_path / "out.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    for text, row in zip(written, expected.to_pylist(), strict=True):
        assert (text["user"], int(text["slot"]), text["start"]) == (row["user"], row["slot"], row["start"].isoformat())
        assert (text["location"] or None, text["reason"] or None) == (row["location"], row["reason"])
        others = [part.rpartition("=")[0] for part in text["alternatives"].split("; ") if part]
        assert others == [other["location"] for other in row["alternatives"] or []]
        assert (text["origin_kind"] or None) == (row["origin"] and row["origin"]["kind"])


def test_a_map_has_a_line_a_day_and_one_a_recovered_stretch(run: Path, tmp_path: Path) -> None:
    day = table_of(fixes("new", "2024-04-01", "AAAA..BBBBBBB.........BB"), fixes("one", "2024-04-01", "A" + "." * 23))
    am.recover(day, run, out=tmp_path / "out.geojson", max_gap="3h")
    page = json.loads((tmp_path / "out.geojson").read_text())
    assert page["type"] == "FeatureCollection"
    whole, stretch, one = page["features"]
    assert whole["geometry"]["type"] == "MultiLineString"
    assert [len(line) for line in whole["geometry"]["coordinates"]] == [13, 2]
    assert whole["properties"]["kind"] == "day"
    assert (whole["properties"]["observed"], whole["properties"]["recovered"]) == (13, 2)
    assert whole["properties"]["left_missing"] == 9
    assert whole["properties"]["slots"] == [*range(13), 22, 23]
    assert whole["properties"]["statuses"].count("recovered") == 2
    assert stretch["properties"]["kind"] == "recovered"
    assert (stretch["properties"]["first_slot"], stretch["properties"]["last_slot"]) == (4, 5)
    assert len(stretch["geometry"]["coordinates"]) == 4  # with the places it comes from and leads to
    assert one["geometry"]["type"] == "LineString"
    assert len(one["geometry"]["coordinates"]) == 2


def test_lines_go_to_standard_output_and_the_rest_to_standard_error(run: Path, source: Path, tmp_path: Path) -> None:
    done = cli(source, run, "-o", "-", "--json")
    assert done.exit_code == 0
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 5 * SLOTS
    assert json.loads(done.stderr)["user_days"] == 5
    am.recover(source, run, out=tmp_path / "out.ndjson")
    assert (tmp_path / "out.ndjson").read_text() == done.stdout


def test_lines_on_standard_output_are_utf_8_whatever_the_terminal_speaks(run: Path, tmp_path: Path) -> None:
    pq.write_table(table_of(fixes("李", "2024-03-18", HOME)), tmp_path / "points.parquet")
    command = [sys.executable, "-m", "attnmove.cli", "recover", str(tmp_path / "points.parquet"), str(run), "-o", "-"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True)
    assert {json.loads(line)["user"] for line in done.stdout.decode().splitlines()} == {"李"}


def test_the_summary_names_what_is_left_missing_and_refused(run: Path, source: Path, tmp_path: Path) -> None:
    done = cli(source, run, "-o", tmp_path / "out.parquet", "--max-gap", "4h")
    assert done.exit_code == 0
    assert "gap longer than 4h" in done.output
    assert str(tmp_path / "out.parquet") in done.output
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_is_read_is_not_written_over(run: Path, source: Path, tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    prepare(source, out=dataset, timezone=ZONE, slot_minutes=60, min_slots=1, min_days=1, hide=1)
    link = tmp_path / "link.parquet"
    link.symlink_to(source)
    before = {file: file.read_bytes() for folder in (run, dataset) for file in folder.iterdir()}
    before[source] = source.read_bytes()
    for what, out in (
        (source, source),
        (tmp_path / "p*.parquet", source),
        (source, link),
        (source, run / "thresholds.csv"),
        (source, run / "filled.parquet"),
        (dataset, dataset / "days.parquet"),
    ):
        with pytest.raises(ConfigError, match="is among the files that are read; name another place"):
            am.recover(what, run, out=out)
    with pytest.raises(ConfigError, match="is among the files that are read"):
        am.recover(source, run, out=dataset / "locations.parquet", history=dataset)
    assert before == {file: file.read_bytes() for file in before}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"user": 5}, "user: expected text in UTF-8, found 5"),
        ({"user": "\udcff"}, "user: expected text"),
        ({"columns": {"user": 5}}, "columns: user: expected text"),
        ({"top": "5"}, "top: expected 1 to"),
        ({"top": 2.5}, "top: expected 1 to"),
        ({"max_gap": 1.5}, "max_gap: expected whole minutes"),
        ({"format": "csv"}, "a table in memory has none"),
        ({"out": "a\udcff.csv"}, "the name of an output: expected text"),
    ],
)
def test_an_argument_of_another_kind_is_one_sentence(
    run: Path, fresh: pa.Table, option: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        am.recover(fresh, run, **option)


def test_a_run_without_a_table_of_confidences_recovers_into_a_file(run: Path, source: Path, tmp_path: Path) -> None:
    bare, out = shutil.copytree(run, tmp_path / "bare"), tmp_path / "filled.parquet"
    (bare / "thresholds.csv").unlink()
    am.recover(source, bare, out=out)
    assert pq.read_table(out) == am.recover(source, run)


def test_columns_formats_and_naive_times_are_read_as_prepare_reads_them(run: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("who,at,y,x\nann,2024-04-01 08:15,39.9,116.3\nann,2024-04-01 09:15,39.9,116.32\n")
    odd = am.recover(tmp_path / "odd.txt", run, format="csv", columns="user=who,time=at")
    assert column(odd, "status", "ann", "2024-04-01").index("observed") == 8
    moved = am.recover(tmp_path / "odd.txt", run, format="csv", columns="user=who,time=at", naive_timezone="UTC")
    assert column(moved, "status", "ann", "2024-04-01").index("observed") == 16
    one = am.recover(tmp_path / "odd.txt", run, format="csv", columns="time=at", user="me")
    assert set(one["user"].to_pylist()) == {"me"}


def test_a_month_of_many_users_is_whole(run: Path) -> None:
    table = am.recover(a_month(users=[f"u{i}" for i in range(30)], seed=3), run)
    assert table.num_rows == 30 * 12 * SLOTS
    assert table["user"].to_pylist() == sorted(table["user"].to_pylist())
