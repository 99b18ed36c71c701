"""What others do: counts worked by hand, and that a user's own training days are no part of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from safetensors import numpy as safetensors

from attnmove.errors import DataError, RunError
from attnmove.models.evidence import crowd as module
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.crowd import Counts, Crowd
from attnmove.models.evidence.gather import Evidence, gather
from attnmove.nouns import MISSING, Cases
from builders import asked, some_locations

TRAIN = {"me": ["A A B C", "A . . C"], "x": ["A B . .", ". . D D"], "y": ["A . B B"]}


def ids(text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.array([ord(mark) - ord("A") for mark in text], dtype=np.int32)


def number(crowd: Crowd, user: str) -> int:
    return int(crowd.numbers_of(asked({user: ["A"]}))[0])


def people(seed: int, *, n_places: int = 20) -> Cases:
    """Four people who share places, a third of their slots hidden and a third unseen."""
    rng = np.random.default_rng(seed)
    letters = [chr(ord("A") + place) for place in range(n_places)]
    marks = [*letters, *(letter.lower() for letter in letters), *"." * n_places]
    return asked({f"u{i}": [" ".join(rng.choice(marks, 16)) for _ in range(5)] for i in range(4)}, n_locations=n_places)


def changed(cases: Cases, user: str, how: str, seed: int = 0) -> Cases:
    """The days of one user erased, at random places, or all at one place."""
    lie = {
        "erased": np.full(cases.loc.shape, MISSING),
        "random": np.random.default_rng(seed).integers(-1, len(cases.locations), cases.loc.shape),
        "one place": np.full(cases.loc.shape, 7),
    }[how]
    return replace(cases, loc=np.where((cases.user == user)[:, None], lie, cases.loc).astype(np.int32))


def same(one: Evidence, other: Evidence) -> bool:
    return np.array_equal(one.place, other.place) and np.array_equal(one.values, other.values, equal_nan=True)


def test_visits_are_those_of_the_others() -> None:
    crowd = Crowd.of(asked(TRAIN))
    me, place = number(crowd, "me"), ids("ABCDE")
    assert crowd.n_locations == 8
    visits, now, seen = crowd.visits_at(np.full(5, me), place.astype(np.int64), np.full(5, 3), 4)
    assert visits.tolist() == [2, 3, 0, 2, 0]
    assert now.tolist() == [0, 1, 0, 1, 0]
    assert seen.tolist() == [2, 2, 0, 1, 0]
    visits, now, seen = crowd.visits_at(np.full(5, MISSING), place.astype(np.int64), np.zeros(5, dtype=np.int64), 4)
    assert visits.tolist() == [5, 4, 2, 2, 0]
    assert now.tolist() == [4, 0, 0, 0, 0]
    assert seen.tolist() == [3, 3, 1, 1, 0]


def test_moves_count_less_over_more_slots_and_without_the_users_own() -> None:
    crowd = Crowd.of(asked(TRAIN))
    me = number(crowd, "me")
    moves = crowd.moves_from(np.array([me, me, MISSING]), ids("AEA"))
    found = {(int(w), int(t)): float(c) for w, t, c in zip(moves.target, moves.end, moves.count, strict=True)}
    assert moves.total.tolist() == pytest.approx([11 / 6, 0, sum(c for (w, _), c in found.items() if w == 2)])
    # Others: A to B over one slot (x), two and three slots (y). Mine: A A, A B over 1 and 2, A C over 2, 3 and 3.
    assert {t: c for (w, t), c in found.items() if w == 0} == pytest.approx({1: 1 + 1 / 2 + 1 / 3})
    assert {t: c for (w, t), c in found.items() if w == 2} == pytest.approx(
        {0: 1, 1: 1 + 1 / 2 + 1 / 3 + 1 + 1 / 2, 2: 1 / 2 + 1 / 3 + 1 / 3}
    )
    none = crowd.moves_to(np.array([me, MISSING]), np.array([2, MISSING], dtype=np.int32))
    assert len(none.target) == len(none.end) == len(none.count) == 0


def test_the_time_between_the_ends_of_a_move_is_four_slots_at_most() -> None:
    crowd = Crowd.of(asked({"x": ["A . . . B", "C . . . D"], "y": ["E . . . ."]}))
    moves = crowd.moves_from(np.full(2, MISSING), ids("AC"))
    assert (moves.end.tolist(), moves.count.tolist()) == ([1, 3], [0.25, 0.25])
    long = Crowd.of(asked({"x": ["A . . . . B"]}))
    assert len(long.moves) == 0


def test_a_day_in_several_draws_counts_once() -> None:
    once = asked(TRAIN)
    thrice = once.rows(np.repeat(np.arange(len(once)), 3))
    for name, array in Crowd.of(once).state().items():
        assert np.array_equal(Crowd.of(thrice).state()[name], array), name


def test_popular_are_the_places_of_most_others() -> None:
    crowd = Crowd.of(asked({"me": ["D D D"], "x": ["A B C"], "y": ["A B ."], "z": ["A . ."]}))
    mine, strange = crowd.popular(np.array([number(crowd, "me"), MISSING]), 5).tolist()
    assert mine[:3] == [0, 1, 2]
    assert mine[3:] == [MISSING] * (len(mine) - 3)
    assert strange[:4] == [0, 1, 2, 3]
    alone = Crowd.of(asked({"me": ["A B C"]}))
    assert set(alone.popular(np.array([number(alone, "me")]), 3).ravel().tolist()) == {MISSING}


def test_of_places_equally_popular_with_others_the_users_own_do_not_come_first() -> None:
    for own in ("C C C", ". . ."):
        crowd = Crowd.of(asked({"me": [own], "x": ["A B C"], "y": ["A B C"]}))
        assert crowd.popular(crowd.numbers_of(asked({"me": ["A"]})), 2).tolist() == [[0, 1]]


@pytest.mark.parametrize("how", ["erased", "random", "one place"])
def test_a_users_own_training_days_do_not_change_the_evidence(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT_MOVES", 3)
    monkeypatch.setattr(module, "_LOOKED_AT_POPULAR", 4)
    cases, train = people(1), people(2)
    atlas = Atlas.of(cases.locations)
    for user in ("u0", "u2"):
        mine = cases.rows(cases.user == user)
        whole = gather(mine, Crowd.of(train), atlas)
        assert same(gather(mine, Crowd.of(changed(train, user, how)), atlas), whole)
        assert same(gather(mine, Crowd.of(train.rows(train.user != user)), atlas), whole)  # as for a stranger
        assert not same(gather(mine, Crowd.of(changed(train, "u1", how)), atlas), whole)


def test_a_users_own_training_days_do_not_change_which_places_are_popular() -> None:
    cases, train = people(1), people(2)
    atlas = Atlas.of(cases.locations)
    mine = cases.rows(cases.user == "u0")
    whole = gather(mine, Crowd.of(train), atlas)
    for seed in range(6):
        assert same(gather(mine, Crowd.of(changed(train, "u0", "random", seed)), atlas), whole)


def test_a_users_own_moves_do_not_crowd_out_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT_MOVES", 2)
    others = {"x": ["A B A B"], "y": ["A B . ."]}
    for own in (". . . .", "A C A D"):
        crowd = Crowd.of(asked({"me": [own] * 5, **others}))
        moves = crowd.moves_from(crowd.numbers_of(asked({"me": ["A"]})), ids("A"))
        assert moves.end.tolist()[0] == 1
        assert moves.total.tolist() == pytest.approx([1 + 1 + 1 / 3 + 1 + 1 / 2])


def test_an_empty_crowd_knows_nothing_of_anybody() -> None:
    crowd = Crowd.of(asked(TRAIN).rows(np.zeros(0, dtype=np.int64)))
    assert crowd.numbers_of(asked(TRAIN)).tolist() == [MISSING] * 5
    assert [part.tolist() for part in crowd.visits_at(*(np.array([n]) for n in (MISSING, 3, 1)), 4)] == [[0]] * 3
    assert (crowd.popular(np.array([MISSING]), 3) == MISSING).all()
    moves = crowd.moves_from(np.array([MISSING]), ids("A"))
    assert (len(moves.target), moves.total.tolist()) == (0, [0])


def test_counts_are_found_by_key_and_nothing_is_nothing() -> None:
    counts = Counts.of(np.array([5, 2, 5, 9]), np.array([3, 4, 6, 12]))
    assert counts.key.tolist() == [2, 5, 9]
    assert counts.at(np.array([9, 5, 3, 0, 10])).tolist() == [12, 9, 0, 0, 0]
    assert Counts.of(np.zeros(0, dtype=np.int64)).at(np.array([1])).tolist() == [0]


def test_a_crowd_survives_a_file_of_arrays() -> None:
    cases, train = people(3), people(4)
    crowd, atlas = Crowd.of(train), Atlas.of(cases.locations)
    again = Crowd.restored(safetensors.load(safetensors.save(dict(crowd.state()))))
    assert same(gather(cases, again, atlas), gather(cases, crowd, atlas))


@pytest.mark.parametrize(
    "wrong",
    [
        {"people": np.zeros(0, dtype=np.int64)},
        {"people": np.zeros(7, dtype=np.int64)},
        {"visits": np.zeros(8, dtype=np.int64)},
        {"user": np.array([3, 2, 1])},
        {"own_visits_key": np.array([0])},
        {"own_visits_key": np.array([10**9]), "own_visits": np.array([1])},
        {"moves": np.array([1])},
        {"moves_key": np.array([64]), "moves": np.array([1])},
        {"moves_key": np.array([-1]), "moves": np.array([1])},
        {"moves_key": np.array([4, 4]), "moves": np.array([1, 1])},
        {"own_moves_key": np.array([3 * 64]), "own_moves": np.array([1])},
        {"moves": np.zeros(3)},
        {"visits": np.zeros((8, 8), dtype=np.int64)},
        {"visits": np.full(64, -1)},
        {"visits": np.full(64, 2**62)},
        {"people": np.full(8, 2**62)},
    ],
)
def test_arrays_that_are_no_crowd_are_refused(
    wrong: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]],
) -> None:
    with pytest.raises(RunError):
        Crowd.restored({**Crowd.of(asked(TRAIN)).state(), **wrong})


def test_a_missing_array_and_other_locations_are_refused() -> None:
    crowd = Crowd.of(asked(TRAIN))
    state = dict(crowd.state())
    del state["moves"]
    with pytest.raises(RunError, match="moves"):
        Crowd.restored(state)
    with pytest.raises(DataError, match="trained on another dataset"):
        crowd.check(replace(asked(TRAIN), locations=some_locations(9)))
