"""How fast the service answers: requests a second and latency, with more and more clients, batching on and off."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnmove.bench.client import Client
from attnmove.errors import ConfigError, RunError

_HOST = "127.0.0.1"
_START_S = 120.0
_TOKEN = "ATTNMOVE_TOKEN"


@dataclass(frozen=True)
class Load:
    """What the clients ask."""

    clients: Sequence[int]
    """Numbers of clients, each of which asks again as soon as it is answered."""
    seconds: float
    """How long each number of clients asks, after a warm-up of a quarter of it."""
    days: int
    """Days of one person in a request."""

    def __post_init__(self) -> None:
        for name, least in (("clients", min(self.clients, default=0)), ("seconds", self.seconds), ("days", self.days)):
            if not least > 0:
                raise ConfigError(f"--{name}: expected a number above 0, found {least}")


def measure(run: str, load: Load, *, progress: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """One row a (batching, number of clients): requests a second, median and 99th percentile of the latency.

    The service runs in a process of its own; the clients are tasks of this one. Raises RunError when it does not start.
    """
    say = progress or (lambda stage: None)
    rows = []
    for batching in (True, False):
        say(f"starting the service, batching {'on' if batching else 'off'}")
        with _service(run, batching=batching) as port:
            bodies = asyncio.run(_bodies(port, load.days))
            for clients in load.clients:
                say(f"batching {'on' if batching else 'off'}, {clients} clients")
                asyncio.run(_ask(port, clients, load.seconds / 4, bodies))
                before = asyncio.run(_batches(port))
                began = time.perf_counter()
                answers = asyncio.run(_ask(port, clients, load.seconds, bodies))
                seconds = time.perf_counter() - began
                after = asyncio.run(_batches(port))
                rows.append({"batching": batching, "clients": clients, **_row(answers, seconds, before, after)})
    return rows


def _row(
    answers: list[tuple[int, float]], seconds: float, before: tuple[float, float], after: tuple[float, float]
) -> dict[str, Any]:
    """The figures of a number of clients; `before` and `after` are requests and goes of the model so far."""
    took = np.array([one[1] for one in answers]) * 1000
    requests, goes = after[0] - before[0], after[1] - before[1]
    return {
        "requests": len(answers),
        "errors": sum(status != 200 for status, _ in answers),
        "requests_per_second": len(answers) / seconds,
        "p50_ms": float(np.percentile(took, 50)),
        "p99_ms": float(np.percentile(took, 99)),
        "requests_in_one_go": requests / goes if goes else None,
    }


@contextmanager
def _service(run: str, *, batching: bool) -> Iterator[int]:
    """The port of a service that runs as long as the context."""
    flag = "--batching" if batching else "--no-batching"
    command = [sys.executable, "-m", "attnmove.cli", "serve", run, "--host", _HOST, "--port", "0", flag]
    open_to_all = {name: value for name, value in os.environ.items() if name != _TOKEN}
    with tempfile.TemporaryFile("w+") as said:
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=open_to_all)
        try:
            yield _port(service, said)
        finally:
            service.terminate()
            service.communicate(timeout=_START_S)


def _port(service: subprocess.Popen[str], said: Any) -> int:
    assert service.stdout is not None
    line = service.stdout.readline()
    if f"{_HOST}:" not in line:
        service.wait(timeout=_START_S)
        said.seek(0)
        told = (said.read().strip().splitlines() or ["no message"])[-1]
        raise RunError(told.removeprefix("error: "))
    return int(line.split(f"{_HOST}:")[1].split()[0])


async def _bodies(port: int, days: int) -> list[bytes]:
    """Requests with so many days of each example person."""
    async with Client(_HOST, port) as client:
        _, body = await client.get("/v1/examples")
    bodies = []
    for example in json.loads(body)["examples"]:
        dates = sorted({point["time"][:10] for point in example["points"]})
        for first in range(0, max(1, len(dates) - days + 1)):
            chosen = set(dates[first : first + days])
            points = [point for point in example["points"] if point["time"][:10] in chosen]
            bodies.append(json.dumps({"points": points}).encode())
    return bodies


async def _ask(port: int, clients: int, seconds: float, bodies: Sequence[bytes]) -> list[tuple[int, float]]:
    """Status and seconds of every answer to so many clients within the time."""
    end = time.perf_counter() + seconds
    parts = await asyncio.gather(*(_one_client(port, end, bodies, first) for first in range(clients)))
    return [answer for part in parts for answer in part]


async def _one_client(port: int, end: float, bodies: Sequence[bytes], first: int) -> list[tuple[int, float]]:
    answers = []
    async with Client(_HOST, port) as client:
        number = first
        while (began := time.perf_counter()) < end:
            status, _ = await client.post("/v1/recover", bodies[number % len(bodies)])
            answers.append((status, time.perf_counter() - began))
            number += 1
    return answers


async def _batches(port: int) -> tuple[float, float]:
    """Requests and goes of the model since the service began."""
    async with Client(_HOST, port) as client:
        _, body = await client.get("/metrics")
    found = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))
    return float(found["attnmove_batch_requests_sum"]), float(found["attnmove_batch_requests_count"])
