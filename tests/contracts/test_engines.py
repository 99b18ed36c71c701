"""What every engine must do, checked on DuckDB and on Spark; and that both prepare the same dataset."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from attnmove.city import write_city
from attnmove.engine import Engine, open_engine
from attnmove.errors import ConfigError, DataError
from attnmove.prep.dataset import Dataset
from attnmove.prep.pipeline import prepare
from builders import PLACES, points, utc, write_points

MASTER = "local-cluster[2,1,1024]"
"""Two workers in processes of their own: what is sent to them must survive the journey."""

ENGINES = ["duckdb", pytest.param("spark", marks=pytest.mark.spark)]
HEADER = ["user", "time", "lat", "lon"]
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def spark() -> Iterator[Engine]:
    """One session for all tests of this file: engines opened beside it are its children."""
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is no java here")
    with open_engine(f"spark:{MASTER}") as opened:
        yield opened


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "spark":
        request.getfixturevalue("spark")
    with open_engine(request.param) as opened:
        yield opened


def rows(engine: Engine, table: ibis.Table, *order: str) -> Rows:
    asked = table.order_by(*order) if order else table
    return [row for batch in engine.batches(asked) for row in batch.to_pylist()]


def csv_rows(engine: Engine, files: list[Path], *, header: list[str] = HEADER, delimiter: str = ",") -> Rows:
    table = engine.scan_csv(files, headers=[header] * len(files), delimiter=delimiter, columns=HEADER)
    return rows(engine, table, "user", "time")


def test_parquet_keeps_its_types(engine: Engine, tmp_path: Path) -> None:
    table = points([("a", utc("2024-03-04 10:00:00.123456"), "A"), ("b", utc("2024-03-04 11:00"), "B")])
    scanned = engine.scan_parquet([write_points(tmp_path / "points.parquet", table)])
    kinds = dict(zip(scanned.columns, scanned.schema().types, strict=True))
    assert kinds["user"].is_string()
    assert kinds["lon"].is_floating()
    assert kinds["time"].is_timestamp()
    assert kinds["time"].timezone is not None
    assert [row["lon"] for row in rows(engine, scanned, "user")] == [PLACES["A"][0], PLACES["B"][0]]


def test_parquet_files_with_columns_in_another_order_are_one_table(engine: Engine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": ["a"], "x": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": [2], "user": ["b"]}), tmp_path / "2.parquet")
    scanned = engine.scan_parquet([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert rows(engine, scanned.select("user", "x"), "user") == [{"user": "a", "x": 1}, {"user": "b", "x": 2}]


def test_csv_is_text_as_it_was_written(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text(
        'user,time,lat,lon\n"a ""q"", b",2024-03-04T10:00:00Z,039.90,1e2\n\nb,,"39,9", 7\nc,007,x,\n', encoding="utf-8"
    )
    assert csv_rows(engine, [path]) == [
        {"user": 'a "q", b', "time": "2024-03-04T10:00:00Z", "lat": "039.90", "lon": "1e2"},
        {"user": "b", "time": None, "lat": "39,9", "lon": " 7"},
        {"user": "c", "time": "007", "lat": "x", "lon": None},
    ]


def test_csv_columns_are_found_by_their_place_in_the_header(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "points[1].csv"
    path.write_bytes(b"\xef\xbb\xbf id |lon|lat|time|lon|\r\n\xc3\xa9|3|2|1|9|\r\n")
    header = ["user", "lon", "lat", "time", "lon", ""]
    assert csv_rows(engine, [path], header=header, delimiter="|") == [
        {"user": "é", "time": "1", "lat": "2", "lon": "3"}
    ]


def test_csv_files_with_different_headers_are_one_table(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("user,time,lat,lon\na,1,2,3\n")
    (tmp_path / "2.csv").write_text("lon,lat,user,time,more\n3,2,b,1,x\n")
    table = engine.scan_csv(
        [tmp_path / "1.csv", tmp_path / "2.csv"],
        headers=[HEADER, ["lon", "lat", "user", "time", "more"]],
        delimiter=",",
        columns=HEADER,
    )
    assert [row["user"] + row["lat"] + row["lon"] for row in rows(engine, table, "user")] == ["a23", "b23"]


@pytest.mark.parametrize("bad", ["b,1,2", "b,1,2,3,4,5"])
def test_a_csv_row_of_another_length_is_refused(engine: Engine, tmp_path: Path, bad: str) -> None:
    path = tmp_path / "points.csv"
    path.write_text(f"user,time,lat,lon\na,1,2,3\n{bad}\nc,1,2,3\n")
    with pytest.raises(DataError):
        csv_rows(engine, [path])


def test_ndjson_members_are_text(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "points.ndjson"
    path.write_text('{"user": "a", "lat": 39.5, "more": {"x": 1}}\n{"lat": "x", "user": 7}\n{"user": null}\n')
    found = rows(engine, engine.scan_ndjson([path], columns=["user", "lat"]))
    assert sorted(map(str, found)) == sorted(
        map(str, [{"user": "a", "lat": "39.5"}, {"user": "7", "lat": "x"}, {"user": None, "lat": None}])
    )


def test_a_broken_ndjson_line_is_refused(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "points.ndjson"
    path.write_text('{"user": "a"}\n{"user": \n{"user": "b"}\n')
    with pytest.raises(DataError):
        rows(engine, engine.scan_ndjson([path], columns=["user"]))


def test_micros_are_those_since_1970_in_utc(engine: Engine, tmp_path: Path) -> None:
    micros = [-500_000, 1_709_546_400_123_456, 2_208_988_800_000_000]
    table = pa.table(
        {
            "n": [0, 1, 2],
            "with_zone": pa.array(micros).cast(pa.timestamp("us")).cast(pa.timestamp("us", "Asia/Shanghai")),
            "without": pa.array(micros).cast(pa.timestamp("us")),
            "text": ["1969-12-31 23:59:59", "2024-03-04 10:00:00", "2040-01-01 00:00:00"],
        }
    )
    pq.write_table(table, tmp_path / "times.parquet")
    t = engine.scan_parquet([tmp_path / "times.parquet"])
    asked = t.select(
        "n",
        a=engine.micros(t.with_zone),
        b=engine.micros(t.without),
        c=engine.micros(t.text.try_cast("timestamp")),
    )
    found = rows(engine, asked, "n")
    assert [row["a"] for row in found] == micros
    assert [row["b"] for row in found] == micros
    assert [row["c"] for row in found] == [micro // 1_000_000 * 1_000_000 for micro in micros]


def test_a_kept_table_is_read_again_and_again(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [3, 1, 2]}), path)
    scanned = engine.scan_parquet([path])
    kept = engine.keep(scanned.mutate(y=scanned.x * 10), "kept")
    path.unlink()
    for _ in range(2):
        assert rows(engine, kept, "x") == [{"x": 1, "y": 10}, {"x": 2, "y": 20}, {"x": 3, "y": 30}]


def test_batches_come_in_the_order_asked_for_and_no_larger(engine: Engine, tmp_path: Path) -> None:
    values = np.random.default_rng(0).permutation(30_000)
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet")
    table = engine.scan_parquet([tmp_path / "x.parquet"])
    batches = list(engine.batches(table.order_by("x"), rows=4_096))
    assert max(len(batch) for batch in batches) <= 4_096
    assert [x for batch in batches for x in batch.column(0).to_pylist()] == list(range(30_000))


@pytest.mark.parametrize("name", ["x[1]", "x*", "x?", "ü 'x'"])
def test_a_name_is_a_name_and_not_a_pattern(engine: Engine, tmp_path: Path, name: str) -> None:
    for stem, x in ((name, 1), ("x1", 2), ("x2", 3)):
        pq.write_table(pa.table({"x": [x]}), tmp_path / f"{stem}.parquet")
    assert rows(engine, engine.scan_parquet([tmp_path / f"{name}.parquet"])) == [{"x": 1}]


def test_no_rows_are_no_rows(engine: Engine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "x.parquet")
    assert rows(engine, engine.scan_parquet([tmp_path / "x.parquet"])) == []


SUMS = pa.schema([("user", pa.string()), ("day", pa.int32()), ("x", pa.list_(pa.int64())), ("calls", pa.int16())])


def collector(calls: int) -> Callable[[pa.Table], pa.RecordBatch]:
    """A function without a module, since Spark's workers cannot import this one."""

    def collect(table: pa.Table) -> pa.RecordBatch:
        """Each (user, day) of the call with its x in the order they came."""
        found: dict[tuple[str, int], list[int]] = {}
        for row in table.to_pylist():
            found.setdefault((row["user"], row["day"]), []).append(row["x"])
        return pa.RecordBatch.from_pylist(
            [{"user": user, "day": day, "x": x, "calls": calls} for (user, day), x in found.items()], schema=SUMS
        )

    return collect


