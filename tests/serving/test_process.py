"""The service as a process: slow, oversized and broken connections, signals, what it prints."""

from __future__ import annotations

import json
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner

from attnmove.cli import app as cli
from attnmove.errors import ConfigError, RunError
from attnmove.serving.server import address_of, is_loopback, open_socket
from serving.services import as_points, asked_days, body, service

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    with service(run, "--timeout-s", "1", "--max-body-mib", "0.1", "--no-batching") as (address, _):
        yield address


def answers(address: str) -> bool:
    """Whether the service still does its work."""
    return httpx.post(f"{address}/v1/recover", content=body([]), headers=JSON).status_code == 200


def talk(address: str, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """What comes back for some bytes; the connection stays open until the service closes it or says something."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    with socket.create_connection((host, port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause_s)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
            head, _, body = answer.partition(b"\r\n\r\n")
            if f"content-length: {len(body)}".encode() in head:
                break
        return answer


HEAD = b"POST /v1/recover HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(address: str) -> None:
    assert b" 413 " in talk(address, HEAD + b"Content-Length: 999999999999\r\n\r\n")
    assert answers(address)


def test_a_body_that_does_not_say_is_refused_as_soon_as_it_is_too_large(address: str) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    answer = talk(address, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk, chunk, chunk)
    assert b" 413 " in answer
    assert answers(address)


def test_a_body_that_does_not_arrive_is_given_up(address: str) -> None:
    answer = talk(address, HEAD + b"Content-Length: 100\r\n\r\n", b'{"poi')
    assert b" 408 " in answer
    assert b'"slow_body"' in answer
    assert answers(address)


def test_a_page_elsewhere_that_calls_this_machine_by_its_own_name_is_refused(address: str) -> None:
    port = urlsplit(address).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", ""):
        answer = httpx.get(f"{address}/v1/examples", headers={"Host": host})
        assert answer.status_code == 421
        assert answer.json()["error"]["code"] == "wrong_host"
    for host in (f"localhost:{port}", "LOCALHOST", "127.0.0.1", f"[::1]:{port}"):
        assert httpx.get(f"{address}/v1/examples", headers={"Host": host}).status_code == 200


def test_a_client_that_leaves_in_the_middle_harms_nobody(address: str) -> None:
    host, port = urlsplit(address).hostname, urlsplit(address).port
    for sent in (b"POST /v1/rec", HEAD + b"Content-Length: 100\r\n\r\n{", HEAD + b"Content-Length: 2\r\n\r\n{}"):
        with socket.create_connection((host, port)) as connection:
            connection.sendall(sent)
    assert answers(address)


@pytest.mark.parametrize(
    "noise", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"hello\r\n\r\n"]
)
def test_noise_is_refused_by_the_server(address: str, noise: bytes) -> None:
    assert b" 400 " in talk(address, noise)
    assert answers(address)


def test_sigterm_lets_it_end_with_status_zero_and_the_log_holds_nothing_that_was_sent(run: Path) -> None:
    with service(run, "--host", "0.0.0.0") as (told, process):
        address = told.replace("0.0.0.0", "127.0.0.1")
        points = as_points(asked_days(("secret-user",), days=1))
        assert httpx.post(f"{address}/v1/recover?top=3", content=body(points), headers=JSON).status_code == 200
        assert httpx.post(f"{address}/v1/recover", content=b"secret-user", headers=JSON).status_code == 400
        process.send_signal(signal.SIGTERM)
        said, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "stopped" in said
    assert log == "note: everybody who reaches 0.0.0.0 may ask; set ATTNMOVE_TOKEN to ask for a token\n"


def never_read(address: str, request: bytes) -> socket.socket:
    """A client that asks, and then takes nothing."""
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.connect((urlsplit(address).hostname, urlsplit(address).port))
    lazy.sendall(request)
    return lazy


def is_cut(lazy: socket.socket, within_s: float) -> bool:
    """Whether the service drops the connection in that time; nothing is read to find out."""
    seen = select.poll()
    seen.register(lazy, 0)
    return bool(seen.poll(within_s * 1000))


def test_a_client_that_does_not_read_is_cut_off_and_the_service_goes_on(run: Path) -> None:
    first = date(2022, 1, 1)
    days = [str(first + timedelta(days=i)) for i in range(390)]
    points = [{"time": f"{day}T08:15:00+08:00", "lon": 116.3, "lat": 39.9} for day in days]
    asked = body(points, top=50)
    with service(run, "--timeout-s", "4") as (address, process), ExitStack() as open_ones:
        whole = httpx.post(f"{address}/v1/recover", content=asked, headers=JSON, timeout=30)
        assert len(whole.json()["days"]) == 390
        assert len(whole.content) > 5_000_000  # more than the system holds for a client
        request = HEAD + f"Content-Length: {len(asked)}\r\n\r\n".encode() + asked
        file = b"GET /maplibre/maplibre-gl.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
        lazy = [open_ones.enter_context(never_read(address, each)) for each in (request, request, file * 20)]
        assert not is_cut(lazy[0], 1)
        assert answers(address)
        assert all(is_cut(one, 15) for one in lazy)
        counts = httpx.get(f"{address}/metrics").text
        assert 'attnmove_requests_total{route="/v1/recover",status="499"} 2\n' in counts
        assert 'attnmove_requests_total{route="other",status="499"} 1\n' in counts
        assert answers(address)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert log == ""


def test_the_token_comes_from_the_environment(run: Path) -> None:
    with service(run, env={"ATTNMOVE_TOKEN": " sesame\n"}) as (address, _):
        assert httpx.get(f"{address}/v1/model").status_code == 401
        right = {"Authorization": "Bearer sesame"}
        assert httpx.get(f"{address}/v1/model", headers=right).status_code == 200
        behind_a_proxy = {**right, "Host": "maps.example"}
        assert httpx.get(f"{address}/v1/model", headers=behind_a_proxy).status_code == 200
    empty = CliRunner().invoke(cli, ["serve", str(run)], env={"ATTNMOVE_TOKEN": " "})
    assert isinstance(empty.exception, ConfigError)
    assert "ATTNMOVE_TOKEN is set but empty" in str(empty.exception)


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("192.168.1.5", False), ("example.org", False)],
)
def test_a_host_is_loopback_or_not(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_a_port_that_is_taken_is_said_in_one_sentence() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address_of(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(RunError, match=r"cannot listen at 127\.0\.0\.1, port \d+ .*--port"):
            open_socket("127.0.0.1", port)
    with pytest.raises(RunError, match="cannot listen"):
        open_socket("127.0.0.1", 99_999)


@pytest.mark.parametrize("host", ["\udcff", "a\0b"])
def test_a_host_that_can_be_none_is_said_in_one_sentence(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^--host: expected a name or an address"):
        open_socket(host, 0)


def test_bench_serve_has_a_row_for_batching_and_number_of_clients(run: Path) -> None:
    done = CliRunner().invoke(cli, ["bench", "serve", str(run), "--clients", "1,4", "--seconds", "0.4", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["batching"], row["clients"]) for row in rows] == [(True, 1), (True, 4), (False, 1), (False, 4)]
    for row in rows:
        assert row["errors"] == 0
        assert row["requests"] > 0
        assert row["p50_ms"] <= row["p99_ms"]
    assert all(row["requests_in_one_go"] == 1 for row in rows[2:])


def test_bench_serve_says_why_a_service_does_not_start(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["bench", "serve", str(tmp_path)])
    assert isinstance(done.exception, RunError)
    assert "not a run" in str(done.exception)
    wrong = CliRunner().invoke(cli, ["bench", "serve", str(tmp_path), "--seconds", "0"])
    assert isinstance(wrong.exception, ConfigError)
