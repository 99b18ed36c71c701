"""A scorer among its evidence: lessons, answers and scores that say the same, and what cannot be answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from safetensors import numpy as safetensors
from threadpoolctl import threadpool_info

from attnmove.errors import ConfigError, DataError, NotFittedError, RunError
from attnmove.models import evidential as evidential_module
from attnmove.models.boost import Boost, BoostConfig
from attnmove.models.calibration import Calibration, Scored
from attnmove.models.contract import State
from attnmove.models.evidence import gather as gather_module
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.features import ABSENT, FAMILIES, columns_of
from attnmove.models.evidence.gather import Evidence, gather
from attnmove.models.evidential import (
    Answers,
    Evidential,
    Keep,
    Lesson,
    LessonConfig,
    Scorer,
    as_newcomers,
    with_draws,
)
from attnmove.models.practice import made_up
from attnmove.nouns import MISSING, Bool, Cases, Float64
from builders import asked

SMALL = BoostConfig(rounds=12, leaves=7, min_leaf=5, lr=0.2)


def people(seed: int, *, n_places: int = 26, n_slots: int = 24) -> Cases:
    """Five people between two places of their own and one anywhere, a third of their slots asked for."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[str]] = {}
    for user in range(5):
        home, work = (chr(ord("A") + (3 * user + step) % n_places) for step in (0, 1))
        rows[f"u{user}"] = []
        for _ in range(6):
            day = [home] * (n_slots // 2) + [work] * (n_slots // 2)
            day[int(rng.integers(n_slots))] = chr(ord("A") + int(rng.integers(n_places)))
            marks = [rng.choice([mark, mark.lower(), mark, "."]) for mark in day]
            rows[f"u{user}"].append(" ".join(marks))
    return asked(rows, n_locations=n_places)


def new() -> Evidential:
    return Evidential(Boost(SMALL, seed=0), LessonConfig(draws=1, practice=0), seed=0)


@cache
def model() -> Evidential:
    cases = people(0)
    late = cases.end - cases.first == 5
    return new().fit(cases.rows(~late), cases.rows(late))


def all_answers(found: Iterator[Answers]) -> Answers:
    parts = list(found)
    return Answers(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("index", "place", "probability"))
    )


def probabilities(cases: Cases, of: Evidential | None = None) -> Float64:
    return np.exp(np.concatenate([part.log_prob for part in (of or model()).scores(cases)]).astype(np.float64))


def are_candidates(cases: Cases) -> Bool:
    """(M, L)"""
    assert model()._crowd is not None
    evidence = gather(cases, model()._crowd, Atlas.of(cases.locations))
    out = np.zeros((len(evidence), len(cases.locations)), dtype=np.bool_)
    out[evidence.target, evidence.place] = True
    return out


def test_scores_are_probabilities_of_all_locations() -> None:
    cases = people(1)
    found = probabilities(cases)
    assert found.shape == (len(cases.truth), 26)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)), abs=1e-5)
    assert (found > 0).all()


def test_answers_are_the_best_candidates_of_the_scores() -> None:
    cases = people(1)
    found = all_answers(model().answers(cases, top=5))
    every, candidate = probabilities(cases), are_candidates(cases)
    assert 0.2 < candidate.mean() < 1
    assert np.array_equal(found.index, cases.index)
    rows = np.arange(len(every))[:, None]
    assert found.probability == pytest.approx(every[rows, found.place], rel=1e-4)
    assert candidate[rows, found.place].all()
    best = -np.sort(-np.where(candidate, every, 0), axis=1)[:, :5]
    assert found.probability == pytest.approx(best, rel=1e-4)
    assert (np.diff(found.probability, axis=1) <= 0).all()


def test_a_first_answer_is_the_most_likely_location_of_all() -> None:
    cases = people(1)
    found = all_answers(model().answers(cases, top=1))
    assert found.probability[:, 0] == pytest.approx(probabilities(cases).max(axis=1), rel=1e-4)


def test_of_very_many_validation_days_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, seen = people(0), []
    late = cases.end - cases.first == 5
    monkeypatch.setattr(Boost, "learn", lambda self, lessons, valid, *, keep: seen.extend(valid))
    monkeypatch.setattr(Boost, "score", lambda self, evidence, cases: np.zeros(len(evidence.place)))
    monkeypatch.setattr(evidential_module, "_MOST_VALID", 20)
    new().fit(cases.rows(~late), cases.rows(late))
    assert 0 < sum(len(lesson.evidence) for lesson in seen) <= 20 < cases.rows(late).hidden.sum()


