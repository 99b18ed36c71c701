"""The service gives the answers of the command line and of Python."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import attnmove
from attnmove.cli import app as cli
from attnmove.filling import stream
from attnmove.serving.app import make_app
from filling.worlds import train_small
from serving.services import as_csv, as_points, asked_days, plain, rounded, rows_of


def test_http_python_and_the_command_line_give_equal_answers(
    boost_run: Path, boost_client: TestClient, tmp_path: Path
) -> None:
    points = asked_days()
    over_http = rows_of(boost_client.post("/v1/recover", json={"points": as_points(points)}).json())
    assert rounded(over_http) == rounded(plain(attnmove.recover(points, boost_run)))
    pq.write_table(points, tmp_path / "points.parquet")
    out = tmp_path / "out.ndjson"
    done = CliRunner().invoke(cli, ["recover", str(tmp_path / "points.parquet"), str(boost_run), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert over_http == [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["status"] for row in over_http} == {"observed", "recovered"}
    assert any(row["origin"] and row["origin"]["kind"] for row in over_http)


def test_degrees_may_have_a_decimal_comma(client: TestClient) -> None:
    text = as_csv(asked_days(days=1))
    commas = "\n".join(line.replace(",", ";").replace(".", ",") for line in text.splitlines())
    one, other = (
        client.post("/v1/recover", content=body, headers={"Content-Type": "text/csv"}) for body in (text, commas)
    )
    assert one.status_code == other.status_code == 200
    assert one.json() == other.json()


@pytest.mark.parametrize("model", ["attnmove", "copymove"])
def test_a_network_answers_alike_in_any_company(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of matrices of other sizes may differ in the last bit, the places may not."""
    folder = train_small(tmp_path, model=model, epochs=1)
    points = asked_days(("ann", "new", "one", "two"))
    expected = plain(attnmove.recover(points, folder))
    with TestClient(make_app(folder)) as client:
        together = rows_of(client.post("/v1/recover", json={"points": as_points(points)}).json())
        alone = [
            row
            for name in ("ann", "new", "one", "two")
            for row in rows_of(
                client.post("/v1/recover", json={"points": [p for p in as_points(points) if p["user"] == name]}).json()
            )
        ]
    monkeypatch.setattr(stream, "DAYS_A_CHUNK", 1)
    monkeypatch.setattr(stream, "DAYS_A_PIECE", 1)
    for answer in (together, alone, plain(attnmove.recover(points, folder))):
        assert [row["location"] for row in answer] == [row["location"] for row in expected]
        assert [row["probability"] for row in answer] == pytest.approx(
            [row["probability"] for row in expected], abs=1e-6
        )


def test_a_csv_body_is_answered_as_a_json_body_is(client: TestClient) -> None:
    points = asked_days()
    as_json = client.post("/v1/recover", json={"points": as_points(points)})
    as_text = client.post("/v1/recover", content=as_csv(points), headers={"Content-Type": "text/csv; charset=utf-8"})
    assert as_text.json() == as_json.json()


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_csv_may_have_other_names_delimiters_and_columns(client: TestClient, delimiter: str) -> None:
    points = asked_days()
    lines = ["note,Longitude,LAT,device_id,timestamp"]
    lines += [f"x,{row['lon']},{row['lat']},{row['user']},{row['time'].isoformat()}" for row in points.to_pylist()]
    text = "\ufeff" + "\r\n".join(lines).replace(",", delimiter)
    answer = client.post("/v1/recover", content=text.encode(), headers={"Content-Type": "text/csv"})
    assert answer.json() == client.post("/v1/recover", json={"points": as_points(points)}).json()


def test_times_without_an_offset_are_in_the_zone_of_the_run(client: TestClient) -> None:
    point = {"lon": 116.3, "lat": 39.9}
    with_offset = client.post("/v1/recover", json={"points": [{**point, "time": "2024-03-04T08:15:00+08:00"}]}).json()
    without = client.post("/v1/recover", json={"points": [{**point, "time": "2024-03-04 08:15"}]}).json()
    assert with_offset == without
    seconds = client.post("/v1/recover", json={"points": [{**point, "time": 1709511300}]}).json()
    assert with_offset == seconds
    assert with_offset["days"][0]["user"] == "somebody"
    assert [slot["slot"] for slot in with_offset["days"][0]["slots"] if slot["status"] == "observed"] == [8]


