"""The scorer CopyMove: what it learns from, that it answers the same whoever is asked with, and what it keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnmove.errors import ConfigError, DataError, NotFittedError, RunError
from attnmove.models.copymove import CopyMove
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.features import ABSENT, NAMES, column, columns_of
from attnmove.models.evidence.gather import Evidence, gather
from attnmove.models.evidential import Evidential, Keep, Lesson, LessonConfig
from attnmove.models.ranking import leading
from attnmove.nets.config import CopyMoveConfig
from attnmove.nouns import MISSING, Cases, Int64
from attnmove.train.config import Training
from builders import asked

WEEK = asked(
    {
        "u": ["A A a B b . A", "A a A B B . a", "A A a b B . A", "A A A b b . A"],
        "v": ["C . c B b . C", "C c C B B . c", "C C c b B . C", "C C C b b . C"],
        "w": ["D D d E E . D", "D D D e E . d", "D d D e e . D", "D D D E e D d"],
    }
)
SHAPE = CopyMoveConfig(width=8, heads=2, past_days=3, hidden=8, places=True)
HOW = Training(masks="stored", epochs=4, batch_days=4, patience=0, lr=0.01, label_smoothing=0.0)


def lessons(cases: Cases = WEEK) -> list[Lesson]:
    evidence = gather(cases, Crowd.of(WEEK), Atlas.of(cases.locations))
    return [Lesson(cases, evidence, evidence.position_of(cases.truth, len(cases.locations)))]


def scorer(config: CopyMoveConfig = SHAPE, training: Training = HOW, *, seed: int = 1) -> CopyMove:
    return CopyMove(config, training, seed=seed, device="cpu")


def learnt(training: Training = HOW, keep: Keep | None = None) -> CopyMove:
    made = scorer(training=training)
    made.learn(lessons(), lessons(), keep=keep or Keep())
    return made


TRAINED = learnt()


def equal(one: CopyMove, other: CopyMove) -> bool:
    a, b = one.state(), other.state()
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_it_learns_and_the_same_seed_learns_the_same() -> None:
    made = learnt(replace(HOW, epochs=20))
    assert made.outcome is not None
    losses = [row["loss"] for row in made.outcome.log]
    assert losses[-1] < 0.7 * losses[0]
    assert made.writes
    assert equal(TRAINED, learnt())


def test_targets_whose_place_is_no_candidate_are_not_learnt_from() -> None:
    """Their slots stay hidden all the same: what is there has no effect."""
    (lesson,) = lessons()
    dropped = lesson.truth.copy()
    dropped[::3] = MISSING
    row, slot = lesson.evidence.index[::3].T
    loc = lesson.cases.loc.copy()
    loc[row, slot] = 7
    weights = []
    for cases in (lesson.cases, replace(lesson.cases, loc=loc)):
        made = scorer()
        made.learn([Lesson(cases, lesson.evidence, dropped)], [], keep=Keep())
        weights.append(made)
    assert equal(*weights)
    assert not equal(weights[0], TRAINED)
    with pytest.raises(RunError, match="nothing to train on"):
        scorer().learn([replace(lesson, truth=np.full(len(dropped), MISSING))], [], keep=Keep())


def test_lessons_in_several_parts_are_the_lessons_in_one() -> None:
    parts = [lesson for rows in (np.arange(5), np.arange(5, 12)) for lesson in lessons(WEEK.rows(rows))]
    copied = [replace(part, cases=replace(part.cases, past=part.cases.past.copy())) for part in parts]
    for several in (parts, copied):
        made = scorer()
        made.learn(several, lessons(), keep=Keep())
        assert all(
            np.allclose(a, b, atol=1e-5) for a, b in zip(TRAINED.state().values(), made.state().values(), strict=True)
        )


def test_a_score_is_the_same_whoever_is_asked_with() -> None:
    (whole,) = lessons()
    together = TRAINED.score(whole.evidence, whole.cases)
    for row in range(len(WEEK)):
        (alone,) = lessons(WEEK.rows(np.array([row])))
        mine = whole.evidence.index[whole.evidence.target, 0] == row
        assert np.allclose(TRAINED.score(alone.evidence, alone.cases), together[mine], atol=1e-4)


def test_hidden_slots_are_not_looked_at() -> None:
    (lesson,) = lessons()
    blind = replace(lesson.cases, loc=lesson.cases.visible)
    expected = TRAINED.score(lesson.evidence, lesson.cases)
    assert np.array_equal(TRAINED.score(lesson.evidence, blind), expected)


def one_each(evidence: Evidence) -> tuple[Evidence, Int64]:
    """One candidate of every target alone: of every other target the one that today speaks for most."""
    at = leading(evidence.start, evidence.values[:, column("day_share")].astype(np.float64), most=1)[:, 0]
    at[1::2] = evidence.start[1:][1::2] - 1
    alone = Evidence(evidence.index, np.arange(len(evidence) + 1), evidence.place[at], evidence.values[at])
    return alone, at


def test_a_candidate_alone_has_the_score_it_has_among_others_and_less_evidence_changes_it() -> None:
    (lesson,) = lessons()
    alone, at = one_each(lesson.evidence)
    full = TRAINED.score(alone, lesson.cases)
    assert np.allclose(full, TRAINED.score(lesson.evidence, lesson.cases)[at], atol=1e-4)
    values = alone.values.copy()
    values[:, columns_of("day")] = ABSENT[columns_of("day")]
    seen = alone.values[:, column("day_share")] > 0
    said = ~np.isclose(values, alone.values, equal_nan=True, rtol=0, atol=0).all(axis=1)
    less = TRAINED.score(replace(alone, values=values), lesson.cases)
    assert not np.isclose(less[seen], full[seen], atol=1e-4).any()
    assert seen.any()
    assert np.allclose(less[~said], full[~said], atol=1e-4)


def test_targets_without_candidates_cases_without_past_and_nothing_at_all_are_scored() -> None:
    (lesson,) = lessons()
    evidence = lesson.evidence
    sizes = np.diff(evidence.start) * (np.arange(len(evidence)) % 2)
    kept = np.repeat(sizes > 0, np.diff(evidence.start))
    fewer = Evidence(
        evidence.index, np.concatenate([[0], np.cumsum(sizes)]), evidence.place[kept], evidence.values[kept]
    )
    whole = TRAINED.score(evidence, lesson.cases)
    assert np.allclose(TRAINED.score(fewer, lesson.cases), whole[kept], atol=1e-4)
    nothing = Evidence(evidence.index[:0], np.zeros(1, dtype=np.int64), evidence.place[:0], evidence.values[:0])
    assert TRAINED.score(nothing, lesson.cases).shape == (0,)
    assert TRAINED.score(nothing, lesson.cases.rows(np.arange(0))).shape == (0,)
    new = replace(
        lesson.cases, past=WEEK.past[:0], past_date=WEEK.past_date[:0], first=WEEK.first * 0, end=WEEK.end * 0
    )
    assert np.isfinite(TRAINED.score(evidence, new)).all()


def test_locations_without_centres_and_never_seen_ones_are_scored() -> None:
    strange = asked({"x": ["H H g F F . H", "H g H f F . H"]}, centres=False)
    (lesson,) = lessons(strange)
    assert np.isnan(lesson.evidence.values[:, column("km_prev")]).all()
    assert np.isfinite(TRAINED.score(lesson.evidence, strange)).all()


def test_what_was_learnt_is_restored() -> None:
    other = scorer(seed=5)
    other.restore(TRAINED.state())
    (lesson,) = lessons()
    assert np.array_equal(other.score(lesson.evidence, WEEK), TRAINED.score(lesson.evidence, WEEK))


def test_forged_arrays_are_refused() -> None:
    state = dict(TRAINED.state())
    forgeries: list[dict[str, np.ndarray]] = [
        {"net/places.table": np.zeros((1 << 20, 1), dtype=np.float32)},
        {"net/places.table": np.zeros((1, 8), dtype=np.float32)},
        {"net/places.table": np.float32(3)},  # type: ignore[dict-item]
        {"net/copy_day.apart": np.zeros((0,), dtype=np.float32)},
        {"net/mean": np.zeros(len(NAMES) + 1, dtype=np.float32)},
        {"net/mean": np.zeros(len(NAMES), dtype=np.float64)},
        {"net/deviation": np.zeros(len(NAMES), dtype=np.float32)},
        {"net/edges": np.zeros_like(state["net/edges"])},
        {"net/stowaway": np.zeros(2, dtype=np.float32)},
    ]
    for forgery in forgeries:
        with pytest.raises(RunError):
            scorer().restore({**state, **forgery})
    with pytest.raises(RunError, match="not the weights of a network"):
        scorer().restore({})
    with pytest.raises(RunError, match="not those of this model and configuration"):
        scorer(replace(SHAPE, hidden=9)).restore(state)


def test_it_says_what_it_cannot_do() -> None:
    (lesson,) = lessons()
    with pytest.raises(NotFittedError):
        scorer().score(lesson.evidence, WEEK)
    with pytest.raises(NotFittedError):
        scorer().state()
    with pytest.raises(ConfigError, match="masks must be stored"):
        scorer(training=Training())
    more = asked({"u": ["A a B", "A b B"]}, n_locations=9)
    with pytest.raises(DataError, match="trained on another dataset"):
        TRAINED.score(lesson.evidence, more)


def stop_in(epoch: float) -> object:
    def tell(now: dict[str, float]) -> None:
        if now["epoch"] > epoch:
            raise KeyboardInterrupt

    return tell


def test_a_resumed_training_ends_with_the_weights_of_an_uninterrupted_one(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    stopped = learnt(keep=Keep(stop_in(2.4), file))  # type: ignore[arg-type]
    assert stopped.outcome is not None
    assert stopped.outcome.interrupted
    assert equal(learnt(keep=Keep(None, file, resume=True)), TRAINED)
    with pytest.raises(RunError, match="of another model, dataset, seed or setting"):
        learnt(replace(HOW, lr=0.5), Keep(None, file, resume=True))


def test_half_precision_trains_and_answers_as_the_run_it_leaves() -> None:
    made, read = learnt(replace(HOW, precision="bf16")), scorer(training=replace(HOW, precision="bf16"))
    read.restore(made.state())
    (lesson,) = lessons()
    assert np.array_equal(made.score(lesson.evidence, WEEK), read.score(lesson.evidence, WEEK))


def test_places_need_not_be_told_apart() -> None:
    made = scorer(replace(SHAPE, places=False))
    made.learn(lessons(), [], keep=Keep())
    other = scorer(replace(SHAPE, places=False))
    other.restore(made.state())
    (lesson,) = lessons()
    assert np.array_equal(made.score(lesson.evidence, WEEK), other.score(lesson.evidence, WEEK))


def test_it_plugs_into_the_frame() -> None:
    model = Evidential(scorer(), LessonConfig(draws=1, practice=0), seed=0).fit(WEEK, WEEK)
    log_prob = np.concatenate([part.log_prob for part in model.scores(WEEK)])
    assert np.allclose(np.exp(log_prob).sum(axis=1), 1, atol=1e-4)
    (answers,) = model.answers(WEEK, origins=True)
    assert answers.origin is not None
    again = Evidential(scorer(), LessonConfig(draws=1, practice=0), seed=0).restore(model.state())
    assert np.array_equal(np.concatenate([part.log_prob for part in again.scores(WEEK)]), log_prob)
