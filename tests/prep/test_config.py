"""The choices of a preparation: what scales with the slot, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnmove.errors import ConfigError
from attnmove.prep.config import Preparation
from attnmove.prep.pipeline import prepare


@pytest.mark.parametrize(
    ("slot_minutes", "n_slots", "least", "n_hide"),
    [(15, 96, 24, 20), (30, 48, 12, 10), (60, 24, 6, 5), (120, 12, 3, 2)],
)
def test_the_defaults_scale_with_the_slot(slot_minutes: int, n_slots: int, least: int, n_hide: int) -> None:
    how = Preparation(slot_minutes=slot_minutes)
    assert (how.n_slots, how.n_min_slots, how.n_hide) == (n_slots, least, n_hide)


@pytest.mark.parametrize("slot_minutes", [5, 6, 8, 10, 12, 16, 18, 20, 24, 32, 36, 40, 45, 48, 72, 80, 90, 96])
def test_every_slot_that_divides_the_day_has_working_defaults(slot_minutes: int) -> None:
    how = Preparation(slot_minutes=slot_minutes)
    assert 1 <= how.n_hide < how.n_min_slots <= how.n_slots


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slot_minutes": 7}, "divide a day"),
        ({"slot_minutes": 4}, "5 to 120"),
        ({"slot_minutes": 180}, "5 to 120"),
        ({"slot_minutes": 0}, "5 to 120"),
        ({"slot_rule": "mean"}, "mode or last"),
        ({"pattern": "random"}, "uniform or burst or night"),
        ({"min_slots": 0}, "--min-slots must be at least 1"),
        ({"min_slots": 49}, "has 48"),
        ({"min_days": 0}, "--min-days must be at least 1"),
        ({"first_days": -1}, "--first-days must be at least 0"),
        ({"hide": 0}, "--hide must be at least 1"),
        ({"hide": 48}, "must stay visible"),
        ({"hide": 2.5}, "hide must be a whole number; found 2.5"),
        ({"slot_minutes": "30"}, "slot_minutes must be a whole number"),
        ({"draws": 0}, "--draws must be at least 1"),
        ({"seed": -1}, "--seed must be at least 0"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Preparation(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slot_minute": 30}, "did you mean slot_minutes"),
        ({"timezone": "Asia/Beijing"}, "not an IANA time zone"),
        ({"datum": "wgs72"}, "wgs84"),
        ({"engine": "pandas"}, "no engine 'pandas'"),
        ({"engine": "duckdb:fast"}, "no engine"),
        ({"centres": "c.csv"}, "--centres belongs"),
    ],
)
def test_prepare_refuses_options_before_it_reads(options: dict[str, str], words: str, tmp_path: Path) -> None:
    source = tmp_path / "points.csv"
    source.write_text("user,time,lat,lon\n")
    with pytest.raises(ConfigError, match=words):
        prepare(source, **options)  # type: ignore[arg-type]
