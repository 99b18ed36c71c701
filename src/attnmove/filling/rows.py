"""The recovery as a table: one row a user, local day and slot. Built from arrays, never row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from attnmove.filling.setting import Names, Setting
from attnmove.io.clock import local_of, utc_of
from attnmove.models.evidence.features import FAMILIES
from attnmove.models.evidential import Answers
from attnmove.nouns import MISSING, Bool, Dates, Int32, Int64, Text

STATUS = ("observed", "recovered", "left_missing")
OBSERVED, RECOVERED, LEFT_MISSING = range(3)

ALTERNATIVE = pa.struct(
    [("location", pa.string()), ("lon", pa.float64()), ("lat", pa.float64()), ("probability", pa.float32())]
)
ORIGIN = pa.struct(
    [
        ("kind", pa.string()),
        *((family, pa.float32()) for family in FAMILIES),
        ("date", pa.date32()),
        ("slot", pa.int32()),
    ]
)


def recovery_schema(timezone: str) -> pa.Schema:
    """The columns of a recovery whose days are those of the time zone."""
    return pa.schema(
        [
            ("user", pa.string()),
            ("date", pa.date32()),
            ("slot", pa.int32()),
            ("start", pa.timestamp("us", timezone)),
            ("location", pa.string()),
            ("lon", pa.float64()),
            ("lat", pa.float64()),
            ("status", pa.string()),
            ("reason", pa.string()),
            ("probability", pa.float32()),
            ("alternatives", pa.list_(ALTERNATIVE)),
            ("origin", ORIGIN),
        ]
    )


@dataclass(frozen=True)
class Decided:
    """K user-days of T slots, each slot decided; (K * T,) where not said otherwise."""

    user: Text
    """(K,)"""
    date: Dates
    """(K,)"""
    location: Int32 = field(repr=False)
    """MISSING where it stays missing."""
    status: Int64 = field(repr=False)
    """Positions in STATUS."""
    reason: Int64 = field(repr=False)
    """Positions in `reasons`, MISSING where there is none."""
    reasons: tuple[str, ...]
    answer: Int64 = field(repr=False)
    """The answer to each slot, MISSING where the model was not asked."""
    answers: Answers = field(repr=False)


def table_of(decided: Decided, setting: Setting) -> pa.Table:
    """The rows of the decided days, by user, date and slot."""
    n_slots = setting.n_slots
    names = setting.names
    day = np.repeat(np.arange(len(decided.user)), n_slots)
    slot = np.tile(np.arange(n_slots, dtype=np.int32), len(decided.user))
    columns = [
        pa.array(decided.user, pa.string()).take(pa.array(day)),
        pa.array(decided.date[day], pa.date32()),
        pa.array(slot),
        pa.array(slot_starts(decided.date, setting), pa.int64()).cast(pa.timestamp("us", setting.how.timezone)),
        *names.of(decided.location),
        pa.array(STATUS).take(pa.array(decided.status)),
        pa.array(decided.reasons, pa.string()).take(_or_null(decided.reason, decided.reason == MISSING)),
        _probabilities(decided),
        _alternatives(decided, names),
        _origins(decided),
    ]
    return pa.Table.from_arrays(columns, schema=recovery_schema(setting.how.timezone))


def slot_starts(date: Dates, setting: Setting) -> Int64:
    """(K * T,) the instants at which the slots of the days begin, in microseconds since 1970.

    A wall-clock time that occurs twice is the first of the two; one that never occurs is the moment of the jump.
    """
    zone = setting.zone
    slot = np.arange(setting.n_slots) * setting.how.slot_minutes * 60
    local = (date.astype("datetime64[D]").astype(np.int64) * 86_400)[:, None] + slot
    starts = utc_of(local.ravel(), zone)
    never = local_of(starts, zone) != local.ravel()
    starts[never] = np.array(zone.changes)[np.searchsorted(zone.changes, starts[never], side="right") - 1]
    return starts * 1_000_000


def _probabilities(decided: Decided) -> pa.Array:
    """1 for what was observed, of an answer that of its first place, even where it was not trusted; else null."""
    first = np.append(decided.answers.probability[:, 0], np.float32(np.nan))  # MISSING, the last, is no answer
    value = np.where(decided.status == OBSERVED, np.float32(1), first[decided.answer])
    return _or_null(value, np.isnan(value))


def _alternatives(decided: Decided, names: Names) -> pa.Array:
    """The other places of an answer; all of them where the first was not trusted; null where nothing was asked."""
    answers, asked = decided.answers, decided.answer != MISSING
    there = answers.place != MISSING
    trusted = np.zeros(len(answers.place), dtype=np.bool_)
    trusted[decided.answer[asked]] = decided.status[asked] == RECOVERED
    there[trusted, 0] = False
    order = decided.answer[asked]
    shown = there[order]
    lengths = np.zeros(len(asked), dtype=np.int64)
    lengths[asked] = shown.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = [*names.of(answers.place[order][shown]), pa.array(answers.probability[order][shown], pa.float32())]
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.StructArray.from_arrays(values, fields=list(ALTERNATIVE)), mask=pa.array(~asked)
    )


def _origins(decided: Decided) -> pa.Array:
    """What the first place of an answer leaned on; null where there is none, or the model cannot tell."""
    origin = decided.answers.origin
    if origin is None or len(origin.slot) == 0:
        return pa.nulls(len(decided.answer), ORIGIN)
    placed = np.append(decided.answers.place[:, 0] != MISSING, False)  # MISSING, the last, is no answer
    none = ~placed[decided.answer]
    at = np.where(none, 0, decided.answer)
    share, date, slot = origin.share[at], origin.date[at], origin.slot[at]
    columns = [
        pa.array(FAMILIES).take(_or_null(share.argmax(axis=1), share.max(axis=1) == 0)),
        *(pa.array(share[:, i], pa.float32()) for i in range(len(FAMILIES))),
        pa.array(date.astype("datetime64[D]"), pa.date32()),
        _or_null(slot.astype(np.int32), slot == MISSING),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(ORIGIN), mask=pa.array(none))


def _or_null(values: npt.NDArray[Any], null: Bool) -> pa.Array:
    return pa.array(values, mask=null)