def test_every_other_form_is_the_file_that_recover_writes(run: Path, client: TestClient, tmp_path: Path) -> None:
    points = asked_days()
    for ending, form in {
        "csv": "text/csv",
        "ndjson": "application/x-ndjson",
        "geojson": "application/geo+json",
    }.items():
        answer = client.post("/v1/recover", json={"points": as_points(points)}, headers={"Accept": form})
        attnmove.recover(points, run, out=tmp_path / f"out.{ending}")
        assert answer.headers["content-type"].startswith(form)
        written = (tmp_path / f"out.{ending}").read_text()
        if ending == "geojson":
            assert answer.json() == json.loads(written)
        else:
            assert answer.text == written
    none = client.post("/v1/recover", json={"points": []}, headers={"Accept": "text/csv"})
    assert len(list(csv.reader(io.StringIO(none.text)))) == 1
    assert client.post("/v1/recover", json={"points": []}, headers={"Accept": "application/geo+json"}).json() == {
        "type": "FeatureCollection",
        "features": [],
    }


def test_options_leave_slots_missing_from_the_body_or_from_the_address(client: TestClient) -> None:
    points = as_points(asked_days(days=1))
    all_of_it = rows_of(client.post("/v1/recover", json={"points": points}).json())
    sure = client.post("/v1/recover", json={"points": points, "min_confidence": 0.9, "max_gap": "2h", "top": 2}).json()
    same = client.post("/v1/recover?min_confidence=0.9&max_gap=2h&top=2", json={"points": points}).json()
    assert sure == same
    rows = rows_of(sure)
    left = [row for row in rows if row["status"] == "left_missing"]
    assert {row["reason"] for row in left} <= {"gap longer than 2h", "less sure than 0.9"}
    assert left
    for mine, before in zip(rows, all_of_it, strict=True):
        if mine["status"] == "recovered":
            assert mine["location"] == before["location"]
            assert mine["probability"] >= 0.9
            assert len(mine["alternatives"]) == 1
    body_first = client.post("/v1/recover?top=3", json={"points": points, "top": 2}).json()
    assert body_first == client.post("/v1/recover", json={"points": points, "top": 2}).json()


def test_points_that_cannot_be_used_are_counted_by_reason(client: TestClient) -> None:
    here = {"time": "2024-03-04T08:15:00Z", "lon": 116.3, "lat": 39.9}
    points = [
        here,
        {**here, "lat": 95},
        {**here, "lon": 0, "lat": 0},
        {**here, "time": "yesterday"},
        {**here, "time": "1970-01-01T00:00:00Z"},
        {**here, "user": " "},
        {**here, "lon": 20.0},
    ]
    answer = client.post("/v1/recover", json={"points": points}).json()
    assert answer["points"] == {
        "used": 1,
        "refused": {
            "no_user": 1,
            "unparsable_time": 1,
            "out_of_range": 1,
            "null_island": 1,
            "before_1990": 1,
            "outside": 1,
        },
    }
    assert client.post("/v1/recover", json={"points": []}).json() == {"days": [], "points": {"used": 0, "refused": {}}}


def test_odd_names_come_back_as_they_were(client: TestClient) -> None:
    names = ["<img src=x onerror=alert(1)>", 'a "quoted", name', "nul\0inside", "line\u2028end\nand", "名前", "🛰️"]
    point = {"time": "2024-03-04T08:15:00Z", "lon": 116.3, "lat": 39.9}
    answer = client.post("/v1/recover", json={"points": [{**point, "user": name} for name in names]})
    assert {day["user"] for day in answer.json()["days"]} == set(names)


def test_a_delimiter_at_the_end_of_rows_is_not_a_value(run: Path, client: TestClient, tmp_path: Path) -> None:
    points = asked_days(days=1)
    head, *rows = as_csv(points).splitlines()
    text = "\n".join([head, *(f"{row},," for row in rows)]) + "\n"
    (tmp_path / "points.csv").write_text(text)
    read = attnmove.recover(tmp_path / "points.csv", run)
    answer = client.post("/v1/recover", content=text, headers={"Content-Type": "text/csv"})
    assert rounded(rows_of(answer.json())) == rounded(plain(read))


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("text/csv;q=0, application/json", "application/json"),
        ("text/csv;q=0.1, application/json", "application/json"),
        ("application/json;q=0.5, text/csv;q=0.9", "text/csv"),
        ("text/csv, application/json", "text/csv"),
        ("text/html, */*;q=0.8", "application/json"),
        ("application/json;q=0, */*", "application/geo+json"),
        ("text/*", "text/csv"),
        ("", "application/json"),
    ],
)
def test_the_form_is_the_one_the_client_likes_best(client: TestClient, accept: str, form: str) -> None:
    answer = client.post("/v1/recover", json={"points": []}, headers={"Accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == form
