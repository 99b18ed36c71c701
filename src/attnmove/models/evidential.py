"""A model that scores the places in play: evidence in, a calibrated choice out, and why.

What boosted trees and the network share: gathering the evidence, lessons to learn from, calibration, answers.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from attnmove.errors import ConfigError, DataError, check_names
from attnmove.models.calibration import Calibration, Scored
from attnmove.models.contract import Scores, State, not_fitted, targets_at_once, under
from attnmove.models.evidence import features
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Crowd
from attnmove.models.evidence.features import FAMILIES
from attnmove.models.evidence.gather import Evidence, gather, in_parts
from attnmove.models.evidence.origin import Origins, origins_of
from attnmove.models.habits import day_rows
from attnmove.models.practice import made_up
from attnmove.models.ranking import leading
from attnmove.nouns import MISSING, Cases, Float32, Float64, Int32, Int64, Locations
from attnmove.prep.hide import redraw

_MOST_VALID = 10_000
"""Validation targets to choose on and to calibrate with at most; their evidence is held all at a time."""
_BESIDE, _ONE_IN_STRANGERS = 1_000, 8
"""Made-up targets to calibrate with at most, and one in so many made-up people is there for them."""
_MOST_THREADS = 4
"""Beyond, they wait for each other: half of the work is Python's."""

Done = TypeVar("Done")

Tell = Callable[[dict[str, float]], None]
"""Called now and then while learning, with the share that is done (`epoch`, from 0 to 1) and what is known by then."""


@dataclass(frozen=True)
class Keep:
    """What a training may tell and write on its way."""

    tell: Tell | None = None
    checkpoint: Path | None = None
    """A file to go on from, where the scorer is trained epoch by epoch."""
    resume: bool = False


@dataclass(frozen=True)
class Lesson:
    """Cases whose truth is known, and the evidence for their targets."""

    cases: Cases
    evidence: Evidence
    truth: Int64
    """(M,) the candidate that is true, MISSING where none is."""


class Scorer(Protocol):
    """Says how well each candidate of each target fits; higher is better, and only within a target."""

    @property
    def travels(self) -> bool:
        """Whether it may learn elsewhere: it does not tell locations apart by who they are."""
        ...

    def learn(self, lessons: list[Lesson], valid: list[Lesson], *, keep: Keep) -> None:
        """Learn from lessons; choose on `valid` where there is something to choose."""
        ...

    def score(self, evidence: Evidence, cases: Cases) -> Float64:
        """(E,) the score of each candidate; the cases' hidden slots are not looked at."""
        ...

    def state(self) -> State:
        """What was learnt, as named arrays."""
        ...

    def restore(self, state: State) -> None:
        """Take what an equally configured scorer learnt."""
        ...


@dataclass(frozen=True)
class LessonConfig:
    """What the scorers learn from and look at."""

    draws: int = 4
    """Further draws of what is hidden of each training day; half of them in bursts. 0 or more."""
    most_targets: int = 40_000
    """Targets to learn from at most; beyond, days are drawn at random. 1 or more."""
    practice: int = 15_000
    """Where there are fewer, made-up people of the synthetic city are learnt from too, up to as many; 0: never."""
    without: str = "nothing"
    """Kinds of evidence left out, separated by commas: day, past, others, space; or nothing."""

    def __post_init__(self) -> None:
        if min(self.draws, self.practice) < 0 or self.most_targets < 1:
            raise ConfigError("draws and practice must be 0 or more, most_targets 1 or more")
        check_names("kind of evidence", self.left_out, FAMILIES)

    @property
    def left_out(self) -> list[str]:
        named = [family.strip() for family in self.without.split(",") if family.strip()]
        return [] if named == ["nothing"] else named


@dataclass(frozen=True)
class Answers:
    """The most likely places of M targets."""

    index: Int64
    """(M, 2) row and slot of each target in the cases that were asked."""
    place: Int32
    """(M, k) the best first; MISSING where there are fewer candidates."""
    probability: Float32
    """(M, k) calibrated; 0 where there is no place."""
    origin: Origins | None = None
    """Where the first answer comes from, when asked for."""


