"""A recovery as text: rows of CSV, lines of JSON. Column by column, not row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from attnmove.filling.rows import ALTERNATIVE, ORIGIN
from attnmove.io.clock import Zone, local_of
from attnmove.nouns import Int64


def csv_rows(table: pa.Table, zone: Zone) -> pa.Table:
    """The recovery without nested columns.

    `alternatives` are one text, `name=probability; name=probability`; of the origin each member is a column.
    """
    alternatives = table["alternatives"].combine_chunks()
    values = alternatives.flatten()
    named = _joined(values.field("location"), "=", values.field("probability").cast(pa.string()))
    origin = table["origin"].combine_chunks()
    return pa.table(
        {
            **{name: table[name] for name in ("user", "date", "slot")},
            "start": start_texts(table["start"], zone),
            **{name: table[name] for name in ("location", "lon", "lat", "status", "reason", "probability")},
            "alternatives": pc.binary_join(_lists(alternatives, named), "; "),
            **{f"origin_{part.name}": pc.struct_field(origin, part.name) for part in ORIGIN},
        }
    )


def json_lines(table: pa.Table, zone: Zone) -> str:
    """One JSON object a row, each with its line end."""
    alternatives = table["alternatives"].combine_chunks()
    values, origin = alternatives.flatten(), table["origin"].combine_chunks()
    one = _object({part.name: _json(values.field(part.name)) for part in ALTERNATIVE})
    nested = {
        "start": _joined('"', start_texts(table["start"], zone), '"'),
        "alternatives": _null_like(alternatives, _joined("[", pc.binary_join(_lists(alternatives, one), ","), "]")),
        "origin": _null_like(
            origin, _object({part.name: _json(pc.struct_field(origin, part.name)) for part in ORIGIN})
        ),
    }
    members = {
        name: nested[name] if name in nested else _json(table[name].combine_chunks()) for name in table.column_names
    }
    return "".join(_joined(_object(members), "\n").to_pylist())


def start_texts(start: pa.ChunkedArray, zone: Zone) -> pa.Array:
    """Instants as the wall clock of the zone shows them, with the offset: 2024-03-04T08:00:00+08:00."""
    instant: Int64 = start.cast(pa.int64()).to_numpy() // 1_000_000
    some, where = np.unique(instant, return_inverse=True)
    local = local_of(some, zone)
    clock = np.datetime_as_string(local.astype("datetime64[s]"))
    texts = [f"{text}{_offset(seconds)}" for text, seconds in zip(clock.tolist(), (local - some).tolist(), strict=True)]
    return pa.array(texts, pa.string()).take(pa.array(where))


def _offset(seconds: int) -> str:
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _json(column: pa.Array) -> pa.Array:
    """Each value as JSON; null is `null`."""
    if pa.types.is_string(column.type):
        codes = column.dictionary_encode()
        quoted = pa.array([json.dumps(text, ensure_ascii=False) for text in codes.dictionary.to_pylist()], pa.string())
        return quoted.take(codes.indices).fill_null("null")
    if pa.types.is_date(column.type):
        return _joined('"', column.cast(pa.string()), '"').fill_null("null")
    return column.cast(pa.string()).fill_null("null")


def _object(members: Mapping[str, pa.Array]) -> pa.Array:
    parts: list[pa.Array | str] = []
    for name, texts in members.items():
        parts += [f'{"," if parts else "{"}"{name}":', texts]
    return _joined(*parts, "}")


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _lists(like: pa.ListArray, values: pa.Array) -> pa.ListArray:
    """Lists of the same lengths of other values, null where the others are."""
    lengths = like.value_lengths().fill_null(0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=like.is_null())


def _null_like(other: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(other.is_null(), "null", texts)
