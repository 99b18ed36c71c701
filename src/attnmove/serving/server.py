"""The service as a process: one socket, one app, until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING

from attnmove.errors import ConfigError, MissingExtra, RunError

if TYPE_CHECKING:
    from fastapi import FastAPI

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""How a machine calls itself; a page elsewhere can make a browser call it by another name, and read the answers."""
_BACKLOG = 2048
_LIBRARIES = ("fastapi", "uvicorn", "maplibre")


def check_libraries() -> None:
    """Raise MissingExtra when the libraries of the service are not installed."""
    for library in _LIBRARIES:
        if find_spec(library) is None:
            raise MissingExtra(library, "serve", "the web service")


def is_loopback(host: str) -> bool:
    """True where only programs of this machine can call."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free.

    Raises RunError when it cannot be had, ConfigError for a host that can be none.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: only then asyncio sends what it has at once, instead of waiting 40 ms for the client's receipt.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        return listening
    except (TypeError, ValueError) as error:  # what cannot even be looked up
        listening.close()
        raise ConfigError(f"--host: expected a name or an address such as 127.0.0.1, found {host!a}") from error
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(
            f"cannot listen at {host}, port {port} ({reason}); choose another with --host, --port"
        ) from error


def address_of(listening: socket.socket) -> str:
    """How a browser on this machine finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(app: FastAPI, listening: socket.socket, *, patience_s: float, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; requests that are being answered then have `patience_s` seconds to finish."""
    import uvicorn

    from attnmove.serving.connection import Connection

    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(patience_s)),
    )
    ready(address_of(listening))
    uvicorn.Server(config).run(sockets=[listening])
