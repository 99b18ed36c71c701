"""The report in a real browser, opened from disk: on a desk, on a phone, in the dark, on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnmove.measure.compare import compare
from attnmove.models.runs import train_run
from attnmove.prep.dataset import read_dataset
from attnmove.reporting.report import report
from measure.datasets import write_small

WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
COLOURS = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('svg[role=img] text')]
    .map(text => text.getBoundingClientRect().height).filter(height => height > 0))"""
"""In pixels; a chart that a phone does not show has none."""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("report")
    dataset = write_small(home / "small")
    compare(dataset, ["nearest", "vote"], out=home / "results", by=("hour",))
    train_run(read_dataset(dataset), "attnmove", home / "run", settings={"epochs": 1, "width": 16, "heads": 2})
    report(home / "run", home / "report.html", dataset=dataset)
    return home / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_it_fits_the_screen_and_loads_nothing(chromium: Any, page_file: Path, scheme: str, width: int) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True)
    page, asked, said = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto(page_file.as_uri())
    assert asked == [page_file.as_uri()]
    assert said == []
    assert not page.evaluate(WIDER)
    assert page.locator("svg[role=img]").count() > 3
    assert page.evaluate(SMALLEST_TEXT) >= 8
    behind, before = (_brightness(colour) for colour in page.evaluate(COLOURS))
    assert (behind > 200 and before < 100) if scheme == "light" else (behind < 60 and before > 180)
    context.close()


def test_it_can_be_printed(chromium: Any, page_file: Path) -> None:
    page = chromium.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    behind, before = (_brightness(colour) for colour in page.evaluate(COLOURS))
    assert behind > 200
    assert before < 100
    assert len(page.pdf(format="A4")) > 10_000
    page.close()


def _brightness(colour: str) -> float:
    red, green, blue, *alpha = (float(part) for part in colour[colour.index("(") + 1 : -1].split(","))
    return 255.0 if alpha == [0.0] else (red + green + blue) / 3
