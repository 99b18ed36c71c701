"""An answer goes out: in pieces, its bytes counted until the client has them, and no longer than anybody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from attnmove.serving.refusals import STATUS, Gone

ABORT = "attnmove.abort"
"""The member of a scope's state that drops the connection; `connection` puts it there."""
PIECE = 1 << 16
"""Bytes sent at a time. An answer of no more is not counted: the connection's own buffer holds it."""


class Sending:
    """The `send` of one request. Raises Busy before the answer begins, Gone when the client does not take it."""

    def __init__(self, send: Send, take: Callable[[int], None], seconds: float, headers: Mapping[str, str]) -> None:
        self._send, self._take, self._seconds, self._headers = send, take, seconds, headers
        self._head: Message | None = None
        self._deadline = 0.0
        self.status = 500
        self.begun = False
        self.late = False
        """True when the client did not take the answer in time."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message  # kept back until the size of the body is known
            return
        body: bytes = message.get("body", b"")
        if len(body) > PIECE:
            self._take(len(body))
        if self._head is not None:
            await self._begin(self._head)
        for first in range(0, len(body), PIECE):
            await self._pass(body[first : first + PIECE], more=True)
        if not message.get("more_body", False):
            await self._pass(b"", more=False)  # the server lets it through when the pieces before are gone

    async def _begin(self, head: Message) -> None:
        self._head, self.begun, self.status = None, True, head["status"]
        self._deadline = asyncio.get_running_loop().time() + self._seconds
        MutableHeaders(scope=head).update(self._headers)
        await self._in_time(head)

    async def _pass(self, body: bytes, *, more: bool) -> None:
        await self._in_time({"type": "http.response.body", "body": body, "more_body": more})

    async def _in_time(self, message: Message) -> None:
        try:
            async with asyncio.timeout_at(self._deadline):
                await self._send(message)
        except TimeoutError:
            self.late, self.status = True, STATUS[Gone][0]
            raise Gone(f"the client did not take the answer within {self._seconds:g} s") from None


async def cut(scope: Scope, receive: Receive) -> None:
    """Drop the connection with all that waits in it; a server that does not offer to closes it in its own way."""
    abort = scope.get("state", {}).get(ABORT)
    if abort is not None:
        abort()
        while (await receive())["type"] != "http.disconnect":
            pass
