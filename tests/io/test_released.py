"""The released files: their splits, masks, draws and history rows come through as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnmove import prepare, read_dataset
from attnmove.errors import DataError
from attnmove.io.released import read_released
from attnmove.nouns import MISSING
from point_files import N_SLOTS, released_line, write_released, write_text

DAY = {15: "7", 16: "7", 17: "120", 18: "0"}


def made(folder: Path) -> Path:
    """Two users; user 1 has a day in each split, the training day drawn twice with history rows of their own."""
    return write_released(
        folder,
        train=[
            released_line("1", "20081023", full=DAY, hidden=[15, 18], history={20: "7"}),
            released_line("1", "20081023", full=DAY, hidden=[16], history={20: "0", 21: "9"}),
        ],
        valid=[released_line("1", "20081101", full={0: "0", 47: "9"}, hidden=[47])],
        test=[
            released_line("2", "20081024", full={3: "120", 4: "120"}, hidden=[]),
            released_line("1", "20081102", full={0: "0", 1: "7"}, hidden=[0], history={0: "0"}),
        ],
    )


def test_days_are_sorted_and_keep_the_split_of_their_file(tmp_path: Path) -> None:
    days = read_released(made(tmp_path)).days
    assert days.user.tolist() == ["1", "1", "1", "2"]
    assert [str(date) for date in days.date] == ["2008-10-23", "2008-11-01", "2008-11-02", "2008-10-24"]
    assert days.split.tolist() == ["train", "valid", "test", "test"]
    assert days.loc.shape == (4, N_SLOTS)


def test_regions_are_numbered_in_their_own_order_and_unseen_slots_are_missing(tmp_path: Path) -> None:
    released = read_released(made(tmp_path))
    assert released.locations.name.tolist() == ["0", "7", "9", "120"]
    assert released.locations.key.tolist() == [0, 7, 9, 120]
    assert released.days.loc[0, 14:20].tolist() == [MISSING, 1, 1, 3, 0, MISSING]
    assert released.days.loc[1, [0, 1, 47]].tolist() == [0, MISSING, 2]


def test_each_line_is_a_draw_with_its_mask_and_history_row(tmp_path: Path) -> None:
    targets = read_released(made(tmp_path)).targets
    assert targets.user.tolist() == ["1", "1", "1", "1", "2"]
    assert targets.draw.tolist() == [0, 1, 0, 0, 0]
    assert [targets.slots_of(row).tolist() for row in range(5)] == [[15, 18], [16], [47], [0], []]
    assert targets.history.shape == (5, N_SLOTS)
    assert targets.history[:2, 19:23].tolist() == [[MISSING, 1, MISSING, MISSING], [MISSING, 0, 2, MISSING]]
    assert targets.history[3, :2].tolist() == [0, MISSING]
    assert (targets.history[4] == MISSING).all()


def test_without_centres_no_place_is_known(tmp_path: Path) -> None:
    locations = read_released(made(tmp_path)).locations
    assert np.isnan(locations.lon).all()
    assert np.isnan(locations.lat).all()


def test_centres_place_the_regions_they_name(tmp_path: Path) -> None:
    centres = write_text(
        tmp_path / "centres.csv", "name,lon,lat,region_id", "a,116.5,39.5,7", "b,117,40,120", "c,1,2,99"
    )
    locations = read_released(made(tmp_path / "released"), centres=centres).locations
    assert locations.lon[[1, 3]].tolist() == [116.5, 117.0]
    assert locations.lat[[1, 3]].tolist() == [39.5, 40.0]
    assert np.isnan(locations.lat[[0, 2]]).all()


def test_prepare_writes_them_and_reads_the_same_back(tmp_path: Path) -> None:
    centres = write_text(tmp_path / "centres.csv", "region_id,lat,lon", "0,1,2", "7,39.5,116.5", "9,3,4", "120,5,6")
    released = read_released(made(tmp_path / "released"), centres=centres)
    written = prepare(tmp_path / "released", out=tmp_path / "dataset", centres=centres)
    back = read_dataset(tmp_path / "dataset")
    for dataset in (written, back):
        assert dataset.facts["source"]["format"] == "released"
        assert (dataset.facts["users"], dataset.facts["days"], dataset.facts["draws"]) == (2, 4, 2)
        assert dataset.days.user.tolist() == released.days.user.tolist()
        assert dataset.days.split.tolist() == released.days.split.tolist()
        np.testing.assert_array_equal(dataset.days.date, released.days.date)
        np.testing.assert_array_equal(dataset.days.loc, released.days.loc)
        np.testing.assert_array_equal(dataset.targets.start, released.targets.start)
        np.testing.assert_array_equal(dataset.targets.slot, released.targets.slot)
        np.testing.assert_array_equal(dataset.targets.draw, released.targets.draw)
        np.testing.assert_array_equal(dataset.targets.history, released.targets.history)
        np.testing.assert_allclose(dataset.locations.centres, released.locations.centres)
    assert back.facts["hash"] == written.facts["hash"]


@pytest.mark.parametrize("token", ["07", "²", "-5", "1e3", "9" * 30, "7.0", "<m>"])
def test_a_region_is_a_plain_number(token: str, tmp_path: Path) -> None:
    folder = write_released(tmp_path, train=[released_line(full={15: token}, hidden=[])])
    with pytest.raises(DataError, match=r"pos\.train\.txt, row 1, column 3: expected a region number or '\*', found"):
        read_released(folder)


@pytest.mark.parametrize("date", ["2008102", "20080230", "2008-10-23", "today", ""])
def test_a_date_is_eight_digits_of_a_day_that_was(date: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row 1, column 2: expected a date yyyymmdd"):
        read_released(write_released(tmp_path, train=[released_line(date=date)]))


def test_the_row_of_an_error_counts_lines_of_its_file(tmp_path: Path) -> None:
    lines = [released_line(), released_line(date="20081101"), "1\t20081102\t7 7"]
    with pytest.raises(DataError, match=r"row 3, column 3: expected 288 tokens, found 2; the line is cut off"):
        read_released(write_released(tmp_path, train=lines))
