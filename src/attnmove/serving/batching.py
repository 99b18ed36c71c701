"""One thread that owns the model: a lone request goes at once, those that arrive meanwhile go together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from attnmove.serving.answering import Answer, Ask
from attnmove.serving.refusals import Busy

MOST_TOGETHER = 32
"""Requests in one go; more save little, and make the first wait for the last."""
_MOST_BYTES = 1 << 20
"""Of the bodies in one go; a large request goes alone."""


@dataclass(frozen=True, eq=False)
class _Waiting:
    ask: Ask
    answer: asyncio.Future[Answer]


class Batcher:
    """Hands requests to `answer` in the order they came, as many at a time as have gathered."""

    def __init__(
        self,
        answer: Callable[[Sequence[Ask]], list[Answer | Exception]],
        *,
        most_waiting: int,
        together: bool = True,
        seen: Callable[[int, float], None] = lambda n, seconds: None,
    ) -> None:
        """`together`: False sends each request by itself. `seen` is told of every go: how many, and how long."""
        self._answer, self._most_waiting, self._seen = answer, most_waiting, seen
        self._most_together = MOST_TOGETHER if together else 1
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def start(self) -> None:
        """Begin to answer, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Answer nothing more; what the thread is doing now comes to its end."""
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def ask(self, ask: Ask) -> Answer:
        """The answer, or the error that is raised instead. Raises Busy when too many wait."""
        if len(self._waiting) >= self._most_waiting:
            raise Busy(f"{self._most_waiting} requests wait already; come back in a second")
        waiting = _Waiting(ask, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        try:
            return await waiting.answer
        finally:
            if waiting in self._waiting:  # its client is gone: nothing of it is kept until its turn would have come
                self._waiting.remove(waiting)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            some = self._take()
            if not some:
                self._wake.clear()
                continue
            began = loop.time()
            try:
                answers = await loop.run_in_executor(self._thread, self._answer, [one.ask for one in some])
            except Exception as error:  # whatever it is, the next requests are to be answered
                answers = [error for _ in some]
            self._seen(len(some), loop.time() - began)
            for one, answer in zip(some, answers, strict=True):
                _tell(one.answer, answer)

    def _take(self) -> list[_Waiting]:
        """The next requests that go together; those nobody waits for any more are left out."""
        some: list[_Waiting] = []
        size = 0
        while self._waiting and len(some) < self._most_together:
            if self._waiting[0].answer.done():
                self._waiting.popleft()
                continue
            size += len(self._waiting[0].ask.body)
            if some and size > _MOST_BYTES:
                break
            some.append(self._waiting.popleft())
        return some


def _tell(future: asyncio.Future[Answer], answer: Answer | Exception) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
