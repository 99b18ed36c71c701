"""HTML and SVG as text that cannot be broken by what is put into it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_NO_CONTENT = {"meta"}
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Html(str):
    """Text that is markup already. Whatever is not, is escaped when it is put into an element."""

    __slots__ = ()


Part = Html | str | int | float | None
"""What an element may hold; None is nothing."""


def escape(value: object) -> Html:
    """The value as text of a page: no markup, nothing that cannot be written as UTF-8."""
    if isinstance(value, Html):
        return value
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return Html(html.escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)))


def tag(name: str, /, *parts: Part, **attributes: object) -> Html:
    """An element. An attribute is named as in Python: `class_`, `aria_label`; None leaves it out, True has no value.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    given = "".join(
        f" {_name(key)}" if value is True else f' {_name(key)}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _NO_CONTENT:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(parts)}</{name}>")


def joined(parts: Iterable[Part]) -> Html:
    """The parts one after the other."""
    return Html("".join(escape(part) for part in parts if part is not None))


def number(value: float) -> str:
    """A coordinate: a tenth of a unit is finer than any screen.

    >>> number(12.04), number(-0.01)
    ('12', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _name(key: str) -> str:
    return key.removesuffix("_").replace("_", "-")
