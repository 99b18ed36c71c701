"""Where answers come from: what they leaned on, slice by slice, and every single answer as a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnmove.errors import ConfigError
from attnmove.measure.files import replaced
from attnmove.models.evidence.features import FAMILIES
from attnmove.models.evidential import Answers, Evidential
from attnmove.nouns import MISSING, Cases, Float64, Text

if TYPE_CHECKING:
    import pyarrow as pa

_TOP = 5
"""Places an answer has: the first and its alternatives."""
ENDINGS = (".parquet", ".csv")

Row = dict[str, Any]


def origins_by_slice(model: object, cases: Cases, labels: Mapping[str, Text]) -> dict[str, Row]:
    """Mean shares of day, past, others and space in the answers to the targets with known truth, by slice.

    Keys are "all" and "slicing=label", as in `measure`; `labels` has an entry a target. None for a model that does not
    work with evidence.
    """
    share = _shares(model, cases)
    parts = {"all": slice(None)} | {
        f"{name}={value}": label == value for name, label in labels.items() for value in set(label.tolist())
    }
    return {
        name: {
            f"origin_{family}": None if share is None or not len(share[part]) else float(share[part, i].mean())
            for i, family in enumerate(FAMILIES)
        }
        for name, part in parts.items()
    }


def _shares(model: object, cases: Cases) -> Float64 | None:
    if not isinstance(model, Evidential):
        return None
    parts = [answers.origin.share for answers in model.answers(cases, top=1, origins=True) if answers.origin]
    share = np.concatenate([np.zeros((0, len(FAMILIES))), *parts])
    return np.asarray(share[cases.truth != MISSING])


def answers_of(model: object, cases: Cases, *, name: str) -> pa.Table:
    """Every answer with its alternatives and its origin, a row a target, in the order of `cases.index`.

    Raises ConfigError for a model that does not work with evidence.
    """
    import pyarrow as pa

    if not isinstance(model, Evidential):
        raise ConfigError(f"{name} does not work with evidence, so it cannot say where its answers come from")
    tables = [_table(part, cases, name) for part in model.answers(cases, top=_TOP, origins=True)]
    return pa.concat_tables(tables) if tables else pa.table({"model": pa.array([], pa.string())})


def write_answers(path: Path, tables: list[pa.Table]) -> None:
    """Write the tables as one, whole or not at all, in the format of the name's ending.

    A CSV file has the alternatives as one text.
    """
    import pyarrow as pa

    check_ending(path)
    table = pa.concat_tables(tables)
    with replaced(path) as new:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, new)
            return
        from pyarrow import csv

        others = [" ".join(f"{name}:{p:.3f}" for name, p in row) for row in _pairs(table)]
        flat = table.drop_columns(["alternatives", "alternative_probabilities"])
        csv.write_csv(flat.append_column("alternatives", pa.array(others, pa.string())), new)


def check_ending(path: Path) -> None:
    """Raise ConfigError unless the file is one that can be written."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"{path}: expected a file that ends in {' or '.join(ENDINGS)}")


def _pairs(table: pa.Table) -> list[list[tuple[str, float]]]:
    names, numbers = table["alternatives"].to_pylist(), table["alternative_probabilities"].to_pylist()
    return [list(zip(*both, strict=True)) for both in zip(names, numbers, strict=True)]


def _table(answers: Answers, cases: Cases, model: str) -> pa.Table:
    import pyarrow as pa

    origin = answers.origin
    assert origin is not None
    row, slot = answers.index.T
    truth = cases.loc[row, slot]
    names = np.array([*cases.locations.name, None], dtype=object)  # MISSING, the last, is no place
    rest = answers.place[:, 1:] != MISSING
    return pa.table(
        {
            "model": pa.array(np.full(len(row), model, dtype=object), pa.string()),
            "user": pa.array(cases.user[row], pa.string()),
            "date": pa.array(cases.date[row].astype("datetime64[D]"), pa.date32()),
            "slot": pa.array(slot, pa.int32()),
            "truth": pa.array(names[truth], pa.string()),
            "location": pa.array(names[answers.place[:, 0]], pa.string()),
            "probability": pa.array(answers.probability[:, 0], pa.float32()),
            "right": pa.array(truth == answers.place[:, 0], mask=truth == MISSING),
            "alternatives": pa.array(
                [names[p[there]].tolist() for p, there in zip(answers.place[:, 1:], rest, strict=True)],
                pa.list_(pa.string()),
            ),
            "alternative_probabilities": pa.array(
                [p[there].tolist() for p, there in zip(answers.probability[:, 1:], rest, strict=True)],
                pa.list_(pa.float32()),
            ),
            "origin": pa.array(origin.leading, pa.string()),
            **{f"origin_{name}": pa.array(origin.share[:, i], pa.float32()) for i, name in enumerate(FAMILIES)},
            "origin_date": pa.array(origin.date, pa.date32()),
            "origin_slot": pa.array(origin.slot, pa.int32(), mask=origin.slot == MISSING),
        }
    )
