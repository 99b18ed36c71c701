"""docs/models.md says what the code does: names, defaults, equations, and the lines it points to.

When lines of the code have moved, `python tests/test_models_page.py` brings the line numbers of the page up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from attnmove.models.registry import MODELS

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
LINK = re.compile(r"\[(\w+\.py):(\d+)\]\(([^)#]+)#L(\d+)\)(?: `([^`]+)`)?")
CONFIGS: dict[str, type[Any]] = {type(c).__name__: type(c) for entry in MODELS.values() for c in entry.defaults}


@dataclass(frozen=True)
class Link:
    """A link of the page to a line of code, and what the page says stands there."""

    text: str
    name: str
    path: str
    line: int
    anchor: int
    snippet: str

    @property
    def places(self) -> list[int]:
        """The lines of the file that hold the snippet, the nearest to the linked one first."""
        lines = (PAGE.parent / self.path).read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(lines, start=1) if self.snippet in line]
        return sorted(found, key=lambda number: abs(number - self.line))


def link_of(match: re.Match[str]) -> Link:
    name, line, path, anchor, snippet = match.groups()
    return Link(match[0], name, path, int(line), int(anchor), snippet or "")


def links(page: str) -> Iterator[Link]:
    return map(link_of, LINK.finditer(page))


def refreshed(page: str) -> str:
    """The page with each link at the line that holds its snippet; as it is where no line does."""

    def at_its_line(match: re.Match[str]) -> str:
        link = link_of(match)
        if not link.snippet or not link.places:
            return link.text
        line = link.places[0]
        return f"[{link.name}:{line}]({link.path}#L{line}) `{link.snippet}`"

    return LINK.sub(at_its_line, page)


def section(heading: str) -> str:
    """The text under the one heading that begins so, up to the next of the same or a higher level."""
    page = PAGE.read_text(encoding="utf-8")
    (start,) = re.finditer(rf"^(#+) {re.escape(heading)}.*$", page, flags=re.M)
    rest = page[start.end() :]
    end = re.search(rf"^#{{1,{len(start[1])}}} ", rest, flags=re.M)
    return rest[: end.start()] if end else rest


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table of a section, its header left out."""
    lines = re.search(r"(?:^\|.*\n)+", section(heading), flags=re.M)
    assert lines, f"{heading}: no table"
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[0].splitlines()[2:]]


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_every_model_is_in_the_table_with_its_kind() -> None:
    assert [row[:2] for row in rows("The models")] == [[f"`{name}`", entry.kind] for name, entry in MODELS.items()]


@pytest.mark.parametrize("name", CONFIGS)
def test_every_setting_is_in_the_page_with_its_default(name: str) -> None:
    default = CONFIGS[name]()
    expected = [[f"`{field.name}`", shown(getattr(default, field.name))] for field in fields(default)]
    assert [row[:2] for row in rows(f"`{name}`")] == expected


def test_every_setting_that_a_model_changes_is_in_the_page() -> None:
    expected = []
    for name, entry in MODELS.items():
        changed = [
            f"`{field.name}={shown(getattr(config, field.name))}`"
            for config in entry.defaults
            for field in fields(config)
            if getattr(config, field.name) != getattr(type(config)(), field.name)
        ]
        if entry.defaults:
            used = ", ".join(f"`{type(config).__name__}`" for config in entry.defaults)
            expected.append([f"`{name}`", used, ", ".join(changed) or "nothing"])
    assert rows("Which model has which") == expected


def test_every_equation_of_the_paper_is_mapped_to_a_line_of_code() -> None:
    table = rows("AttnMove, equation by equation")
    assert [row[0] for row in table] == [str(number) for number in range(1, 16)]
    for row in table:
        assert LINK.search(row[2]), f"equation {row[0]} has no line of code"


def test_every_link_to_a_line_is_followed_by_what_stands_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = list(links(page))
    assert len(found) == len(re.findall(r"\.py:\d|\.py#L", page)) / 2, "a link to a line is not written like the others"
    for link in found:
        assert link.snippet, f"{link.text}: quote the code of the line after the link"
        assert link.name == Path(link.path).name, f"{link.text}: names another file than it leads to"
        assert link.line == link.anchor, f"{link.text}: names another line than it leads to"


def test_every_linked_line_holds_the_quoted_code() -> None:
    wrong = []
    for link in links(PAGE.read_text(encoding="utf-8")):
        if not link.places:
            wrong.append(f"{link.name}:{link.line} `{link.snippet}` is nowhere in the file any more")
        elif link.line not in link.places:
            wrong.append(f"{link.name}:{link.line} `{link.snippet}` is at line {link.places[0]} now")
    assert not wrong, "\n".join(
        ["docs/models.md; python tests/test_models_page.py moves lines that can be found:", *wrong]
    )


def test_refreshing_moves_a_link_to_the_nearest_line_that_holds_its_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    first = next(links(page))
    astray = first.text.replace(f":{first.line}]", ":9999]").replace(f"#L{first.line})", "#L9999)")
    lost = first.text.replace(first.snippet, "nowhere = 1")
    assert refreshed(f"{astray} and {lost}") == f"{first.text} and {lost}"


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
