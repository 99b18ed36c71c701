"""The parts of the report by hand: axes, marks, maps, gaps, attention, days drawn by lot."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnmove.measure.outcomes import outcomes_of
from attnmove.models.registry import make_model
from attnmove.models.rules import Nearest
from attnmove.nouns import Locations
from attnmove.reporting.axes import axis_of, boxes, series_of, steps_of
from attnmove.reporting.charts import shades_of
from attnmove.reporting.confidence import calibration_error, risk_at
from attnmove.reporting.data import gap_lengths
from attnmove.reporting.examples import drawn_days, letter
from attnmove.reporting.inside import clusters_of, coarser, embedding_of, mean_attention, neighbours_alike
from attnmove.reporting.maps import coloured_map, shaded_map, view_of
from attnmove.reporting.markup import Html, escape, tag
from attnmove.reporting.scores import few
from builders import asked, days_of


def test_text_is_escaped_once_and_markup_not_again() -> None:
    assert tag("p", "a<b", tag("b", "c&d"), None, 3, title='"') == '<p title="&quot;">a&lt;b<b>c&amp;d</b>3</p>'
    assert escape(Html("<b>")) == "<b>"
    assert escape("\ud800\x00") == "?\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("low", "high", "percent", "texts"),
    [
        (0, 1, True, ["0%", "20%", "40%", "60%", "80%", "100%"]),
        (0.39, 0.51, True, ["37.5%", "40.0%", "42.5%", "45.0%", "47.5%", "50.0%", "52.5%"]),
        (0, 18, False, ["0", "5", "10", "15", "20"]),
        (0, 0, False, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_an_axis_has_round_ticks_that_say_what_they_are(
    low: float, high: float, percent: bool, texts: list[str]
) -> None:
    assert [text for _, text in axis_of("x", low, high, percent=percent).ticks] == texts


def test_labels_that_do_not_fit_are_stacked_or_thinned() -> None:
    assert steps_of("gap", ["1", "2-3", "4-7", "8-15", "16+", "before first", "after last"]).stacked
    assert len(steps_of("hour", [f"{hour:02}" for hour in range(24)]).ticks) == 12


def test_naive_rules_look_the_same_whatever_else_there_is() -> None:
    alone, among = series_of(["vote"]), series_of(["boost", "nearest", "vote"])
    assert alone["vote"].looks == among["vote"].looks != among["nearest"].looks
    assert among["boost"].looks == "series s0"


def test_gaps_end_with_the_day() -> None:
    days = days_of({"ann": ["A . . B", ". . A .", "A A A A", ". . . ."]})
    assert sorted(gap_lengths(days).tolist()) == [1, 2, 2, 4]


def test_shades_have_about_as_many_values_each_and_missing_ones_none() -> None:
    shades = shades_of(np.array([*range(80), np.nan], dtype=float))
    assert shades[-1] == -1
    assert np.bincount(shades[:-1].astype(int)).tolist() == [10] * 8
    assert set(shades_of(np.ones(5)).tolist()) <= set(range(8))


def grid_of(n: int, *, lon: float = 116.0) -> Locations:
    side = math.ceil(math.sqrt(n))
    at = np.arange(n)
    places = (lon + 0.005 * (at % side) + 180) % 360 - 180
    return Locations(np.array([str(i) for i in at], dtype=object), places, 39.0 + 0.005 * (at // side), at)


@pytest.mark.parametrize("n", [1, 2, 300, 10_000])
def test_a_map_stays_small_however_many_locations_there_are(n: int) -> None:
    locations = grid_of(n)
    view = view_of(locations, np.ones(n))
    assert view is not None
    group = np.arange(n) % 3
    drawn = shaded_map(view, np.arange(n) + 1.0, title="t", about="a", ends=("", "", ""))
    coloured = coloured_map(view, group, title="t", about="a")
    assert len(drawn) + len(coloured) < 700_000
    assert view.is_density == (n == 10_000)


def test_a_map_keeps_both_sides_of_the_date_line_together() -> None:
    here, there = (view_of(grid_of(100, lon=lon), np.ones(100)) for lon in (10.0, 179.98))
    assert here is not None
    assert there is not None
    np.testing.assert_allclose(here.x, there.x, atol=1e-6)


def test_places_nobody_knows_make_no_map() -> None:
    locations = Locations(np.array(["a"], dtype=object), np.array([np.nan]), np.array([np.nan]), np.array([0]))
    assert view_of(locations, np.ones(1)) is None


def test_many_boxes_are_one_short_path() -> None:
    assert boxes([(0, 0), (10.04, 2)], 3, 2) == "M0 0h3v2h-3zM10 2h3v2h-3z"


def test_neighbours_of_one_colour_are_counted_beside_chance() -> None:
    place = np.column_stack([[0.0, 1.0, 10.0, 11.0], np.zeros(4)])
    assert neighbours_alike(place, np.array([0, 0, 1, 1])) == (1.0, 0.5)
    assert neighbours_alike(place, np.array([0, 1, 0, 1])) == (0.0, 0.5)


def test_clusters_are_numbered_from_the_largest() -> None:
    vectors = np.array([[0.0], [9.0], [9.1], [9.2], [5.0]])
    group = clusters_of(vectors, np.array([0, 1, 2, 3]), 2, seed=0)
    assert group.tolist() == [1, 0, 0, 0, -1]


def test_mean_attention_is_that_of_the_network_slot_by_slot() -> None:
    cases = asked({"ann": ["A b . C"] * 3, "bob": ["A B c ."]})
    settings = {"epochs": 1, "width": 8, "heads": 2, "layers": 1}
    model = make_model("attnmove", settings=settings, seed=0, device="cpu").fit(cases)
    weights = mean_attention(model, model.network.current[-1].attention, cases)  # type: ignore[attr-defined]
    assert np.isnan(weights[:, 2]).all()
    # Slots 0 and 3 are all that ann's days show: their weights sum to one, and bob's only other slot is 1.
    ann = mean_attention(model, model.network.current[-1].attention, cases.rows(np.array([0, 1, 2])))  # type: ignore[attr-defined]
    np.testing.assert_allclose(ann[:, 0] + ann[:, 3], 1, atol=1e-6)
    bob = mean_attention(model, model.network.current[-1].attention, cases.rows(np.array([3])))  # type: ignore[attr-defined]
    np.testing.assert_allclose(bob[:, 0] + bob[:, 1], 1, atol=1e-6)
    np.testing.assert_allclose(weights[:, 0], (3 * ann[:, 0] + bob[:, 0]) / 4, atol=1e-6)
    vectors = embedding_of(model, len(cases.locations))
    assert vectors is not None
    assert vectors.shape == (8, 8)
    assert embedding_of(Nearest().fit(cases), 8) is None


def test_fine_slots_are_averaged_and_unknown_ones_left_out() -> None:
    values = np.array([[1.0, 3.0, np.nan], [5.0, 7.0, np.nan], [0.0, 2.0, 4.0]])
    np.testing.assert_allclose(coarser(values, 2), [[4.0, np.nan], [1.0, 4.0]])
    assert coarser(values, 3) is values


def test_days_are_drawn_from_the_thirds_of_their_share_right() -> None:
    cases = asked({"ann": ["A a A a"] * 6 + ["A b A b"] * 6})
    kinds = drawn_days(outcomes_of(Nearest().fit(cases), cases), seed=0)
    assert [kind.name.split()[2] for kind in kinds] == ["best", "middle", "worst"]
    assert [len(kind.rows) for kind in kinds] == [3, 3, 3]
    assert max(kinds[0].rows) < 6 <= min(kinds[2].rows)


def test_letters_go_on_after_z() -> None:
    assert [letter(i) for i in (0, 25, 26)] == ["A", "Z", "A1"]


def test_calibration_and_risk_are_read_off_the_curves() -> None:
    bins = [{"n": 1, "confidence": 0.5, "precision": 1.0}, {"n": 3, "confidence": 0.8, "precision": 0.8}]
    assert calibration_error(bins) == pytest.approx(0.125)
    points = [{"coverage": 0.4, "precision": 1.0}, {"coverage": 1.0, "precision": 0.7}]
    assert risk_at(points, 0.5) == pytest.approx(0.3)
    assert math.isnan(risk_at([], 0.5))


def test_a_chart_has_the_named_runs_the_best_others_and_the_naive_rules() -> None:
    names = ["a", "b", "vote", "c", "d", "e", "mine", "nearest"]
    assert few(names, ["mine"]) == ["a", "b", "c", "mine", "nearest", "vote"]
    assert few(["vote"]) == ["vote"]
