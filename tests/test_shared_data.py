"""The real data: Geolife as its authors and the paper's authors released it. Skipped where it is not there."""

from __future__ import annotations

import csv
import os
import shutil
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from attnmove.measure.table import evaluate
from attnmove.models.runs import load_model
from attnmove.nouns import MISSING
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.prep.pipeline import prepare
from attnmove.prep.split import split_days

DATA = Path(os.environ.get("ATTNMOVE_DATA") or Path(__file__).parents[2] / "shared" / "data")
FILES = {"train": "pos.train.txt", "valid": "pos.validate.txt", "test": "pos.test.txt"}
N_SLOTS = 48
Line = tuple[str, str, list[list[str]]]

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason="no real data: set ATTNMOVE_DATA to the folder that has it"),
]


def lines(split: str) -> list[Line]:
    """User, date and the six traces of each line of a released file."""
    out = []
    for line in (DATA / "geolife-released" / FILES[split]).read_text().splitlines():
        user, date, tokens = line.split("\t")
        slots = tokens.split()
        out.append((user, f"{date[:4]}-{date[4:6]}-{date[6:]}", [slots[i : i + N_SLOTS] for i in range(0, 288, 48)]))
    return out


@pytest.fixture(scope="module")
def released() -> Dataset:
    folder = DATA / "geolife-released"
    return prepare(folder, format="released", centres=folder / "centres.csv")


def test_released_geolife_has_the_sizes_of_the_paper(released: Dataset) -> None:
    facts = released.facts
    assert (facts["users"], facts["days"], facts["locations"]) == (40, 896, 1746)
    assert (facts["train"], facts["valid"], facts["test"], facts["past"]) == (615, 89, 192, 0)
    assert facts["draws"] == 3
    assert len(released.targets) == 3 * 896
    assert np.all(np.diff(released.targets.start) == 10)
    in_test = np.isin(released.targets.rows_in(released.days), np.flatnonzero(released.days.split == "test"))
    assert in_test.sum() * 10 == 5760


def test_every_released_location_has_a_centre_near_beijing_or_abroad(released: Dataset) -> None:
    assert len(released.locations) == 1746
    assert np.isfinite(released.locations.centres).all()
    with (DATA / "geolife-released" / "centres.csv").open() as file:
        centre = {row["region_id"]: (float(row["lon"]), float(row["lat"])) for row in csv.DictReader(file)}
    assert [centre[name] for name in released.locations.name] == [tuple(c) for c in released.locations.centres.tolist()]


def test_released_days_targets_and_history_are_those_of_the_files(released: Dataset) -> None:
    names = np.append(released.locations.name, "*")  # MISSING, -1, is the last
    place = {pair: i for i, pair in enumerate(zip(released.days.user, released.days.date.astype(str), strict=True))}
    row_of: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(zip(released.targets.user, released.targets.date.astype(str), strict=True)):
        row_of.setdefault(pair, []).append(row)
    met: Counter[tuple[str, str]] = Counter()
    for split in FILES:
        for user, date, (history, _, _, full, _, mask) in lines(split):
            draw = met[user, date]
            met[user, date] += 1
            assert released.days.split[place[user, date]] == split
            assert names[released.days.loc[place[user, date]]].tolist() == full
            row = row_of[user, date][draw]
            assert released.targets.draw[row] == draw
            assert names[released.targets.history[row]].tolist() == history
            assert released.targets.slots_of(row).tolist() == [i for i, token in enumerate(mask) if token == "<m>"]
    assert set(met.values()) == {3}
    assert len(met) == 896


def test_a_released_history_row_is_the_mode_of_what_its_draw_leaves_visible_of_earlier_days() -> None:
    # A finding: the files' history is the strict one, of one draw, not of whole days. Where the first row of a user has
    # a location already, days that are not in the files have voted too, so only the slots that start empty can be told.
    drawn: dict[tuple[str, int], dict[str, tuple[list[str], list[str]]]] = {}
    met: Counter[tuple[str, str]] = Counter()
    for split in FILES:
        for user, date, (history, _, _, _, _, mask) in lines(split):
            drawn.setdefault((user, met[user, date]), {})[date] = (history, mask)
            met[user, date] += 1
    checked = 0
    for days in drawn.values():
        first_history = days[min(days)][0]
        for slot in range(N_SLOTS):
            if first_history[slot] != "*":
                continue
            seen: Counter[str] = Counter()
            for date in sorted(days):
                history, mask = days[date]
                best = seen.most_common(2)
                if not best:
                    assert history[slot] == "*"
                elif len(best) == 1 or best[0][1] > best[1][1]:
                    assert history[slot] == best[0][0]
                    checked += 1
                if mask[slot] not in ("*", "<m>"):
                    seen[mask[slot]] += 1
    assert checked > 1_000


