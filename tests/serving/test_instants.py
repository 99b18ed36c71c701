"""Times in a body are read as the readers of files read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnmove.engine import open_engine
from attnmove.io import read_points
from attnmove.io.clock import load_zone
from attnmove.serving.instants import instants_of

TEXTS = [
    "2024-03-04T08:15:00Z",
    "2024-03-04 08:15:00",
    "2024-03-04T08:15",
    "2024/03/04 08:15:30",
    "2024/03-04 08:15:30",
    "2024-03/04T08:15Z",
    "2024-03-04T08:15:00.5+08:00",
    "2024-03-04T08:15:00,123456789-0330",
    "2024-03-04 08:15:00 UTC",
    "2024-03-04T08:15:00+08",
    "2024-03-31 02:30:00",
    "2024-10-27 02:30:00",
    " 2024-03-04T08:15:00Z ",
    "\u00a02024-03-04T08:15:00Z",
    "2024-03-04T24:00:00Z",
    "2024-03-04T23:59:60Z",
    "2024-13-04T08:15:00Z",
    "2024-02-30T08:15:00Z",
    "2024-03-04",
    "2024-03-04T08:15:00+25:00",
    "yesterday",
    "",
]


def on_the_engine(texts: list[str], zone: str, folder: Path) -> list[int | None]:
    file = folder / "points.csv"
    file.write_text("user,time,lat,lon\n" + "".join(f'{i:03d},"{text}",1,2\n' for i, text in enumerate(texts)))
    with open_engine() as engine:
        points = read_points(file, engine, zone=load_zone(zone))
        rows = [row for batch in engine.batches(points.table.select("user", "time_us")) for row in batch.to_pylist()]
    return [row["time_us"] for row in sorted(rows, key=lambda row: row["user"])]


def in_memory(texts: list[str], zone: str) -> list[int | None]:
    micros, known = instants_of(texts, load_zone(zone))
    return [value if is_known else None for value, is_known in zip(micros.tolist(), known.tolist(), strict=True)]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "Europe/Berlin"])
def test_texts_are_the_same_instants_as_on_the_engine(zone: str, tmp_path: Path) -> None:
    assert in_memory(TEXTS, zone) == on_the_engine(TEXTS, zone, tmp_path)


@pytest.mark.parametrize(
    "numbers",
    [
        ["1709540100", "1709540101.25", "x"],
        ["1709540100000", "1709540100500"],
        ["1709540100000000"],
        ["1e400", "5"],
        ["", "", "1709540100"],
        ["nan", "inf", "1709540100"],
        ["nan", "NaN", "2024-03-04T08:15:00Z"],
        ["1709540100", "2024-03-04T08:15:00Z"],
        ["1709540100", "1709540101", "2024-03-04T08:15:00Z"],
    ],
)
def test_numbers_are_the_same_instants_as_on_the_engine(numbers: list[str], tmp_path: Path) -> None:
    assert in_memory(numbers, "UTC") == on_the_engine(numbers, "UTC", tmp_path)


def test_numbers_of_json_are_read_as_their_text_would_be() -> None:
    assert instants_of([1709540100, 1709540101.25], load_zone("UTC"))[0].tolist() == [
        1709540100_000000,
        1709540101_250000,
    ]
    assert not instants_of([10**400], load_zone("UTC"))[1].any()
