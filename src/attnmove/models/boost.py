"""Boosted trees over the evidence: LightGBM ranks the candidates of a target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from attnmove.errors import ConfigError, RunError
from attnmove.models.boosted import BoostedTrees, lightgbm
from attnmove.models.calibration import Calibration, Scored
from attnmove.models.compiled import compiled
from attnmove.models.contract import State, not_fitted
from attnmove.models.evidence.features import NAMES, column
from attnmove.models.evidence.gather import Evidence
from attnmove.models.evidential import Keep, Lesson, Tell
from attnmove.models.ranking import leading, leading_of
from attnmove.models.walks import Walks
from attnmove.nouns import MISSING, Cases, Float32, Float64, Int64

_CHECKS = 6
"""How often along the rounds validation is asked whether to stop there."""
_ROUNDS = ((16, 40), (48, 20), (110, 12), (220, 8))
"""After so many trees so many candidates of a target are still looked at: on validation as many answers are right, a
thousandth of MAP is lost, and four times fewer trees are walked."""
_GROWTH = 0.3
"""Differences of scores grow with this power of the number of trees: chosen on validation, for those that are out."""
_PLAIN = 3.0
"""How far apart, in scores, a place seen around the target and one never seen are where nothing was learnt."""
_LARGEST = 1e9
"""All leaves together beyond this are forged: a tree adds little."""
_LEAST_LEAVES = 20
"""Leaves that the candidates to learn from must be able to fill: of few candidates a leaf holds fewer."""


@dataclass(frozen=True)
class BoostConfig:
    """Settings of the ranker, chosen on the validation days of Geolife and of the synthetic city."""

    rankers: int = 2
    """Rankers whose scores are averaged; 1 or more."""
    rounds: int = 180
    """Trees a ranker has at most; validation says where to stop. 1 or more."""
    leaves: int = 31
    """Leaves of a tree; 2 or more."""
    lr: float = 0.07
    """What a tree adds; above 0."""
    min_leaf: int = 200
    """Candidates a leaf holds at least, fewer where there are few to learn from; 1 or more."""
    columns: float = 0.5
    """Share of the features a tree sees; above 0, at most 1."""
    rows: float = 0.5
    """Share of the targets a tree sees; above 0, at most 1."""
    l2: float = 5.0
    """Pull of the leaves towards nothing; 0 or more."""

    def __post_init__(self) -> None:
        if min(self.rankers, self.rounds, self.min_leaf) < 1 or self.leaves < 2:
            raise ConfigError("boost: rankers, rounds and min_leaf must be 1 or more, leaves 2 or more")
        if not Walks.fit_in_memory(self.rankers * self.rounds * (self.leaves - 1), self.leaves):
            raise ConfigError("boost: so many trees of so many leaves need too much memory; ask for fewer leaves")
        if not (0 < self.columns <= 1 and 0 < self.rows <= 1 and self.lr > 0 and self.l2 >= 0):
            raise ConfigError("boost: columns and rows must be above 0 and at most 1, lr above 0, l2 0 or more")


class Boost:
    """Scores candidates one by one, by the numbers about them."""

    travels = True

    def __init__(self, config: BoostConfig, *, seed: int) -> None:
        self.config, self.seed = config, seed
        self._trees: BoostedTrees | None = None

    def learn(self, lessons: list[Lesson], valid: list[Lesson], *, keep: Keep) -> None:
        x, right, sizes = _table(lessons)
        if len(sizes) == 0:  # no truth is among its candidates: nothing tells them apart
            self._trees = BoostedTrees.flat(len(NAMES))
            return
        grown = BoostedTrees.averaged([BoostedTrees.of(booster) for booster in self._grow(x, right, sizes, keep.tell)])
        self._trees = grown.first(self._rounds(grown, valid))

    def score(self, evidence: Evidence, cases: Cases) -> Float64:
        if self._trees is None:
            raise not_fitted(self)
        return _plain(evidence) if self._trees.is_flat else ranked(self._trees, evidence)

    def state(self) -> State:
        if self._trees is None:
            raise not_fitted(self)
        return self._trees.state()

    def restore(self, state: State) -> None:
        trees = BoostedTrees.restored(state, n_features=len(NAMES))
        if np.abs(trees.leaf_value).sum() > _LARGEST:
            raise RunError("trees whose leaves are larger than scores can be")
        self._trees = trees

    def _grow(self, x: Float32, right: Float32, sizes: Int64, tell: Tell | None) -> Iterator[Any]:
        """The rankers, each with chances of its own."""
        library, how = lightgbm(), self.config
        settings = {
            "objective": "lambdarank",
            "lambdarank_truncation_level": 10,
            "learning_rate": how.lr,
            "num_leaves": how.leaves,
            "min_data_in_leaf": min(how.min_leaf, max(1, len(x) // _LEAST_LEAVES)),
            "feature_fraction": how.columns,
            "bagging_fraction": how.rows,
            "bagging_freq": 1,
            "bagging_by_query": True,
            "lambda_l2": how.l2,
            "max_bin": 127,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }

        def told(environment: Any) -> None:
            if tell is not None:
                tell({"epoch": (number + (environment.iteration + 1) / how.rounds) / how.rankers})

        data = library.Dataset(x, label=right, group=sizes, params={"max_bin": 127}, free_raw_data=True)
        for number in range(how.rankers):
            one, two = np.random.default_rng([self.seed, number]).integers(2**31, size=2).tolist()
            chances = {"bagging_seed": one, "feature_fraction_seed": two}
            yield library.train(settings | chances, data, num_boost_round=how.rounds, callbacks=[told])

    def _rounds(self, trees: BoostedTrees, valid: list[Lesson]) -> int:
        """The number of trees after which calibrated scores surprise least on the validation days."""
        if not any((lesson.truth != MISSING).any() for lesson in valid):
            return trees.n_trees
        rankers = self.config.rankers
        rounds = trees.n_trees // rankers
        steps = sorted({rankers * max(1, rounds * (i + 1) // _CHECKS) for i in range(_CHECKS)})
        scores = [np.zeros(len(lesson.evidence.place)) for lesson in valid]
        surprise, before = [], 0
        for step in steps:
            scored = []
            for score, lesson in zip(scores, valid, strict=True):
                if len(score):
                    score += trees.predict(lesson.evidence.values, first=before, n_trees=step - before)
                scored.append(Scored.of(score, lesson.evidence, lesson.cases))
            fitted = Calibration.fitted(scored)
            surprise.append(sum(part.surprise(fitted) for part in scored))
            before = step
        return steps[int(np.argmin(surprise))]


def ranked(trees: BoostedTrees, evidence: Evidence) -> Float64:
    """(E,) the score of each candidate: a few trees tell who has no chance, the others look at the rest only."""
    edges = [n for n, _ in _ROUNDS if n < trees.n_trees] + [trees.n_trees]
    score = trees.predict(evidence.values, n_trees=edges[0])
    alive: Int64 | None = None
    for (done, end), (_, most) in zip(pairwise(edges), _ROUNDS, strict=False):
        alive = leading(evidence.start, score, most=most) if alive is None else leading_of(alive, score, most=most)
        more = trees.predict(evidence.values, rows=alive[alive != MISSING], first=done, n_trees=end - done)
        _run_on(evidence.start, alive, more, (end / done) ** _GROWTH, score)
    return score


@compiled
def _run_on(start: Int64, alive: Int64, more: Float64, growth: float, score: Float64) -> None:
    """Add to the scores of those who are still in the race (M, k), and move the others as if they had run on with the
    lower half of them, from which their distance grows."""
    n_before = 0
    for m in range(len(alive)):
        n = (alive[m] != MISSING).sum()
        was, now = 0.0, 0.0
        runs = np.zeros(start[m + 1] - start[m], dtype=np.bool_)
        for i in range(n):
            one = alive[m, i]
            runs[one - start[m]] = True
            was += score[one] if i >= n // 2 else 0.0
            score[one] += more[n_before + i]
            now += score[one] if i >= n // 2 else 0.0
        n_low = max(1, n - n // 2)
        for i in range(len(runs)):
            if not runs[i]:
                score[start[m] + i] = now / n_low + growth * (score[start[m] + i] - was / n_low)
        n_before += n


def _plain(evidence: Evidence) -> Float64:
    """(E,) the score of each candidate where there was too little to learn from: the day's sightings, then habits."""
    day, habit = (evidence.values[:, column(name)].astype(np.float64) for name in ("day_1.5", "past_all_day"))
    return _PLAIN * (day + 0.3 * habit)


def _table(lessons: list[Lesson]) -> tuple[Float32, Float32, Int64]:
    """The candidates of all targets whose truth is among them: features, 1 at the truth, candidates a target."""
    parts, right, sizes = [], [], []
    for lesson in lessons:
        size = np.diff(lesson.evidence.start)
        useful = lesson.truth != MISSING
        label = np.zeros(len(lesson.evidence.place), dtype=np.float32)
        label[lesson.truth[useful]] = 1
        kept = np.repeat(useful, size)
        parts.append(lesson.evidence.values[kept])
        right.append(label[kept])
        sizes.append(size[useful])
    return np.concatenate(parts), np.concatenate(right), np.concatenate(sizes)
