"""Which column is which: by name, or told, and always reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnmove.errors import ConfigError, DataError
from attnmove.io.columns import Columns, find_columns, parse_columns
from point_files import FIXES, HEADER, write_rows

from .conftest import Reader

NAMES = {
    "user": ("user", "uid", "user_id", "userid", "device_id"),
    "time": ("time", "timestamp", "datetime", "ts"),
    "lat": ("lat", "latitude", "y"),
    "lon": ("lon", "lng", "longitude", "x"),
}


def _styles(name: str) -> tuple[str, ...]:
    return (name, name.upper(), name.title(), name.replace("_", " "), name.replace("_", "-"))


@pytest.mark.parametrize(("role", "name"), [(role, name) for role, names in NAMES.items() for name in names])
def test_a_usual_name_is_found_in_any_case(role: str, name: str) -> None:
    for style in _styles(name):
        header = ["speed", *(style if other == role else other for other in HEADER)]
        found = find_columns(header, None, source="p.csv")
        assert getattr(found, role) == style


def test_the_more_telling_name_wins() -> None:
    found = find_columns(["x", "y", "t", "device", "longitude", "lat", "timestamp", "uid"], None, source="p.csv")
    assert found == Columns("uid", "timestamp", "lat", "longitude")


def test_what_is_told_wins_over_what_is_found() -> None:
    header = [*HEADER, "snapped_lat"]
    assert find_columns(header, {"lat": "snapped_lat"}, source="p.csv").lat == "snapped_lat"


def test_one_user_needs_no_column_and_wins_over_one() -> None:
    assert find_columns(HEADER[1:], None, source="p.csv", one_user="me").user is None
    assert find_columns(HEADER, None, source="p.csv", one_user="me").user is None


def test_options_of_the_command_line_become_roles() -> None:
    assert parse_columns("user=who, time = when,,lat=a=b") == {"user": "who", "time": "when", "lat": "a=b"}


@pytest.mark.parametrize("text", ["user", "user=", "=who", "speed=v", "user:who"])
def test_options_that_name_no_role_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--columns takes user=…"):
        parse_columns(text)


def test_unknown_roles_of_a_dict_are_refused() -> None:
    with pytest.raises(ConfigError, match="columns may name user, time, lat, lon; found speed"):
        find_columns(HEADER, {"speed": "v"}, source="p.csv")


def test_a_long_header_is_not_printed_whole() -> None:
    with pytest.raises(DataError, match=r"'c11' and 38 more; say which"):
        find_columns([f"c{i}" for i in range(50)], None, source="p.csv")


def test_what_was_chosen_is_reported(tmp_path: Path, read: Reader) -> None:
    path = write_rows(tmp_path / "p.csv", header=["Device_ID", "TS", "Latitude", "lng"])
    assert read(path).points.chosen == {
        "user": "Device_ID",
        "time": "TS (ISO 8601)",
        "lat": "Latitude",
        "lon": "lng",
    }


def test_told_columns_are_read_and_reported(tmp_path: Path, read: Reader) -> None:
    path = write_rows(
        tmp_path / "p.csv", [[*row, "5"] for row in FIXES], header=["who", "when", "north", "east", "lat"]
    )
    told = {"user": "who", "time": "when", "lat": "north", "lon": "east"}
    found = read(path, columns=told)
    assert [row.lat for row in found.rows] == [39.98, 39.99, -33.5]
    assert found.points.chosen["lat"] == "north"


def test_one_user_is_everybody(tmp_path: Path, read: Reader) -> None:
    path = write_rows(tmp_path / "p.csv", [row[1:] for row in FIXES], header=HEADER[1:])
    found = read(path, one_user="me")
    assert {row.user for row in found.rows} == {"me"}
    assert found.points.chosen["user"] == "all me"
