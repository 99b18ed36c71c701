"""What the browser tests share: a service in a thread, a brake for the model, and how a page is opened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOKEN = "sesame"
PLAIN = "/?map=plain"
"""The page without WebGL, which a machine without a graphics card draws much faster."""

Open = Callable[..., Any]


class Brake:
    """Makes the model slow."""

    seconds = 0.0


@contextmanager
def served(run: Path, **options: Any) -> Iterator[str]:
    """The address of a service in a thread of this process."""
    import uvicorn

    from attnmove.serving.app import make_app
    from attnmove.serving.server import address_of, open_socket

    server = uvicorn.Server(uvicorn.Config(make_app(run, **options), log_level="error", access_log=False))
    with open_socket("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield address_of(listening)
        server.should_exit = True
        thread.join(10)
