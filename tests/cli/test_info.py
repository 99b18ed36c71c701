"""What `info` says of a dataset beyond its counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnmove import cli


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A week of ann, who is also called bob, and of cyd, who goes elsewhere."""
    rows = ["user,time,lat,lon"]
    for day in range(7):
        for hour in range(24):
            lon = 116.3 + 0.01 * (hour // 4)
            for user, lat in (("ann", 39.9), ("bob", 39.9), ("cyd", 39.95)):
                rows.append(f"{user},2024-03-{4 + day:02}T{hour:02}:10:00Z,{lat},{lon:.3f}")
    (tmp_path / "points.csv").write_text("\n".join(rows))
    made = tmp_path / "dataset"
    told("prepare", tmp_path / "points.csv", "-o", made, "--timezone", "UTC")
    return made


def told(*arguments: object) -> str:
    result = CliRunner().invoke(cli.app, [str(part) for part in arguments])
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return result.stdout


def test_who_is_there_under_two_names_is_said(dataset: Path) -> None:
    assert "ann and bob (168 of 168 slots at one place)" in " ".join(told("info", dataset).split())
    assert json.loads(told("info", dataset, "--json"))["doubles"] == [
        {"users": ["ann", "bob"], "slots": 168, "same": 168}
    ]
