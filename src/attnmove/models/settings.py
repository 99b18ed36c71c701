"""Settings by name: from `--set key=value` or a TOML file onto frozen dataclasses."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from attnmove.errors import ConfigError, check_names

Settings = Mapping[str, object]
"""Values of fields by name, as text or in their own type."""


def configure(defaults: tuple[Any, ...], settings: Settings) -> tuple[Any, ...]:
    """The dataclasses with the settings in place, each in the one that has a field of this name.

    Raises ConfigError on a name nobody has, with the nearest one that somebody has, and on a value of another type.
    """
    names = [field.name for config in defaults for field in fields(config)]
    check_names("setting", settings, names)
    out = []
    for config in defaults:
        kinds = get_type_hints(type(config))
        mine = [field.name for field in fields(config) if field.name in settings]
        out.append(replace(config, **{name: _typed(name, settings[name], kinds[name]) for name in mine}))
    return tuple(out)


def parse_settings(pairs: Iterable[str], file: Path | None = None) -> dict[str, object]:
    """Settings of a TOML file, then of `key=value` texts, which win. Tables of the file only group its keys."""
    out: dict[str, object] = {}
    if file is not None:
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ConfigError(f"{file}: there is no such file") from error
        except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{file}: not a TOML file ({error})") from error
        for key, value in content.items():
            out.update(value if isinstance(value, dict) else {key: value})
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"--set {pair}: expected key=value, such as width=64")
        out[key.strip()] = value.strip()
    return out


def _typed(name: str, value: object, kind: type) -> object:
    """`value` as a `kind`, read from text where it is text."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    try:
        if kind is bool:
            return value if isinstance(value, bool) else words[str(value).lower()]
        if kind is int and not isinstance(value, bool):
            number = float(str(value))
            if number == int(number):
                return int(number)
        elif kind is float and not isinstance(value, bool):
            return float(str(value))
        elif kind is str and isinstance(value, str):
            return value
    except (KeyError, ValueError, OverflowError):
        pass
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}[kind]
    raise ConfigError(f"{name}: expected {wanted}, found {value!r}")
