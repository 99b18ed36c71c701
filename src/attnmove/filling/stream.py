"""The recovery as a stream: whole users at a time, in bounded memory, the same rows whatever the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from attnmove.engine import Engine
from attnmove.engine.groups import in_whole_groups
from attnmove.filling.fill import Filler
from attnmove.filling.policy import Policy
from attnmove.filling.timeline import Timelines

if TYPE_CHECKING:
    import ibis.expr.types as ir

DAYS_A_CHUNK = 1_024
"""Days after which a chunk of whole users ends."""
DAYS_A_PIECE = 2_048
"""Days filled at a time; of a user who has more, the rest follows."""

_ORDER = ["user", "date", "slot"]


@dataclass(frozen=True)
class Piece:
    """Some finished rows."""

    table: pa.Table
    last_user: str
    ends_chunk: bool
    """True when whole users are finished with it, so that one can go on after the last."""


def pieces(
    engine: Engine, days: ir.Table, filler: Filler, *, origins: bool, spread: bool = False, device: str = "auto"
) -> Iterator[Piece]:
    """What becomes of DAY_ROWS, by user, date and slot.

    `spread`: the days are filled where the engine holds them, by its workers, on their `device`, instead of in this
    process.
    """
    if spread:
        assert filler.run.folder is not None
        # Workers have a working folder of their own.
        task = FillGroups(str(filler.run.folder.resolve()), filler.policy, filler.top, origins, device)
        filled = engine.map_groups(
            days, task, order=["user", "day"], together=1, schema=filler.schema, sorted_by=_ORDER
        )
        tables = in_whole_groups(filled, ["user"])
        for chunk in in_chunks(tables, rows=DAYS_A_CHUNK * filler.setting.n_slots):
            yield from _cut(chunk, DAYS_A_PIECE * filler.setting.n_slots)
        return
    tables = in_whole_groups(engine.batches(days.order_by("user", "day", "asked")), ["user"])
    for chunk in in_chunks(tables, rows=DAYS_A_CHUNK, counted=_asked):
        timelines = Timelines.from_rows(chunk)
        parts = list(timelines.pieces(DAYS_A_PIECE))
        for part in parts:
            table = filler.fill_timelines(part, origins=origins)
            if len(table):
                yield Piece(table, table["user"][-1].as_py(), part is parts[-1])


@dataclass(frozen=True)
class FillGroups:
    """`fill` for the workers of an engine: what is sent to them is the name of the run, which each loads once."""

    folder: str
    policy: Policy
    top: int
    origins: bool
    device: str = "auto"

    def __call__(self, rows: pa.Table) -> pa.RecordBatch:
        filler = _loaded(self.folder, self.policy, self.top, self.device)
        table = filler.fill_timelines(Timelines.from_rows(rows), origins=self.origins).combine_chunks()
        return (table.to_batches() or [pa.RecordBatch.from_pylist([], schema=filler.schema)])[0]


@lru_cache(maxsize=1)
def _loaded(folder: str, policy: Policy, top: int, device: str) -> Filler:
    return Filler.of(folder, policy=policy, top=top, device=device)


def in_chunks(tables: Iterable[pa.Table], *, rows: int, counted: Callable[[pa.Table], int] = len) -> Iterator[pa.Table]:
    """The same whole users, cut after the user with whom `rows` are reached: however they came, the same chunks."""
    held: list[pa.Table] = []
    n = 0
    for table in tables:
        for one in _users(table):
            counts = counted(one)
            if counts == 0:
                continue  # a user with a history and nothing to fill
            held.append(one)
            n += counts
            if n >= rows:
                yield pa.concat_tables(held)
                held, n = [], 0
    if held:
        yield pa.concat_tables(held)


def _users(table: pa.Table) -> Iterator[pa.Table]:
    """Each user's rows; a user's rows are neighbours."""
    user = table["user"].combine_chunks().dictionary_encode()
    code = user.indices.to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]])).tolist()
    for start, end in zip(starts, [*starts[1:], len(code)], strict=True):
        yield table.slice(start, end - start)


def _asked(days: pa.Table) -> int:
    return int(np.count_nonzero(days["asked"].to_numpy()))


def _cut(table: pa.Table, rows: int) -> Iterator[Piece]:
    last_user = table["user"][-1].as_py()
    for start in range(0, len(table), rows):
        yield Piece(table.slice(start, rows), last_user, start + rows >= len(table))
