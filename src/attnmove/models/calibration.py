"""From scores of candidates to probabilities: how sure to be, and how likely the truth is somewhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from attnmove.errors import RunError
from attnmove.models.compiled import compiled
from attnmove.models.contract import State, taken
from attnmove.models.evidence.features import column
from attnmove.models.evidence.gather import Evidence
from attnmove.models.ranking import leading
from attnmove.nouns import MISSING, Bool, Cases, Float32, Float64, Int64

_LEAST_TARGETS, _LEAST_BESIDE = 200, 100
"""Validation targets from which on there is something to learn; and where others stand beside them."""
_SOFT = 1e-3
"""Pull of the parameters towards their defaults, a little."""
_DEFAULT = np.array([0.0, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
_TRUST = np.array([1.0, 1.0, 0.0])
"""Trust that leaves the first answer as sure as it is."""
_TRUST_RANGE = ((0.1, 5.0), (0.1, 5.0), (-3.0, 3.0))
_CERTAIN = 1 - 1e-9
_AHEAD = 1 + 1e-5
"""How much surer the first answer is than the second at least: enough for 32 bits to keep their order."""
_SUPPORT, _SUPPORT_KM, _NEIGHBOURHOOD = 0.6, 10.0, 16
"""What likely places around a place are worth to it, how far around, and how many of the likeliest are looked at."""
_SURE_ENOUGH = 0.6
"""From this probability on no other candidate can have enough support to come first."""
_SHARPEST, _ELSEWHERE_RANGE = 3.0, 8.0
_LONG_GAP = 99.0
"""Slots to the nearest visible slot beyond which a gap is as good as endless."""
_LARGEST = 1e6
"""A parameter beyond this is forged."""


@dataclass(frozen=True)
class Calibration:
    """A temperature for the scores of the candidates, a logistic rule for "none of them", trust in the first answer.

    The rule looks at how many earlier days there are, how long the gap is, how far apart its sides are, how many places
    the day has, whether both sides are one place, and how far ahead the best candidate is.
    """

    parameter: Float64
    """(8,) logarithm of the temperature, then constant and weights of the rule."""
    trust: Float64 = field(default_factory=_TRUST.copy)
    """(3,) a, b, c: a first answer of probability p becomes one of odds p^a (1 - p)^-b e^c (beta calibration)."""

    @classmethod
    def default(cls) -> Calibration:
        """What to believe without validation days."""
        return cls(_DEFAULT)

    @classmethod
    def fitted(cls, parts: list[Scored], *, again: Sequence[Scored] = (), beside: Sequence[Scored] = ()) -> Calibration:
        """The most likely parameters for scored candidates whose truth is known.

        The same targets may be there `again`, asked otherwise. Others `beside` them steady what few would leave to
        chance; with too few of one's own the default is better.
        """
        from scipy.optimize import minimize

        if sum(int(part.known.sum()) for part in parts) < (_LEAST_BESIDE if beside else _LEAST_TARGETS):
            return cls.default()
        parts = [*parts, *again, *beside]
        n = sum(int(part.known.sum()) for part in parts)

        def loss(parameter: Float64) -> float:
            made = cls(parameter)
            total = sum(part.surprise(made) for part in parts) / n
            return float(total + _SOFT * ((parameter - _DEFAULT) ** 2).sum())

        found = minimize(loss, _DEFAULT, method="L-BFGS-B", options={"maxiter": 100})
        parameter = np.round(found.x, 6)
        first = [part.first_answers(cls(parameter)) for part in parts]
        sure, right = (np.concatenate(arrays) for arrays in zip(*first, strict=True))

        def doubt(trust: Float64) -> float:
            odds = _odds(sure, trust)
            total = np.where(right, np.logaddexp(0, -odds), np.logaddexp(0, odds)).sum() / n
            return float(total + _SOFT * ((trust - _TRUST) ** 2).sum())

        found = minimize(doubt, _TRUST, method="L-BFGS-B", bounds=_TRUST_RANGE)
        return cls(parameter, np.round(found.x, 6))

    def log_prob(self, scored: Scored) -> tuple[Float64, Float64]:
        """(E,) log-probability of each candidate and (M,) of "none of them"; together a target's sum to one."""
        candidate, none = self._plain(scored)
        candidate = supported(candidate, scored.start, scored.position_km)
        return self._trusted(candidate, none, scored.start)

    def _plain(self, scored: Scored) -> tuple[Float64, Float64]:
        """By temperature and rule alone."""
        scores = scored.score * np.exp(-np.clip(self.parameter[0], -_SHARPEST, _SHARPEST))
        best, total = _log_sum(scores, scored.start)
        ahead = np.exp(np.subtract(best, total, out=np.full(len(best), -np.inf), where=np.isfinite(total)))
        signs = np.column_stack([scored.signs, ahead])
        odds = np.clip(signs @ self.parameter[1:], -_ELSEWHERE_RANGE, _ELSEWHERE_RANGE)
        none, some = -np.logaddexp(0, -odds), -np.logaddexp(0, odds)
        empty = scored.start[:-1] == scored.start[1:]
        none = np.where(empty, 0, np.where(scored.is_all, -np.inf, none))
        some = np.where(scored.is_all, 0, some)
        target = np.repeat(np.arange(len(none)), np.diff(scored.start))
        return scores - total[target] + some[target], none

    def _trusted(self, candidate: Float64, none: Float64, start: Int64) -> tuple[Float64, Float64]:
        """The first answer as sure as it should be, and surer than the second; the others share the rest as before."""
        if np.array_equal(self.trust, _TRUST):
            return candidate, none
        target, top, probability = _first(candidate, start)
        doubtful = probability < _CERTAIN
        target, top, probability = target[doubtful], top[doubtful], probability[doubtful]
        others = candidate.copy()
        others[top] = -np.inf
        second = np.exp(_log_sum(others, start)[0][target])
        sure = 1 / (1 + np.exp(-_odds(probability, self.trust)))
        sure = np.maximum(sure, second / (1 - probability + second) * _AHEAD)
        change = np.zeros(len(none))
        change[target] = np.log1p(-np.minimum(sure, _CERTAIN)) - np.log1p(-probability)
        out = candidate + np.repeat(change, np.diff(start))
        out[top] = np.log(np.minimum(sure, _CERTAIN))
        return out, none + change

    def state(self) -> State:
        """The arrays of a run."""
        return {"parameter": self.parameter, "trust": self.trust}

    @classmethod
    def restored(cls, state: State) -> Calibration:
        """Raises RunError where the array cannot be one."""
        parameter = taken(state, "parameter", "f").astype(np.float64)
        if parameter.shape != _DEFAULT.shape or not (np.abs(parameter) < _LARGEST).all():
            raise RunError("a calibration of other parameters than there are")
        trust = taken(state, "trust", "f").astype(np.float64)
        if trust.shape != _TRUST.shape or not all(a <= x <= b for x, (a, b) in zip(trust, _TRUST_RANGE, strict=True)):
            raise RunError("a calibration that trusts otherwise than one can")
        return cls(parameter, trust)


