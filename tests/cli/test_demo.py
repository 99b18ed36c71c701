"""The demo goes the whole way and says where everything is."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from attnmove.cli import app

demo = import_module("attnmove.cli.demo")


def test_the_demo_makes_what_it_lists_and_says_how_to_open_the_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_CITY", ("--users", "10", "--days", "10"))
    quick = {
        "boost": ("rankers=1", "rounds=5", "draws=0", "practice=0"),
        "attnmove": ("width=8", "heads=1", "layers=1", "epochs=1"),
    }
    monkeypatch.setattr(demo, "_QUICK", quick)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    made = result.stdout[result.stdout.index("\nMade\n") :]
    for name in ("points.parquet", "truth.parquet", "dataset", "run", "paper-run", "recovered.parquet", "report.html"):
        assert (tmp_path / "demo" / name).exists()
        assert f"\ndemo/{name} " in made
    assert "attnmove serve demo/run --examples demo/dataset" in made
    for command in ("prepare", "train", "evaluate", "recover", "report"):
        assert f"$ attnmove {command} " in result.stdout
    assert "errors downstream" in result.stdout
    assert "recovered" in set(pq.read_table(tmp_path / "demo" / "recovered.parquet")["status"].to_pylist())
