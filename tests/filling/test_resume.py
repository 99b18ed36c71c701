"""Killed at any moment and resumed, the file is that of a recovery nobody stopped."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import attnmove as am
from attnmove.errors import ConfigError, RunError
from attnmove.filling import stream, write
from filling.worlds import a_month, fixes, table_of

KILLED = """
import os, signal, sys
from attnmove.filling import parts, stream, verbs

moment, count, source, run, out = sys.argv[1:]
stream.DAYS_A_CHUNK, stream.DAYS_A_PIECE = 20, 16

def killed_in(owner, name, *, before):
    real, calls = getattr(owner, name), []
    def wrapped(*args, **options):
        calls.append(1)
        if len(calls) == int(count) and before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **options)
        if len(calls) == int(count):
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, wrapped)

owner, name, before = {
    "while a piece is written": (parts.os, "fsync", True),
    "after a piece": (parts.Parts, "add", False),
    "while the whole is put together": (parts.Parts, "_path", True),
    "before the whole is in its place": (parts.Parts, "finish", True),
    "before the parts are gone": (parts.shutil, "rmtree", True),
}[moment]
killed_in(owner, name, before=before)
verbs.recover(source, run, out=out)
"""
"""Says no word to the library: it is killed from outside, at a moment that can be told."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "points.parquet"
    pq.write_table(a_month(users=["a", "b", "c", "d", "e", "f"], seed=5), path)
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two users, cut into pieces within the second."""
    monkeypatch.setattr(stream, "DAYS_A_CHUNK", 20)
    monkeypatch.setattr(stream, "DAYS_A_PIECE", 16)


def kill(moment: str, count: int, source: Path, run: Path, out: Path) -> None:
    arguments = [moment, str(count), str(source), str(run), str(out)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture(scope="module")
def killed(run: Path, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a recovery that was killed after its second piece leaves."""
    out = tmp_path_factory.mktemp("killed") / "out.parquet"
    kill("after a piece", 2, source, run, out)
    return out.with_name(".out.parquet.parts")


@pytest.fixture
def unfinished(killed: Path, tmp_path: Path) -> Path:
    """An output of which two pieces are finished."""
    shutil.copytree(killed, tmp_path / killed.name)
    return tmp_path / "out.parquet"


@pytest.mark.parametrize(
    ("moment", "count", "ending"),
    [
        ("after a piece", 1, "parquet"),  # within a chunk: its first user is finished, its second is not
        ("after a piece", 4, "parquet"),
        ("after a piece", 4, "ndjson"),
        ("while a piece is written", 3, "parquet"),
        ("while the whole is put together", 9, "parquet"),  # six pieces were written by then
        ("while the whole is put together", 9, "geojson"),
        ("before the whole is in its place", 1, "csv"),
        ("before the parts are gone", 2, "parquet"),  # after the scratch folder of the engine
    ],
)
def test_a_killed_recovery_goes_on_to_the_same_file(
    run: Path, source: Path, tmp_path: Path, moment: str, count: int, ending: str
) -> None:
    whole, out = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    expected = am.recover(source, run, out=whole).counts.facts()
    kill(moment, count, source, run, out)
    assert out.exists() == (moment == "before the parts are gone")
    with pytest.raises(RunError, match="is unfinished; go on with --resume, or remove"):
        am.recover(source, run, out=out)
    seen: list[int] = []
    report = am.recover(source, run, out=out, resume=True, progress=lambda done, of: seen.append(done))
    assert out.read_bytes() == whole.read_bytes()
    assert report.counts.facts() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([whole.name, out.name])
    if moment == "after a piece" and count == 4:
        assert seen[0] == 48  # what was finished is not done again


