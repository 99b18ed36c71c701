"""Questions of several clients answered together: read each, fill the days of all in one go, write each answer."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from attnmove.errors import RunError
from attnmove.filling.fill import Filler, Folded
from attnmove.filling.geojson import features
from attnmove.filling.policy import Policy, least_confidence
from attnmove.filling.texts import csv_rows, json_lines
from attnmove.filling.timeline import Timelines, days_of
from attnmove.models.runs import Run, Thresholds, read_thresholds
from attnmove.nouns import Bool, Cases, Days, Locations
from attnmove.serving.guard import log_failure
from attnmove.serving.limits import Limits
from attnmove.serving.reading import READERS, table_of
from attnmove.serving.refusals import NO_ROOM, Busy, TooLarge
from attnmove.serving.wire import options_of

How = tuple[Policy, int, bool]
"""Policy, places a slot, origins."""


@dataclass(frozen=True)
class Ask:
    """A request as it came: its points, not yet read, and in which form to answer."""

    body: bytes = field(repr=False)
    content: str = "application/json"
    """The media type of the body, one of READERS."""
    accept: str = "application/json"
    """The media type of the answer, one of FORMS."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of the address; the body's own go before them."""


@dataclass(frozen=True)
class Answer:
    """The body of an answer, and what it holds."""

    body: bytes = field(repr=False)
    recovered: int
    """Slots that were recovered."""


@dataclass(frozen=True)
class _Read:
    """A question, understood."""

    folded: Folded = field(repr=False)
    how: How
    accept: str


class Answerer:
    """Answers questions with one run; called from one thread at a time."""

    def __init__(self, filler: Filler, limits: Limits) -> None:
        self.filler, self.limits = filler, limits
        self._thresholds = _thresholds_of(filler.run)

    def answer(self, asks: Sequence[Ask]) -> list[Answer | Exception]:
        """The answer to each, or the error; one that cannot be answered does not harm the others.

        Those for which there would be no room, for the answers before them fill it, are told to come back.
        """
        out: dict[int, Answer | Exception] = {}
        groups: dict[How, dict[int, _Read]] = {}
        for i, ask in enumerate(asks):
            try:
                read = self._read(ask)
                groups.setdefault(read.how, {})[i] = read
            except Exception as error:
                out[i] = error
        held = 0
        for how, members in groups.items():
            for some in self._goes(how, members):
                if held > self.limits.max_held:
                    out.update((i, Busy(NO_ROOM)) for i in some)
                    continue
                answers = self._together(how, [members[i] for i in some])
                held += sum(len(answer.body) for answer in answers if isinstance(answer, Answer))
                out.update(zip(some, answers, strict=True))
        return [out[i] for i in range(len(asks))]

    def warm_up(self, examples: Sequence[Mapping[str, Any]]) -> None:
        """Answer an example, so that the first client does not wait for what is loaded on the way."""
        for example in examples[:1]:
            self.answer([Ask(json.dumps({"points": example["points"]}).encode())])

    def _read(self, ask: Ask) -> _Read:
        columns, named = READERS[ask.content](ask.body, self.limits.max_points)
        options = options_of({**ask.options, **named})
        how = (options.policy(), options.top, options.origins)
        self._check("users", len(set(columns[0])), self.limits.max_users)
        folded = self.filler.fold_points(table_of(columns, self.filler.setting.zone))
        self._check("user-days", len(folded.days), self.limits.max_days)
        places = self._places(folded, options.top)
        self._check("places (user-days times slots times top)", places, self.limits.max_places)
        return _Read(folded, how, ask.accept)

    def _places(self, folded: Folded, top: int) -> int:
        """How many places an answer may have."""
        return len(folded.days) * self.filler.setting.n_slots * top

    def _goes(self, how: How, members: Mapping[int, _Read]) -> Iterator[list[int]]:
        """The questions that are filled in one go, so few that memory does not grow with their number."""
        some: list[int] = []
        places = 0
        for i, read in members.items():
            more = self._places(read.folded, how[1])
            if some and places + more > self.limits.max_places:
                yield some
                some, places = [], 0
            some.append(i)
            places += more
        yield some

    def _check(self, what: str, n: int, most: int) -> None:
        if n > most:
            raise TooLarge(f"{n:,} {what}, but one request may have {most:,}; send fewer at a time")

    def _together(self, how: How, read: Sequence[_Read]) -> list[Answer | Exception]:
        """The answers to questions with the same options; each by itself where they cannot be answered together."""
        try:
            filler = self._filler(*how[:2])
            days = _Apart.merged_from([part.folded.days for part in read])
            table = filler.fill_timelines(days, origins=how[2])
            return _written(read, table, filler)
        except Exception as error:
            if len(read) == 1:
                return [error]
            log_failure(error)
            return [answer for part in read for answer in self._together(how, [part])]

    def _filler(self, policy: Policy, top: int) -> Filler:
        """The filler with another policy, sharing everything else."""
        filler = copy.copy(self.filler)
        filler.policy, filler.top = policy, top
        known = self._thresholds
        if isinstance(known, RunError):
            if policy.precision is not None:
                raise RunError(str(known))
            known = None
        filler.min_confidence = least_confidence(policy, known)
        return filler


