"""Spark's workers fill the same slots as this process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import attnmove as am
from attnmove.engine import Engine, open_engine
from filling.worlds import ZONE, a_month

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[Engine]:
    """Two workers in processes of their own; the engines of the tests are children of this session."""
    if find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java")
    with open_engine("spark:local-cluster[2,1,1024]") as opened:
        yield opened


def test_duckdb_and_spark_write_the_same_file(boost_run: Path, run: Path, tmp_path: Path) -> None:
    source = tmp_path / "points.parquet"
    pq.write_table(a_month(users=["ann", "bob", "new", "ä", "😀"], seed=2), source)
    for name in ("duckdb", "spark"):
        report = am.recover(
            source,
            boost_run,
            out=tmp_path / f"{name}.parquet",
            history=run.parent / "dataset",
            max_gap="6h",
            engine=name,
        )
        assert report.facts()["user_days"] == 60
    assert (tmp_path / "duckdb.parquet").read_bytes() == (tmp_path / "spark.parquet").read_bytes()
    assert str(pq.read_schema(tmp_path / "spark.parquet").field("start").type) == f"timestamp[us, tz={ZONE}]"
