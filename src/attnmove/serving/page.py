"""The map page and the description of the service: files of this package, and MapLibre from its wheel."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from attnmove.errors import MissingExtra

STATIC = Path(__file__).with_name("static")
_FRESH = {"Cache-Control": "no-cache"}


def add_page(app: FastAPI) -> None:
    """The page at /, the description at /docs, and what they load."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers=_FRESH)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html", headers=_FRESH)

    app.mount("/static", _Fresh(directory=STATIC), name="static")
    app.mount("/maplibre", _Fresh(directory=maplibre_folder()), name="maplibre")


class _Fresh(StaticFiles):
    """Files the browser asks for again each time, and gets when they have changed."""

    def file_response(self, *args: object, **named: object) -> object:  # type: ignore[override]
        response = super().file_response(*args, **named)  # type: ignore[arg-type]
        response.headers.update(_FRESH)
        return response


def maplibre_folder() -> Path:
    """Where the installed wheel keeps maplibre-gl.js and its style sheet."""
    found = find_spec("maplibre")
    folder = Path(found.origin).parent / "srcjs" if found is not None and found.origin else None
    if folder is None or not (folder / "maplibre-gl.js").is_file():
        raise MissingExtra("maplibre", "serve", "the map page")
    return folder
