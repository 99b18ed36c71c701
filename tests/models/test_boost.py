"""Boosted trees that rank candidates: who is left out early, how many trees, and what is not looked at."""

from __future__ import annotations

import numpy as np
import pytest

from attnmove.errors import ConfigError, RunError
from attnmove.models import boost as module
from attnmove.models.boost import Boost, BoostConfig, ranked
from attnmove.models.boosted import BoostedTrees
from attnmove.models.evidence.features import NAMES, columns_of
from attnmove.models.evidential import Evidential, Keep, LessonConfig
from builders import asked
from models.test_evidential import SMALL, model, people


def evidence_of(made: Evidential) -> object:
    cases = people(3)
    return next(made._lessons(cases, made._ready(cases), made._atlas_of(cases))).evidence


def test_with_few_trees_everybody_passes_through_all_of_them() -> None:
    few, evidence = model().scorer._trees.first(module._ROUNDS[0][0]), evidence_of(model())
    assert np.array_equal(ranked(few, evidence), few.predict(evidence.values))


def test_those_who_stay_have_their_full_score_and_the_others_follow_the_lower_half_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trees, evidence = model().scorer._trees, evidence_of(model())
    monkeypatch.setattr(module, "_ROUNDS", ((4, 6), (9, 3)))
    four, nine, full = (trees.predict(evidence.values, n_trees=n) for n in (4, 9, trees.n_trees))
    score = ranked(trees, evidence)
    for target in range(len(evidence)):
        mine = slice(evidence.start[target], evidence.start[target + 1])
        best = np.argsort(-four[mine], kind="stable")
        six, out_first = best[:6], best[6:]
        best = six[np.lexsort((six, -nine[mine][six]))]
        three, out_later = best[:3], best[3:]
        assert np.allclose(score[mine][three], full[mine][three])
        after_nine = nine[mine][six[3:]].mean() + (9 / 4) ** 0.3 * (four[mine][out_first] - four[mine][six[3:]].mean())
        for out, then in ((out_later, nine[mine][out_later]), (out_first, after_nine)):
            growth = (trees.n_trees / 9) ** 0.3
            follow = full[mine][three[1:]].mean() + growth * (then - nine[mine][three[1:]].mean())
            assert np.allclose(score[mine][out], follow)


def test_no_candidates_have_no_scores() -> None:
    cases = people(0)
    made = model()
    nothing = next(made._lessons(cases, made._ready(cases), made._atlas_of(cases))).evidence
    empty = type(nothing)(nothing.index[:0], np.zeros(1, dtype=np.int64), nothing.place[:0], nothing.values[:0])
    assert ranked(made.scorer._trees, empty).tolist() == []


def test_the_number_of_trees_is_chosen_on_validation() -> None:
    cases = people(0)
    late = cases.end - cases.first == 5
    scorer = Boost(BoostConfig(rounds=60, leaves=31, min_leaf=1, lr=0.9, l2=0.0), seed=0)
    wild = Evidential(scorer, LessonConfig(practice=0), seed=0)
    wild.fit(cases.rows(~late), cases.rows(late))
    assert wild.scorer._trees.n_trees < 120
    blind = Evidential(Boost(SMALL, seed=0), LessonConfig(draws=0, practice=0), seed=0).fit(cases)
    assert blind.scorer._trees.n_trees == SMALL.rankers * SMALL.rounds


def test_it_tells_how_far_it_is() -> None:
    cases, told = people(0), []
    made = model()
    lessons = list(made._lessons(cases, made._ready(cases), made._atlas_of(cases)))
    Boost(SMALL, seed=0).learn(lessons, [], keep=Keep(tell=told.append))
    n_trees = SMALL.rankers * SMALL.rounds
    assert [now["epoch"] for now in told] == pytest.approx([(i + 1) / n_trees for i in range(n_trees)])


def test_a_kind_of_evidence_that_is_left_out_is_not_looked_at() -> None:
    cases = people(0)
    made = Evidential(Boost(SMALL, seed=0), LessonConfig(draws=0, practice=0, without="past, others"), seed=0).fit(
        cases
    )
    used = set(made.scorer._trees.split_feature.tolist())
    assert used
    assert not used & {*columns_of("past").tolist(), *columns_of("others").tolist()}
    with pytest.raises(ConfigError, match="did you mean past"):
        LessonConfig(without="pasts")


@pytest.mark.parametrize("practice", [0, 2_000])
def test_a_week_of_one_person_is_enough_to_learn_from(practice: int) -> None:
    """Fewer candidates than the smallest leaf holds by default; the lowest location is nobody's."""
    week = asked({"me": ["B B b B C c C C D d B B", "B b B B C C c C d D B b", "b B B B C C C c D D b B"] * 3})
    one = Evidential(Boost(BoostConfig(), seed=0), LessonConfig(practice=practice), seed=0).fit(week)
    assert not one.scorer._trees.is_flat
    (found,) = one.answers(week)
    assert (found.place[:, 0] == week.truth).mean() > 0.8


def test_where_nothing_can_be_learnt_the_day_speaks_and_then_habits() -> None:
    made = Evidential(Boost(SMALL, seed=0), LessonConfig(draws=0, practice=0), seed=0).fit(people(0))
    made.scorer.restore(BoostedTrees.flat(len(NAMES)).state())
    days = ["F F F F", "F F F F", "E E E E", "D D D d", ". . . f"]
    (found,) = made.answers(asked({"you": days}, n_locations=26))
    assert found.place[:, 0].tolist() == [3, 5]
    assert (np.diff(found.probability, axis=1) <= 0).all()


def test_leaves_beyond_all_scores_are_refused() -> None:
    state = dict(model().scorer.state())
    state["leaf_value"] = state["leaf_value"] + 1e12
    with pytest.raises(RunError, match="larger than scores can be"):
        Boost(SMALL, seed=0).restore(state)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"leaves": 1},
        {"leaves": 4096},
        {"rounds": 10**12},
        {"columns": 0.0},
        {"rows": 1.5},
        {"lr": 0.0},
        {"l2": -1.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="boost"):
        BoostConfig(**wrong)
