"""A connection that the app can drop, and whose buffer is empty when an answer counts as sent."""

from __future__ import annotations

import asyncio
import socket
import struct

from uvicorn.protocols.http.h11_impl import H11Protocol

from attnmove.serving.sending import ABORT


class Connection(H11Protocol):
    """uvicorn's own; closing it would wait for the client to read, without end."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)
        self.app_state = {**self.app_state, ABORT: self._abort}

    def _abort(self) -> None:
        # Without lingering, or the system would keep what the client did not take.
        lost = self.transport.get_extra_info("socket")
        lost.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
