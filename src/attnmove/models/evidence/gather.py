"""The candidates of each target and all that speaks for them: cases in, a table of numbers out.

Nothing here looks at hidden slots, at later days, or at what the user's own days add to the counts of everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from attnmove.models.compiled import compiled
from attnmove.models.evidence.analogy import analogy_clues
from attnmove.models.evidence.asked import Asked
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.clues import Clues, day_clues, past_clues
from attnmove.models.evidence.course import course, pace
from attnmove.models.evidence.crowd import Crowd, Moves, found
from attnmove.models.evidence.features import ABSENT, IN_PLAY, NAMES, column, columns_of
from attnmove.models.evidence.nearby import nearby_clues
from attnmove.models.evidence.pairs import Pairs, Told
from attnmove.models.evidence.play import Play
from attnmove.models.ranking import heaviest
from attnmove.nouns import MISSING, Bool, Cases, Float32, Int32, Int64, weekday

_PROMISING = 40
"""Places in play that a target has as candidates: all of the day, then those that most speaks for, up to so many."""
_MOVES = 12
"""Most frequent moves of others from today's place before, and to the place after, that become candidates."""
_POPULAR = 10
_TARGETS_AT_ONCE, _ROWS_AT_ONCE = 256, 256
"""How much evidence is held at a time, but for the last row: some 65 candidates a target, 350 bytes each."""


@dataclass(frozen=True)
class Evidence:
    """The candidates of M targets, one target's after the other's, and F numbers about each."""

    index: Int64
    """(M, 2) row and slot of each target in the cases that were asked."""
    start: Int64 = field(repr=False)
    """(M + 1,) the candidates of target m are start[m] … start[m + 1] - 1; there may be none."""
    place: Int32 = field(repr=False)
    """(E,) ascending within a target."""
    values: Float32 = field(repr=False)
    """(E, F) in the order of features.NAMES; NaN where a number is not known."""
    position_km: Float32 | None = field(default=None, repr=False)
    """(E, 3) where the candidates lie; NaN where not known. None: nothing is known of it."""

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def target(self) -> Int64:
        """(E,) the target of each candidate."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def without(self, family: str) -> Evidence:
        """The same candidates, of which this family says nothing."""
        values, columns = self.values.copy(), columns_of(family)
        values[:, columns] = ABSENT[columns]
        return replace(self, values=values)

    def position_of(self, place: Int32, n_locations: int) -> Int64:
        """(M,) the candidate that is this place, MISSING where it is not among the target's."""
        key = self.target * n_locations + self.place
        at, there = found(key, np.arange(len(self)) * n_locations + place)
        return np.where(there & (place != MISSING), at, MISSING)


def in_parts(cases: Cases, *, most_targets: int | None = None) -> Iterator[Int64]:
    """Rows of the cases, some at a time, so that memory does not grow with their number; fewer where that is wanted."""
    at_once = min(most_targets or _TARGETS_AT_ONCE, _TARGETS_AT_ONCE)
    counts = cases.hidden.sum(axis=1)
    asking = np.flatnonzero(counts)
    before = np.cumsum(counts[asking]) - counts[asking]
    part = before // at_once * (len(asking) + 1) + np.arange(len(asking)) // _ROWS_AT_ONCE
    cuts = np.flatnonzero(np.diff(part)) + 1
    return (rows for rows in np.split(asking, cuts) if len(rows))


