"""A request comes in: its form, its body within the limits, and waiting for the answer no longer than anybody does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request

from attnmove.serving.answering import FORMS, JSON, Answer, Ask
from attnmove.serving.limits import Limits
from attnmove.serving.reading import READERS
from attnmove.serving.refusals import Gone, NotAcceptable, SlowBody, TooLarge, TooSlow, Unsupported, WrongOption

_LONGEST_SHOWN = 200
_QUALITY = re.compile(r"\s*q\s*=\s*(0(?:\.[0-9]*)?|1(?:\.0*)?)\s*", re.ASCII | re.IGNORECASE)


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


def check_address(request: Request, known: Collection[str]) -> None:
    """Raise WrongOption for an option of the address that is not known, or that is given twice."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        shown = name[:_LONGEST_SHOWN]
        if name not in known:
            raise WrongOption(f"{shown}: there is no such option", shown)
        if names.count(name) > 1:
            raise WrongOption(f"{shown}: given {names.count(name)} times; give it once", shown)


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
    """The form the client likes best; of those it likes alike, the one it names first."""
    forms = (JSON, *FORMS)
    wanted = {name or "*/*": quality for name, quality in qualities(request, "accept").items()}
    for name, quality in sorted(wanted.items(), key=lambda item: -item[1]):
        kind = name.removesuffix("*") if name.endswith("/*") else None
        fitting = [form for form in forms if form == name or (form not in wanted and _is_kind(form, kind))]
        if quality > 0 and fitting:
            return fitting[0]
    raise NotAcceptable(f"Accept: expected {', '.join(forms)}, found {', '.join(wanted)[:80]}")


def _is_kind(form: str, kind: str | None) -> bool:
    return kind is not None and (kind == "*/" or form.startswith(kind))


def qualities(request: Request, header: str) -> dict[str, float]:
    """What the client names in an Accept header, and how much it likes each: 0, not at all, to 1."""
    found: dict[str, float] = {}
    for part in ",".join(request.headers.getlist(header)).split(","):
        name, *parameters = part.split(";")
        quality = next((float(told[1]) for text in parameters if (told := _QUALITY.fullmatch(text))), 1.0)
        found.setdefault(name.strip().lower(), quality)
    return found


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
