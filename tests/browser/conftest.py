"""A service in this process and a Chromium to look at it; pages must load nothing from elsewhere and log no error."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from browser.looking import PLAIN, TOKEN, Brake, Open, served
from filling.worlds import TINY_BOOST, train_small

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@pytest.fixture(scope="module")  # while it is there, an event loop runs in this thread
def chromium() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("looked-at"), model="boost", **TINY_BOOST)


@pytest.fixture
def brake() -> Iterator[type[Brake]]:
    yield Brake
    Brake.seconds = 0.0


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    from attnmove.filling.fill import Filler

    fill = Filler.fill_timelines

    def fill_slowly(self: Filler, *parts: Any, **named: Any) -> Any:
        time.sleep(Brake.seconds)
        return fill(self, *parts, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Filler, "fill_timelines", fill_slowly)
        with served(run) as address:
            yield address


@pytest.fixture(scope="module")
def guarded(run: Path) -> Iterator[str]:
    with served(run, token=TOKEN) as address:
        yield address


@pytest.fixture
def open_page(chromium: Any, address: str) -> Iterator[Open]:
    """Opens the page, waits for the first day, and in the end finds no error and no foreign request."""
    contexts, faults = [], []

    def open_page(
        at: str = address,
        *,
        path: str = PLAIN,
        may_load: str = "blob:",
        ready: str | None = ".slot",
        script: str = "",
        **how: Any,
    ) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if _is_fault(said) else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((at, may_load, "blob:", "data:")) else faults.append(asked.url),
        )
        if script:
            page.add_init_script(script)
        page.goto(at + path)
        if ready:
            page.wait_for_selector(ready)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def _is_fault(said: Any) -> bool:
    # The browser itself logs requests that fail, which tests provoke, and that it draws without a graphics card.
    return said.type in ("error", "warning") and "Failed to load resource" not in said.text and "GPU" not in said.text