@dataclass(frozen=True)
class Scored:
    """Scores of the candidates of M targets, and what "none of them" may depend on."""

    score: Float64
    """(E,)"""
    start: Int64
    """(M + 1,)"""
    signs: Float64
    """(M, 6)"""
    is_all: Bool
    """(M,) whether every location is a candidate, so that there is no elsewhere."""
    truth: Int64
    """(M,) the candidate that is true, MISSING where none is."""
    known: Bool
    """(M,) whether the truth is known at all."""
    position_km: Float32 | None = None
    """(E, 3) where the candidates lie; NaN where not known."""

    @classmethod
    def of(cls, score: Float64, evidence: Evidence, cases: Cases) -> Scored:
        """With the truth of the cases; for answering it is not looked at."""
        n = len(cases.locations)
        truth = cases.loc[evidence.index[:, 0], evidence.index[:, 1]]
        return cls(
            score=score,
            start=evidence.start,
            signs=_signs(evidence),
            is_all=np.diff(evidence.start) == n,
            truth=evidence.position_of(truth, n),
            known=truth != MISSING,
            position_km=evidence.position_km,
        )

    def surprise(self, calibration: Calibration) -> float:
        """Sum over the known targets of minus the log-probability of the truth, or of "none of them".

        By temperature and rule alone: what comes after them is chosen when they are.
        """
        candidate, none = calibration._plain(self)
        here = self.known & (self.truth != MISSING)
        lost = self.known & (self.truth == MISSING)
        return -float(candidate[self.truth[here]].sum() + none[lost].sum())

    def first_answers(self, calibration: Calibration) -> tuple[Float64, Bool]:
        """How sure the first answers to known targets are, and whether they are right."""
        candidate, _ = calibration.log_prob(self)
        target, top, probability = _first(candidate, self.start)
        known = self.known[target]
        right: Bool = (top == self.truth[target])[known]
        return probability[known], right