def gather(cases: Cases, crowd: Crowd, atlas: Atlas) -> Evidence:
    """The evidence for every target of the cases."""
    n = len(cases.locations)
    asked, play = Asked.of(cases, night=True), Play.of(cases)
    pairs = Pairs.of(asked, play)
    number = crowd.numbers_of(cases)[asked.row]
    leaving, arriving = crowd.moves_from(number, asked.prev_today), crowd.moves_to(number, asked.next)
    between = _between(asked, atlas)
    told = Told.nothing(len(pairs))
    tell(asked, play, pairs, atlas, told)
    pair_key = pairs.target * n + play.place[pairs.entry]
    around = _nominated(asked, (leaving, arriving), crowd, number, between, atlas)
    key = _distinct(np.concatenate([pair_key[_most_promising(told, pairs)], *around]))
    target, place = np.divmod(key, n)
    slot = asked.slot[target]
    visits = crowd.visits_at(number[target], place, slot, cases.n_slots)
    rest = dict(zip(("crowd", "crowd_now", "crowd_people"), visits, strict=True))
    near, life = nearby_clues(asked, play, pairs, told, key, atlas)
    rest |= near | _space_clues(asked, target, place, between, atlas)
    question = _target_clues(cases, asked, play, atlas) | _restlessness(asked, play) | life | pace(asked, atlas)
    rest |= {name: value[target] for name, value in question.items()}
    for name, moves in (("from_prev", leaving), ("to_next", arriving)):
        rest |= _move_clues(name, moves, key, n)
    values, known = np.empty((len(key), len(NAMES)), dtype=np.float32), len(IN_PLAY)
    _look_up(key, pair_key, told.values, ABSENT[:known], values)
    values[:, known:] = _table(rest, NAMES[known:])
    return Evidence(
        index=cases.index,
        start=np.searchsorted(target, np.arange(len(asked) + 1)),
        place=place.astype(np.int32),
        values=values,
        position_km=atlas.at(place),
    )


def tell(asked: Asked, play: Play, pairs: Pairs, atlas: Atlas, told: Told) -> None:
    """Write what the day and the past say about the places in play."""
    day_clues(play, pairs, told)
    past_clues(play, pairs, told)
    analogy_clues(asked, play, pairs, atlas, told)


def _table(clues: Clues, names: Sequence[str]) -> Float32:
    """The clues side by side; each is written in one piece, a column at a time would touch every row every time."""
    return np.stack([clues[name].astype(np.float32, copy=False) for name in names]).T


@compiled
def _look_up(key: Int64, pair_key: Int64, told: Float32, absent: Float32, values: Float32) -> None:
    """Write what is told of the pair of each key in front of its values; keys ascend."""
    pair = 0
    for e in range(len(key)):
        while pair < len(pair_key) and pair_key[pair] < key[e]:
            pair += 1
        is_there = pair < len(pair_key) and pair_key[pair] == key[e]
        values[e, : len(absent)] = told[pair] if is_there else absent


def _move_clues(name: str, moves: Moves, key: Int64, n_locations: int) -> Clues:
    """How often others make the move to, or from, a candidate."""
    at, there = found(key, moves.target * n_locations + moves.end)
    at, count = at[there], moves.count[there]
    share, often = np.zeros(len(key), dtype=np.float32), np.zeros(len(key), dtype=np.float32)
    often[at] = np.log1p(count)
    share[at] = count / (moves.total[moves.target[there]] + 1)
    return {name: share, f"{name}_count": often}


def _most_promising(told: Told, pairs: Pairs) -> Bool:
    """(P,) which places in play become candidates: those seen today, then those that most speaks for."""
    weight = np.where(told.of("day_share") > 0, np.inf, told.promise)
    return heaviest(pairs.at.start, weight, most=_PROMISING)


def _nominated(
    asked: Asked,
    moves: tuple[Moves, Moves],
    crowd: Crowd,
    number: Int64,
    between: Float32,
    atlas: Atlas,
) -> Iterator[Int64]:
    """target * L + place of candidates that need not be in play, those that several speak for several times."""
    n, every = crowd.n_locations, np.arange(len(asked))
    for side in (asked.prev, asked.next):
        seen = np.flatnonzero(side != MISSING)
        yield _keys(seen, atlas.neighbours[side[seen]], n)
    apart = np.flatnonzero((asked.prev != asked.next) & np.isfinite(between[:, 0]))
    yield _keys(apart, atlas.around(between[apart]), n)
    for side_moves in moves:
        often = side_moves.rank < _MOVES
        yield side_moves.target[often] * n + side_moves.end[often]
    yield _keys(every, crowd.popular(number, _POPULAR), n)


def _distinct(keys: Int64) -> Int64:
    """The keys ascending, each once; for numbers as many as these, sorting is ten times faster than np.unique."""
    ordered = np.sort(keys)
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def _keys(target: Int64, places: np.ndarray[tuple[int, ...], np.dtype[np.integer]], n_locations: int) -> Int64:
    """target * L + place of the places (targets, k) that are not MISSING."""
    keys = target[:, None] * n_locations + places
    out: Int64 = keys[places != MISSING].astype(np.int64)
    return out


