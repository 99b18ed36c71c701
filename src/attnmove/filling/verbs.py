"""The verb `recover`: any source in; a table, a file or lines out."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnmove.engine import open_engine
from attnmove.errors import ConfigError
from attnmove.filling.counts import Counts
from attnmove.filling.feed import Intake, Reading, feed, is_dataset
from attnmove.filling.fill import Filler
from attnmove.filling.parts import Parts, digest_of
from attnmove.filling.policy import Policy, parse_length
from attnmove.filling.stream import Piece, pieces
from attnmove.filling.write import check_drawable, write_lines, writer_for
from attnmove.io import Source
from attnmove.io.sources import find_files
from attnmove.io.tables import same_kind
from attnmove.measure.files import check_apart, make_room
from attnmove.models.runs import LOCATIONS, THRESHOLDS, Run, load_run
from attnmove.prep.dataset import read_facts
from attnmove.version import __version__

STDOUT = "-"
Progress = Callable[[int, int], None]
"""Called with the user-days that are done, and how many there are."""


@dataclass(frozen=True)
class Report:
    """What a recovery read, made and wrote."""

    counts: Counts
    intake: Intake
    seconds: float
    wrote: str | None = None

    def facts(self) -> dict[str, Any]:
        """The same as plain values."""
        wrote = {} if self.wrote is None else {"wrote": self.wrote}
        return {**self.counts.facts(), **self.intake.facts(), "seconds": round(self.seconds, 1), **wrote}


def recover(
    source: Source,
    run: str | Path | Run,
    *,
    out: str | Path | None = None,
    history: str | Path | None = None,
    max_gap: str | int | None = None,
    min_confidence: float | None = None,
    precision: float | None = None,
    top: int = 5,
    origins: bool = True,
    engine: str = "duckdb",
    format: str = "auto",
    columns: str | Mapping[str, str] | None = None,
    user: str | None = None,
    naive_timezone: str | None = None,
    device: str = "auto",
    resume: bool = False,
    progress: Progress | None = None,
) -> Any:
    """Fill every slot of every user-day of `source`, as far as the policy trusts the run; observed slots stay.

    `source` is what `prepare` reads, or the folder of a dataset; `run` the folder of a run, or what `load_run` gave.
    Without `out` a table of the source's kind comes back (pyarrow for paths), and a warning says what was refused; with
    it the rows go to a .parquet, .csv, .ndjson or .geojson file, or as lines of JSON to standard output for "-", and a
    `Report` comes back. `max_gap` is a length of time such as "4h", or minutes. `history` is a dataset with further
    days of the same users. `resume` goes on with a recovery into `out` that was stopped.
    """
    minutes = parse_length(max_gap) if isinstance(max_gap, str) else max_gap
    policy = Policy(minutes, min_confidence, precision)
    errand = _Errand(
        source,
        Filler(_loaded(run, device), policy=policy, top=top),
        history=None if history is None else Path(history),
        reading=Reading(format, columns, user, naive_timezone),
        engine=engine,
        origins=origins,
        device=device,
        progress=progress or (lambda done, of: None),
    )
    if history is not None:
        read_facts(history)
    if resume and (out is None or str(out) == STDOUT):
        raise ConfigError("only a recovery into a file can be resumed; name one with out")
    if out is None:
        return _in_memory(errand)
    return _to_stdout(errand) if str(out) == STDOUT else _to_file(errand, Path(out), resume=resume)


@dataclass(frozen=True)
class _Errand:
    """What is to be recovered from what, and how."""

    source: Source = field(repr=False)
    filler: Filler = field(repr=False)
    history: Path | None
    reading: Reading
    engine: str
    origins: bool
    device: str
    progress: Progress = field(repr=False)

    def each(self, take: Callable[[Piece], None], counts: Counts, *, after: str | None = None) -> Intake:
        """Hand over piece after piece, of the users after `after`; `counts` are what is done already."""
        with open_engine(self.engine) as engine:
            days, intake = feed(
                self.source,
                engine,
                self.filler.setting,
                history=self.history,
                reading=self.reading,
                after=after,
            )
            self.progress(counts.user_days, intake.user_days)
            spread = self.engine.startswith("spark")
            for piece in pieces(engine, days, self.filler, origins=self.origins, spread=spread, device=self.device):
                take(piece)
                self.progress(counts.user_days, intake.user_days)
            return intake

    def identity(self) -> dict[str, Any]:
        """What must be the same for a recovery to go on."""
        folder = self.filler.run.folder
        assert folder is not None
        names = ("model.safetensors", "config.json", LOCATIONS, THRESHOLDS)
        return {
            "source": _identity(self.source, self.reading.format),
            "run": digest_of(*(file for name in names if (file := folder / name).is_file())),
            "history": None if self.history is None else _identity(self.history, "auto"),
            "options": {
                **asdict(self.filler.policy),
                **asdict(self.reading),
                "top": self.filler.top,
                "origins": self.origins,
            },
            "version": __version__,
        }


def _in_memory(errand: _Errand) -> Any:
    tables: list[pa.Table] = []
    counts = Counts()

    def take(piece: Piece) -> None:
        tables.append(piece.table)
        counts.add(Counts.of(piece.table))

    intake = errand.each(take, counts)
    refused = intake.facts().get("points_refused")
    if refused:
        told = ", ".join(f"{n:,} {reason}" for reason, n in refused.items())
        warnings.warn(f"recover used not all of {intake.points:,} points: {told}", stacklevel=3)
    return same_kind(pa.concat_tables(tables), errand.source)


def _to_stdout(errand: _Errand) -> Report:
    counts, began = Counts(), time.perf_counter()

    # JSON is UTF-8 wherever it goes, whatever the terminal speaks.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")

    def take(piece: Piece) -> None:
        write_lines(sys.stdout, piece.table, errand.filler)
        sys.stdout.flush()
        counts.add(Counts.of(piece.table))

    intake = errand.each(take, counts)
    return Report(counts, intake, time.perf_counter() - began)


def _to_file(errand: _Errand, out: Path, *, resume: bool) -> Report:
    write, began = writer_for(out), time.perf_counter()
    check_drawable(out, errand.filler)
    _check_apart(errand, out)
    make_room(out)
    parts = Parts(out)
    parts.begin(errand.identity(), resume=resume)
    try:
        intake = errand.each(parts.add, parts.counts, after=parts.last_user)
        parts.finish(lambda whole, tables: write(whole, tables, errand.filler))
    except BaseException:
        parts.give_up()
        raise
    return Report(parts.counts, intake, time.perf_counter() - began, str(out))


def _check_apart(errand: _Errand, out: Path) -> None:
    """Raise ConfigError where the output would take the place of what is read."""
    source, files = errand.source, []
    folders = [folder for folder in (errand.filler.run.folder, errand.history) if folder is not None]
    if isinstance(source, str | Path):
        if is_dataset(source):
            folders.append(Path(source))
        else:
            files = find_files(source, errand.reading.format)[1]
    check_apart([out], files=files, folders=folders)


def _loaded(run: str | Path | Run, device: str) -> Run:
    if isinstance(run, str | Path):
        return load_run(run, device=device)
    if isinstance(run, Run):
        return run
    raise ConfigError(f"recover needs the folder of a run, or what load_run gives; found {type(run).__name__}")


def _identity(source: Source, format: str) -> str:
    """The files of a source, their sizes and times, as one number. A table in memory has none: it is never the same."""
    if not isinstance(source, str | Path):
        return f"a table in memory at {time.time_ns()}"
    names = ("days.parquet", "locations.parquet", "dataset.json")
    files = [Path(source) / name for name in names] if is_dataset(source) else find_files(source, format)[1]
    stats = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps(stats).encode()).hexdigest()
