"""Probabilities out of scores: they sum to one, tell how sure to be, and leave the order alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from safetensors import numpy as safetensors

from attnmove.errors import RunError
from attnmove.models.calibration import Calibration, Scored
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.features import column
from attnmove.models.evidence.gather import gather
from attnmove.nouns import MISSING, Float64
from builders import asked


def scored(sizes: list[int], *, n_locations: int = 9, seed: int = 0, sharp: float = 2.0) -> Scored:
    """Targets with so many candidates each, at random scores; the truth is drawn later."""
    rng = np.random.default_rng(seed)
    start, m = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), len(sizes)
    signs = np.column_stack([np.ones(m), rng.normal(size=(m, 5))])
    return Scored(
        score=sharp * rng.normal(size=int(start[-1])),
        start=start,
        signs=signs,
        is_all=np.diff(start) == n_locations,
        truth=np.full(m, MISSING),
        known=np.ones(m, dtype=np.bool_),
    )


def drawn(part: Scored, rule: Calibration, *, seed: int = 1) -> Scored:
    """The same with truths as likely as the rule says."""
    rng = np.random.default_rng(seed)
    candidate, none = rule.log_prob(part)
    truth = np.full(len(none), MISSING)
    for m in range(len(none)):
        mine = range(part.start[m], part.start[m + 1])
        chance = np.exp([none[m], *candidate[list(mine)]])
        truth[m] = [MISSING, *mine][rng.choice(len(chance), p=chance / chance.sum())]
    return Scored(part.score, part.start, part.signs, part.is_all, truth, part.known)


def sums(part: Scored, rule: Calibration) -> Float64:
    candidate, none = rule.log_prob(part)
    target = np.repeat(np.arange(len(none)), np.diff(part.start))
    return np.bincount(target, np.exp(candidate), len(none)) + np.exp(none)


WILD = [
    Calibration.default(),
    Calibration(np.array([1.0, 2.0, -1.0, 0.5, 3.0, 0.0, -2.0, 4.0])),
    Calibration(np.array([-50.0, 900.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])),
    Calibration(np.array([50.0, -900.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])),
]


@pytest.mark.parametrize("rule", WILD)
@pytest.mark.parametrize("sharp", [0.0, 2.0, 1e4])
def test_candidates_and_none_of_them_sum_to_one(rule: Calibration, sharp: float) -> None:
    part = scored([3, 1, 9, 5, 9, 8, 2], sharp=sharp)
    assert sums(part, rule) == pytest.approx(np.ones(7))
    _, none = rule.log_prob(part)
    assert np.exp(none[part.is_all]).tolist() == [0, 0]
    assert (none[~part.is_all] > -9).all()


@pytest.mark.parametrize("rule", WILD)
def test_without_candidates_it_is_none_of_them(rule: Calibration) -> None:
    part = scored([0, 3, 0, 9, 0, 0])
    assert sums(part, rule) == pytest.approx(np.ones(6))
    assert rule.log_prob(part)[1][[0, 2, 4, 5]].tolist() == [0] * 4


def test_no_targets_have_no_probabilities() -> None:
    candidate, none = Calibration.default().log_prob(scored([]))
    assert len(candidate) == len(none) == 0


@pytest.mark.parametrize("rule", WILD)
def test_the_order_of_the_candidates_stays(rule: Calibration) -> None:
    part = scored([7, 9, 4])
    candidate, _ = rule.log_prob(part)
    for m in range(3):
        mine = slice(part.start[m], part.start[m + 1])
        assert np.array_equal(np.argsort(candidate[mine]), np.argsort(part.score[mine]))


@pytest.mark.parametrize("trust", [(1.0, 1.0, -3.0), (5.0, 0.1, 0.0), (0.9, 1.2, -0.3)])
def test_however_little_the_first_answer_is_trusted_32_bits_tell_it_from_the_second(
    trust: tuple[float, float, float],
) -> None:
    part = scored([2, 3, 8, 5] * 50, sharp=0.3)
    plain, _ = Calibration.default().log_prob(part)
    candidate, _ = Calibration(Calibration.default().parameter, np.array(trust)).log_prob(part)
    for first, end in pairwise(part.start.tolist()):
        mine = candidate[first:end].astype(np.float32)
        assert mine.argmax() == plain[first:end].argmax()
        assert (mine == mine.max()).sum() == 1


def test_two_candidates_worked_by_hand() -> None:
    part = Scored(
        score=np.array([2.0, 0.0]),
        start=np.array([0, 2]),
        signs=np.array([[1.0, 0, 0, 0, 0, 0]]),
        is_all=np.array([False]),
        truth=np.array([0]),
        known=np.array([True]),
    )
    rule = Calibration(np.array([np.log(2.0), -1.0, 0, 0, 0, 0, 0, 0.5]))
    first = np.e / (np.e + 1)  # both scores are halved
    nowhere = 1 / (1 + np.exp(1 - 0.5 * first))
    candidate, none = rule.log_prob(part)
    assert np.exp(none).tolist() == pytest.approx([nowhere])
    assert np.exp(candidate).tolist() == pytest.approx([first * (1 - nowhere), (1 - first) * (1 - nowhere)])
    assert part.surprise(rule) == pytest.approx(-candidate[0])


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_a_known_temperature_and_rule_are_found_again(temperature: float) -> None:
    true = Calibration(np.array([np.log(temperature), -1.5, 0.8, 0.0, 0.0, 0.0, -0.5, 0.0]))
    part = drawn(scored([6] * 4000), true)
    found = Calibration.fitted([part]).parameter
    assert np.exp(found[0]) == pytest.approx(temperature, rel=0.1)
    assert found[[2, 6]].tolist() == pytest.approx([0.8, -0.5], abs=0.15)
    assert part.surprise(Calibration(found)) <= part.surprise(true) + 4  # but for the pull to the defaults


def test_parts_are_fitted_as_one() -> None:
    true = Calibration(np.array([0.7, -1.0, 0, 0, 0, 0, 0, 0]))
    parts = [drawn(scored([5] * 300, seed=seed), true, seed=seed + 9) for seed in (0, 1)]
    start = np.concatenate([parts[0].start, parts[1].start[1:] + parts[0].start[-1]])
    moved = np.where(parts[1].truth == MISSING, MISSING, parts[1].truth + parts[0].start[-1])
    whole = Scored(
        np.concatenate([part.score for part in parts]),
        start,
        np.concatenate([part.signs for part in parts]),
        np.concatenate([part.is_all for part in parts]),
        np.concatenate([parts[0].truth, moved]),
        np.concatenate([part.known for part in parts]),
    )
    assert np.allclose(Calibration.fitted(parts).parameter, Calibration.fitted([whole]).parameter, atol=1e-3)


@pytest.mark.parametrize(("n_known", "learnt"), [(0, False), (199, False), (200, True)])
def test_with_too_few_known_truths_nothing_is_learnt(n_known: int, learnt: bool) -> None:
    part = drawn(scored([4] * 300), Calibration(np.array([1.5, 1.0, 0, 0, 0, 0, 0, 0])))
    few = Scored(part.score, part.start, part.signs, part.is_all, part.truth, np.arange(300) < n_known)
    default = Calibration.default().parameter
    assert np.array_equal(Calibration.fitted([few]).parameter, default) != learnt
    assert np.array_equal(Calibration.fitted([few], again=[part]).parameter, default) != learnt  # no more for that
    assert np.array_equal(Calibration.fitted([]).parameter, default)


def test_the_same_targets_asked_otherwise_count_as_much() -> None:
    one, other = (
        drawn(scored([4] * 300, seed=seed), Calibration(np.array([level] + [0.0] * 7)))
        for seed, level in ((1, 0.5), (2, 1.5))
    )
    found, alone = Calibration.fitted([one], again=[other]), Calibration.fitted([one])
    assert np.array_equal(found.parameter, Calibration.fitted([one, other]).parameter)
    assert not np.array_equal(found.parameter, alone.parameter)


@pytest.mark.parametrize(("n_known", "learnt"), [(0, False), (99, False), (100, True)])
def test_others_beside_them_steady_few_and_do_not_decide_for_fewer(n_known: int, learnt: bool) -> None:
    part = drawn(scored([4] * 300), Calibration(np.array([1.5, 1.0, 0, 0, 0, 0, 0, 0])))
    few = Scored(part.score, part.start, part.signs, part.is_all, part.truth, np.arange(300) < n_known)
    many = drawn(scored([4] * 900, seed=5), Calibration(np.array([0.0, -1.0, 0, 0, 0, 0, 0, 0])))
    found = Calibration.fitted([few], beside=[many])
    assert np.array_equal(found.parameter, Calibration.default().parameter) != learnt
    assert not learnt or np.array_equal(found.parameter, Calibration.fitted([few, many]).parameter)


def test_unknown_truths_surprise_nobody() -> None:
    part = drawn(scored([4] * 10), Calibration.default())
    unknown = Scored(part.score, part.start, part.signs, part.is_all, part.truth, np.zeros(10, dtype=np.bool_))
    assert unknown.surprise(Calibration.default()) == 0
    assert part.surprise(Calibration.default()) > 0


def test_scores_know_their_truth_and_what_the_question_is() -> None:
    cases = asked({"a": ["A B . C", "A b c C"], "b": [". D D h", "d D . ."]}, n_locations=8, centres=False)
    evidence = gather(cases, Crowd.of(cases), Atlas.of(cases.locations))
    part = Scored.of(np.zeros(len(evidence.place)), evidence, cases)
    assert part.known.all()
    for truth, at in zip(cases.truth.tolist(), part.truth.tolist(), strict=True):
        assert at == MISSING or evidence.place[at] == truth
    assert not part.is_all.any()
    first = evidence.values[evidence.start[:-1]]
    assert np.allclose(part.signs[:, 1], np.log1p(first[:, column("n_days_past")]))
    nearer = np.minimum(first[:, column("gap_prev")], first[:, column("gap_next")])
    assert np.allclose(part.signs[:, 2], np.log1p(nearer))
    assert (part.signs[:, 3] == 0).all()  # no centres, no kilometres
    assert np.isfinite(part.signs).all()


def test_a_calibration_survives_a_file_of_arrays() -> None:
    rule = Calibration(np.round(np.random.default_rng(0).normal(size=8), 6))
    again = Calibration.restored(safetensors.load(safetensors.save(dict(rule.state()))))
    assert np.array_equal(again.parameter, rule.parameter)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"parameter": np.zeros(7)},
        {"parameter": np.zeros((8, 1))},
        {"parameter": np.zeros(8, dtype=np.int64)},
        {"parameter": np.array([np.nan, *[0.0] * 7])},
        {"parameter": np.array([0.0] * 7 + [np.inf])},
    ],
)
def test_arrays_that_are_no_calibration_are_refused(wrong: dict[str, Float64]) -> None:
    with pytest.raises(RunError):
        Calibration.restored(wrong)


def test_a_calibration_of_huge_numbers_is_refused_or_gives_probabilities() -> None:
    try:
        rule = Calibration.restored({"parameter": np.array([0.0, 1.7e308, -1.7e308, *[1.7e308] * 5])})
    except RunError:
        return
    assert sums(scored([3, 4, 5]), rule) == pytest.approx(np.ones(3))