class Evidential:
    """Candidates, evidence, a scorer, a calibration."""

    def __init__(self, scorer: Scorer, lessons: LessonConfig, *, seed: int) -> None:
        self.scorer, self.lessons, self.seed = scorer, lessons, seed
        self.name = type(scorer).__name__.lower()
        self.calibration = Calibration.default()
        self.lessons_learnt: dict[str, int] = {}
        """How many targets `fit` has learnt from: those of one's own days, and of made-up people."""
        self._crowd: Crowd | None = None
        self._atlas: tuple[Locations, Atlas] | None = None

    def fit(
        self,
        train: Cases,
        valid: Cases | None = None,
        *,
        checkpoint: Path | None = None,
        resume: bool = False,
        tell: Tell | None = None,
    ) -> Self:
        if not np.any(train.truth != MISSING):
            raise DataError("there is nothing to learn from: the training days have no hidden slots of known place")
        crowd, atlas = Crowd.of(train), Atlas.of(train.locations)
        self._atlas = (train.locations, atlas)
        drawn = with_draws(train, self.lessons, np.random.default_rng([self.seed, 1]))
        lessons = list(self._lessons(drawn, crowd, atlas))
        rng = np.random.default_rng([self.seed, 2])
        some = train.rows(np.arange(0)) if valid is None else some_days(valid, _MOST_VALID, rng)
        chosen = list(self._lessons(some, crowd, atlas))
        more, beside = self._practice(train, int(drawn.hidden.sum()))
        self.lessons_learnt = {"lessons": _n_targets(lessons), "made_up_lessons": _n_targets(more)}
        self.scorer.learn(lessons + more, chosen, keep=Keep(tell, checkpoint, resume))
        new = self._lessons(as_newcomers(some, rng), crowd, atlas)
        own, again, others = (self._scored(part) for part in (chosen, new, beside))
        self.calibration = Calibration.fitted(own, again=again, beside=others)
        self._crowd = crowd
        return self

    @property
    def outcome(self) -> Any:
        """How the scorer's training ended, where it is trained epoch by epoch."""
        return getattr(self.scorer, "outcome", None)

    @property
    def writes(self) -> bool:
        """False in all but one of several processes that train together: one writes the run."""
        return bool(getattr(self.scorer, "writes", True))

    @property
    def network(self) -> Any:
        """The trained network, where the scorer is one."""
        return getattr(self.scorer, "network", None)

    def scores(self, cases: Cases) -> Iterator[Scores]:
        crowd, atlas = self._ready(cases), self._atlas_of(cases)

        def scored(rows: Int64) -> Scores:
            part = cases.rows(rows)
            index = part.index
            return Scores(np.column_stack([rows[index[:, 0]], index[:, 1]]), self._log_prob(part, crowd, atlas))

        return side_by_side(scored, in_parts(cases, most_targets=targets_at_once(cases)))

    def answers(self, cases: Cases, *, top: int = 5, origins: bool = False) -> Iterator[Answers]:
        """The `top` candidates of every target, in chunks: what recovering needs, without a number for every location.

        In `scores` a location that is no candidate may come before the less likely ones of these.
        """
        crowd, atlas = self._ready(cases), self._atlas_of(cases)

        def answered(rows: Int64) -> Answers:
            part = cases.rows(rows)
            evidence = self._gather(part, crowd, atlas)
            candidate, _ = self._probabilities(evidence, part)
            at = leading(evidence.start, candidate, most=top)
            return Answers(
                index=np.column_stack([rows[evidence.index[:, 0]], evidence.index[:, 1]]),
                place=np.append(evidence.place, np.int32(MISSING))[at],  # MISSING, the last, is no place
                probability=np.exp(np.append(candidate, -np.inf))[at].astype(np.float32),
                origin=origins_of(evidence, at[:, 0], part, self.scorer.score) if origins else None,
            )

        return side_by_side(answered, in_parts(cases))

    def state(self) -> State:
        if self._crowd is None:
            raise not_fitted(self)
        parts = {
            "evidence": features.state(),
            "crowd": self._crowd.state(),
            "calibration": self.calibration.state(),
            "scorer": self.scorer.state(),
        }
        return {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    def restore(self, state: State) -> Self:
        features.check(under("evidence/", state))
        self.calibration = Calibration.restored(under("calibration/", state))
        self.scorer.restore(under("scorer/", state))
        self._crowd = Crowd.restored(under("crowd/", state))
        return self

    def _ready(self, cases: Cases) -> Crowd:
        if self._crowd is None:
            raise not_fitted(self)
        self._crowd.check(cases)
        return self._crowd

    def _atlas_of(self, cases: Cases) -> Atlas:
        """The atlas of the cases' locations, made once."""
        if self._atlas is None or self._atlas[0] is not cases.locations:
            self._atlas = (cases.locations, Atlas.of(cases.locations))
        return self._atlas[1]

    def _gather(self, cases: Cases, crowd: Crowd, atlas: Atlas) -> Evidence:
        evidence = gather(cases, crowd, atlas)
        for family in self.lessons.left_out:
            evidence = evidence.without(family)
        return evidence

    def _lessons(self, cases: Cases, crowd: Crowd, atlas: Atlas) -> Iterator[Lesson]:
        """The evidence for the targets of known place, in parts."""
        cases = replace(cases, hidden=cases.hidden & (cases.loc != MISSING))
        for rows in in_parts(cases):
            part = cases.rows(rows)
            evidence = self._gather(part, crowd, atlas)
            yield Lesson(part, evidence, evidence.position_of(part.truth, len(part.locations)))

    def _practice(self, train: Cases, n_own: int) -> tuple[list[Lesson], list[Lesson]]:
        """Where one's own targets are few: lessons of made-up people, and others of them to calibrate with."""
        n = min(self.lessons.practice, self.lessons.most_targets) - n_own
        if n <= 0 or not self.scorer.travels:
            return [], []
        rng = np.random.default_rng([self.seed, 3])
        cases = made_up(train, n + _BESIDE, rng)
        strangers = np.isin(cases.user, np.unique(cases.user)[::_ONE_IN_STRANGERS])
        known, atlas = cases.rows(~strangers), Atlas.of(cases.locations)
        crowd = Crowd.of(known)
        drawn = with_draws(known, replace(self.lessons, most_targets=n), rng)
        some = some_days(cases.rows(strangers), _BESIDE, rng)
        return list(self._lessons(drawn, crowd, atlas)), list(self._lessons(some, crowd, atlas))

    def _scored(self, lessons: Iterable[Lesson]) -> list[Scored]:
        return [
            Scored.of(self.scorer.score(lesson.evidence, lesson.cases), lesson.evidence, lesson.cases)
            for lesson in lessons
        ]

    def _probabilities(self, evidence: Evidence, cases: Cases) -> tuple[Float64, Float64]:
        scored = Scored.of(self.scorer.score(evidence, cases), evidence, replace(cases, loc=cases.visible))
        return self.calibration.log_prob(scored)

    def _log_prob(self, cases: Cases, crowd: Crowd, atlas: Atlas) -> Float32:
        """(M, L): candidates as calibrated, the other locations share the rest by how often they are visited."""
        evidence = self._gather(cases, crowd, atlas)
        candidate, none = self._probabilities(evidence, cases)
        visits = crowd.total_visits + 0.5
        share = visits / visits.sum()
        target = evidence.target
        left = 1 - np.bincount(target, share[evidence.place], len(evidence))
        rest = none - np.log(np.maximum(left, 1e-12))
        out = np.empty((len(evidence), len(share)), dtype=np.float32)
        np.add(np.log(share), np.maximum(rest, -60)[:, None], out=out, casting="same_kind")
        out[target, evidence.place] = np.maximum(candidate, -60)
        return out


def side_by_side(work: Callable[[Int64], Done], parts: Iterator[Int64]) -> Iterator[Done]:
    """The work on every part, in order, on several cores; a few parts are under way at a time."""
    n_threads = min(_MOST_THREADS, n_cores())
    under_way: deque[Future[Done]] = deque()
    some = list(islice(parts, 2))
    with _ONE_THREAD_EACH:
        if len(some) < 2:  # starting threads takes longer than a small part
            yield from map(work, some)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            for part in chain(some, parts):
                under_way.append(pool.submit(work, part))
                if len(under_way) > n_threads:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()


class _OneThreadEach:
    """While anybody is inside, a matrix product takes one thread: several at once would get in each other's way.

    The limit is the process's, and those inside may leave in any order: the last one lifts it.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = _libraries().limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_ONE_THREAD_EACH = _OneThreadEach()


@cache
def _libraries() -> ThreadpoolController:
    """What multiplies matrices in this process; looking for it takes milliseconds."""
    return ThreadpoolController()


def n_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _n_targets(lessons: list[Lesson]) -> int:
    return sum(len(lesson.evidence) for lesson in lessons)


def with_draws(train: Cases, how: LessonConfig, rng: np.random.Generator) -> Cases:
    """The training cases as they are and with other slots hidden; fewer of them where there are too many targets."""
    days = day_rows(train)
    rows, hidden = [np.arange(len(train))], [train.hidden & (train.loc != MISSING)]
    observed, n = train.loc[days] != MISSING, train.hidden[days].sum(axis=1)
    for draw in range(how.draws):
        more = np.maximum(1, n + rng.integers(-(n // 2), n // 2 + 1))
        rows.append(days)
        hidden.append(redraw(observed, more, rng, pattern="burst" if draw % 2 else "uniform"))
    every, mask = np.concatenate(rows), np.concatenate(hidden)
    return some_days(replace(train.rows(every), hidden=mask), how.most_targets, rng)


def some_days(cases: Cases, most_targets: int, rng: np.random.Generator) -> Cases:
    """The cases in their order; where they have more targets, as many days as fit, at least one, drawn at random."""
    n = cases.hidden.sum(axis=1)
    order = rng.permutation(len(cases))
    return cases.rows(np.sort(order[np.cumsum(n[order]) <= max(most_targets, n.max(initial=0))]))


def as_newcomers(cases: Cases, rng: np.random.Generator) -> Cases:
    """The cases as if their users had come lately: of n earlier days the last 0 to n - 1 are known, few more often.

    The history rows stay as they are: evidence is of the days themselves.
    """
    n = cases.end - cases.first
    known = np.exp(rng.random(len(n)) * np.log1p(n)).astype(np.int64) - 1
    return replace(cases, first=cases.end - known)
