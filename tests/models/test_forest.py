"""The forest: its features worked by hand, its arrays against scikit-learn, and what it must be able to learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnmove.errors import ConfigError, DataError
from attnmove.models import forest as module
from attnmove.models.forest import Forest, ForestConfig, Trees, flatten
from attnmove.models.habits import Habits
from attnmove.nouns import MISSING, Cases, Float32, Float64
from builders import asked, cases_from, days_of, some_locations

RandomForestClassifier = pytest.importorskip("sklearn.ensemble").RandomForestClassifier
SMALL = ForestConfig(trees=10, min_leaf=2, redraws=0, tried=0.5)


def walkers(seed: int, *, users: int = 30, n_locations: int = 8, fresh: bool = False) -> Cases:
    """Days of twelve slots that stay at one place, then at another; the third of each is asked for.

    `fresh` users are at the last two locations only.
    """
    rng = np.random.default_rng(seed)
    least, most = (n_locations - 2, n_locations) if fresh else (0, n_locations - 2)
    rows = {}
    for user in range(users):
        first, second = (chr(ord("A") + int(place)) for place in rng.integers(least, most, 2))
        change = int(rng.integers(3, 10))
        rows[f"u{user:02}"] = [" ".join(first if slot < change else second for slot in range(12))]
    days = days_of(rows)
    return cases_from(days, rng.random(days.loc.shape) < 1 / 3, some_locations(n_locations))


def probabilities(model: Forest, cases: Cases) -> Float64:
    return np.exp(np.concatenate([part.log_prob for part in model.scores(cases)]).astype(np.float64))


def features(cases: Cases, habits: Habits | None = None) -> Float32:
    return module._features(cases, module._Around.of(cases), habits or Habits.of(cases))


def test_what_is_around_a_target_is_visible() -> None:
    around = module._Around.of(asked({"a": ["A b b C", "a B . .", ". . C d", "a b . c", "B c C ."]}))
    letters = {
        name: "".join("." if place == MISSING else chr(ord("A") + place) for place in getattr(around, name).tolist())
        for name in ("before", "after", "nearer", "other")
    }
    assert letters == {
        "before": "AABC...B",
        "after": "CCBC...C",
        "nearer": "ACBC...B",  # a tie goes to the place before
        "other": "CABC...C",
    }
    assert around.to_before.tolist() == [1, 2, 4, 1, 4, 4, 4, 1]
    assert around.to_after.tolist() == [2, 1, 1, 4, 4, 4, 4, 1]


def test_an_answer_is_a_location_or_one_of_the_places_around() -> None:
    cases = asked({"a": ["A a c C", "A d . C"]})
    around = module._Around.of(cases)
    answer = around.relative_to(cases.truth, 8)
    assert answer.tolist() == [8, 8, 3]
    assert around.absolute(np.arange(3), answer, 8).tolist() == cases.truth.tolist() == [0, 2, 3]
    assert around.absolute(np.array([0, 1]), np.array([9, 9], dtype=np.int32), 8).tolist() == [2, 0]


def test_the_features_are_those_of_the_visible_part() -> None:
    cases = asked({"a": ["A A b C"], "b": ["C c . ."]})
    x = features(cases)
    entropy, radius_km, slot, to_before, to_after, nearest, gap, apart_km = x[0, :8].tolist()
    assert entropy == pytest.approx(-(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3)))
    step = 1.7060  # kilometres between neighbours; A A C lie at 0, 0 and 2 steps
    assert radius_km == pytest.approx(np.sqrt(8 / 9) * step, rel=1e-3)
    assert (slot, to_before, to_after, nearest, gap) == (2, 1, 1, 1, 2)
    assert apart_km == pytest.approx(2 * step, rel=1e-3)
    assert x[1, :8].tolist() == [0, 0, 1, 1, 4, 1, 5, 0]


def test_a_place_is_its_centre_and_its_rank_in_popularity() -> None:
    x = features(asked({"a": ["C C b A"]}))
    before, after = x[0, 8:13], x[0, 13:18]
    assert after[0] - before[0] == pytest.approx(-2 * 1.7060, rel=1e-3)
    assert (before[4], after[4]) == (0, 1)
    unknown = features(asked({"a": ["C C b A", "c . . ."]}, centres=False))
    assert unknown[:, [8, 9, 13, 14]].tolist() == [[0] * 4] * 2
    assert unknown[:, [12, 17]].tolist() == [[0, 1], [-1, -1]]


def test_a_redraw_hides_as_many_observed_slots_of_each_day_once() -> None:
    cases = asked({"a": ["A b b C . D", "a A A A . ."]})
    twice = cases.rows(np.array([0, 0, 1, 1]))
    more = module._with_redraws(twice, 5, np.random.default_rng(0))
    assert len(more) == 4 + 2 * 5
    assert np.array_equal(more.hidden[:4], twice.hidden)
    assert more.hidden[4:].sum(axis=1).tolist() == [2] * 5 + [1] * 5
    assert (more.truth != MISSING).all()
    assert len(np.unique(more.hidden[4:9], axis=0)) > 1
    assert module._with_redraws(twice, 0, np.random.default_rng(0)) is twice


def test_the_arrays_answer_what_scikit_learn_answers() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 6)).astype(np.float32)
    answer = (3 * (x[:, 0] > 0) + 5 * (x[:, 1] > 0.3) + rng.integers(0, 2, 400)).astype(np.int32)
    theirs = RandomForestClassifier(n_estimators=7, min_samples_leaf=3, random_state=0).fit(x, answer)
    trees = flatten(theirs.estimators_, theirs.classes_)
    assert trees.n_trees == 7
    asked_for = rng.normal(size=(300, 6)).astype(np.float32)
    target, found, share = trees.answers(asked_for)
    ours = np.zeros((300, 10))
    np.add.at(ours, (target, found), share)
    assert np.allclose(ours[:, theirs.classes_], theirs.predict_proba(asked_for), atol=1e-6)
    assert np.array_equal(
        trees.leaves(asked_for) - trees.root, theirs.apply(asked_for)
    )  # the very leaves, not only their shares


def test_a_tree_without_a_split_is_one_leaf() -> None:
    x = np.zeros((5, 2), dtype=np.float32)
    theirs = RandomForestClassifier(n_estimators=2, random_state=0).fit(x, [4] * 5)
    trees = flatten(theirs.estimators_, theirs.classes_)
    assert trees.leaves(x[:1]).tolist() == [[0, 1]]
    assert [part.tolist() for part in trees.answers(x[:1])] == [[0, 0], [4, 4], [0.5, 0.5]]


def test_the_forest_learns_to_stay() -> None:
    model = Forest(SMALL).fit(walkers(0))
    test = walkers(1)
    assert (probabilities(model, test).argmax(axis=1) == test.truth).mean() > 0.8


def test_relative_answers_reach_places_that_were_never_in_training() -> None:
    train, test = walkers(0), walkers(1, fresh=True)
    assert not set(test.truth.tolist()) & set(train.loc.ravel().tolist())
    relative = probabilities(Forest(replace(SMALL, relative=True)).fit(train), test)
    absolute = probabilities(Forest(SMALL).fit(train), test)
    assert (relative.argmax(axis=1) == test.truth).mean() > 0.8
    assert (absolute.argmax(axis=1) == test.truth).mean() == 0


def test_the_share_of_popularity_is_what_the_settings_say() -> None:
    train = asked({"a": ["A A A a a B"] * 3})
    model = Forest(ForestConfig(trees=3, min_leaf=1, redraws=0, relative=False, popularity=0.2)).fit(train)
    found = probabilities(model, asked({"a": ["A a . . . ."]}))[0]
    everyone = (np.array([15, 3, 0, 0, 0, 0, 0, 0]) + 0.5) / 22
    assert found.tolist() == pytest.approx((0.2 * everyone + 0.8 * np.eye(8)[0]).tolist(), rel=1e-5)


def test_targets_followed_in_blocks_get_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, test = Forest(SMALL).fit(walkers(0)), walkers(1)
    whole = probabilities(model, test)
    monkeypatch.setattr(module, "_STEPS_AT_ONCE", 70)
    assert np.array_equal(probabilities(model, test), whole)


def test_a_growing_tree_stays_within_its_memory_and_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    train = walkers(0)
    n_answers = len(np.unique(train.truth))
    monkeypatch.setattr(module, "_CELLS_OF_A_TREE", 2 * n_answers * 4)
    monkeypatch.setattr(module, "_ROWS_OF_A_TREE", 50)
    trees = Forest(replace(SMALL, relative=False)).fit(train)._trees
    assert isinstance(trees, Trees)
    leaves = np.add.reduceat(trees.left == MISSING, trees.root)
    assert leaves.max() <= 4


def test_training_days_without_a_known_target_are_refused() -> None:
    cases = asked({"a": ["A b B ."]})
    with pytest.raises(DataError, match="rf learns from hidden slots"):
        Forest(SMALL).fit(replace(cases, hidden=np.zeros_like(cases.hidden)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"trees": 0},
        {"min_leaf": 0},
        {"redraws": -1},
        {"tried": 0.0},
        {"tried": 1.5},
        {"popularity": 0.0},
        {"popularity": float("nan")},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="rf: "):
        ForestConfig(**wrong)  # type: ignore[arg-type]
