"""Settings from text, TOML and Python onto frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from attnmove.errors import ConfigError
from attnmove.models.registry import make_model
from attnmove.models.rules import Vote, VoteConfig
from attnmove.models.settings import configure, parse_settings


@dataclass(frozen=True)
class Shape:
    width: int = 64
    dropout: float = 0.1
    gated: bool = True
    kind: str = "gru"


@dataclass(frozen=True)
class Pace:
    epochs: int = 10


def test_each_setting_goes_to_the_dataclass_that_has_it() -> None:
    assert configure((Shape(), Pace()), {"epochs": "3", "width": 8}) == (Shape(width=8), Pace(epochs=3))
    assert configure((Shape(), Pace()), {}) == (Shape(), Pace())
    assert configure((), {}) == ()


def test_an_unknown_setting_names_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"no setting 'epoch'; did you mean epochs\?"):
        configure((Shape(), Pace()), {"epoch": 3})


def test_an_unknown_setting_far_from_all_lists_them() -> None:
    with pytest.raises(ConfigError, match="no setting 'zzz'; there are: epochs"):
        configure((Pace(),), {"zzz": 3})
    with pytest.raises(ConfigError, match="there are: none"):
        configure((), {"zzz": 3})


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("width", "32", 32),
        ("width", 32.0, 32),
        ("width", "1e2", 100),
        ("dropout", "0.5", 0.5),
        ("dropout", 1, 1.0),
        ("gated", "no", False),
        ("gated", "True", True),
        ("gated", 0, False),
        ("gated", False, False),
        ("kind", "lstm", "lstm"),
    ],
)
def test_a_value_is_read_in_the_type_of_its_field(name: str, given: object, expected: object) -> None:
    found = getattr(configure((Shape(),), {name: given})[0], name)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("width", "1.5", "a whole number"),
        ("width", "many", "a whole number"),
        ("width", "inf", "a whole number"),
        ("width", "nan", "a whole number"),
        ("width", True, "a whole number"),
        ("dropout", "half", "a number"),
        ("dropout", False, "a number"),
        ("dropout", [1], "a number"),
        ("gated", "maybe", "true or false"),
        ("kind", 3, "a word"),
    ],
)
def test_a_value_of_another_type_is_refused_in_words(name: str, given: object, wanted: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: expected {wanted}, found"):
        configure((Shape(),), {name: given})


def test_the_checks_of_the_dataclass_still_hold() -> None:
    with pytest.raises(ConfigError, match="decay_slots must be above 0"):
        make_model("vote", settings={"decay_slots": "0"})


def test_pairs_win_over_the_file_and_tables_only_group(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("epochs = 4\n[network]\nwidth = 32\ndropout = 0.5\n")
    assert parse_settings([" width = 16 ", "kind=a=b"], file) == {
        "epochs": 4,
        "width": "16",
        "dropout": 0.5,
        "kind": "a=b",
    }
    assert parse_settings([]) == {}


@pytest.mark.parametrize("pair", ["width", "=3", " =3", ""])
def test_a_pair_without_a_key_or_a_sign_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="expected key=value"):
        parse_settings([pair])


@pytest.mark.parametrize("content", [b"width = = 3", b"\xff\xfe", None])
def test_a_file_that_is_not_toml_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "run.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"run\.toml: (not a TOML file|there is no such file)") as caught:
        parse_settings([], file)
    assert "\n" not in str(caught.value)


def test_a_model_there_is_not_names_the_nearest_or_all() -> None:
    with pytest.raises(ConfigError, match=r"no model 'nearst'; did you mean nearest\?"):
        make_model("nearst")
    with pytest.raises(ConfigError, match="there are: boost, copymove, top, history"):
        make_model("zzz")


def test_a_model_is_made_with_its_settings() -> None:
    model = make_model("vote", settings={"habit": "0.5", "history": 0})
    assert isinstance(model, Vote)
    assert model.config == VoteConfig(habit=0.5, history=0.0)
