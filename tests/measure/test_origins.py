"""Where answers come from, in the rows of measures and as files."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from attnmove.errors import ConfigError
from attnmove.measure.named import evaluate_named
from attnmove.measure.origins import answers_of, origins_by_slice, write_answers
from attnmove.measure.table import evaluate
from attnmove.models.registry import make_model
from attnmove.prep.dataset import read_dataset
from measure.datasets import write_small

CHEAP = {"rounds": 10, "min_leaf": 5, "draws": 1, "practice": 0}
SHARES = ("origin_day", "origin_past", "origin_others", "origin_space")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("data") / "small")


def test_rows_of_a_model_with_evidence_say_what_it_leaned_on(folder: Path) -> None:
    dataset = read_dataset(folder)
    model = make_model("boost", settings=CHEAP).fit(dataset.train, dataset.valid)
    rows = evaluate(model, dataset.test, by=["gap"])
    assert rows[0]["model"] == "boost"
    assert sum(rows[0][name] for name in SHARES) == pytest.approx(1, abs=1e-3)
    assert len(rows) > 1
    assert all(0 <= row[name] <= 1 for row in rows for name in SHARES)
    vote = make_model("vote").fit(dataset.train)
    assert [origins_by_slice(vote, dataset.test, {})["all"][name] for name in SHARES] == [None] * 4


def test_every_answer_is_written_with_its_alternatives_and_its_origin(folder: Path, tmp_path: Path) -> None:
    dataset = read_dataset(folder)
    model = make_model("boost", settings=CHEAP).fit(dataset.train, dataset.valid)
    table = answers_of(model, dataset.test, name="mine")
    assert table.num_rows == dataset.test.hidden.sum()
    assert table["slot"].to_pylist() == dataset.test.index[:, 1].tolist()
    right = [
        truth == place for truth, place in zip(*(table[n].to_pylist() for n in ("truth", "location")), strict=True)
    ]
    assert table["right"].to_pylist() == right
    recall = evaluate(model, dataset.test)[0]["recall"]
    assert sum(right) / len(right) == pytest.approx(recall)
    for ending in ("parquet", "csv"):
        write_answers(tmp_path / f"answers.{ending}", [table, table])
    assert pq.read_table(tmp_path / "answers.parquet").num_rows == 2 * table.num_rows
    with (tmp_path / "answers.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert first["origin_date"]
    name, _, probability = first["alternatives"].split()[0].partition(":")
    expected = table["alternative_probabilities"][0][0].as_py()
    assert (name, float(probability)) == (table["alternatives"][0][0].as_py(), pytest.approx(expected, abs=1e-3))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "answers.parquet"]


def test_a_model_without_evidence_cannot_say_where_its_answers_come_from(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="vote does not work with evidence"):
        evaluate_named(folder, ["vote"], answers=True)
    with pytest.raises(ConfigError, match=r"ends in \.parquet or \.csv"):
        write_answers(tmp_path / "answers.xlsx", [])
