"""Any source as user-days in the run's slots and locations, on an engine, with what became of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attnmove.engine import Engine
from attnmove.engine.groups import read_batches
from attnmove.errors import ConfigError, DataError, RunError
from attnmove.filling.setting import Setting
from attnmove.filling.timeline import DAY_ROWS, grid_of
from attnmove.io import Source, read_points
from attnmove.io.clock import load_zone
from attnmove.io.columns import parse_columns
from attnmove.io.normal import REASONS
from attnmove.nouns import MISSING, Int32
from attnmove.prep.dataset import grid_of_lists, read_facts
from attnmove.prep.fold import fold
from attnmove.prep.rejects import count_folded, count_rows, in_order
from attnmove.space import read_locations

if TYPE_CHECKING:
    import ibis.expr.types as ir

_ROWS_AT_ONCE = 8_192


@dataclass(frozen=True)
class Reading:
    """How points are read, as for `prepare`."""

    format: str = "auto"
    columns: str | Mapping[str, str] | None = None
    user: str | None = None
    naive_timezone: str | None = None
    """Zone of times that carry none; None: that of the run in text, UTC in timestamps."""


@dataclass
class Intake:
    """What was read, and what could not be used."""

    points: int | None = None
    """Points read; None where the source is a dataset."""
    refused: Counter[str] = field(default_factory=Counter)
    """Points that were not used, by reason."""
    user_days: int = 0
    """User-days to fill."""
    days_lost: int = 0
    """User-days nothing is known of: no point of theirs lies in a location of the run."""
    history_days: int = 0
    slots_outside: int = 0
    """Slots of a dataset that lie in a location the run has not."""

    def facts(self) -> dict[str, Any]:
        """The same for people and machines."""
        points = {} if self.points is None else {"points": self.points, "points_refused": in_order(self.refused)}
        outside = {"slots_outside": self.slots_outside} if self.slots_outside else {}
        return {**points, **outside, "user_days_without_location": self.days_lost, "history_days": self.history_days}


def is_dataset(source: Source) -> bool:
    """True for the folder of a prepared dataset."""
    return isinstance(source, str | Path) and (Path(source) / "dataset.json").is_file()


def feed(
    source: Source,
    engine: Engine,
    setting: Setting,
    *,
    history: Path | None = None,
    reading: Reading | None = None,
    after: str | None = None,
) -> tuple[ir.Table, Intake]:
    """The DAY_ROWS of the source, and of the history, kept by the engine; and what was read.

    With `after` the rows are those of the users that come after that one; what was read is still all. Raises DataError
    when nothing is left to fill.
    """
    intake = Intake()
    path = engine.scratch / "days-to-fill.parquet"
    if is_dataset(source):
        if reading is not None and reading != Reading():
            raise ConfigError(f"{source}: a dataset has no columns or formats to choose; leave those options out")
        rows = _from_dataset(Path(source), setting, intake, asked=True)
    else:
        rows = _from_points(source, engine, setting, intake, reading or Reading())
    with pq.ParquetWriter(path, DAY_ROWS) as writer:
        for batch in rows:
            intake.user_days += len(batch)
            writer.write_batch(_later(batch, after))
        for batch in _from_dataset(history, setting, intake, asked=False) if history is not None else ():
            intake.history_days += len(batch)
            writer.write_batch(_later(batch, after))
    if intake.user_days == 0:
        raise DataError(_nothing_left(source, intake))
    return engine.scan_parquet([path]), intake


def _later(rows: pa.RecordBatch, after: str | None) -> pa.RecordBatch:
    # Here and not on the engine: a name may hold what no text of SQL can.
    return rows if after is None else rows.filter(pc.greater(rows.column("user"), after))


def _from_points(
    source: Source, engine: Engine, setting: Setting, intake: Intake, reading: Reading
) -> Iterator[pa.RecordBatch]:
    told = parse_columns(reading.columns) if isinstance(reading.columns, str) else reading.columns
    points = read_points(
        source,
        engine,
        format=reading.format,
        columns=told,
        zone=load_zone(reading.naive_timezone or setting.how.timezone),
        typed_zone=None if reading.naive_timezone is None else load_zone(reading.naive_timezone),
        one_user=reading.user,
    )
    for folded in fold(engine, points, setting.locate, setting.how):
        intake.refused += count_folded(folded)
        rows = _day_rows(folded.column("user"), folded.column("day"), grid_of(folded.column("cells"), setting.n_slots))
        intake.days_lost += len(folded) - len(rows)
        yield rows
    intake.points, unreadable = count_rows(engine, points)
    intake.refused += unreadable


def _from_dataset(folder: Path, setting: Setting, intake: Intake, *, asked: bool) -> Iterator[pa.RecordBatch]:
    """The days of a dataset, some at a time."""
    facts = read_facts(folder)
    ids = setting.ids_for(facts, read_locations(folder / "locations.parquet"), name=str(folder))
    try:
        for batch in read_batches(folder / "days.parquet", rows=_ROWS_AT_ONCE):
            theirs = grid_of_lists(batch.column("loc"), setting.n_slots, len(ids) - 1)
            if batch.column("user").null_count or batch.column("date").null_count:
                raise DataError("rows without a user or a date")
            loc = ids[theirs]
            intake.slots_outside += int(((loc == MISSING) & (theirs != MISSING)).sum())
            rows = _day_rows(batch.column("user"), batch.column("date").cast(pa.int32()), loc, asked=asked)
            intake.days_lost += (len(batch) - len(rows)) if asked else 0
            yield rows
    except FileNotFoundError as error:
        raise RunError(f"{folder}/days.parquet: not there; prepare the dataset again") from error
    except (DataError, pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise RunError(f"{folder}/days.parquet: damaged ({error}); prepare the dataset again") from error


def _day_rows(user: pa.Array, day: pa.Array, loc: Int32, *, asked: bool = True) -> pa.RecordBatch:
    """The DAY_ROWS of the days of which anything is known."""
    offsets = np.arange(len(loc) + 1, dtype=np.int32) * loc.shape[1]
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(loc.ravel(), pa.int32()))
    columns = [user.cast(pa.string()), day.cast(pa.int32()), pa.array(np.full(len(loc), asked)), lists]
    rows = pa.RecordBatch.from_arrays(columns, schema=DAY_ROWS)
    return rows.filter(pa.array((loc != MISSING).any(axis=1)))


def _nothing_left(source: Source, intake: Intake) -> str:
    name = source if isinstance(source, str | Path) else "the table"
    if not intake.points:
        return f"{name}: there is no day to fill in it" if intake.points is None else f"{name}: there is no point in it"
    worst, n = intake.refused.most_common(1)[0]
    return f"{name}: none of its {intake.points:,} points can be used, most of them ({n:,}) for {REASONS[worst]}"
