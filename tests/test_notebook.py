"""The notebook of the quickstart runs from its first cell to its last, and is kept without output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "quickstart.ipynb"


def cells() -> list[dict[str, Any]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.filterwarnings("ignore:recover used not all")
def test_the_cells_of_the_notebook_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells(), 1):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    filled = names["filled"]
    assert set(filled["status"]) == {"observed", "recovered"}
    assert len(names["marks"]) == 48
    assert (names["folder"] / "report.html").exists()
    near = names["both"].groupby("status")["metres"].median()
    assert near["recovered"] < 1_000


def test_the_notebook_is_kept_without_output() -> None:
    for cell in cells():
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
