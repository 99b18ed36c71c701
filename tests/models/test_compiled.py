"""What is compiled is kept for the next process, and nothing that is wrong with what is kept stops anybody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attnmove

ASKED = """
import numpy as np
from attnmove.models.ranking import heaviest
print(heaviest(np.array([0, 3]), np.array([1.0, 3.0, 2.0]), most=2).tolist())
"""
WANTED = "[False, True, True]\n"


def answer(cache: Path, *, sources: Path | None = None, code: str = ASKED, limit: str = "") -> str:
    source = str(sources or Path(attnmove.__file__).parents[1])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": source}
    command = ["bash", "-c", f'{limit}exec "$0" -c "$1"', sys.executable, code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(cache: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in cache.rglob("*.nb?")}


def test_what_is_compiled_is_kept_for_the_next_process(tmp_path: Path) -> None:
    assert answer(tmp_path) == WANTED
    kept = files(tmp_path)
    assert kept
    assert answer(tmp_path) == WANTED
    assert files(tmp_path) == kept


def test_what_another_file_is_compiled_into_is_not_kept_when_that_file_changes(tmp_path: Path) -> None:
    sources, cache = tmp_path / "src", tmp_path / "cache"
    shutil.copytree(Path(attnmove.__file__).parent, sources / "attnmove", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import numpy as np\nfrom attnmove.models.compiled import compiled\n"
        "from attnmove.models.evidence import clues\n"
        "from attnmove.models.evidence.pairs import At\n"
        "one = np.zeros(1, np.int64)\n"
        "at = At(**{name: one for name in At._fields} | {'start': np.array([0, 1])})\n"
        "values = np.zeros((1, 8), np.float32)\n"
        "clues._tell_day(at, np.zeros((1, 1)), np.zeros(1), np.zeros((1, 3)), np.zeros((1, 3)), values)\n"
        "print(values.max())\n"
    )
    assert answer(cache, sources=sources, code=code) == "9999.0\n"
    features = sources / "attnmove" / "models" / "evidence" / "features.py"
    features.write_text(features.read_text().replace("FAR = 9999.0", "FAR = 7777.0"))
    assert answer(cache, sources=sources, code=code) == "7777.0\n"


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_kept_code_that_was_cut_short_is_made_again(tmp_path: Path, ending: str) -> None:
    answer(tmp_path)
    for file in tmp_path.rglob(f"*{ending}"):
        file.write_bytes(b"")
    assert answer(tmp_path) == WANTED
    assert answer(tmp_path) == WANTED
    assert all(file.stat().st_size for file in files(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="ulimit is Unix's")
def test_a_disk_that_is_full_stops_nobody(tmp_path: Path) -> None:
    assert answer(tmp_path, limit="trap '' XFSZ; ulimit -f 4; ") == WANTED


def test_a_compiler_that_cannot_be_loaded_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise OSError('libllvmlite.so: cannot open shared object file')\n")
    sources = f"{tmp_path}{os.pathsep}{Path(attnmove.__file__).parents[1]}"
    code = (
        "from attnmove.errors import ConfigError\nfrom attnmove.models.ranking import heaviest\n"
        "import numpy as np\n"
        "try:\n    heaviest(np.array([0, 3]), np.array([1.0, 3.0, 2.0]), most=2)\n"
        "except ConfigError as error:\n    print(error)\n"
    )
    environment = os.environ | {"PYTHONPATH": sources}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "cannot open shared object file" in done.stdout, done.stderr
    assert "pip install numba" in done.stdout
