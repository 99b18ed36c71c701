"""What is left missing, and why: each rule worked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnmove import metrics
from attnmove.errors import ConfigError
from attnmove.filling.fill import Filler
from attnmove.filling.policy import Policy, least_confidence, length_text, parse_length
from attnmove.filling.timeline import Timelines
from attnmove.models.runs import read_thresholds
from builders import days_of
from filling.worlds import column, days_from, letters_of


@pytest.mark.parametrize(
    ("text", "minutes"), [("4h", 240), ("90m", 90), ("1d", 1440), ("1d12h", 2160), (" 2H ", 120), ("1h30m", 90)]
)
def test_a_length_is_read_in_its_units(text: str, minutes: int) -> None:
    assert parse_length(text) == minutes


@pytest.mark.parametrize("text", ["", "4", "h", "-4h", "4 hours", "4h2d", "1.5h", "9999999h"])
def test_another_length_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="such as 4h, 90m or 1d"):
        parse_length(text)


@pytest.mark.parametrize(("minutes", "text"), [(240, "4h"), (90, "90m"), (2880, "2d"), (1500, "25h")])
def test_a_length_is_said_in_its_largest_whole_unit(minutes: int, text: str) -> None:
    assert length_text(minutes) == text


@pytest.mark.parametrize(
    "policy",
    [
        {"max_gap_minutes": 0},
        {"max_gap_minutes": 1.5},
        {"min_confidence": 1.5},
        {"min_confidence": "0.5"},
        {"min_confidence": float("nan")},
        {"precision": -0.1},
        {"min_confidence": 1, "precision": 1},
    ],
)
def test_a_senseless_policy_is_refused(policy: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        Policy(**policy)  # type: ignore[arg-type]


def test_gaps_go_on_over_midnight_and_over_days_nobody_saw() -> None:
    days = days_of({"a": ["A . . B", ". . A .", "A A A A"], "b": [". A . ."]})
    days.date[2] += 1  # a day is lost between the second and the third
    gaps = Timelines.of(days).gaps()
    assert gaps.tolist() == [
        [0, 2, 2, 0],
        [2, 2, 0, 5],  # the rest of the second day and the four slots of the lost one
        [0, 0, 0, 0],
        [1, 0, 2, 2],  # open ends count up to the edge of the first and of the last day
    ]


def test_a_history_counts_as_seen_in_gaps() -> None:
    history = days_of({"a": ["A . A A"]}, start="2024-03-03")
    gaps = Timelines.of(days_of({"a": [". . A ."]}), history).gaps()
    assert gaps.tolist() == [[2, 2, 0, 1]]


def a_day(filler: Filler, text: str) -> dict[str, list[object]]:
    days = days_from({"new": {"2024-05-06": text}}, letters_of(filler.setting))
    table = filler.fill(days)
    return {name: column(table, name, "new", "2024-05-06") for name in ("status", "reason", "location", "probability")}


def test_slots_of_a_gap_longer_than_the_longest_stay_missing(run: Path) -> None:
    day = a_day(Filler.of(run, policy=Policy(max_gap_minutes=180)), "AAAA...BBBB....BBBBAAAA.")
    assert day["reason"] == [None] * 11 + ["gap longer than 3h"] * 4 + [None] * 9
    assert day["status"][4:7] + day["status"][23:] == ["recovered"] * 4
    assert day["location"][11:15] == [None] * 4
    assert day["probability"][11:15] == [None] * 4


def test_an_answer_below_the_least_confidence_is_not_given_but_its_probability_is(run: Path) -> None:
    text = "AAAA.AAABBBB....BBBBAAAA"
    free = a_day(Filler.of(run), text)
    least = float(np.median([p for p, s in zip(free["probability"], free["status"], strict=True) if s == "recovered"]))  # type: ignore[arg-type]
    day = a_day(Filler.of(run, policy=Policy(min_confidence=least)), text)
    assert day["probability"] == free["probability"]
    for slot in range(24):
        if free["status"][slot] == "observed":
            assert day["status"][slot] == "observed"
        elif free["probability"][slot] >= np.float32(least):  # type: ignore[operator]
            assert (day["status"][slot], day["location"][slot]) == ("recovered", free["location"][slot])
        else:
            assert (day["status"][slot], day["location"][slot]) == ("left_missing", None)
            assert day["reason"][slot] == f"less sure than {least:.4g}"
    assert {"recovered", "left_missing"} <= set(day["status"])


def test_the_alternatives_of_an_answer_not_trusted_begin_with_it(run: Path) -> None:
    days = lambda filler: days_from({"new": {"2024-05-06": "AAAA....BBBBBBBBBBBBAAAA"}}, letters_of(filler.setting))  # noqa: E731
    trusting, wary = Filler.of(run, top=3), Filler.of(run, policy=Policy(min_confidence=1.0), top=3)
    given = trusting.fill(days(trusting)).to_pylist()[5]
    kept = wary.fill(days(wary)).to_pylist()[5]
    assert [len(given["alternatives"]), len(kept["alternatives"])] == [2, 3]
    assert kept["alternatives"][1:] == given["alternatives"]
    assert (kept["alternatives"][0]["location"], kept["alternatives"][0]["probability"]) == (
        given["location"],
        given["probability"],
    )


def test_a_model_without_a_candidate_says_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnmove.filling import fill
    from attnmove.models.evidential import Answers

    def nothing(model: object, cases: object, *, top: int, origins: bool) -> list[Answers]:
        index = cases.index  # type: ignore[attr-defined]
        return [Answers(index, np.full((len(index), top), -1, np.int32), np.zeros((len(index), top), np.float32))]

    monkeypatch.setattr(fill, "best_answers", nothing)
    day = a_day(Filler.of(run), "AAAA....BBBBBBBBBBBBAAAA")
    assert day["reason"][4:8] == ["no candidate"] * 4
    assert day["status"][4:8] == ["left_missing"] * 4


def test_a_precision_stands_for_the_least_confidence_that_reached_it(run: Path) -> None:
    table = read_thresholds(run)
    assert len(table) > 1
    precision, confidence = table[1]
    assert Filler.of(run, policy=Policy(precision=precision)).min_confidence == confidence
    assert Filler.of(run, policy=Policy(precision=(table[0][0] + precision) / 2)).min_confidence == confidence


def test_the_table_of_thresholds_says_what_threshold_for_says() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(3_000).astype(np.float32)
    right = rng.random(3_000) < confidence
    table = metrics.thresholds(confidence, right)
    for precision in (0, 0.5, 0.75, 0.9, 0.95):
        assert least_confidence(Policy(precision=precision), table) == metrics.threshold_for(
            confidence, right, precision
        )
    assert metrics.thresholds(confidence[:29], right[:29]) == []


def test_a_precision_nobody_reached_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not reached on the run's validation days, 0\.5 at most"):
        least_confidence(Policy(precision=0.9), [(0.5, 0.2)])
    with pytest.raises(ConfigError, match="too few validation targets"):
        least_confidence(Policy(precision=0.9), [])
