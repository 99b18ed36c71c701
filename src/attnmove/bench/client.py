"""The smallest HTTP client that will do: one connection, so light that the service is what is measured."""

from __future__ import annotations

import asyncio
from typing import Self


class Client:
    """One connection that asks and reads the answer, again and again."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self.host, self.port, limit=2**20)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._writer.close()

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        return await self._ask(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a JSON body."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return await self._ask(head.encode() + body)

    async def _ask(self, request: bytes) -> tuple[int, bytes]:
        self._writer.write(request)
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        return int(first.split()[1]), await self._reader.readexactly(length)