def test_any_name_can_be_the_last_that_is_finished(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["'; --", "a\0b", "a\\", "\N{GRINNING FACE}"]
    source, out = tmp_path / "points.parquet", tmp_path / "out.parquet"
    pq.write_table(table_of(*(fixes(name, "2024-04-01", "AAAA....BB..CBB...DD....") for name in names)), source)
    monkeypatch.setattr(stream, "DAYS_A_CHUNK", 1)
    expected = am.recover(source, run)
    for stop in range(1, len(names) + 1):
        with pytest.raises(KeyboardInterrupt):
            am.recover(source, run, out=out, progress=_interrupt_after(stop))
        am.recover(source, run, out=out, resume=True)
        assert pq.read_table(out) == expected


def _interrupt_after(user_days: int) -> Callable[[int, int], None]:
    def interrupt(done: int, of: int) -> None:
        if done == user_days:
            raise KeyboardInterrupt

    return interrupt


def test_the_layout_of_the_file_does_not_depend_on_a_stop(run: Path, source: Path, tmp_path: Path) -> None:
    am.recover(source, run, out=tmp_path / "out.parquet")
    groups = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert [groups.row_group(i).num_rows // 24 for i in range(groups.num_row_groups)] == [16, 8] * 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_gap": "4h"}, "with other options"),
        ({"top": 3}, "with other options"),
        ({"origins": False}, "with other options"),
        ({"source": "other"}, "of another source"),
        ({"run": "other"}, "with another run"),
        ({"history": "other"}, "with another history"),
    ],
)
def test_another_errand_is_not_gone_on_with(
    run: Path, boost_run: Path, source: Path, unfinished: Path, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    out = unfinished
    other = {"source": source, "run": run, **change}
    if change.get("source"):
        other["source"] = tmp_path / "points.parquet"
        pq.write_table(a_month(seed=6), tmp_path / "points.parquet")
    if change.get("run"):
        other["run"] = boost_run
    if change.get("history"):
        other["history"] = run.parent / "dataset"
    with pytest.raises(RunError, match=f"the unfinished recovery was begun {words}; say the same"):
        am.recover(other.pop("source"), other.pop("run"), out=out, resume=True, **other)  # type: ignore[arg-type]


def test_a_source_that_changed_is_another_source(run: Path, source: Path, unfinished: Path) -> None:
    before = source.stat()
    try:
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        with pytest.raises(RunError, match="of another source"):
            am.recover(source, run, out=unfinished, resume=True)
    finally:
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("file", ["000000.arrow", "manifest.json"])
def test_what_is_damaged_is_not_gone_on_with(run: Path, source: Path, unfinished: Path, file: str) -> None:
    part = unfinished.parent / ".out.parquet.parts" / file
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(RunError, match=r"damaged; remove .* and begin anew"):
        am.recover(source, run, out=unfinished, resume=True)


def test_resuming_needs_something_to_resume(run: Path, source: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no unfinished recovery to resume; leave out --resume"):
        am.recover(source, run, out=tmp_path / "out.parquet", resume=True)
    with pytest.raises(ConfigError, match="only a recovery into a file can be resumed"):
        am.recover(source, run, resume=True)


def test_an_error_before_the_first_piece_leaves_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("user,time,lat,lon\nann,yesterday,39.9,116.3\n")
    with pytest.raises(Exception, match="none of its 1 points can be used"):
        am.recover(tmp_path / "points.csv", run, out=tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["points.csv"]


def test_two_do_not_write_one_file(run: Path, source: Path, unfinished: Path) -> None:
    """Neither a second that begins nor a second that resumes; the first goes on to its end."""
    refused: list[str] = []

    def meanwhile(done: int, of: int) -> None:
        for resume in (False, True):
            with pytest.raises(RunError) as error:
                am.recover(source, run, out=unfinished, resume=resume)
            refused.append(str(error.value))

    am.recover(source, run, out=unfinished, resume=True, progress=meanwhile)
    assert {words.partition(": ")[2] for words in refused} == {
        "another recovery is writing this file; wait for it, or stop it"
    }
    assert pq.read_table(unfinished) == am.recover(source, run)
    assert [path.name for path in unfinished.parent.iterdir()] == [unfinished.name]


def test_a_full_disk_is_one_sentence_and_what_is_finished_stays(
    run: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*parts: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "out.ndjson"
    with monkeypatch.context() as patch:
        patch.setattr(write, "write_lines", full)
        with pytest.raises(RunError, match=r"out\.ndjson: cannot be written \(No space left on device\)"):
            am.recover(source, run, out=out)
    am.recover(source, run, out=out, resume=True)
    assert len(out.read_text().splitlines()) == 6 * 12 * 24


def test_an_interrupt_keeps_what_is_finished(run: Path, source: Path, tmp_path: Path) -> None:
    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    out = tmp_path / "out.parquet"
    with pytest.raises(KeyboardInterrupt):
        am.recover(source, run, out=out, progress=stop)
    manifest = json.loads((tmp_path / ".out.parquet.parts" / "manifest.json").read_text())
    assert set(manifest) == {"source", "run", "history", "options", "version"}
    am.recover(source, run, out=out, resume=True)
    assert out.exists()
