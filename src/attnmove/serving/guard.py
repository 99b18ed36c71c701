"""What surrounds every request: the token, the headers, the counts, and an answer in one shape whatever happens."""

from __future__ import annotations

import hmac
import logging
import re
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from attnmove.errors import ConfigError
from attnmove.serving.metrics import Metrics
from attnmove.serving.refusals import Gone, Unauthorised, WrongHost, refusal_of
from attnmove.serving.room import Room
from attnmove.serving.sending import Sending, cut

LOG = logging.getLogger("attnmove.serving")


def security_headers(tiles: str | None) -> dict[str, str]:
    """Nothing from elsewhere but the tiles that were asked for; MapLibre's workers begin as blobs of its own script."""
    elsewhere = f" {origin_of(tiles)}" if tiles else ""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": f"'self' data: blob:{elsewhere}",
        "connect-src": f"'self'{elsewhere}",
        "worker-src": "blob:",
        "child-src": "blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{what} {whence}" for what, whence in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
    }


def origin_of(address: str) -> str:
    """Scheme and host of an address of tiles. Raises ConfigError for one that is none."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or any(mark in parts.netloc for mark in " ;,'\"{}"):
        raise ConfigError(
            f"--tiles: expected an address such as https://tiles.example/{{z}}/{{x}}/{{y}}.png, found {address!r}"
        )
    return f"{parts.scheme}://{parts.netloc}"


def check_origin(origin: str) -> str:
    """The origin, or * for all. Raises ConfigError for what no browser sends as one."""
    if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/?#@A-Z]+", origin):
        raise ConfigError(f"--cors: expected an origin such as https://maps.example, or *, found {origin!r}")
    return origin


def check_token(token: str) -> str:
    """The token. Raises ConfigError for one that a header cannot carry as it is."""
    if not re.fullmatch(r"[!-~]+", token):
        raise ConfigError("the token must be of letters, digits and signs of ASCII, without blanks; choose another")
    return token


class Guard:
    """The outermost layer of the app, but for what tells browsers who else may call: refusals must tell them, too."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        room: Room,
        seconds: float,
        token: str | None,
        headers: Mapping[str, str],
        routes: Sequence[str],
        hosts: Sequence[str] = (),
    ) -> None:
        """`seconds` are those a client has to take its answer; `hosts` the names by which it may be asked, or all."""
        self.app, self.metrics, self.headers, self.routes = app, metrics, headers, routes
        self._room, self._seconds, self._hosts = room, seconds, frozenset(hosts)
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        with self._room.place() as take:
            sending = Sending(send, take, self._seconds, self.headers)
            try:
                await self._answer(scope, receive, sending)
                if sending.late:
                    await cut(scope, receive)
            finally:
                self.metrics.request(self._route(scope["path"]), sending.status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, sending: Sending) -> None:
        """The app's answer, or a refusal where it has none."""
        try:
            self._check(scope)
            await self.app(scope, receive, sending)
        except Exception as error:
            if sending.begun:
                return
            response = refusal_of(error)
            if response.status_code >= 500:
                log_failure(error)
            with suppress(Gone):
                await response(scope, receive, sending)

    def _check(self, scope: Scope) -> None:
        """Raise WrongHost for a request that is not for us, Unauthorised for one without the token it needs."""
        host = Headers(scope=scope).get("host", "").lower()
        if self._hosts and re.sub(r":\d*$", "", host) not in self._hosts:
            raise WrongHost(f"this service listens to this machine alone; ask {' or '.join(sorted(self._hosts))}")
        if self._token is None or not scope["path"].startswith(("/v1/", "/metrics")):
            return
        kind, _, shown = Headers(scope=scope).get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode("latin-1"), self._token):
            raise Unauthorised("this service asks for a token; send it as Authorization: Bearer TOKEN")

    def _route(self, path: str) -> str:
        """The route for the counts; what is not ours has one name, so that nobody can fill the table."""
        if path.startswith("/static/"):
            return "/static"
        return path if path in self.routes else "other"


def log_failure(error: Exception) -> None:
    """Note where an unforeseen error arose, without its message, which may hold what somebody sent."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    LOG.error("%s at %s", type(error).__name__, where)
