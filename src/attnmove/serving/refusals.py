"""Why a request is refused, and the one shape in which the client is told.

AttnMoveError
├── Malformed       400  the body is not JSON
├── Unauthorised    401  no token, or another
├── NotAcceptable   406  no such form of answer
├── SlowBody        408  the body did not arrive in time
├── TooLarge        413  more bytes, points, users or days than allowed
├── Unsupported     415  no such form of points
├── WrongShape      422  the body is JSON of another shape
├── WrongHost       421  asked by another name than the service has
├── WrongOption     422  no such option in the address (a ConfigError)
├── Gone            499  the client did not wait, or did not take the answer
├── Busy            503  too many requests wait already
└── TooSlow         504  the answer was not ready in time
"""

# ruff: noqa: N818 - each name states what is wrong with the request

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

from attnmove.errors import AttnMoveError, ConfigError, DataError


class Malformed(AttnMoveError):
    """The body cannot be read at all."""


class WrongShape(AttnMoveError):
    """The body is JSON, but not such as it should be."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


class WrongOption(ConfigError):
    """An option of the address that there is not, or that is given twice."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


class Unauthorised(AttnMoveError):
    """The service asks for a token, and the request has none or another."""


class NotAcceptable(AttnMoveError):
    """The client takes no form of answer there is."""


class SlowBody(AttnMoveError):
    """The body did not arrive in time."""


class TooLarge(AttnMoveError):
    """More than one request may bring."""


class Unsupported(AttnMoveError):
    """The body is in a form that is not read."""


class WrongHost(AttnMoveError):
    """The service was asked by a name that is not its own."""


class Gone(AttnMoveError):
    """The client did not wait for the answer, or did not take it."""


class Busy(AttnMoveError):
    """Too many requests wait already."""


class TooSlow(AttnMoveError):
    """The answer was not ready in time."""


STATUS: Mapping[type[AttnMoveError], tuple[int, str]] = {
    Malformed: (400, "malformed"),
    Unauthorised: (401, "unauthorised"),
    NotAcceptable: (406, "not_acceptable"),
    SlowBody: (408, "slow_body"),
    TooLarge: (413, "too_large"),
    Unsupported: (415, "unsupported"),
    WrongHost: (421, "wrong_host"),
    WrongShape: (422, "wrong_shape"),
    DataError: (422, "bad_points"),
    ConfigError: (422, "bad_option"),
    Gone: (499, "gone"),
    Busy: (503, "busy"),
    TooSlow: (504, "too_slow"),
}
"""The status and the code of each error; any other is 500, internal, a RunError too: it names places on the disk."""

NO_ROOM = "too many large requests are under way; ask again in a moment"

CODES = {404: "not_found", 405: "wrong_method"}
"""What the router itself refuses."""

_HEADERS: Mapping[int, Mapping[str, str]] = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}


def refusal(status: int, code: str, message: str, where: str | None = None) -> Response:
    """The answer to a request that is refused: `{"error": {"code", "message", "where"}}`, `where` if it is known."""
    error = {"code": code, "message": message, **({} if where is None else {"where": where})}
    body = json.dumps({"error": error}, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, dict(_HEADERS.get(status, {})), "application/json")


def refusal_of(error: Exception) -> Response:
    """The answer for an error; one we did not foresee says nothing of what it was."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            status, code = STATUS[kind]
            return refusal(status, code, str(error), getattr(error, "where", None))
    return refusal(500, "internal", "the service failed on this request; its log says where")
