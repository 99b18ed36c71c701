"""What is refused, how, and that the service goes on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from attnmove.errors import ConfigError, DataError, MissingExtra, RunError
from attnmove.filling.fill import Filler
from attnmove.serving import page, server
from attnmove.serving.app import make_app
from attnmove.serving.limits import Limits
from attnmove.serving.refusals import Busy
from attnmove.serving.room import Room
from attnmove.serving.wire import Question
from serving.services import as_points, asked_days

HERE = {"time": "2024-03-04T08:15:00Z", "lon": 116.3, "lat": 39.9}
JSON = {"Content-Type": "application/json"}
CSV = {"Content-Type": "text/csv"}


def error_of(response: Any) -> dict[str, str]:
    """The error of a refusal, which has one shape."""
    assert response.headers["content-type"] == "application/json"
    content = response.json()
    assert set(content) == {"error"}
    assert {"code", "message"} <= set(content["error"]) <= {"code", "message", "where"}
    return content["error"]


def test_bodies_under_way_have_a_common_limit_and_give_their_room_back() -> None:
    room = Room(10)
    with room.place() as one, room.place() as other:
        one(6)
        other(4)
        with pytest.raises(Busy, match="ask again"):
            one(1)
    assert room.held == 0


def test_a_refused_body_leaves_no_bytes_behind(run: Path) -> None:
    """A body of the largest size fits again and again, whatever became of the last."""
    limits = Limits(max_body_mib=0.01, max_held_mib=0.01)
    with TestClient(make_app(run, limits=limits), raise_server_exceptions=False) as client:
        for _ in range(3):
            assert client.post("/v1/recover", content=b" " * 10_000, headers=JSON).status_code == 400
            assert client.post("/v1/recover", json={"points": [HERE]}).status_code == 200


@pytest.mark.parametrize(
    ("status", "code", "method", "path", "request_parts"),
    [
        (404, "not_found", "GET", "/nothing", {}),
        (404, "not_found", "GET", "/static/../app.py", {}),
        (405, "wrong_method", "GET", "/v1/recover", {}),
        (415, "unsupported", "POST", "/v1/recover", {"content": b"{}"}),
        (415, "unsupported", "POST", "/v1/recover", {"content": b"x", "headers": {"Content-Type": "image/png"}}),
        (415, "unsupported", "POST", "/v1/recover", {"content": b"x", "headers": {**JSON, "Content-Encoding": "gzip"}}),
        (406, "not_acceptable", "POST", "/v1/recover", {"json": {}, "headers": {"Accept": "image/png"}}),
        (406, "not_acceptable", "POST", "/v1/recover", {"json": {}, "headers": {"Accept": "text/csv;q=0"}}),
        (400, "malformed", "POST", "/v1/recover", {"content": b"", "headers": JSON}),
        (400, "malformed", "POST", "/v1/recover", {"content": b'{"points": [', "headers": JSON}),
        (400, "malformed", "POST", "/v1/recover", {"content": b"[" * 100_000, "headers": JSON}),
        (400, "malformed", "POST", "/v1/recover", {"content": b'{"points": "\xff"}', "headers": JSON}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": []}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [HERE], "tpo": 3}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [{**HERE, "lon": "116"}]}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [{**HERE, "lon": None}]}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [{**HERE, "time": True}]}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [{**HERE, "user": "a" * 201}]}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [{**HERE, "user": 2**63}]}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [{**HERE, "user": 10**4000}]}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [HERE], "top": 0}}),
        (422, "wrong_shape", "POST", "/v1/recover", {"json": {"points": [HERE], "min_confidence": 1.5}}),
        (422, "bad_option", "POST", "/v1/recover", {"json": {"points": [HERE], "max_gap": "soon"}}),
        (422, "bad_option", "POST", "/v1/recover", {"json": {"points": [], "min_confidence": 0.5, "precision": 0.5}}),
        (422, "bad_option", "POST", "/v1/recover?top=many", {"json": {"points": [HERE]}}),
        (422, "bad_option", "POST", "/v1/recover?maxgap=4h", {"json": {"points": [HERE]}}),
        (422, "bad_option", "POST", "/v1/recover?top=5&top=1", {"json": {"points": [HERE]}}),
        (422, "bad_option", "GET", "/v1/locations.geojson?box=1,2,3,4", {}),
        (422, "bad_points", "POST", "/v1/recover", {"content": b"", "headers": CSV}),
        (422, "bad_points", "POST", "/v1/recover", {"content": b"a,b\n1,2\n", "headers": CSV}),
        (422, "bad_points", "POST", "/v1/recover", {"content": b"time,lat,lon\n1,2\n", "headers": CSV}),
        (422, "bad_points", "POST", "/v1/recover", {"content": b'time,lat,lon\n"1,2,3\n', "headers": CSV}),
        (422, "bad_points", "POST", "/v1/recover", {"content": b"time,lat,lon" + b"," * 1000, "headers": CSV}),
        (422, "bad_points", "POST", "/v1/recover", {"content": b"time,lat,lon\n\xff,2,3\n", "headers": CSV}),
        (422, "bad_points", "POST", "/v1/recover", {"content": b"time,lat,lon\n\0,2,3\n", "headers": CSV}),
        (422, "bad_option", "GET", "/v1/locations.geojson?bbox=1,2,3", {}),
        (422, "bad_option", "GET", "/v1/locations.geojson?bbox=1,2,nan,4", {}),
    ],
)  # fmt: skip
def test_a_request_that_makes_no_sense_is_refused_in_one_shape(
    client: TestClient, status: int, code: str, method: str, path: str, request_parts: dict[str, Any]
) -> None:
    response = client.request(method, path, **request_parts)
    assert response.status_code == status, response.text
    assert error_of(response)["code"] == code
    assert client.post("/v1/recover", json={"points": [HERE]}).status_code == 200


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "1" * 5000])
def test_numbers_beyond_measure_are_refused(client: TestClient, number: str) -> None:
    text = f'{{"points": [{{"time": {number}, "lon": {number}, "lat": 1}}]}}'
    response = client.post("/v1/recover", content=text, headers=JSON)
    assert response.status_code in (400, 422)
    error_of(response)


def test_the_error_says_where_and_what_to_do(client: TestClient) -> None:
    wrong = client.post("/v1/recover", json={"points": [HERE, {**HERE, "lat": "39"}]})
    assert error_of(wrong) == {
        "code": "wrong_shape",
        "message": "points.1.lat: input should be a valid number",
        "where": "points.1.lat",
    }
    broken = client.post("/v1/recover", content="user,time,lat,lon\na,2024-03-04,1\n", headers=CSV)
    assert error_of(broken)["message"] == (
        "the CSV, row 2: 3 columns, but the header has 4; correct or remove that row"
    )


def test_an_option_of_the_address_that_there_is_not_or_twice_is_named(client: TestClient) -> None:
    unknown = client.post("/v1/recover?maxgap=4h", json={"points": [HERE]})
    assert error_of(unknown) == {
        "code": "bad_option",
        "message": "maxgap: there is no such option",
        "where": "maxgap",
    }
    twice = client.post("/v1/recover?top=5&top=1", json={"points": [HERE]})
    assert error_of(twice)["message"] == "top: given 2 times; give it once"
    assert error_of(twice)["where"] == "top"


def test_a_user_that_is_a_number_has_64_bits(client: TestClient) -> None:
    largest = client.post("/v1/recover", json={"points": [{**HERE, "user": 2**63 - 1}]})
    assert largest.json()["days"][0]["user"] == "9223372036854775807"
    larger = client.post("/v1/recover", json={"points": [{**HERE, "user": 2**63}]})
    assert error_of(larger)["message"] == "points.0.user: input should be less than 9223372036854775808"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("user,time,lat,lat,lon", "the CSV: the column 'lat' occurs twice; rename one of them"),
        ("user,user,time,lat,lon", "the CSV: the column 'user' occurs twice; rename one of them"),
        ("user,time,lat", "the CSV: no column for lon among 'user', 'time', 'lat'; name them time, lat, lon, and user"),
    ],
)
def test_a_header_that_is_wrong_is_told_what_to_do(client: TestClient, header: str, message: str) -> None:
    wrong = client.post("/v1/recover", content=f"{header}\n", headers=CSV)
    assert error_of(wrong)["message"] == message


def test_of_many_faults_only_the_first_is_looked_at(client: TestClient) -> None:
    with pytest.raises(ValidationError) as found:
        Question.model_validate({"points": [{}] * 1_000})
    assert found.value.error_count() <= 3
    broken = client.post("/v1/recover", json={"points": [{}] * 40_000, "top": 0})
    assert error_of(broken)["where"] == "top"
    many = client.post("/v1/recover", json={"points": [{}] * 50_001})
    assert error_of(many)["code"] == "too_large"
    unknown = client.post("/v1/recover", json={"points": [], **{f"{i:300d}": 1 for i in range(1_000)}})
    assert error_of(unknown)["code"] == "wrong_shape"
    assert len(unknown.content) < 1_000


@pytest.fixture(scope="module")
def strict(run: Path) -> Iterator[TestClient]:
    limits = Limits(max_body_mib=0.01, max_points=20, max_users=2, max_days=3)
    with TestClient(make_app(run, limits=limits)) as client:
        yield client


def test_more_than_a_request_may_bring_is_refused(strict: TestClient) -> None:
    many = [{**HERE, "user": str(i)} for i in range(3)]
    days = [{**HERE, "time": f"2024-03-{day:02d}T08:00:00Z"} for day in range(1, 6)]
    for points, word in ((many, "users"), (days, "user-days"), ([HERE] * 21, "points"), ([HERE] * 500, "MiB")):
        response = strict.post("/v1/recover", json={"points": points})
        assert response.status_code == 413
        assert word in error_of(response)["message"]
    lines = "time,lat,lon\n" + "2024-03-04T08:00:00Z,39.9,116.3\n" * 21
    assert strict.post("/v1/recover", content=lines, headers=CSV).status_code == 413
    assert strict.post("/v1/recover", json={"points": [HERE]}).status_code == 200


def test_a_slow_answer_is_given_up_and_the_service_goes_on(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Filler.fill_timelines
    with TestClient(make_app(run, limits=Limits(timeout_s=0.3))) as client:
        monkeypatch.setattr(Filler, "fill_timelines", lambda *parts, **named: time.sleep(0.6) or fill(*parts, **named))
        response = client.post("/v1/recover", json={"points": [HERE]})
        assert response.status_code == 504
        assert error_of(response)["code"] == "too_slow"
        assert client.get("/healthz").status_code == 200
        monkeypatch.undo()
        time.sleep(0.6)
        assert client.post("/v1/recover", json={"points": [HERE]}).status_code == 200


def test_an_unforeseen_error_tells_the_client_nothing_and_the_log_only_where(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*parts: object, **named: object) -> None:
        raise ZeroDivisionError("ann was at 39.9")

    with TestClient(make_app(run)) as client:
        monkeypatch.setattr(Filler, "fill_timelines", fail)
        response = client.post("/v1/recover", json={"points": [HERE]})
        assert response.status_code == 500
        assert error_of(response)["code"] == "internal"
        assert "ann" not in response.text + caplog.text
        assert "ZeroDivisionError at " in caplog.text


def test_a_damaged_run_does_not_tell_where_it_lies(run: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(run, tmp_path / "bare")
    (bare / "thresholds.csv").unlink()
    with TestClient(make_app(bare)) as client:
        response = client.post("/v1/recover", json={"points": [HERE], "precision": 0.5})
        assert response.status_code == 500
        assert error_of(response)["code"] == "internal"
        assert str(tmp_path) not in response.text


def test_what_becomes_of_the_folder_later_does_not_change_the_answers(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    asked = {"points": as_points(asked_days(days=1)), "precision": 0.5}
    with TestClient(make_app(folder)) as client:
        before = client.post("/v1/recover", json=asked)
        assert before.status_code == 200
        (folder / "thresholds.csv").write_text("precision,confidence\n1.0,1.0\n")
        assert client.post("/v1/recover", json=asked).json() == before.json()
        shutil.rmtree(folder)
        assert client.post("/v1/recover", json=asked).json() == before.json()


def test_a_token_is_asked_for_where_data_are(run: Path) -> None:
    secret = "sesame"
    with TestClient(make_app(run, token=secret)) as client:
        for path in ("/", "/docs", "/openapi.json", "/healthz", "/static/main.js", "/maplibre/maplibre-gl.js"):
            assert client.get(path).status_code == 200, path
        for path in ("/v1/model", "/v1/examples", "/v1/locations.geojson", "/metrics", "/v1/nothing"):
            assert client.get(path).status_code == 401, path
        for shown in ("", "Bearer", "Bearer wrong", "Basic c2VzYW1l", f"Bearer {secret}x", "Bearer \xff"):
            response = client.get("/v1/model", headers={"Authorization": shown.encode("latin-1")})
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert error_of(response)["code"] == "unauthorised"
        right = {"Authorization": f"Bearer {secret}".encode()}
        assert client.get("/v1/model", headers=right).status_code == 200
        assert client.post("/v1/recover", json={"points": [HERE]}, headers=right).status_code == 200


def test_no_other_origin_may_call_unless_it_was_named(run: Path, client: TestClient) -> None:
    asking = {"Origin": "https://maps.example", "Access-Control-Request-Method": "POST"}
    refused = client.options("/v1/recover", headers=asking)
    assert "access-control-allow-origin" not in refused.headers
    with TestClient(make_app(run, cors=["https://maps.example"], token="t")) as named:
        allowed = named.options("/v1/recover", headers=asking)
        assert allowed.headers["access-control-allow-origin"] == "https://maps.example"
        other = named.options("/v1/recover", headers={**asking, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("origin", ["maps.example", "https://maps.example/", "https://Maps.example", "https://", ""])
def test_an_origin_that_no_browser_sends_is_refused(run: Path, origin: str) -> None:
    with pytest.raises(ConfigError, match="--cors: expected an origin such as"):
        make_app(run, cors=[origin])


@pytest.mark.parametrize("token", ["sesame-ä", "open sesame", ""])
def test_a_token_that_a_header_cannot_carry_is_refused(run: Path, token: str) -> None:
    with pytest.raises(ConfigError, match="the token must be"):
        make_app(run, token=token)


@pytest.mark.parametrize("column", ["time", "lat"])
def test_a_long_text_that_is_nearly_a_number_is_soon_seen_through(client: TestClient, column: str) -> None:
    """Read in one way only: with two, 130,000 digits would take minutes."""
    row = {"user": "ann", "time": "2024-03-04T08:00:00", "lat": "39.9", "lon": "116.4", column: "1" * 130_000 + "x"}
    text = ",".join(row) + "\n" + ",".join(row.values()) + "\n"
    answer = client.post("/v1/recover", content=text, headers={"Content-Type": "text/csv"})
    assert answer.json()["points"]["refused"] == {"unparsable_time" if column == "time" else "not_a_number": 1}


def test_the_headers_let_the_page_load_nothing_from_elsewhere(run: Path, client: TestClient) -> None:
    for path in ("/", "/v1/model", "/nothing"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "http" not in headers["content-security-policy"]
    with TestClient(make_app(run, tiles="https://tiles.example/{z}/{x}/{y}.png")) as tiled:
        assert "img-src 'self' data: blob: https://tiles.example;" in tiled.get("/").headers["content-security-policy"]
        assert tiled.get("/v1/model").json()["tiles"] == "https://tiles.example/{z}/{x}/{y}.png"


@pytest.mark.parametrize("tiles", ["tiles", "ftp://x/{z}", "https://", "https://a b/{z}", "https://x;script-src/*"])
def test_an_address_of_tiles_that_is_none_is_refused(run: Path, tiles: str) -> None:
    with pytest.raises(ConfigError, match="--tiles"):
        make_app(run, tiles=tiles)


def test_limits_must_be_above_zero() -> None:
    with pytest.raises(ConfigError, match="max_points: expected a number above 0, found 0"):
        Limits(max_points=0)
    with pytest.raises(ConfigError, match="timeout_s"):
        Limits(timeout_s=float("nan"))
    with pytest.raises(ConfigError, match="max_body_mib"):
        Limits(max_body_mib=float("inf"))


def test_what_cannot_be_served_is_said_at_the_start(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="not a run"):
        make_app(tmp_path)
    with pytest.raises(DataError):
        make_app(run, examples=str(tmp_path / "nothing.csv"))
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'attnmove\[serve\]'"):
        make_app(run)
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="fastapi"):
        server.check_libraries()


def test_a_hundred_users_who_all_are_new_are_answered(client: TestClient) -> None:
    points = as_points(asked_days(tuple(f"user {i}" for i in range(100)), days=1))
    answer = client.post("/v1/recover", json={"points": points}).json()
    assert len({day["user"] for day in answer["days"]}) == 100