def _thresholds_of(run: Run) -> Thresholds | RunError | None:
    """Those that were written with the model; or why there are none, which matters only to who asks for a precision."""
    try:
        return None if run.folder is None else read_thresholds(run.folder)
    except RunError as error:
        return error


class _Apart(Timelines):
    """The days of several questions on timelines of their own: people of one name in two questions are two people.

    The model still sees the names themselves, for it may know somebody by name.
    """

    @classmethod
    def merged_from(cls, days: Sequence[Days]) -> _Apart:
        user = np.array([f"{i:06d}\0{name}" for i, part in enumerate(days) for name in part.user], dtype=object)
        date, loc = (np.concatenate([getattr(part, name) for part in days]) for name in ("date", "loc"))
        return cls(days_of(user, date, loc), np.ones(len(user), dtype=np.bool_))

    def cases(self, asked: Bool, locations: Locations) -> Cases:
        cases = super().cases(asked, locations)
        return replace(cases, user=np.array([name.partition("\0")[2] for name in cases.user], dtype=object))


def _written(read: Sequence[_Read], table: pa.Table, filler: Filler) -> list[Answer | Exception]:
    """The answer to each question from the rows of all, which stand in the order of their days."""
    n_slots = filler.setting.n_slots
    ends = list(accumulate((len(part.folded.days) * n_slots for part in read), initial=0))
    slots = _slots(table, filler) if any(part.accept == JSON for part in read) else []
    recovered = np.array(table["status"].to_pylist(), dtype=object) == "recovered"
    out: list[Answer | Exception] = []
    for part, (first, end) in zip(read, pairwise(ends), strict=True):
        if part.accept == JSON:
            body = _json(part.folded, slots[first:end], filler)
        else:
            body = FORMS[part.accept](_named(table.slice(first, end - first), part.folded, n_slots), filler)
        out.append(Answer(body, int(recovered[first:end].sum())))
    return out


def _slots(table: pa.Table, filler: Filler) -> list[str]:
    """Each row as JSON, without user and date."""
    return json_lines(table.drop_columns(["user", "date"]), filler.setting.zone).split("\n")[:-1] if len(table) else []


def _json(folded: Folded, slots: Sequence[str], filler: Filler) -> bytes:
    how, days = filler.setting.how, folded.days
    texts = []
    for i, (user, date) in enumerate(zip(days.user.tolist(), days.date.tolist(), strict=True)):
        head = {"user": user, "date": str(date), "timezone": how.timezone, "slot_minutes": how.slot_minutes}
        mine = ",".join(slots[i * how.n_slots : (i + 1) * how.n_slots])
        texts.append(f'{json.dumps(head, ensure_ascii=False)[:-1]}, "slots": [{mine}]}}')
    points = {"used": folded.points - sum(folded.refused.values()), "refused": dict(folded.refused)}
    return f'{{"days": [{",".join(texts)}], "points": {json.dumps(points)}}}'.encode()


def _named(table: pa.Table, folded: Folded, n_slots: int) -> pa.Table:
    """The rows with the users as the client called them."""
    users = pa.array(np.repeat(folded.days.user, n_slots), pa.string())
    return table.set_column(0, "user", users)


def _csv(table: pa.Table, filler: Filler) -> bytes:
    out = io.BytesIO()
    csv.write_csv(csv_rows(table, filler.setting.zone), out)
    return out.getvalue()


def _ndjson(table: pa.Table, filler: Filler) -> bytes:
    return json_lines(table, filler.setting.zone).encode() if len(table) else b""


def _geojson(table: pa.Table, filler: Filler) -> bytes:
    each = ",\n".join(features(table, filler.setting.n_slots)) if len(table) else ""
    return f'{{"type": "FeatureCollection", "features": [\n{each}\n]}}\n'.encode()


JSON = "application/json"
FORMS: Mapping[str, Callable[[pa.Table, Filler], bytes]] = {
    "application/geo+json": _geojson,
    "application/x-ndjson": _ndjson,
    "text/csv": _csv,
}
"""The forms of an answer beside JSON, which is written for all questions at once."""
