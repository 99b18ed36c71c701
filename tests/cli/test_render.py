"""What a terminal shows while something takes long."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from attnmove.cli import render


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Where somebody looks."""
    out = io.StringIO()
    monkeypatch.setattr(render, "err", Console(file=out, force_terminal=True, width=120, color_system=None))
    return out


def test_a_training_in_epochs_counts_them(screen: io.StringIO) -> None:
    with render.training(8) as tell:
        tell({"epoch": 2.5, "loss": 1.25, "valid_recall": 0.5, "valid_map": 0.6})
    assert "epoch 2.5/8" in screen.getvalue()
    assert "loss 1.250  valid recall 0.500, MAP 0.600" in screen.getvalue()


def test_a_training_without_epochs_speaks_of_none(screen: io.StringIO) -> None:
    with render.training(None) as tell:
        tell({"epoch": 0.5})
    assert "training" in screen.getvalue()
    assert "epoch" not in screen.getvalue()
    assert "starting" not in screen.getvalue()


def test_where_nobody_looks_nothing_is_told() -> None:
    with render.training(3) as tell:
        assert tell is None
