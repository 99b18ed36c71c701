"""The app: routes, and how they hang together. `make_app` loads the run once; everything else is per request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from attnmove.filling.fill import MOST_PLACES, Filler
from attnmove.serving.answering import FORMS, JSON, Answerer, Ask
from attnmove.serving.arrival import ask_of, check_address, qualities, wait_for
from attnmove.serving.batching import Batcher
from attnmove.serving.describe import model_facts
from attnmove.serving.examples import made_up, taken_from
from attnmove.serving.guard import Guard, check_origin, check_token, security_headers
from attnmove.serving.limits import Limits
from attnmove.serving.metrics import Metrics
from attnmove.serving.outlines import LocationsMap
from attnmove.serving.page import add_page
from attnmove.serving.reading import READERS
from attnmove.serving.refusals import CODES, refusal
from attnmove.serving.room import Room
from attnmove.serving.wire import Recovery, Refusal, schema_of_question
from attnmove.version import __version__

_CSV_QUESTION = {
    "type": "string",
    "description": "a header and a line a point; columns user (or none), time, lat, lon, or names people use for them",
    "example": "user,time,lat,lon\nann,2024-03-04T08:15:00Z,39.9,116.4\n",
}
Responses = dict[int | str, dict[str, Any]]

_REFUSALS: Responses = {
    code: {"model": Refusal, "description": about}
    for code, about in {
        400: "the body is not JSON",
        401: "no token, or another",
        406: "no such form of answer",
        408: "the body did not arrive in time",
        413: "more bytes, points, users or days than allowed",
        415: "no such form of points",
        422: "points or options that make no sense",
        503: "too many requests wait",
        504: "the answer was not ready in time",
    }.items()
}
_PACKED = {"Vary": "Accept-Encoding", "Cache-Control": "no-cache"}

Length = Annotated[str | None, Query(max_length=40, description="leave longer gaps missing: 4h, 90m, 1d")]
Confidence = Annotated[float | None, Query(ge=0, le=1, description="leave answers of a lower probability missing")]
Precision = Annotated[
    float | None, Query(ge=0, le=1, description="the same, from the confidence that was right this often")
]
Top = Annotated[int | None, Query(ge=1, le=MOST_PLACES, description="places a recovered slot has; 5 unless told")]
WithOrigins = Annotated[bool | None, Query(description="say where answers come from; true unless told")]


def make_app(
    run: Path | str,
    *,
    limits: Limits | None = None,
    batching: bool = True,
    examples: str | None = None,
    tiles: str | None = None,
    cors: Sequence[str] = (),
    token: str | None = None,
    hosts: Sequence[str] = (),
    device: str = "auto",
) -> FastAPI:
    """The service of the run in a folder.

    `examples` names a dataset or points whose first people are offered to try; without it some are made up. `tiles` is
    the address of a raster map drawn under the locations, `cors` the origins whose pages may call, `token` what clients
    must show, `hosts` the names by which the service may be asked. Raises RunError for a damaged run, DataError for one
    whose locations have no places.
    """
    limits = limits or Limits()
    filler = Filler.of(run, device=device)
    filler.setting.locate  # noqa: B018 - places without a rule are an error now, not at the first request
    metrics, room = Metrics(), Room(limits.max_held)
    answerer = Answerer(filler, limits)
    batcher = Batcher(answerer.answer, most_waiting=limits.max_waiting, together=batching, seen=metrics.batch)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        batcher.close()

    app = FastAPI(
        title="attnmove",
        summary="Fills the gaps in people's daily trajectories.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    offered = made_up(filler.setting) if examples is None else taken_from(examples, filler.setting)
    answerer.warm_up(offered)
    _add_questions(app, batcher, metrics, limits, room)
    _add_facts(app, model_facts(filler, limits, batching=batching, tiles=tiles), offered)
    _add_map(app, LocationsMap(filler.setting.locations))
    _add_state(app, batcher, metrics)
    add_page(app)
    _add_refusals(app)
    routes = [path for route in app.routes if (path := getattr(route, "path", ""))]
    app.add_middleware(
        Guard,
        metrics=metrics,
        room=room,
        seconds=limits.timeout_s,
        token=None if token is None else check_token(token),
        headers=security_headers(tiles),
        routes=routes,
        hosts=hosts,
    )
    if cors:
        headers = ["Authorization", "Content-Type", "Accept"]
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[check_origin(origin) for origin in cors],
            allow_methods=["GET", "POST"],
            allow_headers=headers,
        )
    return app


def _add_questions(app: FastAPI, batcher: Batcher, metrics: Metrics, limits: Limits, room: Room) -> None:
    forms = {form: {"schema": {"type": "string"}} for form in FORMS}
    bodies = dict(zip(READERS, ({"schema": schema_of_question()}, {"schema": _CSV_QUESTION}), strict=True))

    @app.post(
        "/v1/recover",
        summary="Fill the days of some points",
        description="Options may stand in the address or in a JSON body; the body's go first.",
        response_class=Response,
        responses={**_REFUSALS, 200: {"model": Recovery, "content": forms, "description": "every slot of every day"}},
        openapi_extra={"requestBody": {"required": True, "content": bodies}},
    )
    async def recover(
        request: Request,
        max_gap: Length = None,
        min_confidence: Confidence = None,
        precision: Precision = None,
        top: Top = None,
        origins: WithOrigins = None,
    ) -> Response:
        given = {
            "max_gap": max_gap,
            "min_confidence": min_confidence,
            "precision": precision,
            "top": top,
            "origins": origins,
        }
        check_address(request, given)
        with room.place() as take:
            options = {name: value for name, value in given.items() if value is not None}
            ask: Ask = await ask_of(request, limits, options, take)
            answer = await wait_for(request, batcher.ask(ask), limits.timeout_s)
        metrics.recovered += answer.recovered
        headers = {"Vary": "Accept", "Cache-Control": "no-store"}
        return Response(answer.body, 200, headers, ask.accept)


def _add_facts(app: FastAPI, facts: dict[str, Any], examples: list[dict[str, Any]]) -> None:
    answers: Responses = {401: _REFUSALS[401]}
    known, offered = (json.dumps(value, ensure_ascii=False).encode() for value in (facts, {"examples": examples}))

    @app.get("/v1/model", summary="The model, its place and time, the limits", responses=answers)
    async def model() -> dict[str, Any]:
        return Response(known, media_type=JSON)  # type: ignore[return-value]

    @app.get("/v1/examples", summary="Days to try the service with", responses=answers)
    async def offer() -> dict[str, Any]:
        return Response(offered, media_type=JSON)  # type: ignore[return-value]


def _add_map(app: FastAPI, locations: LocationsMap) -> None:
    @app.get(
        "/v1/locations.geojson",
        summary="The outlines of the locations",
        response_class=Response,
        responses={
            200: {"content": {"application/geo+json": {"schema": {"type": "object"}}}},
            304: {"description": "as they were"},
            401: _REFUSALS[401],
            422: _REFUSALS[422],
        },
    )
    async def outlines(
        request: Request,
        bbox: Annotated[str | None, Query(max_length=200, description="west,south,east,north in degrees")] = None,
    ) -> Response:
        check_address(request, ("bbox",))
        if bbox is not None:
            return Response(locations.inside(bbox), media_type="application/geo+json")
        if request.headers.get("if-none-match") == locations.tag:
            return Response(status_code=304, headers={**_PACKED, "ETag": locations.tag})
        encodings = qualities(request, "accept-encoding")
        packed = encodings.get("gzip", encodings.get("*", 0)) > 0
        headers = {**_PACKED, "ETag": locations.tag, **({"Content-Encoding": "gzip"} if packed else {})}
        return Response(locations.packed if packed else locations.whole, 200, headers, "application/geo+json")


def _add_state(app: FastAPI, batcher: Batcher, metrics: Metrics) -> None:
    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", summary="Whether the service answers")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    text: Responses = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, 401: _REFUSALS[401]}

    @app.get("/metrics", summary="Counts for Prometheus", response_class=Response, responses=text)
    async def counts() -> Response:
        return Response(metrics.text(len(batcher)), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_refusals(app: FastAPI) -> None:
    """The router's own errors in our shape; Guard sees to all others."""

    @app.exception_handler(HTTPException)
    async def routed(request: Request, error: HTTPException) -> Response:
        code = CODES.get(error.status_code, "refused")
        answer = refusal(error.status_code, code, f"{request.method} {request.url.path}: {str(error.detail).lower()}")
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    async def checked(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = str(first["loc"][-1])
        return refusal(422, "bad_option", f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}", where)