@pytest.mark.parametrize("shuffled", [False, True])
def test_map_groups_gives_each_group_whole_and_sorted(engine: Engine, tmp_path: Path, shuffled: bool) -> None:
    # Names sort by their code points on every engine, whatever the locale says.
    expected = [
        {"user": user, "day": day, "x": list(range(n)), "calls": 7}
        for n, user in enumerate(["B", "a", "u10", "u9", "ä", "中", "😀"], start=1)
        for day in (-1, 3)
    ]
    given = [{"user": row["user"], "day": row["day"], "x": x} for row in expected for x in row["x"]]  # type: ignore[attr-defined]
    if shuffled:
        given = [given[i] for i in np.random.default_rng(0).permutation(len(given))]
    table = pa.Table.from_pylist(
        given, schema=pa.schema([("user", pa.string()), ("day", pa.int32()), ("x", pa.int64())])
    )
    pq.write_table(table, tmp_path / "x.parquet")
    scanned = engine.scan_parquet([tmp_path / "x.parquet"])
    order = ["user", "day", "x"]
    batches = list(engine.map_groups(scanned, collector(7), order=order, together=2, schema=SUMS))
    assert all(batch.schema == SUMS for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == expected


def test_the_scratch_folder_goes_with_the_engine(engine: Engine) -> None:
    assert engine.scratch.is_dir()
    engine.close()
    assert not engine.scratch.exists()


# Both prepare the same dataset.


def city(folder: Path) -> Path:
    path = folder / "points.parquet"
    write_city(path, users=4, days=8, seed=11)
    return path


def dirty_csv(folder: Path) -> Path:
    """The city as CSV with duplicates, padding, and every kind of dirt."""
    table = pq.read_table(city(folder))
    path = folder / "points.csv"
    pyarrow.csv.write_csv(pa.concat_tables([table, table.slice(10, 40)]), path)
    good = '"{}",2024-03-05T12:00:00{},120.1,30.1\n'
    with path.open("a") as file:
        file.write(good.format("  padded ", "Z") + good.format("é", "+08:00") + good.format("é", ".5Z"))
        for row in (
            ',2024-03-05T12:00:00Z,30,120',
            '" ",2024-03-05T12:00:00Z,30,120',
            "u,yesterday,30,120",
            "u,2024-13-05T12:00:00Z,30,120",
            "u,,30,120",
            "u,2024-03-05T12:00:00Z,x,120",
            "u,2024-03-05T12:00:00Z,nan,120",
            "u,2024-03-05T12:00:00Z,30,",
            "u,2024-03-05T12:00:00Z,91,120",
            "u,2024-03-05T12:00:00Z,0,0",
            "u,1980-03-05T12:00:00Z,30,120",
            "u,2059-03-05T12:00:00Z,30,120",
        ):  # fmt: skip
            user, when, lat, lon = row.split(",")
            file.write(f"{user},{when},{lon},{lat}\n")  # the order of the city's columns
    return path


def areas(folder: Path) -> Path:
    """Sixteen squares over a part of the city: some points are near one, others in none."""
    table = pq.read_table(city(folder))
    west, south = np.quantile(table["lon"], 0.2), np.quantile(table["lat"], 0.2)
    step_x, step_y = (float(np.quantile(table[name], 0.8) - low) / 4 for name, low in (("lon", west), ("lat", south)))
    features = []
    for i in range(16):
        x, y = west + step_x * (i % 4), south + step_y * (i // 4)
        ring = [[x, y], [x + step_x, y], [x + step_x, y + step_y], [x, y + step_y], [x, y]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"name": f"area {i}"}, "geometry": geometry})
    path = folder / "areas.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def assert_same(one: Dataset, other: Dataset) -> None:
    for name in ("days", "targets"):
        for member in vars(getattr(one, name)):
            assert np.array_equal(vars(getattr(one, name))[member], vars(getattr(other, name))[member]), member
    assert one.locations.name.tolist() == other.locations.name.tolist()
    assert np.array_equal(one.locations.centres, other.locations.centres)
    assert one.facts == other.facts