def _between(asked: Asked, atlas: Atlas) -> Float32:
    """(M, 3) where one would be at the target's time going straight from side to side, in kilometres; the only side
    where there is one; NaN where a centre is not known."""
    prev = np.where(asked.prev == MISSING, asked.next, asked.prev)
    following = np.where(asked.next == MISSING, asked.prev, asked.next)
    gap = asked.gap_prev + asked.gap_next
    share = (asked.gap_prev / np.maximum(1, gap)).astype(np.float32)[:, None]
    point = atlas.position_km[prev] * (1 - share) + atlas.position_km[following] * share
    known = (prev != MISSING) & atlas.known[prev] & atlas.known[following]
    return np.where(known[:, None], point, np.float32(np.nan))


def _space_clues(asked: Asked, target: Int64, place: Int64, between: Float32, atlas: Atlas) -> Clues:
    """How far a candidate is from the visible places around the target, what way there is through it, and how well it
    lies on the way the user goes."""
    points = {"km_prev": atlas.at(asked.prev), "km_next": atlas.at(asked.next), "km_mid": between}
    points |= course(asked, atlas)
    clues: Clues = dict(zip(points, atlas.km_to_points(place, np.stack(list(points.values())), target), strict=True))
    km_prev, km_next = clues["km_prev"], clues["km_next"]
    straight = atlas.km(asked.prev, asked.next)[target]
    gap_prev, gap_next = (np.maximum(1, gap)[target].astype(np.float32) for gap in (asked.gap_prev, asked.gap_next))
    return clues | {
        "detour_km": km_prev + km_next - straight,
        "detour_ratio": (km_prev + km_next + np.float32(0.1)) / (straight + np.float32(0.1)),
        "speed": np.fmax(km_prev / gap_prev, km_next / gap_next),
        "spacing_km": atlas.spacing_km[place],
    }


def _target_clues(cases: Cases, asked: Asked, play: Play, atlas: Atlas) -> Clues:
    """What kind of question it is, whoever the candidate; a value a target."""
    last = play.last.loc
    tried = (last[:, :, 1:] != MISSING) & (last[:, :, :-1] != MISSING)
    stayed = tried & (last[:, :, 1:] == last[:, :, :-1])
    stay = (stayed.sum(axis=(1, 2)) + 1) / (tried.sum(axis=(1, 2)) + 2)
    n_places = np.bincount(play.row, play.seen_today.any(axis=1), len(cases))
    day = cases.date.astype("datetime64[D]").astype(np.int64)
    far = ABSENT[[column("gap_prev"), column("gap_next")]]
    return {
        "slot": asked.slot * (24 / cases.n_slots),
        "weekday": weekday(day)[asked.row],
        "gap_prev": np.where(asked.prev == MISSING, far[0], asked.gap_prev),
        "gap_next": np.where(asked.next == MISSING, far[1], asked.gap_next),
        "same_sides": (asked.prev == asked.next) & (asked.prev != MISSING),
        "km_sides": atlas.km(asked.prev, asked.next),
        "n_seen": (play.visible != MISSING).sum(axis=1)[asked.row],
        "n_places_day": n_places[asked.row],
        "n_days_past": play.last.there.sum(axis=1)[asked.row],
        "n_play": np.diff(play.start)[asked.row],
        "stay": stay[asked.row],
    }


def _restlessness(asked: Asked, play: Play) -> Clues:
    """How the day of each target goes from place to place: where it goes to and fro, the place next in time says less,
    and the place of most of the day more."""
    row, slot = np.nonzero(play.today != MISSING)
    entry, n_rows = play.today[row, slot], len(play.visible)
    is_new = np.diff(entry, prepend=MISSING) != 0  # no two rows share an entry
    n_seen, n_stays = np.bincount(row, minlength=n_rows), np.bincount(row, is_new, n_rows)
    count = np.bincount(entry, minlength=len(play.place))
    most = np.zeros(n_rows, dtype=np.int64)
    np.maximum.at(most, play.row, count)
    returns = np.where(n_seen > 0, n_stays - np.bincount(play.row, count > 0, n_rows), np.nan)
    of_day = {
        "changes": np.where(n_seen > 1, (n_stays - 1) / np.maximum(1, n_seen - 1), np.nan),
        "most_share": np.where(n_seen > 0, most / np.maximum(1, n_seen), np.nan),
        "returns": returns,
        "returns_share": returns / np.maximum(1, n_stays),
    }
    return {name: value[asked.row] for name, value in of_day.items()}
