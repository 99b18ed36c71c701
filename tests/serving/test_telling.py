"""What the service tells about itself: the model, the locations, examples, counts, the page's files."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from attnmove.errors import DataError
from attnmove.filling.fill import Filler
from attnmove.serving.app import make_app
from attnmove.serving.examples import made_up, taken_from
from attnmove.serving.metrics import Histogram
from filling.worlds import a_month
from serving.services import as_points, asked_days

STATIC = Path(make_app.__code__.co_filename).parent / "static"


def test_the_model_is_described_with_its_place_time_and_limits(client: TestClient) -> None:
    facts = client.get("/v1/model").json()
    assert facts["model"] == "vote"
    assert (facts["timezone"], facts["slot_minutes"], facts["slots"]) == ("Asia/Shanghai", 60, 24)
    assert facts["limits"]["max_points"] == 50_000
    assert facts["tessellation"] == "grid:500"
    west, south, east, north = facts["bounds"]
    assert west < east
    assert south <= north


def test_locations_are_outlines_packed_and_remembered(run: Path, client: TestClient) -> None:
    response = client.get("/v1/locations.geojson", headers={"Accept-Encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    features = response.json()["features"]
    locations = Filler.of(run).setting.locations
    assert [feature["properties"]["name"] for feature in features] == locations.name.tolist()
    assert {feature["geometry"]["type"] for feature in features} == {"Polygon"}
    plain = client.get("/v1/locations.geojson", headers={"Accept-Encoding": "identity"})
    assert plain.json() == response.json()
    assert len(gzip.compress(plain.content)) < len(plain.content)
    for unwanted in ("gzip;q=0", "*;q=0", "gzip;q=0.0, *"):
        answer = client.get("/v1/locations.geojson", headers={"Accept-Encoding": unwanted})
        assert "content-encoding" not in answer.headers
    again = client.get("/v1/locations.geojson", headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304
    lon, lat = locations.centres[0].tolist()
    box = f"{lon - 1e-4},{lat - 1e-4},{lon + 1e-4},{lat + 1e-4}"
    inside = client.get("/v1/locations.geojson", params={"bbox": box}).json()["features"]
    assert [feature["id"] for feature in inside] == [0]


def test_made_up_examples_can_be_recovered_and_are_the_same_every_time(run: Path, client: TestClient) -> None:
    examples = client.get("/v1/examples").json()["examples"]
    assert len(examples) == 3
    assert examples == made_up(Filler.of(run).setting)
    for example in examples:
        answer = client.post("/v1/recover", json={"points": example["points"]}).json()
        assert answer["points"] == {"used": len(example["points"]), "refused": {}}
        assert len(answer["days"]) == 7
        assert any(slot["status"] == "recovered" for day in answer["days"] for slot in day["slots"])


@pytest.mark.parametrize("kind", ["points", "dataset"])
def test_examples_come_from_a_dataset_or_points_when_they_are_named(run: Path, tmp_path: Path, kind: str) -> None:
    source = run.parent / "dataset"
    if kind == "points":
        source = tmp_path / "points.parquet"
        pq.write_table(a_month(), source)
    setting = Filler.of(run).setting
    examples = taken_from(str(source), setting)
    assert [example["name"] for example in examples] == ["ann", "bob", "cy", "dee"]
    assert {point["user"] for point in examples[0]["points"]} == {"ann"}
    centres = {(round(lon, 6), round(lat, 6)) for lon, lat in setting.locations.centres.tolist()}
    assert {(point["lon"], point["lat"]) for point in examples[0]["points"]} <= centres


@pytest.mark.parametrize("datum", ["wgs84", "gcj02", "bd09"])
def test_examples_lie_in_their_locations_whatever_the_datum(run: Path, datum: str, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config["setting"]["datum"] = datum
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    filler = Filler.of(tmp_path / "run")
    assert filler.setting.datum == datum
    for example in made_up(filler.setting):
        rows = [{**point, "time": datetime.fromisoformat(point["time"])} for point in example["points"]]
        folded = filler.fold_points(pa.Table.from_pylist(rows))
        assert not folded.refused
        assert folded.days.observed.sum() == len(rows)
        known = filler.setting.locations.lon[folded.days.loc[folded.days.observed]]
        if datum == "wgs84":
            assert known == pytest.approx(np.array([row["lon"] for row in rows]), abs=1e-5)


def test_somebody_who_only_asks_whether_it_lives_is_answered(client: TestClient) -> None:
    assert client.head("/healthz").status_code == 200


def test_people_whose_names_are_too_long_to_be_asked_for_are_no_examples(run: Path, tmp_path: Path) -> None:
    source, longest = tmp_path / "points.parquet", "b" * 200
    pq.write_table(asked_days(("a" * 201, longest), days=1), source)
    with TestClient(make_app(run, examples=str(source))) as client:
        (example,) = client.get("/v1/examples").json()["examples"]
        assert example["name"] == longest
        assert client.post("/v1/recover", json={"points": example["points"]}).status_code == 200
    pq.write_table(asked_days(("a" * 201,), days=1), source)
    with pytest.raises(DataError, match=r"^--examples: .*nobody .*name another, or none$"):
        make_app(run, examples=str(source))


def test_the_counts_are_prometheus_text(run: Path) -> None:
    with TestClient(make_app(run)) as client:
        for _ in range(3):
            client.post("/v1/recover", json={"points": as_points(asked_days(days=1))})
        client.post("/v1/recover", content=b"{")
        client.get("/secret/ann")
        text = client.get("/metrics").text
    line = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.]+')
    values = {}
    for row in text.splitlines():
        if row.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) attnmove_\w+ .+", row)
        else:
            assert line.fullmatch(row), row
            name, value = row.rsplit(" ", 1)
            assert name not in values
            values[name] = float(value)
    assert values['attnmove_requests_total{route="/v1/recover",status="200"}'] == 3
    assert values['attnmove_requests_total{route="/v1/recover",status="415"}'] == 1
    assert values['attnmove_requests_total{route="other",status="404"}'] == 1
    assert values['attnmove_request_seconds_bucket{route="/v1/recover",le="+Inf"}'] == 4
    assert values["attnmove_batch_requests_sum"] == 3
    assert values["attnmove_slots_recovered_total"] > 3
    assert "ann" not in text


def test_a_histogram_counts_what_is_at_most_its_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.add(value)
    assert list(histogram.lines("x")) == [
        'x_bucket{le="1.0"} 2',
        'x_bucket{le="2.0"} 3',
        'x_bucket{le="+Inf"} 4',
        "x_sum 12.000000",
        "x_count 4",
    ]


def test_the_page_its_modules_and_maplibre_are_served(client: TestClient) -> None:
    for path in ("/", "/docs"):
        page = client.get(path)
        assert page.headers["content-type"].startswith("text/html")
        for address in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
            assert not address.startswith(("http", "/")), address
            assert client.get(f"/{address}").status_code == 200, address
    assert len(client.get("/maplibre/maplibre-gl.js").content) > 500_000
    assert client.get("/static/main.js").headers["content-type"].startswith(("text/javascript", "application/java"))
    assert client.get("/openapi.json").json()["info"]["title"] == "attnmove"


def test_the_page_builds_nothing_from_text() -> None:
    """Names of users and locations may hold markup: they only ever become text."""
    for file in STATIC.glob("*.js"):
        text = file.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, f"{file.name}: {word}"
        for address in re.findall(r'from "([^"]+)"', text):
            assert (STATIC / address).exists()
    for file in STATIC.glob("*.html"):
        assert not re.search(r"<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=", file.read_text()), file.name


def test_the_description_names_every_route_and_shape(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/v1/recover", "/v1/locations.geojson", "/v1/model", "/v1/examples", "/healthz", "/metrics",
    }  # fmt: skip
    content = paths["/v1/recover"]["post"]["requestBody"]["content"]
    assert set(content) == {"application/json", "text/csv"}
    assert "$ref" not in json.dumps(content)
    assert {"200", "400", "401", "406", "408", "413", "415", "422", "503", "504"} <= set(
        paths["/v1/recover"]["post"]["responses"]
    )
