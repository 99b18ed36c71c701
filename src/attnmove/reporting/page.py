"""The page itself: sections, figures with captions, tables, contents, a footer. No script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attnmove.reporting.markup import Html, Part, joined, tag

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""A browser that obeys it loads nothing and runs nothing, whatever the page holds."""


@dataclass(frozen=True)
class Section:
    """A part of the report; one without a body is left out."""

    key: str
    """Its anchor."""
    title: str
    intro: Part = None
    body: Html = field(default=Html(""), repr=False)
    left_out: Sequence[str] = ()
    """What could not be shown, why, and how to get it: a sentence each."""


def figure(title: Part, caption: Part, *parts: Part, looks: str | None = None, numbers: Html | None = None) -> Html:
    """A card with a title, what there is to see, a caption and, folded away, the numbers behind it.

    `looks` is "wide" (the whole width) or "tall" (as high as two others).
    """
    behind = None if numbers is None else tag("details", tag("summary", "The numbers"), numbers)
    about = tag("figcaption", caption)
    return tag("figure", tag("h3", title), *parts, about, behind, class_=looks)


def figures(parts: Sequence[Html]) -> Html:
    """Cards side by side where there is room."""
    return tag("div", *parts, class_="figures")


def scrolling(content: Html, name: str) -> Html:
    """What may be wider than the page; it scrolls by itself, with the keyboard too."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=name)


def table(heads: Sequence[Part], rows: Sequence[Sequence[Part]], name: str) -> Html:
    """A plain table; the first cell of a row is its head."""
    head = tag("thead", tag("tr", *(tag("th", part, scope="col") for part in heads)))
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", part) for part in row[1:])) for row in rows]
    return scrolling(tag("table", head, tag("tbody", *body)), name)


def tiles(facts: Mapping[str, tuple[str, str]]) -> Html:
    """The numbers to see first: name, number, and a few words below it."""
    parts = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", below) if below else None))
        for name, (value, below) in facts.items()
    ]
    return tag("dl", *parts, class_="tiles")


def note(text: Part) -> Html:
    return tag("p", text, class_="note")


def page(
    title: str, lead: Part, sections: Sequence[Section], *, notes: Sequence[str], footer: Mapping[str, Part]
) -> str:
    """The whole report as text."""
    shown = [section for section in sections if section.body]
    missing = [sentence for section in sections for sentence in section.left_out]
    entries = [(section.key, section.title) for section in shown]
    if missing:
        entries.append(("left-out", "Not in this report"))
    contents = tag("ul", *(tag("li", tag("a", name, href=f"#{key}")) for key, name in entries))
    main = [
        tag("h1", title),
        tag("p", lead, class_="lead"),
        *(note(text) for text in notes),
        tag("nav", contents, class_="toc", aria_label="Contents"),
        *(_section(section) for section in shown),
    ]
    if missing:
        items = tag("ul", *(tag("li", sentence) for sentence in dict.fromkeys(missing)), class_="left-out")
        main.append(_section(Section("left-out", "Not in this report", None, items)))
    body = tag("div", tag("main", *main, id="top"), _footer(footer), class_="whole")
    skip = tag("a", "Skip to the contents", href="#top", class_="skip")
    return f"<!DOCTYPE html>\n{tag('html', _head(title), tag('body', skip, body), lang='en')}\n"


def _head(title: str) -> Html:
    css = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(css)),
    )


def _section(section: Section) -> Html:
    head = f"{section.key}-title"
    intro = None if section.intro is None else tag("p", section.intro, class_="intro")
    return tag("section", tag("h2", section.title, id=head), intro, section.body, id=section.key, aria_labelledby=head)


def _footer(facts: Mapping[str, Part]) -> Html:
    pairs = joined(joined([tag("dt", name), tag("dd", value)]) for name, value in facts.items())
    return tag("footer", "Every number on this page was computed from the files named here.", tag("dl", pairs))
