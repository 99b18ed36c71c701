"""What a run brings along, and what cannot be recovered: each refusal is one sentence that says what to do."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnmove as am
from attnmove import cli
from attnmove.errors import ConfigError, DataError, RunError
from attnmove.filling.fill import Filler
from attnmove.models.runs import describe_run, load_model, train_run
from attnmove.prep.dataset import read_dataset
from attnmove.prep.pipeline import prepare
from attnmove.space import read_locations
from builders import PLACES
from filling.worlds import ZONE, a_month, fixes, table_of
from measure.datasets import write_small
from point_files import write_released


def test_a_run_keeps_its_place_and_time(run: Path) -> None:
    facts = describe_run(run)
    assert facts["setting"] == {
        "tessellation": {"spec": "grid:500", "kind": "grid", "cell_m": 500.0},
        "datum": "wgs84",
        "timezone": ZONE,
        "slot_minutes": 60,
        "slot_rule": "mode",
    }
    mine, theirs = (read_locations(folder / "locations.parquet") for folder in (run, run.parent / "dataset"))
    assert mine.name.tolist() == theirs.name.tolist()
    assert mine.geometry == theirs.geometry


def test_points_are_placed_as_prepare_placed_them(tmp_path: Path) -> None:
    """A run over polygons and a shifted datum brings both along."""
    half = 0.0095  # the datum shifts points by half a kilometre
    rings = {
        name: [
            [x - half, y - half],
            [x + half, y - half],
            [x + half, y + half],
            [x - half, y + half],
            [x - half, y - half],
        ]
        for name, (x, y) in PLACES.items()
    }
    areas = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in rings.items()
    ]
    (tmp_path / "areas.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": areas}))
    dataset = prepare(
        a_month(),
        str(tmp_path / "areas.geojson"),
        datum="gcj02",
        timezone=ZONE,
        slot_minutes=60,
        min_slots=1,
        min_days=1,
    )
    train_run(dataset, "vote", tmp_path / "run")
    (tmp_path / "areas.geojson").unlink()
    table = am.recover(a_month(), tmp_path / "run")
    seen = [row["location"] for row in table.to_pylist() if row["status"] == "observed"]
    assert seen == dataset.locations.name[dataset.days.loc[dataset.days.observed]].tolist()


def _config(change: Callable[[dict[str, object]], None]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        facts = json.loads((folder / "config.json").read_text())
        change(facts)
        (folder / "config.json").write_text(json.dumps(facts))

    return damage


def _setting(**changes: object) -> Callable[[Path], None]:
    return _config(lambda facts: facts["setting"].update(changes))  # type: ignore[attr-defined]


def _other_locations(folder: Path) -> None:
    table = pq.read_table(folder / "locations.parquet")
    names = pa.array([f"x{i}" for i in range(len(table))])
    pq.write_table(table.set_column(1, "name", names), folder / "locations.parquet")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_config(lambda facts: facts.pop("setting")), "kept their locations and time zone; train it again"),  # type: ignore[arg-type, return-value]
        (lambda folder: (folder / "locations.parquet").unlink(), "kept their locations and time zone; train it again"),
        (lambda folder: (folder / "locations.parquet").write_bytes(b"PAR1"), "cannot be read"),
        (_other_locations, "not the locations the model was trained on; train it again"),
        (_config(lambda facts: facts.update(setting=7)), "its setting is not such as it should be"),
        (_setting(slot_minutes=7), "its setting is damaged"),
        (_setting(slot_minutes="30"), "its setting is not such as it should be"),
        (_setting(timezone="Mars/Phobos"), "its setting is damaged"),
        (_setting(slot_rule="first"), "its setting is damaged"),
        (_setting(datum="mars"), "its datum or tessellation is damaged"),
        (_setting(tessellation=[]), "its datum or tessellation is damaged; train it again"),
        (_setting(tessellation={"kind": "grid", "cell_m": "x"}), "tessellation is damaged"),
        (_setting(tessellation={"kind": "grid", "cell_m": 1}), "tessellation is damaged"),
        (_setting(tessellation={"kind": "grid", "cell_m": 10**400}), "tessellation is damaged"),
        (_setting(tessellation={"kind": "moon"}), "tessellation is damaged"),
        (_setting(tessellation={"kind": "grid", "cell_m": 500, "evil": 1}), "tessellation is damaged"),
    ],
)
def test_an_old_damaged_or_forged_run_is_refused(
    run: Path, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    shutil.copytree(run, tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(RunError, match=said):
        am.recover(table_of(fixes("a", "2024-04-01", "AA")), tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "which confidence to trust; train it again"),
        ("precision\n0.5\n", "broken; train it again"),
        ("precision,confidence\n0.5,high\n", "broken; train it again"),
        ("precision,confidence\n0.5,0.9\n0.4,0.95\n", "shares that rise"),
        ("precision,confidence\n0.5,1.5\n", "shares that rise"),
    ],
)
def test_a_precision_needs_the_runs_table(run: Path, tmp_path: Path, text: str | None, said: str) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "thresholds.csv").unlink()
    if text is not None:
        (tmp_path / "run" / "thresholds.csv").write_text(text)
    with pytest.raises(RunError, match=said):
        am.recover(table_of(fixes("a", "2024-04-01", "AA")), tmp_path / "run", precision=0.5)


def test_a_run_without_validation_targets_has_no_precision(tmp_path: Path) -> None:
    train_run(
        read_dataset(write_small(tmp_path / "data", splits=("past", "train", "train", "test"))),
        "vote",
        tmp_path / "run",
    )
    with pytest.raises(ConfigError, match=r"too few validation targets .* name a least confidence instead"):
        am.recover(tmp_path / "data", tmp_path / "run", precision=0.5)


def test_opaque_locations_take_days_but_no_points(tmp_path: Path) -> None:
    dataset = prepare(write_released(tmp_path / "released"), out=tmp_path / "data")
    train_run(dataset, "vote", tmp_path / "run")
    table = am.recover(tmp_path / "data", tmp_path / "run")
    assert table.num_rows == 48 * int(dataset.days.observed.any(axis=1).sum())
    assert table["lon"].null_count == table.num_rows
    assert set(table["location"].drop_null().to_pylist()) <= set(dataset.locations.name.tolist())
    with pytest.raises(DataError, match="names without a rule that places points; recover a dataset"):
        am.recover(table_of(fixes("a", "2024-04-01", "AA")), tmp_path / "run")
    with pytest.raises(ConfigError, match="no coordinates to draw; write Parquet, CSV or NDJSON"):
        am.recover(tmp_path / "data", tmp_path / "run", out=tmp_path / "out.geojson")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"timezone": "UTC"}, "another time zone than the run's \\(UTC, not Asia/Shanghai\\)"),
        ({"slot_minutes": 30}, "another number of slots a day than the run's \\(48, not 24\\)"),
        ({"tessellation": "grid:700"}, "another tessellation than the run's \\(grid:700, not grid:500\\)"),
        ({"tessellation": "h3:8"}, "another tessellation than the run's \\(h3:8, not grid:500\\)"),
    ],
)
def test_a_dataset_of_another_place_or_time_is_refused(
    run: Path, tmp_path: Path, how: dict[str, object], said: str
) -> None:
    alike = {"timezone": ZONE, "slot_minutes": 60, "min_slots": 1, "min_days": 1, **how}
    prepare(a_month(), out=tmp_path / "data", **alike)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=said):
        am.recover(tmp_path / "data", run)
    with pytest.raises(DataError, match=said):
        am.recover(a_month(), run, history=tmp_path / "data")


def test_a_model_that_was_never_written_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match="recover needs the folder of a run, or what load_run gives; found Vote"):
        am.recover(a_month(), load_model(run))  # type: ignore[arg-type]


def test_a_handful_of_points_has_four_columns(run: Path) -> None:
    filler = Filler.of(run)
    good = table_of(fixes("a", "2024-04-01", "AA"))
    with pytest.raises(DataError, match="points: no column lat; expected user, time, lon and lat"):
        filler.recover_points(good.drop_columns("lat"))
    with pytest.raises(DataError, match="column time holds string; expected timestamps"):
        filler.recover_points(good.set_column(1, "time", pa.array(["x", "y"])))
    with pytest.raises(DataError, match="expected text, timestamps and two numbers"):
        filler.recover_points(good.set_column(2, "lon", pa.array(["x", "y"])))
    nothing = filler.recover_points(good.slice(0, 0))
    assert (nothing.table.num_rows, nothing.folded.points) == (0, 0)


BAD = {
    ("{points}", "nowhere"): "not a run",
    ("nowhere.csv", "{run}"): "there is no such file",
    ("{points}", "{run}", "--max-gap", "long"): "expected a length of time such as 4h",
    ("{points}", "{run}", "--max-gap", "0m"): "expected whole minutes, 1 or more",
    ("{points}", "{run}", "--min-confidence", "2"): "expected a number from 0 to 1",
    ("{points}", "{run}", "--precision", "0.5", "--min-confidence", "0.5"): "found both; leave one out",
    ("{points}", "{run}", "--precision", "1"): "is not reached",
    ("{points}", "{run}", "--top", "0"): "expected 1 to 100 places",
    ("{points}", "{run}", "--engine", "duck"): "there is no engine",
    ("{points}", "{run}", "--history", "nowhere"): "not a dataset",
    ("{points}", "{run}", "--naive-timezone", "Mars"): "is not an IANA time zone",
    ("{points}", "{run}", "--columns", "user=nobody"): "there is no column 'nobody'",
    ("{data}", "{run}", "--user", "me"): "a dataset has no columns or formats to choose",
    ("{far}", "{run}"): "none of its 4 points can be used, most of them (4) for in no location",
    ("{points}", "{run}", "-o", "out.xlsx"): "expected a file that ends in .parquet",
    ("{points}", "{run}", "-o", "."): "expected a file that ends in",
    ("{points}", "{run}", "-o", "taken.parquet"): "cannot be written",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_what_cannot_be_recovered_is_refused_in_one_sentence(
    run: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {
        "run": run,
        "points": tmp_path / "p.parquet",
        "far": tmp_path / "far.parquet",
        "data": run.parent / "dataset",
    }
    pq.write_table(a_month(), names["points"])
    pq.write_table(table_of(fixes("a", "2024-04-01", "HHHH")), names["far"])
    (tmp_path / "taken.parquet").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    words = [word.format(**names) for word in arguments]
    output = [] if "-o" in words else ["-o", "out.parquet"]
    monkeypatch.setattr(sys, "argv", ["attnmove", "recover", *words, *output])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr().err
    assert stop.value.code == 1
    assert BAD[arguments] in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("wrong", ["ragged", "fractions", "texts", "nobody", "elsewhere", "one"])
def test_days_that_are_damaged_are_not_recovered_a_slot_off(run: Path, tmp_path: Path, wrong: str) -> None:
    folder = tmp_path / "data"
    shutil.copytree(run.parent / "dataset", folder)
    rows = pq.read_table(folder / "days.parquet").to_pylist()
    lists = [row["loc"] for row in rows]
    users = [row["user"] for row in rows]
    if wrong == "ragged":
        lists[0], lists[1] = lists[0][:-1], [*lists[1], -1]
    elif wrong == "fractions":
        lists = [[float(place) for place in row] for row in lists]
    elif wrong == "texts":
        lists = [[str(place) for place in row] for row in lists]
    elif wrong == "nobody":
        users[0] = None
    elif wrong == "elsewhere":
        lists[0][0] = 10**6
    else:
        lists = [row[0] for row in lists]
    table = pa.table({**{name: [row[name] for row in rows] for name in ("date", "split")}, "user": users, "loc": lists})
    pq.write_table(table, folder / "days.parquet")
    for read in (lambda: am.recover(folder, run), lambda: read_dataset(folder)):
        with pytest.raises(RunError, match="damaged"):
            read()


def test_locations_are_known_by_their_place_and_not_by_their_order(run: Path, tmp_path: Path) -> None:
    """Another dataset of the same grid numbers its cells in another way."""
    other = prepare(
        table_of(fixes("new", "2024-04-01", "DDDDEEEECCCCBBBBAAAA....")),
        out=tmp_path / "data",
        timezone=ZONE,
        slot_minutes=60,
        min_slots=1,
        min_days=1,
        hide=1,
    )
    table = am.recover(tmp_path / "data", run)
    seen = np.array(table["location"].to_pylist(), dtype=object)[:20]
    assert seen.tolist() == other.locations.name[other.days.loc[0, :20]].tolist()
