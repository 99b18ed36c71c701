"""Days in, every slot of them decided: the one function behind the command line, Python, Spark and the web service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from attnmove.errors import ConfigError, DataError
from attnmove.filling.policy import NO_CANDIDATE, SKIPPED, Policy, least_confidence
from attnmove.filling.rows import LEFT_MISSING, OBSERVED, RECOVERED, Decided, recovery_schema, table_of
from attnmove.filling.setting import Setting, setting_of_run
from attnmove.filling.timeline import Timelines, days_of, grid_of
from attnmove.io.clock import never_occurs
from attnmove.io.handful import accepted
from attnmove.models.answers import best_answers
from attnmove.models.evidence.features import FAMILIES
from attnmove.models.evidence.origin import Origins
from attnmove.models.evidential import Answers
from attnmove.models.runs import Run, load_run, read_thresholds
from attnmove.nouns import MISSING, Bool, Cases, Dates, Days, Int32, Int64, Text
from attnmove.prep.fold import fold_in_memory
from attnmove.prep.rejects import count_folded, in_order

MOST_PLACES = 100
_CLOCK, _GAP, _NONE, _UNSURE = range(4)
"""Positions in `Filler.reasons`."""


@dataclass(frozen=True)
class Folded:
    """Points as days, and what became of the others."""

    days: Days
    points: int
    refused: Mapping[str, int]
    """Points that were not used, by reason."""
    days_lost: int
    """User-days of which no point lies in a location of the run."""


@dataclass(frozen=True)
class Filled:
    """A recovery, and what became of the points it was made from."""

    table: pa.Table
    folded: Folded


class Filler:
    """A run ready to fill days, by one policy."""

    def __init__(self, run: Run, *, policy: Policy | None = None, top: int = 5) -> None:
        if not (isinstance(top, int) and 1 <= top <= MOST_PLACES):
            raise ConfigError(f"top: expected 1 to {MOST_PLACES} places, found {top!r}")
        self.run, self.policy, self.top = run, policy or Policy(), top
        self.setting: Setting = setting_of_run(run)
        known = read_thresholds(run.folder) if self.policy.precision is not None and run.folder else None
        self.min_confidence = least_confidence(self.policy, known)

    @classmethod
    def of(cls, folder: Path | str, *, policy: Policy | None = None, top: int = 5, device: str = "auto") -> Filler:
        """The filler of the run in `folder`. Raises RunError when it is damaged, ConfigError for a policy it cannot
        keep."""
        return cls(load_run(folder, device=device), policy=policy, top=top)

    @property
    def schema(self) -> pa.Schema:
        """The columns of what it gives."""
        return recovery_schema(self.setting.how.timezone)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a slot may be left missing."""
        unsure = f"less sure than {self.min_confidence or 0:.4g}"
        return SKIPPED, self.policy.too_long, NO_CANDIDATE, unsure

    def fill(self, days: Days, *, history: Days | None = None, origins: bool = True) -> pa.Table:
        """Every slot of whole users' days, by user, date and slot; days of which nothing is known are left out.

        `history` are further days of the same users, which are looked back upon but not filled; of two for one date
        the one to fill counts. Locations are ids of the run's. Raises DataError when the days do not fit the run.
        """
        return self.fill_timelines(Timelines.of(days, history), origins=origins)

    def recover_points(self, points: pa.Table, *, history: Days | None = None, origins: bool = True) -> Filled:
        """The same from a small table of points: user (text), time (timestamps), lon, lat; no engine is started."""
        folded = self.fold_points(points)
        return Filled(self.fill(folded.days, history=history, origins=origins), folded)

    def fold_points(self, points: pa.Table) -> Folded:
        """The days of a small table of points, in the run's slots and locations."""
        good, refused = accepted(points)
        folded = fold_in_memory(good, self.setting.locate, self.setting.how)
        loc = grid_of(folded.column("cells"), self.setting.n_slots)
        seen = (loc != MISSING).any(axis=1)
        user = np.array(folded.column("user").to_pylist(), dtype=object)
        date = folded.column("day").to_numpy().astype("datetime64[D]")
        counts: Counter[str] = refused + count_folded(folded)
        days = days_of(user[seen], date[seen], loc[seen])
        return Folded(days, len(points), in_order(counts), int((~seen).sum()))

    def fill_timelines(self, timelines: Timelines, *, origins: bool = True) -> pa.Table:
        """Every slot of the days to fill of whole users."""
        days, rows = timelines.days, timelines.rows
        if days.n_slots != self.setting.n_slots:
            raise DataError(f"days: {days.n_slots} slots a day, the run has {self.setting.n_slots}")
        if len(days) and days.loc.max() >= len(self.setting.locations):
            raise DataError(f"days: location {days.loc.max()}, the run has {len(self.setting.locations)}")
        loc = days.loc[rows]
        reason = self._reasons_not_to_ask(timelines)
        asked = (loc == MISSING) & (reason == MISSING)
        answers = self._answers(timelines.cases(asked, self.setting.locations), origins=origins)
        return self._decided(days.user[rows], days.date[rows], loc.ravel(), reason.ravel(), answers)

    def _reasons_not_to_ask(self, timelines: Timelines) -> Int64:
        """(K, T) the position in `reasons` of why an unseen slot is not asked for, MISSING where it is."""
        seen = timelines.days.observed[timelines.rows]
        out = np.full(seen.shape, MISSING, dtype=np.int64)
        if self.policy.max_gap_minutes is not None:
            out[timelines.gaps() * self.setting.how.slot_minutes > self.policy.max_gap_minutes] = _GAP
        out[self._skipped(timelines.days.date[timelines.rows])] = _CLOCK
        out[seen] = MISSING
        return out

    def _skipped(self, date: Dates) -> Bool:
        """(K, T) slots the wall clock skips on this day."""
        how = self.setting.how
        start = (np.arange(how.n_slots) * how.slot_minutes * 60) + date.astype(np.int64)[:, None] * 86_400
        flat = start.ravel()
        return never_occurs(flat, flat + how.slot_minutes * 60, self.setting.zone).reshape(start.shape)

    def _answers(self, cases: Cases, *, origins: bool) -> Answers:
        """All answers, in the order of `cases.index`."""
        parts = list(best_answers(self.run.model, cases, top=self.top, origins=origins)) if cases.hidden.any() else []
        if not parts:
            return _no_answers(self.top)
        index = np.concatenate([part.index for part in parts])
        order = np.lexsort((index[:, 1], index[:, 0]))
        if not np.array_equal(index[order], cases.index):
            raise DataError(f"{self.run.name}: answered other slots than it was asked for")
        found = [part.origin for part in parts if part.origin is not None]
        return Answers(
            index=index[order],
            place=np.concatenate([part.place for part in parts])[order],
            probability=np.minimum(np.concatenate([part.probability for part in parts])[order], 1),
            origin=_joined(found, order) if found else None,
        )

    def _decided(self, user: Text, date: Dates, loc: Int32, reason: Int64, answers: Answers) -> pa.Table:
        """The rows of days whose slots `loc` (K * T,) are known or not, with the answers that are trusted."""
        answer = np.full(len(loc), MISSING, dtype=np.int64)
        row, slot = answers.index.T
        at = row * self.setting.n_slots + slot
        answer[at] = np.arange(len(at))
        status = np.where(loc == MISSING, LEFT_MISSING, OBSERVED)
        first, sure = answers.place[:, 0], answers.probability[:, 0]
        trusted = first != MISSING
        reason[at] = np.where(trusted, MISSING, _NONE)
        if self.min_confidence is not None:
            unsure = trusted & ~(sure >= self.min_confidence)
            reason[at[unsure]] = _UNSURE
            trusted &= ~unsure
        status[at[trusted]] = RECOVERED
        location = loc.copy()
        location[at[trusted]] = first[trusted]
        return table_of(Decided(user, date, location, status, reason, self.reasons, answer, answers), self.setting)


def _no_answers(top: int) -> Answers:
    none = np.zeros((0, top))
    return Answers(np.zeros((0, 2), dtype=np.int64), none.astype(np.int32), none.astype(np.float32))


def _joined(origins: list[Origins], order: Int64) -> Origins:
    share = np.concatenate([origin.share for origin in origins]).reshape(-1, len(FAMILIES))
    date = np.concatenate([origin.date for origin in origins])
    slot = np.concatenate([origin.slot for origin in origins])
    return Origins(share[order], date[order], slot[order])
