"""Answers on their way out: their bytes count until they are taken, and nobody may take them for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from starlette.responses import Response

from attnmove.filling.fill import Filler
from attnmove.serving.answering import Answer, Answerer, Ask
from attnmove.serving.guard import Guard
from attnmove.serving.limits import Limits
from attnmove.serving.metrics import Metrics
from attnmove.serving.refusals import Busy
from attnmove.serving.room import Room
from attnmove.serving.sending import ABORT, PIECE
from serving.services import as_points, asked_days, body

SCOPE = {"type": "http", "path": "/", "method": "GET", "headers": []}


class Client:
    """One that takes so many messages, and then no more until it is told to, or cut off."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.got: list[dict[str, Any]] = []
        self.more, self.left = asyncio.Event(), asyncio.Event()

    async def send(self, message: Any) -> None:
        if len(self.got) >= self.takes:
            await self.more.wait()
        self.got.append(message)

    async def receive(self) -> dict[str, str]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def ask(self, guard: Guard) -> None:
        await guard({**SCOPE, "state": {ABORT: self.left.set}}, self.receive, self.send)

    @property
    def status(self) -> int:
        return int(self.got[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.got[1:])


def guarded(size: int, room: Room, seconds: float = 5.0) -> Guard:
    """An answer of so many bytes, behind the guard."""
    answer = Response(bytes(size))
    return Guard(answer, metrics=Metrics(), room=room, seconds=seconds, token=None, headers={}, routes=["/"])


def test_an_answer_goes_out_in_pieces_and_counts_until_it_is_taken() -> None:
    async def talk() -> None:
        room = Room(3 * PIECE)
        guard = guarded(2 * PIECE + 1, room)
        slow, other, third = Client(2), Client(9), Client(9)
        asking = asyncio.create_task(slow.ask(guard))
        await asyncio.sleep(0.01)
        assert room.held == 2 * PIECE + 1
        await other.ask(guard)
        assert other.status == 503
        assert room.held == 2 * PIECE + 1
        slow.more.set()
        await asking
        assert room.held == 0
        assert slow.body == bytes(2 * PIECE + 1)
        assert [len(message["body"]) for message in slow.got[1:]] == [PIECE, PIECE, 1, 0]
        await third.ask(guard)
        assert third.status == 200
        assert guard.metrics.requests == {("/", 200): 2, ("/", 503): 1}

    asyncio.run(talk())


def test_a_client_that_takes_nothing_is_dropped_and_its_bytes_are_free() -> None:
    async def talk() -> None:
        room = Room(3 * PIECE)
        guard = guarded(2 * PIECE, room, seconds=0.05)
        for takes in (0, 1, 3):
            client = Client(takes)
            await client.ask(guard)
            assert client.left.is_set()
            assert len(client.got) == takes
            assert room.held == 0
        assert guard.metrics.requests == {("/", 499): 3}

    asyncio.run(talk())


def test_answers_for_which_there_is_no_room_are_not_made(run: Path) -> None:
    limits = Limits(max_body_mib=0.001, max_held_mib=0.001, max_places=24 * 5)
    ask = Ask(body(as_points(asked_days(("ann",), days=1))))
    first, *others = Answerer(Filler.of(run), limits).answer([ask] * 3)
    assert isinstance(first, Answer)
    assert len(first.body) > limits.max_held
    assert [type(other) for other in others] == [Busy, Busy]


def test_one_answer_that_is_larger_than_the_room_goes_out_alone() -> None:
    async def talk() -> None:
        client = Client(9)
        await client.ask(guarded(2 * PIECE, Room(PIECE)))
        assert client.status == 200

    asyncio.run(talk())
