"""A request comes in: its form, its body within the limits, and waiting for the answer no longer than anybody does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.requests import ClientDisconnect, Request

from attnmove.serving.answering import FORMS, JSON, Answer, Ask
from attnmove.serving.limits import Limits
from attnmove.serving.reading import READERS
from attnmove.serving.refusals import Busy, Gone, NotAcceptable, SlowBody, TooLarge, TooSlow, Unsupported

_ANY = ("*/*", "application/*", "")


class Room:
    """How many bytes of bodies are held, of all requests together."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0

    @contextmanager
    def place(self) -> Iterator[Callable[[int], None]]:
        """What takes bytes for one request, or raises Busy; they are free again when it is over."""
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            if self.held + size > self.most:
                raise Busy("too many large requests are under way; ask again in a moment")
            self.held += size
            mine += size

        try:
            yield take
        finally:
            self.held -= mine


async def ask_of(request: Request, limits: Limits, options: Mapping[str, Any], take: Callable[[int], None]) -> Ask:
    """The question of a request, not yet read; raises what the client is to be told. `take` hears of every byte."""
    content, accept = _content(request), _accept(request)
    try:
        async with asyncio.timeout(limits.timeout_s):
            body = await _body(request, limits, take)
    except TimeoutError:
        raise SlowBody(f"the body did not arrive within {limits.timeout_s:g} s; send it faster, or less") from None
    except ClientDisconnect:
        raise Gone("the client closed the connection") from None
    return Ask(body, content, accept, options)


async def wait_for(request: Request, answer: Coroutine[Any, Any, Answer], seconds: float) -> Answer:
    """The answer. Raises TooSlow after so many seconds, and Gone when the client leaves before."""
    working, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(_left(request))
    try:
        done, _ = await asyncio.wait({working, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working in done:
            return working.result()
        if leaving in done:
            raise Gone("the client closed the connection")
        raise TooSlow(f"the answer was not ready within {seconds:g} s; send fewer days, or ask again later")
    finally:
        working.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _content(request: Request) -> str:
    content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content not in READERS:
        raise Unsupported(f"Content-Type: expected {' or '.join(READERS)}, found {content[:80] or 'none'}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Unsupported("Content-Encoding: a packed body is not read; send it as it is")
    return content


def _accept(request: Request) -> str:
    wanted = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    for form in wanted:
        if form in FORMS or form == JSON or form in _ANY:
            return JSON if form in _ANY else form
    raise NotAcceptable(f"Accept: expected {', '.join((JSON, *FORMS))}, found {', '.join(wanted)[:80]}")


async def _body(request: Request, limits: Limits, take: Callable[[int], None]) -> bytes:
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and int(told[:18]) > limits.max_body:
        raise _too_large(limits)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limits.max_body:
            raise _too_large(limits)
        take(len(part))
        parts.append(part)
    return b"".join(parts)


def _too_large(limits: Limits) -> TooLarge:
    return TooLarge(f"a body of more than {limits.max_body_mib:g} MiB; send fewer points at a time")
