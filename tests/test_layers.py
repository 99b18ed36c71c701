"""Imports only go down, and heavy libraries stay in the rooms that own them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attnmove
from measure.datasets import write_small

SRC = Path(__file__).parents[1] / "src" / "attnmove"

LAYERS = [
    "cli",
    "bench",
    "serving",
    "reporting",
    "filling",
    "measure",
    "models",
    "train",
    "nets",
    "metrics",
    "prep",
    "city",
    "io",
    "space",
    "engine",
    "nouns",
    "errors",
    "version",
]
"""From the top of the house to the ground."""

OWNERS = {
    "ibis": {"engine", "io", "prep"},
    "duckdb": {"engine"},
    "pyspark": {"engine"},
    "shapely": {"space"},
    "h3ronpy": {"space"},
    "osmium": {"space"},
    "pandas": {"bench"},
    "torch": {"bench", "nets", "train", "models"},
    "lightgbm": {"models"},
    "numba": {"models"},
    "fastapi": {"serving"},
    "starlette": {"serving"},
    "typer": {"cli"},
    "rich": {"cli"},
}
"""The layers that may import a heavy library; a library not named here may be imported anywhere."""


def imports_of(file: Path) -> set[str]:
    """Modules imported anywhere in the file, those for type checking only left out."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: relative import"
            found.add(node.module)
    return found


def layer_of(file: Path) -> str:
    return file.relative_to(SRC).parts[0].removesuffix(".py")


FILES = sorted(file for file in SRC.rglob("*.py") if file != SRC / "__init__.py")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_a_module_imports_only_from_its_own_layer_or_below(file: Path) -> None:
    here = layer_of(file)
    assert here in LAYERS, f"{here} has no place in the house: give it one in LAYERS and docs/design.md"
    for module in imports_of(file):
        parts = module.split(".")
        if parts[0] == "attnmove" and len(parts) > 1:
            assert LAYERS.index(parts[1]) >= LAYERS.index(here), f"{here} must not import {module}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_a_heavy_library_is_imported_only_by_the_layers_that_own_it(file: Path) -> None:
    for module in imports_of(file):
        owners = OWNERS.get(module.split(".")[0])
        assert owners is None or layer_of(file) in owners, f"{module} belongs to {owners}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_a_file_stays_short_enough_to_own_one_thing(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 400


def test_nothing_is_called_utils() -> None:
    drawers = {"utils", "common", "helpers", "misc", "core"}
    assert not [path for path in SRC.rglob("*") if path.stem in drawers]


WITHOUT_RELATIONAL = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ('ibis', 'duckdb', 'shapely', 'h3ronpy', 'pyspark', 'osmium', 'pandas'):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
"""
"""A machine that only trains has numpy and pyarrow, not Ibis, DuckDB, shapely or h3ronpy."""


def test_a_dataset_is_read_without_the_relational_libraries() -> None:
    code = WITHOUT_RELATIONAL + (
        "import attnmove\n"
        "attnmove.read_dataset, attnmove.Dataset, attnmove.Preparation, attnmove.synthesize, attnmove.evaluate\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_dataset_is_measured_without_the_relational_libraries(tmp_path: Path) -> None:
    folder, results = str(write_small(tmp_path / "small")), str(tmp_path / "results")
    code = WITHOUT_RELATIONAL + (
        "from attnmove.cli import app\n"
        f"app(['compare', {folder!r}, '-o', {results!r}, '--models', 'top'], standalone_mode=False)\n"
        f"app(['evaluate', {folder!r}, 'vote', '--by', 'gap'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "how", ["--model vote", "--model boost --set rounds=2 --set rankers=1 --set draws=0 --set practice=300"]
)
def test_a_run_is_trained_without_the_relational_libraries(how: str, tmp_path: Path) -> None:
    folder, run = str(write_small(tmp_path / "small")), str(tmp_path / "run")
    code = WITHOUT_RELATIONAL + (
        f"from attnmove.cli import app\napp(['train', {folder!r}, '-o', {run!r}, *{how.split()!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_a_compiler_the_models_of_the_paper_are_trained_and_our_own_say_what_is_missing(tmp_path: Path) -> None:
    folder = str(write_small(tmp_path / "small"))
    code = WITHOUT_RELATIONAL.replace("'ibis'", "'numba', 'lightgbm', 'ibis'") + "from attnmove.cli import app\n"
    tried = {
        model: subprocess.run(
            [
                sys.executable,
                "-c",
                f"{code}app(['train', {folder!r}, '--model', {model!r}, '-o', {str(tmp_path / model)!r}])\n",
            ],
            capture_output=True,
            text=True,
        )
        for model in ("rf", "copymove")
    }
    assert tried["rf"].returncode == 0, tried["rf"].stderr
    assert tried["copymove"].returncode == 1
    assert "pip install numba" in tried["copymove"].stderr


def test_the_public_verbs_stay_functions_when_every_module_is_loaded() -> None:
    """A subpackage of the same name would take the function's place as soon as somebody imports it."""
    rooms = {path.stem for path in SRC.iterdir()}
    assert not rooms & set(attnmove.__all__)
