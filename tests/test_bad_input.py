"""Broken files and senseless options: each is answered with one sentence that says where, what, and what to do."""

from __future__ import annotations

import gc
import gzip
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from attnmove import cli
from attnmove.io import geolife
from point_files import (
    FIXES,
    HEADER,
    gpx,
    half_hours,
    plt,
    released_line,
    trkpt,
    write_json,
    write_objects,
    write_parquet,
    write_released,
    write_rows,
    write_text,
    write_zip,
)
from space.shapes import box, feature, line, write_features

DAY = half_hours("ann", 6)
TRACK = plt(("39.98", "116.31", "2008-10-23", "02:53:04"))
ONE = {"user": "ann", "time": "2008-10-23T02:53:04Z", "lat": 39.98, "lon": 116.31}
TWO_TYPES = {"user": ["a", "b"], "time": ["2008-10-23T02:53:04Z"] * 2, "lat": [1.0, 2.0], "lon": [3.0, 4.0]}
BOMB = '<!DOCTYPE gpx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><gpx><name>&b;</name></gpx>'


@dataclass(frozen=True)
class Answer:
    status: int
    said: str


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> Answer:
    """The exit status and standard error of the command line, as the shell would see them."""
    monkeypatch.setattr(sys, "argv", ["attnmove", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    status = stop.value.code
    return Answer(status if isinstance(status, int) else int(status is not None), capsys.readouterr().err)


Builder = Callable[[Path], str]
"""Makes the broken thing below a folder and returns its name, `{}` being the folder."""


def _bytes(name: str, data: bytes) -> Builder:
    def build(folder: Path) -> str:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    return build


def _lines(name: str, *lines: str) -> Builder:
    return _bytes(name, "".join(f"{one}\n" for one in lines).encode())


def _csv(*lines: str, header: str = "user,time,lat,lon") -> Builder:
    return _lines("points.csv", header, *lines)


def _parquet(**columns: object) -> Builder:
    return lambda folder: str(write_parquet(folder / "points.parquet", **{**TWO_TYPES, **columns}))


def _all(*builders: Builder) -> Builder:
    """Several files in one folder, which is the source."""

    def build(folder: Path) -> str:
        for builder in builders:
            builder(folder / "many")
        return str(folder / "many")

    return build


def _missing(name: str) -> Builder:
    return lambda folder: str(folder / name)


def _empty_folder(folder: Path) -> str:
    (folder / "nothing").mkdir()
    return str(folder / "nothing")


def _cut(name: str, whole: Callable[[Path], Path], keep: float) -> Builder:
    def build(folder: Path) -> str:
        data = whole(folder / f"whole-{name}").read_bytes()
        return _bytes(name, data[: int(len(data) * keep)])(folder)

    return build


def _scratched_parquet(folder: Path) -> str:
    """The footer is sound, the pages are not."""
    n = 20_000
    columns = {
        "user": ["a"] * n,
        "time": list(range(n)),
        "lat": [i / n for i in range(n)],
        "lon": [i / n for i in range(n)],
    }
    data = bytearray(write_parquet(folder / "sound.parquet", **columns).read_bytes())
    data[100:60_000] = b"\x99" * 59_900
    return _bytes("points.parquet", bytes(data))(folder)


def _zip(**members: str) -> Builder:
    return lambda folder: str(
        write_zip(folder / "tracks.zip", {name.replace("_", "."): m for name, m in members.items()})
    )


def _scratched_zip(folder: Path) -> str:
    data = bytearray(write_zip(folder / "sound.zip", {"1.plt": TRACK * 40}).read_bytes())
    data[50:90] = b"\xff" * 40
    return _bytes("tracks.zip", bytes(data))(folder)


def _released(*, train: str | None = None, test: str | None = None, without: str | None = None) -> Builder:
    def build(folder: Path) -> str:
        made = write_released(folder / "released")
        if train is not None:
            write_text(made / "pos.train.txt", train)
        if test is not None:
            write_text(made / "pos.test.txt", test)
        if without is not None:
            (made / without).unlink()
        return str(made)

    return build


GZ = gzip.compress("".join(f"{','.join(row)}\n" for row in [HEADER, *DAY]).encode())

SOURCES: dict[str, tuple[Builder, tuple[str, ...], str]] = {
    # What is there
    "a missing file": (_missing("lost.csv"), (), "lost.csv: there is no such file, folder or glob match"),
    "a glob without a match": (_missing("*.csv"), (), "*.csv: there is no such file, folder or glob match"),
    "no name at all": (lambda folder: "", (), "the name of the source is empty"),
    "a name too long": (lambda folder: "x" * 5_000, (), "cannot be looked at (File name too long)"),
    "a device": (lambda folder: "/dev/null", (), "/dev/null: not a file"),
    "an empty folder": (_empty_folder, (), "no file here ends in .csv, .tsv"),
    "an unknown ending": (_bytes("points.xlsx", b"PK"), (), "cannot tell the format by its name; say --format csv|tsv"),
    "an unknown format": (_csv(), ("--format", "shapefile"), "there is no format 'shapefile': use one of auto, csv"),
    "a format the folder lacks": (_all(_csv()), ("--format", "gpx"), "no gpx file in this folder"),
    "mixed formats": (_all(_csv(), _lines("a.gpx", gpx())), (), "files of several formats (csv, gpx); choose one"),
    # Delimited text
    "an empty file": (_bytes("points.csv", b""), (), "points.csv: the file is empty"),
    "only blank lines": (_bytes("points.csv", b"\n\n \n"), (), "points.csv: the file is empty"),
    "a blank first line": (_lines("points.csv", "", "user,time,lat,lon"), (), "row 1: a blank line; expected a header"),
    "a header only": (_csv(), (), "points.csv: there is no point in it"),
    "no header": (_lines("points.csv", ",".join(FIXES[0])), (), "row 1: expected column names, found data ('ann,2008"),
    "one column": (_lines("points.csv", "user", "ann"), (), "row 1: one column 'user'; expected a header of at least"),
    "commas in a .tsv": (_lines("points.tsv", "user,time,lat,lon"), (), "row 1: one column 'user,time,lat,lon'"),
    "unknown columns": (
        _csv("1,2,3,4", header="who,year,north,east"),
        (),
        "no column for user and time and lat and lon among 'who', 'year', 'north', 'east'; say which with --columns",
    ),
    "no user column": (
        _csv(header="time,lat,lon"),
        (),
        "--columns user=… (or --user NAME if all points are one person's)",
    ),
    "a column twice": (_csv(header="user,time,lat,lon,lat"), (), "the column 'lat' occurs twice; rename one of them"),
    "a role there is not": (_csv(), ("--columns", "latitude=lat"), "--columns takes user=…,time=…,lat=…,lon=…"),
    "columns without a sign": (_csv(), ("--columns", "lat"), "(any of them); found 'lat'"),
    "a column near another": (_csv(), ("--columns", "lat=latt"), "no column 'latt' for lat; did you mean 'lat'?"),
    "a column far from any": (_csv(), ("--columns", "lat=north"), "the columns are 'user', 'time', 'lat', 'lon'"),
    "a short first row": (
        _csv("ann,2008", ",".join(FIXES[0])),
        (),
        "points.csv, row 2: 2 columns, but the header has 4",
    ),
    "a long row": (_csv(",".join(FIXES[0]), "a,b,c,d,e"), (), "points.csv, row 3: 5 columns, but the header has 4"),
    "a short row far below": (
        lambda folder: str(write_rows(folder / "points.csv", [*DAY * 40, ["x", "y"]])),
        (),
        "points.csv, row 11522: 2 columns, but the header has 4; correct or remove that row",
    ),
    "a comment": (_csv(*[",".join(FIXES[0])] * 3, "# hello"), (), "points.csv, row 5: 1 columns, but the header has 4"),
    "a quote left open": (_csv('"ann,2008-10-23T02:53:04Z,1,1', *[",".join(FIXES[0])] * 2), (), "row 2: broken quotes"),
    "mixed line ends": (
        _bytes("points.csv", b"user,time,lat,lon\r\na,1,2,3\r\na,1,2,3\n"),
        (),
        "row 3: lines end in CR LF and in LF alone",
    ),
    "a row without end": (_csv("x" * 2_500_000 + ",1,2,3"), (), "row 2: longer than 2,000,000 bytes"),
    "binary garbage": (
        _bytes("points.csv", bytes(range(256)) * 9),
        (),
        "binary content (or UTF-16), expected UTF-8 text",
    ),
    "UTF-16": (_bytes("points.csv", "user,time,lat,lon\n".encode("utf-16")), (), "check the format or save as UTF-8"),
    "Latin-1": (_bytes("points.csv", "user,time,lat,lon\njosé,1,2,3\n".encode("latin-1")), (), "row 2: not UTF-8 text"),
    "Latin-1 far below": (
        _bytes("points.csv", b"user,time,lat,lon\n" + b"ann,1,2,3\n" * 2_000 + "josé,1,2,3\n".encode("latin-1")),
        (),
        "points.csv, row 2002: not UTF-8 text; save the file as UTF-8",
    ),
    "gzip cut off": (_bytes("points.csv.gz", GZ[: len(GZ) // 2]), (), "cannot be read (Compressed file ended before"),
    "gzip that lost its end": (_bytes("points.csv.gz", GZ[:-8]), (), "fetch the file again"),
    "gzip in name only": (_bytes("points.csv.gz", b"user,time,lat,lon\n"), (), "cannot be read (Not a gzipped file"),
    "two headers in a folder": (
        _all(_lines("a.csv", "user,time,lat,lon"), _lines("b.csv", "user,time,latitude,lon")),
        (),
        "b.csv: no column 'lat', which",
    ),
    # NDJSON
    "NDJSON broken above": (
        _lines("p.ndjson", json.dumps(ONE), "{broken"),
        (),
        "row 2: expected one JSON object a line",
    ),
    "NDJSON broken below": (
        _lines("p.ndjson", *[json.dumps(ONE)] * 300, "{broken"),
        (),
        "p.ndjson, row 301: expected one JSON object a line (Expecting property name",
    ),
    "NDJSON cut off": (_lines("p.ndjson", *[json.dumps(ONE)] * 300, '{"us'), (), "row 301: expected one JSON object"),
    "an array in NDJSON": (
        _lines("p.ndjson", *[json.dumps(ONE)] * 300, "[1]"),
        (),
        "row 301: expected one JSON object a line, found an array",
    ),
    "an array, not NDJSON": (
        _lines("p.ndjson", json.dumps([ONE, ONE])),
        (),
        "row 1: expected one JSON object a line, found an array",
    ),
    "NaN in NDJSON": (
        _lines("p.ndjson", '{"user": "a", "time": 5, "lat": NaN, "lon": 1}'),
        (),
        "NaN is not JSON; write null",
    ),
    "NDJSON with a mark": (_bytes("p.ndjson", b"\xef\xbb\xbf{}\n"), (), "begins with a byte order mark"),
    "NDJSON nested too deep": (_bytes("p.ndjson", b"[" * 100_000), (), "row 1: expected one JSON object a line"),
    "NDJSON without members": (
        _lines("p.ndjson", "{}", "{}"),
        (),
        "no column for user and time and lat and lon among none",
    ),
    # Parquet
    "text named Parquet": (_bytes("points.parquet", b"user,time,lat,lon\n"), (), "not a Parquet file, or cut off"),
    "Parquet cut off": (
        _cut("points.parquet", write_parquet, 0.6),
        (),
        "points.parquet: not a Parquet file, or cut off",
    ),
    "Parquet with scratched pages": (_scratched_parquet, (), "points.parquet"),
    "Parquet without rows": (
        _parquet(**{name: pa.array([], pa.string()) for name in HEADER}),
        (),
        "there is no point in it",
    ),
    "latitudes in lists": (_parquet(lat=[[1.0], [2.0]]), (), "column 'lat' holds array<float64>; expected degrees"),
    "latitudes true or false": (_parquet(lat=[True, False]), (), "column 'lat' holds boolean; expected degrees"),
    "times true or false": (_parquet(time=[True, False]), (), "column 'time' holds boolean; expected times (ISO 8601"),
    "users in lists": (_parquet(user=[["a"], ["b"]]), (), "column 'user' holds array<string>; expected users as text"),
    "Parquet without a column": (
        lambda folder: str(write_parquet(folder / "points.parquet", user=["a"], time=[5], lat=[1.0])),
        (),
        "points.parquet: no column for lon among 'user', 'time', 'lat'",
    ),
    "Parquet of two schemas": (
        lambda folder: str(
            write_parquet(folder / "p" / "a.parquet", **TWO_TYPES).parent
            if write_parquet(folder / "p" / "b.parquet", **{**TWO_TYPES, "time": [5, 6]})
            else ""
        ),
        (),
        "b.parquet: column 'time' holds numbers, but text in",
    ),
    # Geolife
    "a .plt with another header": (
        _lines("1.plt", "lat,lon"),
        (),
        "1.plt, row 1: expected 'Geolife trajectory', found 'lat,lon'",
    ),
    "a .plt without fixes": (_bytes("1.plt", plt().encode()), (), "1.plt: there is no point in it"),
    "a zip that is none": (
        _bytes("tracks.zip", b"hello"),
        (),
        "tracks.zip: not a zip file (or cut off); download it again",
    ),
    "a zip cut off": (
        _cut("tracks.zip", lambda path: write_zip(path, {"1.plt": TRACK}), 0.5),
        (),
        "not a zip file (or cut off)",
    ),
    "a zip scratched": (_scratched_zip, (), "tracks.zip: not a readable zip file"),
    "a zip of other things": (_zip(readme_txt="hello"), (), "no .plt track in this zip; unpack it"),
    # GPX
    "GPX that is no XML": (_lines("a.gpx", "hello"), (), "a.gpx, row 1: not well-formed GPX (syntax error)"),
    "GPX cut off": (_bytes("a.gpx", gpx(trkpt("1", "2", "")).encode()[:-20]), (), "row 4: not well-formed GPX"),
    "another XML": (_lines("a.gpx", "<kml></kml>"), (), "row 1: expected a <gpx> element, found <kml>"),
    "an XML bomb": (_lines("a.gpx", BOMB), (), "declares XML entities, which GPX never needs; refused"),
    "an encoding nobody knows": (
        _lines("a.gpx", "<?xml version='1.0' encoding='klingon'?><gpx/>"),
        (),
        "save as UTF-8",
    ),
    "GPX without points": (_lines("a.gpx", gpx()), (), "a.gpx: there is no point in it"),
    "columns for GPX": (_lines("a.gpx", gpx()), ("--columns", "lat=y"), "--columns has no meaning for gpx files"),
    # Google
    "Google's JSON broken": (
        _bytes("R.json", b'{"locations": [\n{"a": 1},\n{"a": '),
        (),
        "R.json: the JSON is broken or cut off near",
    ),
    "Google's JSON empty": (_bytes("R.json", b""), (), "R.json: the file is empty"),
    "Google's JSON without fixes": (
        _lines("R.json", '{"locations": []}'),
        (),
        "expected Google's Records.json ('locations')",
    ),
    "another JSON": (
        _lines("R.json", '{"type":', '"FeatureCollection"}'),
        (),
        "or a Timeline export ('semanticSegments'",
    ),
    "an array of points": (lambda folder: str(write_json(folder / "R.json", [ONE])), (), "must be one object a line"),
    "no JSON": (_lines("R.json", "hello"), (), "R.json, row 1: expected JSON, found 'hello"),
    # The released files
    "a released file missing": (
        _released(without="pos.test.txt"),
        (),
        "pos.test.txt: not there or not a file; the released folder holds",
    ),
    "a released file empty": (_released(test=""), (), "pos.test.txt: the file is empty"),
    "released columns": (
        _released(train="1 20081023 *"),
        (),
        "pos.train.txt, row 1: expected 3 columns separated by tabs",
    ),
    "released tokens cut off": (
        _released(train=released_line()[:-2]),
        (),
        "row 1, column 3: expected 288 tokens, found 287",
    ),
    "a released token": (
        _released(train=released_line(full={15: "x7"})),
        (),
        "row 1, column 3: expected a region number or '*', found 'x7'",
    ),
    "a released date": (
        _released(train=released_line(date="20081341")),
        (),
        "row 1, column 2: expected a date yyyymmdd, found '20081341'",
    ),
    "no released user": (_released(train=released_line(user="")), (), "row 1, column 1: expected a user"),
    "a mask over nothing": (
        _released(train=released_line(hidden=[3])),
        (),
        "row 1: a slot is masked that the full day does not have",
    ),
    "a released day twice": (
        _released(test=released_line(date="20081024", full={15: "9", 16: "9", 17: "9"})),
        (),
        "pos.test.txt, row 1: user 1 on 2008-10-24 contradicts an earlier line",
    ),
    "released, but a file": (
        _csv(),
        ("--format", "released"),
        "--format released expects the folder that holds pos.train.txt",
    ),
    # Rows
    "times without a zone": (
        _csv(*["ann,2008-10-23 02:53:04,1,2"] * 3),
        (),
        "every row was refused, most of them (3) for a time without a zone",
    ),
    "no day left": (
        _csv(*(",".join(row) for row in FIXES)),
        (),
        "(the fullest of 2 user-days has 2); lower --min-slots or --min-days",
    ),
}


@pytest.mark.parametrize(("build", "options", "sentence"), SOURCES.values(), ids=SOURCES.keys())
def test_a_broken_source_is_explained_in_one_sentence_and_leaves_nothing_behind(
    build: Builder,
    options: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, out = build(tmp_path), tmp_path / "out"
    out.mkdir()
    answer = run(monkeypatch, capsys, "prepare", source, "-o", str(out / "dataset"), *options)
    assert sentence in answer.said
    assert answer.status == 1
    assert answer.said.startswith("error: ")
    assert answer.said.count("\n") == 1
    assert list(out.iterdir()) == []


OPTIONS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "an unknown tessellation": (("--tessellation", "gird:500"), 1, "did you mean grid:500?"),
    "a cell of nothing": (("--tessellation", "grid:0"), 1, "a cell must be 10 to 100000 metres wide, found 0"),
    "a resolution too fine": (("--tessellation", "h3:99"), 1, "the resolution must be 0 to 15, found 99"),
    "a polygon file missing": (("--tessellation", "lost.geojson"), 1, "lost.geojson"),
    "snapping to a grid": (("--snap-m", "5"), 1, "snap_m says nothing about grid:500"),
    "an unknown datum": (("--datum", "nad27"), 1, "there is no datum 'nad27': use wgs84, gcj02, bd09"),
    "an unknown engine": (("--engine", "polars"), 1, "there is no engine 'polars': use duckdb, spark or spark:MASTER"),
    "an unknown zone": (("--timezone", "Asia/Shangai"), 1, "did you mean Asia/Shanghai"),
    "an unknown zone of times": (("--naive-timezone", "Mars/Olympus"), 1, "'Mars/Olympus' is not an IANA time zone"),
    "an unknown slot rule": (("--slot-rule", "first"), 1, "there is no slot rule 'first': use mode or last"),
    "an unknown pattern": (("--pattern", "noon"), 1, "there is no pattern 'noon': use uniform or burst or night"),
    "slots that do not divide": (("--slot-minutes", "7"), 1, "a slot of 7 minutes does not fit: use 5 to 120"),
    "slots of nothing": (("--slot-minutes", "0"), 1, "a slot of 0 minutes does not fit"),
    "slots too long": (("--slot-minutes", "240"), 1, "a slot of 240 minutes does not fit"),
    "too much hidden": (
        ("--hide", "48"),
        1,
        "--hide 48: a day of 30-minute slots has 48, and at least one of them must stay visible",
    ),
    "nothing hidden": (("--hide", "0"), 1, "--hide must be at least 1; found 0"),
    "more slots than a day has": (("--min-slots", "49"), 1, "--min-slots 49: a day of 30-minute slots has 48"),
    "negative slots": (("--min-slots", "-1"), 1, "--min-slots must be at least 1; found -1"),
    "negative days": (("--min-days", "-5"), 1, "--min-days must be at least 1; found -5"),
    "no draw": (("--draws", "0"), 1, "--draws must be at least 1; found 0"),
    "a negative seed": (("--seed", "-1"), 1, "--seed must be at least 0; found -1"),
    "centres of points": (("--centres", "centres.csv"), 1, "--centres belongs to --format released"),
    "a word for a number": (("--draws", "many"), 2, "Invalid value for '--draws'"),
    "an option there is not": (("--slots", "5"), 2, "No such option"),
}


@pytest.mark.parametrize(("options", "status", "sentence"), OPTIONS.values(), ids=OPTIONS.keys())
def test_a_senseless_option_is_refused_before_anything_is_written(
    options: tuple[str, ...],
    status: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, out = write_rows(tmp_path / "points.csv", DAY), tmp_path / "out"
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(out / "dataset"), *options)
    assert sentence in " ".join(answer.said.split())
    assert answer.status == status
    assert not out.exists()


SHAPES: dict[str, tuple[Builder, str, str]] = {
    "polygons that are no JSON": (_lines("a.geojson", "hello"), "", "a.geojson"),
    "polygons in metres": (
        lambda folder: str(
            write_features(folder / "a.geojson", feature(box(4_000_000, 5_000_000, 4_000_500, 5_000_500)))
        ),
        "",
        "a.geojson",
    ),
    "lines instead of polygons": (
        lambda folder: str(write_features(folder / "a.geojson", feature(line((0, 0), (1, 1))))),
        "",
        "a.geojson",
    ),
    "roads that enclose nothing": (
        lambda folder: str(
            write_features(folder / "r.geojson", feature(line((0, 0), (0.01, 0.01)), highway="primary"))
        ),
        "roads:",
        "r.geojson",
    ),
    "polygons on another continent": (
        lambda folder: str(write_features(folder / "a.geojson", feature(box(0, 0, 0.1, 0.1)))),
        "",
        "none of the 288 fixes lies in a location; check datum and tessellation",
    ),
}


@pytest.mark.parametrize(("build", "kind", "sentence"), SHAPES.values(), ids=SHAPES.keys())
def test_a_broken_map_is_explained_in_one_sentence_and_leaves_nothing_behind(
    build: Builder,
    kind: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, out = write_rows(tmp_path / "points.csv", DAY), tmp_path / "out"
    spec = kind + build(tmp_path)
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(out / "dataset"), "--tessellation", spec)
    assert sentence in answer.said
    assert answer.status == 1
    assert answer.said.count("\n") == 1
    assert not out.exists()


CENTRES: dict[str, tuple[str, str]] = {
    "no such column": ("id,lat,lon\n7,1,2\n", "row 1: no column region_id; expected region_id, lat, lon"),
    "a word": (
        "region_id,lat,lon\n7,1,2\n120,north,2\n",
        "row 3: expected numbers in region_id, lat, lon; found 120, north, 2",
    ),
    "a short row": ("region_id,lat,lon\n7,1\n", "row 2: expected numbers in region_id, lat, lon; found 7, 1, None"),
    "metres": ("region_id,lat,lon\n7,5000000,2\n", "row 2: expected degrees, found lat 5e+06, lon 2"),
    "nan": ("region_id,lat,lon\n7,nan,2\n", "row 2: expected degrees, found lat nan, lon 2"),
    "other regions": ("region_id,lat,lon\n8,1,2\n", "none of its region ids occurs in the released days"),
}


@pytest.mark.parametrize(("text", "sentence"), CENTRES.values(), ids=CENTRES.keys())
def test_broken_centres_are_explained_with_their_row(
    text: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, centres = write_released(tmp_path / "released"), tmp_path / "centres.csv"
    centres.write_text(text)
    out = tmp_path / "dataset"
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(out), "--centres", str(centres))
    assert f"{centres}" in answer.said
    assert sentence in answer.said
    assert answer.status == 1
    assert not out.exists()


def test_centres_that_are_not_there_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_released(tmp_path / "released")
    out = str(tmp_path / "dataset")
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", out, "--centres", str(tmp_path / "lost.csv"))
    assert "lost.csv: there is no such file of centres" in answer.said


@pytest.mark.parametrize("limit", ["MAX_MEMBER_BYTES", "MAX_ZIP_BYTES"])
def test_a_zip_that_unpacks_to_too_much_is_refused(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(geolife, limit, 1_000)
    source = write_zip(tmp_path / "bomb.zip", {"1.plt": TRACK, "2.plt": TRACK + "0" * 5_000})
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(tmp_path / "dataset"))
    assert "bomb.zip, member 2.plt: unpacks to more than" in answer.said
    assert answer.status == 1


def test_a_torn_track_row_is_refused_with_its_text_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "1.plt"
    path.write_text(TRACK + "39.98,116.3")
    monkeypatch.setattr(sys, "argv", ["attnmove", "info", str(path), "--json"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    facts = json.loads(capsys.readouterr().out)
    assert (stop.value.code or 0, facts["points"], facts["rejects"]) == (0, 1, {"unparsable_time": 1})


# Where the dataset goes


def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    source, out = write_rows(folder / "points.csv", DAY), folder / "dataset"
    assert run(monkeypatch, capsys, "prepare", str(source), "-o", str(out)).status == 0
    return out


def test_a_dataset_is_not_written_over_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write_rows(tmp_path / "points.csv", DAY), write_text(tmp_path / "thesis.txt", "mine")
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(out))
    assert (answer.status, out.read_text()) == (1, "mine\n")
    assert "thesis.txt: this is a file; name a folder" in answer.said


def test_a_dataset_is_not_written_below_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, above = write_rows(tmp_path / "points.csv", DAY), write_text(tmp_path / "thesis.txt", "mine")
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(above / "dataset"))
    assert (answer.status, above.read_text()) == (1, "mine\n")
    assert "thesis.txt is not a folder one may write to" in answer.said


def test_a_dataset_is_not_written_among_other_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, mine = write_rows(tmp_path / "points.csv", DAY), write_text(tmp_path / "home" / "thesis.txt", "mine")
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(mine.parent))
    assert (answer.status, list(mine.parent.iterdir())) == (1, [mine])
    assert "the folder holds other things (thesis.txt); name a new or empty one" in answer.said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_named_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, locked = write_rows(tmp_path / "points.csv", DAY), tmp_path / "locked"
    locked.mkdir(mode=0o500)
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(locked / "dataset"))
    assert answer.status == 1
    assert f"{locked} is not a folder one may write to" in answer.said


def test_a_failed_run_leaves_an_older_dataset_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = prepared(tmp_path, monkeypatch, capsys)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    bad = write_rows(tmp_path / "bad.csv", FIXES)
    assert run(monkeypatch, capsys, "prepare", str(bad), "-o", str(out)).status == 1
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.csv", "dataset", "points.csv"]


# Datasets


def test_a_dataset_is_not_a_source_of_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = prepared(tmp_path, monkeypatch, capsys)
    answer = run(monkeypatch, capsys, "prepare", str(out), "-o", str(tmp_path / "again"))
    assert answer.status == 1
    assert "this is a prepared dataset already; see attnmove info" in answer.said


def test_info_names_the_part_of_a_dataset_that_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = prepared(tmp_path, monkeypatch, capsys)
    facts = json.loads((out / "dataset.json").read_text())
    for broken, sentence in (
        ("{", "dataset.json: broken; prepare the dataset again"),
        ("[]", "dataset.json: written by another version of attnmove"),
        (json.dumps({**facts, "format_version": 99}), "dataset.json: written by another version of attnmove"),
        (json.dumps({**facts, "days": 99}), "days.parquet: 6 days, dataset.json says 99"),
        (json.dumps({**facts, "days": None}), "dataset.json: no number for days; prepare the dataset again"),
    ):
        (out / "dataset.json").write_text(broken)
        answer = run(monkeypatch, capsys, "info", str(out))
        assert sentence in answer.said
        assert answer.status == 1
    (out / "dataset.json").write_text(json.dumps(facts))
    for name in ("days.parquet", "targets.parquet", "locations.parquet"):
        sound = (out / name).read_bytes()
        (out / name).write_bytes(sound[: len(sound) // 2])
        cut = run(monkeypatch, capsys, "info", str(out))
        (out / name).unlink()
        lost = run(monkeypatch, capsys, "info", str(out))
        (out / name).write_bytes(sound)
        for answer in (cut, lost):
            assert f"{name}: missing or damaged; prepare the dataset again" in answer.said
            assert answer.status == 1


def test_info_on_a_folder_that_is_no_dataset_says_what_it_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run(monkeypatch, capsys, "info", _empty_folder(tmp_path))
    assert answer.status == 1
    assert "no file here ends in .csv" in answer.said


def test_info_on_objects_of_other_shapes_counts_them_as_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_objects(tmp_path / "p.ndjson", [ONE, {"user": "x"}, {**ONE, "lat": {"deg": 5}}, {**ONE, "lat": True}])
    monkeypatch.setattr(sys, "argv", ["attnmove", "info", str(path), "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    facts = json.loads(capsys.readouterr().out)
    assert (facts["points"], facts["rejects"]) == (1, {"not_a_number": 2, "unparsable_time": 1})


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_spark_that_does_not_start_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark")
    source, out = write_rows(tmp_path / "points.csv", DAY), tmp_path / "out"
    answer = run(monkeypatch, capsys, "prepare", str(source), "-o", str(out / "dataset"), "--engine", "spark:nonsense")
    gc.collect()  # pyspark leaves a pipe to the Java that failed open; its remark must come here, not in a later test
    assert "error: Spark did not start with master 'nonsense': " in answer.said
    assert answer.said.count("\n") == 1
    assert answer.status == 1
    assert not out.exists()


@pytest.mark.parametrize("arguments", [(), ("prepare",), ("prepare", "a.csv"), ("frobnicate",)])
def test_wrong_usage_exits_with_two(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, capsys, *arguments).status == 2