def test_answers_are_the_same_however_many_are_asked_for() -> None:
    cases = people(2)
    whole = all_answers(model().answers(cases, top=40))
    for top in (1, 2, 5, 26):
        some = all_answers(model().answers(cases, top=top))
        assert np.array_equal(some.place, whole.place[:, :top])
        assert np.array_equal(some.probability, whole.probability[:, :top])
    beyond = np.arange(40) >= are_candidates(cases).sum(axis=1)[:, None]
    assert np.array_equal(whole.place == MISSING, beyond)
    assert (whole.probability[beyond] == 0).all()
    with_origins = np.concatenate([part.place for part in model().answers(cases, top=5, origins=True)])
    assert np.array_equal(with_origins, whole.place[:, :5])


def test_answers_are_the_same_in_parts_and_whatever_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = people(3)
    whole = all_answers(model().answers(cases))
    monkeypatch.setattr(gather_module, "_ROWS_AT_ONCE", 4)
    monkeypatch.setattr(gather_module, "_TARGETS_AT_ONCE", 15)
    parts = list(model().answers(replace(cases, loc=cases.visible)))
    assert len(parts) > 4
    found = all_answers(iter(parts))
    for name in ("index", "place", "probability"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name


def test_scores_are_gathered_in_parts_however_few_the_locations_are(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = people(3)
    whole = probabilities(cases)
    monkeypatch.setattr(gather_module, "_TARGETS_AT_ONCE", 15)
    parts = list(model().scores(cases))
    assert len(parts) > 4
    assert max(len(part.index) for part in parts) <= 15 + cases.n_slots
    assert np.array_equal(np.concatenate([part.index for part in parts]), cases.index)
    assert np.array_equal(probabilities(cases), whole)


def test_matrix_products_have_their_threads_back_when_the_last_answers_are_given() -> None:
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    one, other = (model().scores(people(3)) for _ in range(2))
    next(one), next(other)
    assert set(threads()) <= {1}
    list(one)
    assert set(threads()) <= {1}
    list(other)
    assert threads() == before


def test_what_every_location_is_a_candidate_for_is_one_of_them() -> None:
    cases = people(4, n_places=4)
    small = new().fit(cases)
    found = all_answers(small.answers(cases, top=4))
    full = (found.place != MISSING).all(axis=1)
    assert full.any()
    assert found.probability[full].sum(axis=1) == pytest.approx(np.ones(full.sum()), abs=1e-5)
    assert probabilities(cases, small).sum(axis=1) == pytest.approx(np.ones(len(found.place)), abs=1e-5)


@pytest.mark.parametrize("alone", [True, False])
def test_a_target_without_candidates_has_no_answer(alone: bool) -> None:
    """The only user of a dataset, on a first day of which nothing is visible."""
    lonely = new().fit(asked({"me": ["A B b C C c A B"] * 6}))
    days = ["a . . . . . . ."] if alone else ["a . . . . . . .", "A a A A . . . ."]
    cases = asked({"me": days})
    found = all_answers(lonely.answers(cases, top=3, origins=True))
    assert found.place[0].tolist() == [MISSING] * 3
    assert found.probability[0].tolist() == [0] * 3
    assert probabilities(cases, lonely).sum(axis=1) == pytest.approx(np.ones(len(found.place)), abs=1e-5)


def test_nothing_asked_is_nothing_answered() -> None:
    cases = people(1)
    for none in (cases.rows(np.zeros(0, dtype=np.int64)), replace(cases, hidden=np.zeros_like(cases.hidden))):
        assert list(model().answers(none)) == []
        assert list(model().scores(none)) == []


def test_draws_never_hide_all_that_is_seen_and_only_what_is_seen() -> None:
    train = people(5)
    unseen = replace(train, hidden=train.hidden | (train.loc == MISSING))
    drawn = with_draws(unseen, LessonConfig(draws=7), np.random.default_rng(0))
    assert len(drawn) == 8 * len(train)
    assert not (drawn.hidden & (drawn.loc == MISSING)).any()
    stored = drawn.hidden[: len(train)]
    assert np.array_equal(stored, train.hidden)  # the stored draws come first and stay
    assert np.array_equal(drawn.user[: len(train)], train.user)
    new_ones = drawn.rows(np.arange(len(train), len(drawn)))
    assert ((new_ones.visible != MISSING).sum(axis=1) > 0).all()
    assert (new_ones.hidden.sum(axis=1) > 0).all()
    assert len(np.unique(new_ones.hidden, axis=0)) > 6 * len(train)


def test_days_of_one_sighting_or_none_are_not_hidden() -> None:
    train = asked({"a": ["A . .", ". . .", "a . .", "A A A"]})
    drawn = with_draws(train, LessonConfig(draws=2), np.random.default_rng(0))
    assert drawn.hidden.sum(axis=1).tolist() == [0, 0, 1, 0, *[0, 0, 0, 1] * 2]


def test_a_day_in_several_draws_is_drawn_once_more_not_several_times() -> None:
    train = people(5)
    twice = train.rows(np.repeat(np.arange(len(train)), 2))
    assert len(with_draws(twice, LessonConfig(draws=3), np.random.default_rng(0))) == 5 * len(train)
    same = with_draws(twice, LessonConfig(draws=0), np.random.default_rng(0))
    assert np.array_equal(same.hidden, twice.hidden)


@pytest.mark.parametrize("most", [1, 30, 200, 10_000])
def test_lessons_have_no_more_targets_than_allowed(most: int) -> None:
    train = people(6)
    drawn = with_draws(train, LessonConfig(draws=3, most_targets=most), np.random.default_rng(1))
    largest = drawn.hidden.sum(axis=1).max()
    assert 0 < drawn.hidden.sum() <= max(most, 24)
    assert drawn.hidden.sum() >= min(most, 4 * train.hidden.sum() // 2) - largest or most == 1
    again = with_draws(train, LessonConfig(draws=3, most_targets=most), np.random.default_rng(1))
    assert np.array_equal(again.hidden, drawn.hidden)


def test_newcomers_know_the_last_of_their_days_only() -> None:
    cases = people(6).rows(np.tile(np.arange(30), 400))
    n = cases.end - cases.first
    new = as_newcomers(cases, np.random.default_rng(0))
    left = new.end - new.first
    assert np.array_equal(new.end, cases.end)
    assert (left[n > 0] < n[n > 0]).all()
    assert not left[n == 0].any()
    counts = np.bincount(left[n == 5])  # of five days: none to four
    assert len(counts) == 5
    assert (np.diff(counts) < 0).all()
    assert len(as_newcomers(cases.rows(np.arange(0)), np.random.default_rng(1))) == 0


def test_confidence_is_learnt_from_newcomers_too_and_what_to_choose_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    heard_of: list[list[Scored]] = []
    monkeypatch.setattr(Calibration, "fitted", lambda own, *, again, beside: heard_of.extend((own, again, beside)))
    listener, valid = Listener(), people(8)
    Evidential(listener, LessonConfig(draws=0, practice=0), seed=0).fit(people(7), valid)
    n = valid.hidden.sum()
    assert [sum(len(part.known) for part in parts) for parts in heard_of] == [n, n, 0]
    own, new = (np.concatenate([part.signs[:, 1] for part in parts]) for parts in heard_of[:2])
    assert (new <= own).all()  # days known
    assert (new < own).mean() > 0.5
    assert np.array_equal(np.concatenate([lesson.cases.first for lesson in listener.valid]), valid.first)


class Listener:
    """A scorer that keeps its lessons and finds all candidates alike."""

    def __init__(self) -> None:
        self.lessons: list[Lesson] = []
        self.valid: list[Lesson] = []

    def learn(self, lessons: list[Lesson], valid: list[Lesson], *, keep: Keep) -> None:
        self.lessons, self.valid = lessons, valid

    def score(self, evidence: Evidence, cases: Cases) -> Float64:
        return np.zeros(len(evidence.place))

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        pass


def test_lessons_are_about_targets_of_known_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather_module, "_ROWS_AT_ONCE", 7)
    train, valid = people(7), people(8)
    every = replace(valid, hidden=np.ones_like(valid.hidden))
    listener = Listener()
    Evidential(listener, LessonConfig(draws=0, practice=0), seed=0).fit(train, every)
    assert sum(len(lesson.truth) for lesson in listener.lessons) == train.hidden.sum()
    assert sum(len(lesson.truth) for lesson in listener.valid) == (valid.loc != MISSING).sum()
    assert len(listener.valid) > 1
    for lesson in listener.lessons + listener.valid:
        found = lesson.truth != MISSING
        assert np.array_equal(lesson.evidence.place[lesson.truth[found]], lesson.cases.truth[found])
        assert (lesson.cases.truth != MISSING).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kind_of_evidence_that_is_left_out_says_nothing(family: str) -> None:
    listener = Listener()
    Evidential(listener, LessonConfig(draws=0, practice=0, without=f" {family},"), seed=0).fit(people(7))
    for lesson in listener.lessons:
        said = ~np.isclose(lesson.evidence.values, ABSENT, equal_nan=True)
        assert not said[:, columns_of(family)].any()
        for other in {*FAMILIES} - {family}:
            assert said[:, columns_of(other)].any()


def test_a_model_survives_a_file_of_arrays_and_refuses_a_forged_one() -> None:
    saved = safetensors.load(safetensors.save(dict(model().state())))
    assert np.array_equal(probabilities(people(9), new().restore(saved)), probabilities(people(9)))
    for name in ("evidence/names", "crowd/people", "calibration/parameter", "scorer/threshold"):
        for forged in ({**saved, name: saved[name][:-1]}, {key: saved[key] for key in saved if key != name}):
            with pytest.raises(RunError):
                new().restore(forged)


def few(*, practice: int = 300, most_targets: int = 40_000, scorer: Scorer | None = None) -> Evidential:
    lessons = LessonConfig(draws=1, practice=practice, most_targets=most_targets)
    return Evidential(scorer or Boost(SMALL, seed=0), lessons, seed=0)


def heard(made: Evidential, cases: Cases, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Lesson], list[Lesson]]:
    """The lessons, and those to choose on, that the scorer is given."""
    told: list[list[Lesson]] = []
    monkeypatch.setattr(Boost, "learn", lambda self, lessons, valid, *, keep: told.extend((lessons, valid)))
    monkeypatch.setattr(Boost, "score", lambda self, evidence, cases: np.zeros(len(evidence.place)))
    late = cases.end - cases.first == 5
    made.fit(cases.rows(~late), cases.rows(late))
    return told[0], told[1]


def n_targets(lessons: list[Lesson]) -> int:
    return sum(len(lesson.evidence) for lesson in lessons)


def test_where_ones_own_are_few_made_up_people_are_learnt_from_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, made = people(0), few(practice=2_000)
    lessons, chosen = heard(made, cases, monkeypatch)
    own = [lesson for lesson in lessons if lesson.cases.locations is cases.locations]
    assert 0 < n_targets(own) < 1_000
    assert 1_950 < n_targets(lessons) <= 2_000
    assert {lesson.cases.n_slots for lesson in lessons} == {24}
    assert all(lesson.cases.locations is cases.locations for lesson in chosen)
    assert made.lessons_learnt["lessons"] == n_targets(own)
    assert sum(made.lessons_learnt.values()) == n_targets(lessons)


def test_made_up_people_take_the_place_of_none_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = people(0)
    alone, _ = heard(few(practice=0), cases, monkeypatch)
    enough, _ = heard(few(practice=n_targets(alone)), cases, monkeypatch)
    least, _ = heard(few(practice=2_000, most_targets=n_targets(alone)), cases, monkeypatch)
    for lessons in (enough, least):
        assert [len(lesson.evidence) for lesson in lessons] == [len(lesson.evidence) for lesson in alone]
    more, _ = heard(few(practice=2_000), cases, monkeypatch)
    for one, other in zip(alone, more, strict=False):
        assert np.array_equal(one.evidence.values, other.evidence.values, equal_nan=True)


def test_a_run_remembers_nobody_who_was_made_up() -> None:
    cases = people(0)
    alone, more = few(practice=0).fit(cases).state(), few(practice=600).fit(cases).state()
    crowd = [name for name in alone if name.startswith("crowd/")]
    assert crowd
    assert all(np.array_equal(alone[name], more[name]) for name in crowd)
    assert more.keys() == alone.keys()
    assert more["scorer/threshold"].tolist() != alone["scorer/threshold"].tolist()


def test_practising_gives_the_same_run_every_time() -> None:
    one, two = (few(practice=600).fit(people(0)).state() for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_a_scorer_that_tells_locations_apart_does_not_practise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Boost, "travels", False)
    cases = people(0)
    lessons, _ = heard(few(practice=2_000), cases, monkeypatch)
    assert all(lesson.cases.locations is cases.locations for lesson in lessons)


def test_who_has_seen_few_people_answers_better_for_having_practised() -> None:
    """One person is not enough to learn from; others are asked."""
    cases = made_up(people(0), 4_000, np.random.default_rng(77))
    users = np.unique(cases.user)
    mine, others = cases.user == users[0], np.isin(cases.user, users[20:])

    def right(made: Evidential) -> float:
        found = all_answers(made.fit(cases.rows(mine)).answers(cases.rows(others), top=1))
        return float((found.place[:, 0] == cases.rows(others).truth).mean())

    assert right(few(practice=3_000)) > right(few(practice=0)) + 0.02


def test_what_cannot_be_learnt_or_asked_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to learn from"):
        new().fit(asked({"a": ["A B ."]}))
    with pytest.raises(NotFittedError):
        list(new().answers(people(1)))
    with pytest.raises(DataError, match="trained on another dataset"):
        list(model().answers(people(1, n_places=9)))
    for wrong in ({"draws": -1}, {"practice": -1}, {"most_targets": 0}, {"without": "weather"}):
        with pytest.raises(ConfigError):
            LessonConfig(**wrong)  # type: ignore[arg-type]
