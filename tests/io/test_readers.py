"""The same few fixes out of every kind of file and table."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from attnmove.errors import ConfigError, DataError
from point_files import (
    FIXES,
    HEADER,
    gpx,
    micros,
    plt,
    trkpt,
    write_json,
    write_objects,
    write_parquet,
    write_rows,
    write_text,
    write_zip,
)

from .conftest import Reader, Row

ANN = [
    Row("ann", micros(2008, 10, 23, 2, 53, 4), 39.98, 116.31),
    Row("ann", micros(2008, 10, 23, 3, 10), 39.99, 116.32),
]
ROWS = [*ANN, Row("bob", micros(2008, 10, 24), -33.5, -70.25)]
TRACK = (("39.98", "116.31", "2008-10-23", "02:53:04"), ("39.99", "116.32", "2008-10-23", "03:10:00"))


# Delimited text


@pytest.mark.parametrize(
    ("name", "separator", "format"),
    [
        ("p.csv", ",", "csv"),
        ("p.tsv", "\t", "tsv"),
        ("p.csv", ";", "csv"),
        ("p.csv", "|", "csv"),
        ("P.CSV", "\t", "csv"),
    ],
)
def test_delimited_text_is_read_whatever_separates_it(
    name: str, separator: str, format: str, tmp_path: Path, read: Reader
) -> None:
    found = read(write_rows(tmp_path / name, separator=separator))
    assert found.rows == ROWS
    assert found.raw[0] == FIXES[0]
    assert found.points.format == format


def test_degrees_may_have_a_decimal_comma(tmp_path: Path, read: Reader) -> None:
    lines = ["user;time;lat;lon", "a;2024-03-04T08:00:00Z;39,98;-116,31", 'b;2024-03-04T08:00:00Z;"+1,5";2']
    (tmp_path / "p.csv").write_text(
        "\n".join([*lines, "c;2024-03-04T08:00:00Z;1,2,3;4", "d;2024-03-04T08:00:00Z;,5;4"])
    )
    found = [(row.user, row.lat, row.lon) for row in read(tmp_path / "p.csv").rows]
    assert found == [("a", 39.98, -116.31), ("b", 1.5, 2.0), ("c", None, 4.0), ("d", None, 4.0)]


def test_packed_text_is_unpacked(tmp_path: Path, read: Reader) -> None:
    plain = write_rows(tmp_path / "plain.csv")
    (tmp_path / "p.CSV.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert read(tmp_path / "p.CSV.gz").rows == ROWS


def test_packed_text_that_engines_would_not_unpack_is_refused(tmp_path: Path, read: Reader) -> None:
    (tmp_path / "p.csv.GZ").write_bytes(gzip.compress(b"user,time,lat,lon"))
    with pytest.raises(DataError, match=r"p.csv.GZ: engines know packed files by the ending .gz in small letters"):
        read(tmp_path / "p.csv.GZ")


def test_a_format_that_is_told_needs_no_ending(tmp_path: Path, read: Reader) -> None:
    assert read(write_rows(tmp_path / "points"), format="csv").rows == ROWS


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_may_end_as_on_other_systems(end: str, tmp_path: Path, read: Reader) -> None:
    path = write_rows(tmp_path / "p.csv")
    path.write_bytes(path.read_bytes().replace(b"\n", end.encode()))
    assert read(path).rows == ROWS


def test_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path: Path, read: Reader) -> None:
    path = write_rows(tmp_path / "p.csv")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\nbob", b"\n\n\nbob") + b"\n")
    assert read(path).rows == ROWS


def test_quoted_values_may_hold_the_separator_and_spaces_are_trimmed(tmp_path: Path, read: Reader) -> None:
    path = write_text(tmp_path / "p.csv", "user, time, lat, lon", '"Lee, ann", 2008-10-23T02:53:04Z, 39.98, 116.31')
    assert read(path).rows == [ANN[0]._replace(user="Lee, ann")]


def test_a_row_that_looks_like_a_comment_is_a_row(tmp_path: Path, read: Reader) -> None:
    rows = [*FIXES * 3, ("#7", *FIXES[0][1:])]
    assert len(read(write_rows(tmp_path / "p.csv", rows)).rows) == 10


def test_unused_columns_may_be_nameless_or_named_twice(tmp_path: Path, read: Reader) -> None:
    header = ["", *HEADER, "speed", "speed", "LAT"]
    path = write_rows(tmp_path / "p.csv", [["0", *row, "1", "2", "3"] for row in FIXES], header=header)
    assert read(path).rows == ROWS


def test_files_of_a_folder_may_differ_in_order_separator_and_other_columns(tmp_path: Path, read: Reader) -> None:
    write_rows(tmp_path / "a.csv", FIXES[:1])
    write_rows(tmp_path / "deep" / "b.csv", FIXES[1:2], separator=";")
    write_rows(tmp_path / "c.csv", [["9", *reversed(FIXES[2])]], header=["speed", *reversed(HEADER)])
    write_text(tmp_path / "_ignored.csv", "not,a,table")
    assert read(tmp_path).rows == ROWS


# Parquet


def test_parquet_is_read_from_a_file_a_folder_and_a_glob(tmp_path: Path, read: Reader) -> None:
    one = write_parquet(tmp_path / "day=1" / "a.parquet")
    write_parquet(tmp_path / "day=2" / "b.pq")
    assert read(one).rows == ROWS
    assert read(str(tmp_path / "*" / "*.parquet")).rows == ROWS
    assert read(tmp_path).rows == sorted(ROWS * 2)


def test_parquet_files_may_hold_their_columns_in_another_order_and_width(tmp_path: Path, read: Reader) -> None:
    times = pa.array([micros(2008, 10, 23, 2, 53, 4)], pa.timestamp("us", "UTC"))
    write_parquet(tmp_path / "a.parquet", user=["ann"], time=times, lat=[39.98], lon=[116.31])
    lon = pa.array([1], pa.int32())
    write_parquet(tmp_path / "b.parquet", lon=lon, lat=pa.array([2.0], pa.float32()), time=times, user=["bob"])
    assert read(tmp_path).rows == [ANN[0], Row("bob", ANN[0].time_us, 2.0, 1.0)]


def test_users_may_be_numbers_and_words_of_a_dictionary(tmp_path: Path, read: Reader) -> None:
    columns = {"time": [FIXES[0][1]], "lat": [39.98], "lon": [116.31]}
    assert read(write_parquet(tmp_path / "a.parquet", user=[7], **columns)).rows[0].user == "7"
    words = pa.array(["ann"]).dictionary_encode()
    assert read(write_parquet(tmp_path / "b.parquet", user=words, **columns)).rows[0].user == "ann"


# NDJSON


@pytest.mark.parametrize("name", ["p.ndjson", "p.jsonl", "p.json"])
def test_objects_one_a_line_are_read(name: str, tmp_path: Path, read: Reader) -> None:
    rows = [{"user": u, "time": t, "lat": float(lat), "lon": float(lon), "tags": [1]} for u, t, lat, lon in FIXES]
    found = read(write_objects(tmp_path / name, rows))
    assert found.rows == ROWS
    assert found.points.format == "ndjson"


def test_packed_objects_and_members_in_any_case_and_order_are_read(tmp_path: Path, read: Reader) -> None:
    rows = [{"Lng": lon, "LAT": lat, "uid": user, "TS": time} for user, time, lat, lon in FIXES]
    plain = write_objects(tmp_path / "plain.ndjson", rows)
    (tmp_path / "p.ndjson.gz").write_bytes(gzip.compress(plain.read_bytes().replace(b"\n", b"\n\n")))
    assert read(tmp_path / "p.ndjson.gz").rows == ROWS


# Geolife


def test_geolife_users_are_the_folders_above_trajectory(tmp_path: Path, read: Reader) -> None:
    tree = tmp_path / "Geolife Trajectories 1.3" / "Data"
    for user, fix in (("000", TRACK[0]), ("153", TRACK[1])):
        (tree / user / "Trajectory").mkdir(parents=True)
        (tree / user / "Trajectory" / "20081023025304.plt").write_text(plt(fix))
    write_text(tree / "153" / "labels.txt", "Start Time\tEnd Time\tTransportation Mode")
    found = read(tmp_path)
    assert found.rows == [ANN[0]._replace(user="000"), ANN[1]._replace(user="153")]
    assert found.points.format == "geolife"
    assert found.raw[0] == ("000", "2008-10-23 02:53:04Z", "39.98", "116.31")


def test_the_geolife_zip_is_the_tree(tmp_path: Path, read: Reader) -> None:
    members = {"G/Data/000/Trajectory/1.plt": plt(*TRACK), "G/Data/000/Trajectory/2.plt": plt(), "G/Data/a.txt": "x"}
    assert read(write_zip(tmp_path / "g.zip", members)).rows == [row._replace(user="000") for row in ANN]


def test_a_lone_track_is_of_its_name_or_of_the_user_told(tmp_path: Path, read: Reader) -> None:
    (tmp_path / "ann.plt").write_text(plt(*TRACK))
    (tmp_path / "ann.plt.gz").write_bytes(gzip.compress(plt(*TRACK).encode()))
    assert read(tmp_path / "ann.plt").rows == ANN
    assert read(tmp_path / "ann.plt.gz").rows == ANN
    assert {row.user for row in read(tmp_path / "ann.plt", one_user="me").rows} == {"me"}


def test_damaged_rows_of_a_track_are_refused_one_by_one(tmp_path: Path, read: Reader) -> None:
    good, quoted, latin = (
        plt(TRACK[0]),
        '"39.98,116.31,0,1,2,2008-10-23,03:00:00\r\n',
        "\xe9,1,0,1,2,2008-10-23,04:00:00\n",
    )
    path = tmp_path / "ann.plt"
    path.write_bytes((good + quoted + latin + "39.9,11").encode("latin-1"))
    reasons = {raw[1]: row.reason for row, raw in zip(*read(path)[1:], strict=True)}
    assert reasons == {
        "2008-10-23 02:53:04Z": None,
        "2008-10-23 03:00:00Z": "not_a_number",
        "2008-10-23 04:00:00Z": "not_a_number",
        "39.9,11": "unparsable_time",
    }


# GPX


def test_gpx_points_keep_their_own_time_whatever_else_they_carry(tmp_path: Path, read: Reader) -> None:
    path = tmp_path / "ann.gpx"
    heart = "<extensions><tpx:hr>140</tpx:hr><time>1999-01-01T00:00:00Z</time></extensions>"
    path.write_text(
        gpx(
            trkpt("39.98", "116.31", f"<ele>5</ele><time> 2008-10-23T02:53:04Z </time><sat>7</sat>{heart}"),
            trkpt("39.99", "116.32", f"{heart}<time>2008-10-23T03:10:00Z</time>"),
        )
    )
    assert read(path).rows == ANN


def test_gpx_namespaces_waypoints_and_routes_are_read_and_metadata_is_not(tmp_path: Path, read: Reader) -> None:
    path = tmp_path / "ann.gpx"
    path.write_text(
        '<g:gpx xmlns:g="http://www.topografix.com/GPX/1/1"><g:metadata><g:time>2001-01-01T00:00:00Z</g:time></g:metadata>'
        '<g:wpt lat="39.98" lon="116.31"><g:time>2008-10-23T02:53:04Z</g:time><g:name>home</g:name></g:wpt>'
        '<g:rte><g:rtept lat="39.99" lon="116.32"><g:time>2008-10-23T03:10:00Z</g:time></g:rtept></g:rte></g:gpx>'
    )
    assert read(path).rows == ANN


def test_a_gpx_point_without_a_time_is_refused_not_lost(tmp_path: Path, read: Reader) -> None:
    path = tmp_path / "ann.gpx"
    path.write_text(gpx(trkpt("39.98", "116.31", "<ele>5</ele>"), trkpt("39.98", "116.31", "<time/>")))
    assert [row.reason for row in read(path).rows] == ["unparsable_time", "unparsable_time"]


def test_gpx_files_are_one_person_each_unless_told(tmp_path: Path, read: Reader) -> None:
    point = gpx(trkpt("39.98", "116.31", "<time>2008-10-23T02:53:04Z</time>"))
    (tmp_path / "2020.01.gpx").write_text(point)
    (tmp_path / "bob.gpx.gz").write_bytes(gzip.compress(point.replace("UTF-8", "UTF-16").encode("utf-16")))
    assert [row.user for row in read(tmp_path).rows] == ["2020.01", "bob"]
    assert [row.user for row in read(tmp_path, one_user="me").rows] == ["me", "me"]


# Google


@pytest.mark.parametrize("indent", [1, None])
def test_records_of_takeout_have_two_kinds_of_time_and_whole_degrees(
    indent: int | None, tmp_path: Path, read: Reader
) -> None:
    records = [
        {"timestamp": "2008-10-23T02:53:04Z", "latitudeE7": 399800000, "longitudeE7": 1163100000, "accuracy": 5},
        {"timestampMs": "1224731400000", "latitudeE7": 399900000, "longitudeE7": 1163200000, "activity": [{}]},
        {"timestampMs": 1224806400000, "latitudeE7": 2**32 - 335000000, "longitudeE7": 2**32 - 702500000},
    ]
    found = read(write_json(tmp_path / "Records.json", {"locations": records}, indent=indent))
    assert sorted(found.rows) == [
        row._replace(user="Records") for row in sorted(ROWS, key=lambda row: row.time_us or 0)
    ]
    assert found.points.format == "google"


def test_records_of_another_shape_are_refused_one_by_one_with_what_they_hold(tmp_path: Path, read: Reader) -> None:
    records = [{"timestamp": "2008-10-23T02:53:04Z"}, {"latitudeE7": "x", "longitudeE7": 5}, {"timestampMs": 10**30}]
    found = read(write_json(tmp_path / "me.json", {"locations": records}))
    assert sorted(str(row.reason) for row in found.rows) == ["not_a_number", "unparsable_time", "unparsable_time"]
    broken: list[Any] = [{"startTime": "a", "visit": "home"}, {"startTime": "a", "timelinePath": None}]
    found = read(write_json(tmp_path / "me.json", broken))
    assert [raw[1] for raw in found.raw] == [
        '{"startTime": "a", "timelinePath": null}',
        '{"startTime": "a", "visit": "home"}',
    ]


def test_a_timeline_of_android_gives_paths_visits_trips_and_signals(tmp_path: Path, read: Reader) -> None:
    export = {
        "semanticSegments": [
            {
                "startTime": "2024-05-01T08:00:00.000+02:00",
                "endTime": "2024-05-01T10:00:00.000+02:00",
                "timelinePath": [{"point": "48.1°, 11.5°", "time": "2024-05-01T08:30:00.000+02:00"}],
            },
            {
                "startTime": "2024-05-01T10:00:00.000+02:00",
                "endTime": "2024-05-01T10:12:00.000+02:00",
                "visit": {"topCandidate": {"placeLocation": {"latLng": "48.2°, 11.6°"}}},
            },
            {
                "startTime": "2024-05-01T11:00:00.000+02:00",
                "endTime": "2024-05-01T11:20:00.000+02:00",
                "activity": {"start": {"latLng": "-48.2°, 11.6°"}, "end": {"latLng": "48.3°, -11.7°"}},
            },
            {"startTime": "2024-05-01T00:00:00Z", "timelineMemory": {"trip": {}}},
        ],
        "rawSignals": [
            {"position": {"LatLng": "48.4°, 11.8°", "timestamp": "2024-05-01T12:00:00.000+02:00", "source": "WIFI"}},
            {"wifiScan": {"deliveryTime": "2024-05-01T12:00:00.000+02:00"}},
        ],
        "userLocationProfile": {"frequentPlaces": []},
    }
    found = sorted(read(write_json(tmp_path / "Timeline.json", export), one_user="me").rows)
    assert found == [
        Row("me", micros(2024, 5, 1, hour, minute), lat, lon)
        for hour, minute, lat, lon in [
            (6, 30, 48.1, 11.5),
            (8, 0, 48.2, 11.6),
            (8, 5, 48.2, 11.6),
            (8, 10, 48.2, 11.6),
            (8, 12, 48.2, 11.6),
            (9, 0, -48.2, 11.6),
            (9, 20, 48.3, -11.7),
            (10, 0, 48.4, 11.8),
        ]
    ]


def test_a_timeline_of_an_iphone_counts_minutes_from_the_start(tmp_path: Path, read: Reader) -> None:
    export = [
        {
            "startTime": "2024-05-01T08:00:00.000+02:00",
            "endTime": "2024-05-01T10:00:00.000+02:00",
            "timelinePath": [
                {"point": "geo:48.1,11.5", "durationMinutesOffsetFromStartTime": "7"},
                {"point": "geo:48.1,11.5", "durationMinutesOffsetFromStartTime": "1e40"},
            ],
        },
        {
            "startTime": "2024-05-01T10:00:00.000+02:00",
            "endTime": "2024-05-01T10:05:00.000+02:00",
            "visit": {"topCandidate": {"placeLocation": "geo:-48.2,-11.6"}},
        },
    ]
    found = read(write_json(tmp_path / "ann.json", export)).rows
    assert found == [
        Row("ann", None, 48.1, 11.5, "unparsable_time"),
        Row("ann", micros(2024, 5, 1, 6, 7), 48.1, 11.5),
        Row("ann", micros(2024, 5, 1, 8), -48.2, -11.6),
        Row("ann", micros(2024, 5, 1, 8, 5), -48.2, -11.6),
    ]


def test_a_long_export_is_read_in_pieces(tmp_path: Path, read: Reader) -> None:
    record = {
        "timestamp": "2008-10-23T02:53:04Z",
        "latitudeE7": 399800000,
        "longitudeE7": 1163100000,
        "note": "x" * 200,
    }
    found = read(write_json(tmp_path / "ann.json", {"locations": [record] * 6_000}))
    assert found.rows == [ANN[0]] * 6_000


# Tables


@pytest.mark.filterwarnings("ignore:fetch_record_batch:DeprecationWarning")  # Ibis calls DuckDB by an old name
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "ibis"])
def test_tables_of_every_library_are_read(kind: str, read: Reader) -> None:
    columns = {name: [row[i] for row in FIXES] for i, name in enumerate(HEADER)}
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table, "ibis": ibis.memtable}
    found = read(make[kind](columns))
    assert found.rows == ROWS
    assert found.points.format == "table"


def test_typed_tables_are_read(read: Reader) -> None:
    frame = pd.DataFrame(FIXES, columns=list(HEADER)).astype({"lat": float, "lon": float, "user": "category"})
    frame["time"] = pd.to_datetime(frame["time"])
    assert read(frame).rows == ROWS
    assert read(frame.assign(time=frame["time"].dt.tz_convert("Asia/Shanghai"))).rows == ROWS
    assert read(pl.from_pandas(frame)).rows == ROWS


def test_a_number_stays_the_user_it_was_where_another_user_is_missing(read: Reader) -> None:
    frame = pd.DataFrame({"user": [7, None, 8, 8.5], "time": "2024-03-04T08:00:00Z", "lat": 39.9, "lon": 116.4})
    assert [(row.user, row.reason) for row in sorted(read(frame).rows, key=str)] == [
        ("7", None),
        ("8", None),
        ("8.5", None),
        (None, "no_user"),
    ]
    assert (
        len(read(frame.assign(user=[1e19, float("inf"), -3, None])).rows) == 4
    )  # what is no whole number does no harm


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([1, 2], "cannot read points from list: expected a path or a pandas"),
        (pa.table({name: pa.array([], pa.string()) for name in HEADER}), "pyarrow.Table: there is no point in it"),
        (pd.DataFrame({"user": ["a", 1], "time": 5, "lat": 1.0, "lon": 1.0}), "one name and one type each"),
        (pd.DataFrame([["a", 5, 1.0, 1.0, 1.0]], columns=[*HEADER, "lat"]), "Duplicate column names"),
        (pd.DataFrame({"who": ["a"]}), "pandas.DataFrame: no column for user and time and lat and lon among 'who'"),
    ],
)
def test_a_table_that_holds_no_points_is_explained(table: Any, sentence: str, read: Reader) -> None:
    with pytest.raises(DataError, match=sentence.replace("(", r"\(")):
        read(table)


def test_the_released_files_are_not_points(tmp_path: Path, read: Reader) -> None:
    write_text(tmp_path / "pos.train.txt", "")
    with pytest.raises(ConfigError, match="the released files hold days, not points"):
        read(tmp_path)