@pytest.mark.spark
@pytest.mark.parametrize("tessellation", ["grid:500", "h3:8", "polygons"])
def test_duckdb_and_spark_prepare_the_same_dataset(spark: Engine, tmp_path: Path, tessellation: str) -> None:
    # Clocks in New York go forward on the tenth of March 2024, in the middle of these days.
    rule = str(areas(tmp_path)) if tessellation == "polygons" else tessellation
    source = dirty_csv(tmp_path)
    made = {}
    for name in ("duckdb", "spark"):
        out = tmp_path / name
        made[name] = prepare(
            source, rule, out=out, timezone="America/New_York", engine=name, min_slots=4, hide=3, draws=2, min_days=3
        )
    assert_same(made["duckdb"], made["spark"])
    assert len(made["duckdb"].days) > 10
    rejects = made["duckdb"].facts["rejects"]
    assert rejects["duplicate"] == 40
    assert {
        "no_user",
        "unparsable_time",
        "not_a_number",
        "out_of_range",
        "null_island",
        "before_1990",
        "future",
    } <= set(rejects)
    refused = [pq.read_table(tmp_path / name / "rejects.parquet").to_pylist() for name in ("duckdb", "spark")]
    assert [len(rows) for rows in refused] == [sum(rejects.values())] * 2
    days = [(tmp_path / name / "days.parquet").read_bytes() for name in ("duckdb", "spark")]
    assert days[0] == days[1]