def supported(candidate: Float64, start: Int64, position_km: Float32 | None) -> Float64:
    """The log-probabilities, where the first answer may have changed places with one that others lie around.

    When several places are about as likely, one in a neighbourhood of likely places is right as often as a lonely one,
    and where it is wrong it is less far off. The best of p(i) + 0.6 * sum over the others of p(j) exp(-km / 10) takes
    the probability of the most likely one, and that one its own.
    """
    if position_km is None:
        return candidate
    table = leading(start, candidate, most=_NEIGHBOURHOOD)
    has = np.flatnonzero(table[:, 0] != MISSING)
    unsure = has[np.exp(candidate[table[has, 0]]) < _SURE_ENOUGH]
    table = table[unsure]
    there = table != MISSING
    p = np.where(there, np.exp(candidate[table]), 0)
    km = np.empty((*table.shape, _NEIGHBOURHOOD), dtype=np.float32)
    _measure(table, position_km, km)
    near = np.nan_to_num(np.exp(-km / _SUPPORT_KM)) * ~np.eye(_NEIGHBOURHOOD, dtype=np.bool_)
    chosen = np.where(there, p + _SUPPORT * (near @ p[:, :, None])[:, :, 0], -1).argmax(axis=1)
    out = candidate.copy()
    one, other = table[:, 0], table[np.arange(len(table)), chosen]
    out[one], out[other] = candidate[other], candidate[one]
    return out


@compiled
def _measure(table: Int64, position_km: Float32, km: Float32) -> None:
    """(n, k, k) kilometres between the candidates in each row of a table (n, k)."""
    for row in range(len(table)):
        for i in range(table.shape[1]):
            for j in range(table.shape[1]):
                one, other = position_km[table[row, i]], position_km[table[row, j]]
                x, y, z = one[0] - other[0], one[1] - other[1], one[2] - other[2]
                km[row, i, j] = np.sqrt(x * x + y * y + z * z)


def _first(candidate: Float64, start: Int64) -> tuple[Int64, Int64, Float64]:
    """Targets that have candidates, the first of the best candidates of each, and its probability."""
    has = np.flatnonzero(np.diff(start))
    best, _ = _log_sum(candidate, start)
    at = np.flatnonzero(candidate == np.repeat(best, np.diff(start)))
    top = at[np.searchsorted(at, start[has])]
    return has, top, np.exp(candidate[top])


def _odds(probability: Float64, trust: Float64) -> Float64:
    """The logarithm of the odds that the trust gives a first answer of this probability."""
    p = np.clip(probability, 1e-9, _CERTAIN)
    out: Float64 = trust[0] * np.log(p) - trust[1] * np.log1p(-p) + trust[2]
    return out


def _signs(evidence: Evidence) -> Float64:
    """(M, 6) constant, and what the targets' own features say; nothing of a target without candidates."""
    has = np.flatnonzero(np.diff(evidence.start))
    first = evidence.values[evidence.start[has]]

    def of(name: str) -> Float64:
        out: Float64 = np.nan_to_num(first[:, column(name)].astype(np.float64))
        return out

    signs = np.zeros((len(evidence), 6))
    signs[:, 0] = 1
    signs[has, 1] = np.log1p(of("n_days_past"))
    signs[has, 2] = np.log1p(np.minimum(np.minimum(of("gap_prev"), of("gap_next")), _LONG_GAP))
    signs[has, 3] = np.log1p(of("km_sides"))
    signs[has, 4] = np.log1p(of("n_places_day"))
    signs[has, 5] = of("same_sides")
    return signs


def _log_sum(scores: Float64, start: Int64) -> tuple[Float64, Float64]:
    """(M,) the highest score of each target and the logarithm of the sum of all; -inf where there is none."""
    n = len(start) - 1
    has = np.flatnonzero(np.diff(start))
    best, total = np.full(n, -np.inf), np.full(n, -np.inf)
    if len(has):
        best[has] = np.maximum.reduceat(scores, start[has])
        target = np.repeat(np.arange(n), np.diff(start))
        total[has] = best[has] + np.log(np.add.reduceat(np.exp(scores - best[target]), start[has]))
    return best, total
