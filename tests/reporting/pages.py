"""A written report as a test reads it: elements, texts, links; no browser needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

_EMPTY = {"meta", "br", "hr", "link", "img", "input"}


@dataclass
class Element:
    """An element with its attributes and everything inside it."""

    tag: str
    attributes: dict[str, str | None]
    parts: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self, tag: str) -> list[Element]:
        """Every element of this name inside, in the order of the page."""
        inside = [part for part in self.parts if isinstance(part, Element)]
        return [found for part in inside for found in ([part] if part.tag == tag else []) + part.all(tag)]

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = [
            element
            for element in self.all(tag)
            if all(element.attributes.get(name.rstrip("_")) == value for name, value in attributes.items())
        ]
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag} {attrs}"
        element = Element(tag, dict(attrs))
        self.open[-1].parts.append(element)
        if tag not in _EMPTY:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes {self.open[-1].tag}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def read_page(path: Path) -> Element:
    """The elements of a page; fails where one is not closed."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == [reader.root]
    return reader.root


def check_page(page: Element) -> None:
    """What holds for every report, whatever is in it."""
    assert not page.all("script")
    assert not page.all("link")
    assert not page.all("img")
    for element in [found for name in _names(page) for found in page.all(name)]:
        for name, value in element.attributes.items():
            assert not name.startswith("on"), f"{element.tag} {name}"
            if name in ("href", "src"):
                assert value is not None
                assert value.startswith("#"), value
    ids = [
        element.attributes["id"] for name in _names(page) for element in page.all(name) if "id" in element.attributes
    ]
    assert len(ids) == len(set(ids))
    for anchor in page.all("a"):
        assert str(anchor.attributes["href"])[1:] in ids
    levels = [int(name[1]) for name in _order(page) if name in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for drawing in page.all("svg"):
        if drawing.attributes.get("aria-hidden") != "true":
            assert drawing.attributes["role"] == "img"
            assert drawing.attributes["aria-label"]
            assert drawing.all("title")
            assert drawing.all("desc")
    for figure in page.all("figure"):
        assert figure.one("figcaption").text.strip()
        assert figure.one("h3").text.strip()


def section(page: Element, key: str) -> Element:
    return page.one("section", id=key)


def rows_of(table: Element) -> list[list[str]]:
    return [[cell.text for cell in row.parts if isinstance(cell, Element)] for row in table.one("tbody").all("tr")]


def _names(page: Element) -> set[str]:
    return set(_order(page))


def _order(element: Element) -> list[str]:
    inside = [part for part in element.parts if isinstance(part, Element)]
    return [name for part in inside for name in [part.tag, *_order(part)]]