@pytest.mark.spark
def test_duckdb_and_spark_read_a_pandas_table_alike(spark: Engine, tmp_path: Path) -> None:
    frame = pq.read_table(city(tmp_path)).to_pandas()
    frame["time"] = frame["time"].dt.as_unit("ns")
    one, other = (prepare(frame, timezone="Europe/Berlin", engine=name) for name in ("duckdb", "spark"))
    assert one.facts["hash"] == other.facts["hash"]


@pytest.mark.spark
def test_times_with_a_zone_are_not_moved_by_naive_timezone(spark: Engine, tmp_path: Path) -> None:
    source = city(tmp_path)
    options = {"timezone": "UTC", "naive_timezone": "Asia/Shanghai"}
    one, other = (prepare(source, engine=name, **options) for name in ("duckdb", "spark"))  # type: ignore[arg-type]
    assert_same(one, other)


@pytest.mark.spark
def test_a_session_that_was_running_is_left_as_it_was(spark: Engine) -> None:
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    assert running is not None
    running.conf.set("spark.sql.session.timeZone", "Asia/Shanghai")
    try:
        with open_engine("spark"):
            pass
        assert running.conf.get("spark.sql.session.timeZone") == "Asia/Shanghai"
        assert running.range(3).count() == 3
    finally:
        running.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("name", ["duck", "spark-local", "duckdb:4", ""])
def test_an_unknown_engine_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="use duckdb, spark or spark:MASTER"):
        open_engine(name)