def test_the_blocks_give_the_last_fix_of_a_slot_its_released_location(released: Dataset) -> None:
    made = prepare(
        DATA / "geolife-minute.parquet",
        str(DATA / "geolife-released" / "blocks.geojson"),
        location_name="region_id",
        timezone="UTC",
        slot_rule="last",
        min_slots=2,
        min_days=1,
        hide=1,
    )
    row_of = {pair: i for i, pair in enumerate(zip(made.days.user, made.days.date.tolist(), strict=True))}
    drawn_blocks = set(made.locations.name)
    theirs = np.append(released.locations.name, "*")[released.days.loc]
    ours = np.append(made.locations.name, "*")[made.days.loc]
    same = n = 0
    for i, pair in enumerate(zip(released.days.user, released.days.date.tolist(), strict=True)):
        labelled = [slot for slot in range(N_SLOTS) if theirs[i, slot] in drawn_blocks]
        n += len(labelled)
        if pair in row_of:
            same += sum(ours[row_of[pair], slot] == theirs[i, slot] for slot in labelled)
    assert n > 12_000
    assert same / n >= 0.92


@pytest.mark.parametrize("tessellation", ["grid:500", "h3:8"])
def test_two_runs_over_the_minute_file_write_the_same_bytes(tessellation: str, tmp_path: Path) -> None:
    source = DATA / "geolife-minute.parquet"
    for name in ("one", "two"):
        prepare(source, tessellation, out=tmp_path / name, timezone="Asia/Shanghai")
    for file in ("days.parquet", "targets.parquet", "locations.parquet", "dataset.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    made = read_dataset(tmp_path / "one")
    assert made.facts["points"] == pq.read_metadata(source).num_rows == 1_284_577
    assert made.facts["points_used"] + sum(made.facts["rejects"].values()) == 1_284_577
    # Which days are kept does not depend on the cells: counted again with pandas.
    frame = pq.read_table(source, columns=["user", "time"]).to_pandas()
    local = frame["time"] + np.timedelta64(8, "h")  # Shanghai, all year
    slot = local.dt.floor("30min")
    n_slots = slot.groupby([frame["user"], local.dt.date]).nunique()
    n_days = n_slots[n_slots >= 12].groupby("user").size()
    assert made.facts["users"] == (n_days >= 5).sum() == 76
    assert made.facts["days"] == n_days[n_days >= 5].sum()
    assert (made.days.observed.sum(axis=1) >= 12).all()
    assert np.diff(made.targets.start).min() == 10
    used = np.unique(made.days.loc)
    assert used[used != MISSING].tolist() == list(range(len(made.locations)))


def test_the_original_tracks_of_three_users_are_read() -> None:
    made = prepare(DATA / "geolife-plt", timezone="Asia/Shanghai", min_slots=2, min_days=1, hide=1)
    assert made.facts["source"]["format"] == "geolife"
    assert made.facts["users"] == len(list((DATA / "geolife-plt" / "Data").iterdir())) == 3
    assert made.facts["points"] > 10_000
    # User 118 has real dirt: a longitude whose sign was flipped.
    assert "118" in made.days.user


@pytest.mark.spark
def test_duckdb_and_spark_prepare_the_minute_file_alike(tmp_path: Path) -> None:
    if find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java")
    if tuple(map(int, version("pyspark").split(".")[:2])) < (4, 3):
        pytest.skip("Spark before 4.3 does not read this file's encoding (BYTE_STREAM_SPLIT)")
    for engine in ("duckdb", "spark:local-cluster[2,1,1024]"):
        prepare(
            DATA / "geolife-minute.parquet", out=tmp_path / engine[:5], timezone="Asia/Shanghai", engine=engine, draws=2
        )
    for file in ("days.parquet", "targets.parquet", "locations.parquet", "dataset.json"):
        assert (tmp_path / "duckd" / file).read_bytes() == (tmp_path / "spark" / file).read_bytes(), file


def test_our_split_has_the_sizes_of_the_released_one_for_most_users() -> None:
    """The first days are not in the files, so the rows of a user are the days after them."""
    days = prepare(DATA / "geolife-released").days
    ours = split_days(days.first_of_user, first_days=0)
    agreeing = [user for user in np.unique(days.user) if (ours == days.split)[days.user == user].all()]
    assert len(agreeing) == 34


RULES = {
    # recall within, MAP at least, metres within
    "top": ((0.27565, 0.27575), 0.0, (0.98 * 5316, 1.02 * 5316)),
    "history": ((0.25045, 0.25055), 0.0, (0, 1e9)),
    "linear": ((0.3416, 0.3616), 0.0, (0.98 * 2381, 1.02 * 2381)),
    "nearest": ((0.42115, 0.42125), 0.5, (2450, 2550)),
    "vote": ((0.4549, 1.0), 0.5301, (0, 2600)),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rules_give_the_known_numbers_on_released_geolife(released: Dataset, name: str) -> None:
    (row,) = evaluate(load_model(name).fit(released.train, released.valid), released.test)
    recall, least_map, metres = RULES[name]
    assert row["n"] == 5760
    assert recall[0] <= row["recall"] <= recall[1]
    assert row["map"] >= least_map
    assert metres[0] <= row["distance_m"] <= metres[1]


def test_a_network_learns_on_released_geolife_in_two_epochs(released: Dataset) -> None:
    model = load_model("bi-stddp", settings={"epochs": 2, "width": 32, "hidden": 64}, device="cpu")
    (row,) = evaluate(model.fit(released.train, released.valid), released.test)
    assert row["recall"] > 0.35
