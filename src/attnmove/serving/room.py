"""The memory that requests share: the bytes of bodies that came in, and of answers that go out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attnmove.serving.refusals import NO_ROOM, Busy


class Room:
    """How many bytes are held, of all requests together."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0

    @contextmanager
    def place(self) -> Iterator[Callable[[int], None]]:
        """What takes bytes for one request, or raises Busy; they are free again when it is over.

        Where nothing is held, one that is larger than the room is let in.
        """
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            if self.held and self.held + size > self.most:
                raise Busy(NO_ROOM)
            self.held += size
            mine += size

        try:
            yield take
        finally:
            self.held -= mine
