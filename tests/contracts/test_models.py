"""What every model must do, checked on each one that can be asked for by name."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from safetensors import numpy as safetensors

from attnmove.errors import DataError, NotFittedError
from attnmove.models.contract import Recoverer
from attnmove.models.registry import MODELS, make_model
from attnmove.nouns import MISSING, Cases, Days, Float32
from builders import cases_from, some_locations

N_SLOTS, N_LOCATIONS = 48, 12
CHEAP = {"network": {"epochs": 2, "width": 16}, "forest": {"trees": 5, "redraws": 1}, "rule": {}}
CHEAP["trees"] = {"rounds": 8, "min_leaf": 20, "draws": 1}
CHEAP = {kind: {**settings, "practice": 0} for kind, settings in CHEAP.items()}
"""Settings that make a model quick, by its kind; each model takes those it has."""
CLOSE = {"network": 1e-4, "trees": 1e-6, "forest": 1e-6, "rule": 1e-6}
"""How far log-probabilities may be apart: matrix products round by the size of the batch."""

every_model = pytest.mark.parametrize("name", MODELS)


def city(*, users: int = 6, days: int = 8, n_locations: int = N_LOCATIONS, centres: bool = True) -> Cases:
    """Users at home by night and at work by day, seen in half of their slots, six of which are asked for.

    The last location is met on a user's last day only, so it is never in training.
    """
    rng = np.random.default_rng(5)
    n = users * days
    user, number = np.divmod(np.arange(n), days)
    working = (np.arange(N_SLOTS) >= N_SLOTS // 3) & (np.arange(N_SLOTS) < N_SLOTS * 3 // 4)
    home, work = user % n_locations, (user + 5) % max(1, n_locations - 1)
    loc = np.where(working, work[:, None], home[:, None])
    loc[(number == days - 1)[:, None] & (np.arange(N_SLOTS) % 8 < 3)] = n_locations - 1
    loc[rng.random(loc.shape) < 0.5] = MISSING
    order = np.argsort(np.where(loc == MISSING, 2.0, rng.random(loc.shape)), axis=1)
    hidden = np.zeros(loc.shape, dtype=np.bool_)
    np.put_along_axis(hidden, order[:, :6], True, axis=1)
    date = np.datetime64("2024-03-04") + number
    table = Days(
        np.array([f"u{i}" for i in user], dtype=object), date, loc.astype(np.int32), np.full(n, "train", dtype=object)
    )
    return cases_from(table, hidden, some_locations(n_locations, centres=centres))


def parts(cases: Cases) -> tuple[Cases, Cases, Cases]:
    """The first days of each user to learn from, the next to choose on, the last two to ask."""
    day = cases.end - cases.first
    return cases.rows(day < 5), cases.rows(day == 5), cases.rows(day > 5)


TRAIN, VALID, TEST = parts(city())


def cheap(name: str, *, seed: int = 3) -> Recoverer:
    entry = MODELS[name]
    known = {field.name for config in entry.defaults for field in fields(config)}
    settings = {key: value for key, value in CHEAP[entry.kind].items() if key in known}
    return make_model(name, settings=settings, seed=seed, device="cpu")


@cache
def fitted(name: str) -> Recoverer:
    return cheap(name).fit(TRAIN, VALID)


def ask(model: Recoverer, cases: Cases) -> Float32:
    """(M, L) the log-probabilities of all targets; checks that they are answers at all."""
    answers = list(model.scores(cases))
    index = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(part.index for part in answers)])
    assert np.array_equal(index, cases.index)
    nothing = np.zeros((0, len(cases.locations)), dtype=np.float32)
    log_prob = np.concatenate([nothing, *(part.log_prob for part in answers)])
    assert log_prob.shape == (len(index), len(cases.locations))
    assert log_prob.dtype == np.float32
    assert np.isfinite(log_prob).all()
    assert np.allclose(np.exp(log_prob.astype(np.float64)).sum(axis=1), 1, atol=1e-4)
    return log_prob


def same(name: str, one: Float32, other: Float32) -> bool:
    return bool(np.allclose(one, other, rtol=1e-5, atol=CLOSE[MODELS[name].kind]))


def somewhere(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.random.default_rng(9).integers(0, N_LOCATIONS, shape).astype(np.int32)


@every_model
def test_the_answers_are_log_probabilities_of_every_target_once_and_in_order(name: str) -> None:
    log_prob = ask(fitted(name), TEST)
    assert len(log_prob) == TEST.hidden.sum() == 72


@every_model
def test_a_seed_makes_a_model_again(name: str) -> None:
    assert np.array_equal(ask(cheap(name).fit(TRAIN, VALID), TEST), ask(fitted(name), TEST))


@pytest.mark.parametrize("name", [name for name, entry in MODELS.items() if entry.kind != "rule"])
def test_another_seed_makes_another_model(name: str) -> None:
    assert not np.array_equal(ask(cheap(name, seed=4).fit(TRAIN, VALID), TEST), ask(fitted(name), TEST))


@every_model
def test_asking_twice_gives_the_same_answer_and_changes_nothing(name: str) -> None:
    before = {field.name: np.copy(getattr(TEST, field.name)) for field in fields(TEST) if field.name != "locations"}
    assert np.array_equal(ask(fitted(name), TEST), ask(fitted(name), TEST))
    for member, array in before.items():
        assert np.array_equal(getattr(TEST, member), array), member


@every_model
def test_rows_asked_one_by_one_get_the_answers_of_all_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ask(fitted(name), TEST)
    alone = [ask(fitted(name), TEST.rows(np.array([row]))) for row in range(len(TEST))]
    assert same(name, np.concatenate(alone), whole)
    monkeypatch.setattr("attnmove.models.contract._CELLS_AT_ONCE", 20 * N_LOCATIONS)
    assert len(list(fitted(name).scores(TEST))) == 4
    assert same(name, ask(fitted(name), TEST), whole)


@every_model
def test_the_order_of_the_rows_does_not_matter(name: str) -> None:
    order = np.random.default_rng(1).permutation(len(TEST))
    whole = ask(fitted(name), TEST).reshape(len(TEST), -1)
    shuffled = ask(fitted(name), TEST.rows(order)).reshape(len(TEST), -1)
    assert same(name, shuffled, whole[order])


@every_model
def test_the_truth_is_not_looked_at(name: str) -> None:
    whole = ask(fitted(name), TEST)
    for lie in (np.full(TEST.loc.shape, MISSING, dtype=np.int32), somewhere(TEST.loc.shape)):
        assert np.array_equal(ask(fitted(name), replace(TEST, loc=np.where(TEST.hidden, lie, TEST.loc))), whole)


@every_model
@pytest.mark.parametrize("erased", [True, False])
def test_later_days_and_other_users_are_not_looked_at(name: str, erased: bool) -> None:
    for row in range(0, len(TEST), 3):
        case = TEST.rows(np.array([row]))
        elsewhere = np.ones(len(TEST.past), dtype=np.bool_)
        elsewhere[case.first[0] : case.end[0]] = False
        lie = np.full(TEST.past.shape, MISSING, dtype=np.int32) if erased else somewhere(TEST.past.shape)
        changed = replace(case, past=np.where(elsewhere[:, None], lie, case.past))
        assert np.array_equal(ask(fitted(name), changed), ask(fitted(name), case))


@every_model
def test_what_was_learnt_survives_a_file_of_arrays(name: str) -> None:
    saved = safetensors.save(dict(fitted(name).state()))
    restored = cheap(name, seed=99).restore(safetensors.load(saved))
    assert np.array_equal(ask(restored, TEST), ask(fitted(name), TEST))
    again = restored.state()
    assert set(again) == set(fitted(name).state())
    for key, array in fitted(name).state().items():
        assert np.array_equal(again[key], array, equal_nan=array.dtype.kind == "f"), key
        assert again[key].dtype == array.dtype, key


@every_model
def test_nothing_is_known_before_fit(name: str) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        list(cheap(name).scores(TEST))
    with pytest.raises(NotFittedError, match="call fit"):
        cheap(name).state()


@every_model
def test_a_user_who_was_not_in_training_gets_answers(name: str) -> None:
    strangers = replace(TEST, user=np.array([f"stranger {user}" for user in TEST.user], dtype=object))
    ask(fitted(name), strangers)


@every_model
def test_a_user_without_any_past_gets_answers(name: str) -> None:
    empty = np.full(TEST.history.shape, MISSING, dtype=np.int32)
    newborn = replace(TEST, first=TEST.end, history=empty)
    ask(fitted(name), newborn)
    ask(fitted(name), replace(newborn, user=np.full(len(TEST), "stranger", dtype=object)))


@every_model
def test_locations_that_were_never_in_training_are_asked_for_and_seen(name: str) -> None:
    last = N_LOCATIONS - 1
    assert last not in TRAIN.loc
    assert last in TEST.truth
    assert last in TEST.visible
    ask(fitted(name), replace(TEST, past=np.full_like(TEST.past, last), history=np.full_like(TEST.history, last)))


@every_model
def test_a_day_without_a_visible_slot_gets_answers(name: str) -> None:
    ask(fitted(name), replace(TEST, hidden=TEST.loc != MISSING))
    ask(fitted(name), replace(TEST, hidden=np.ones_like(TEST.hidden)))


@every_model
def test_no_cases_and_days_without_targets_get_no_answers(name: str) -> None:
    assert len(ask(fitted(name), TEST.rows(np.zeros(0, dtype=np.int64)))) == 0
    assert len(ask(fitted(name), replace(TEST, hidden=np.zeros_like(TEST.hidden)))) == 0
    some = TEST.hidden & (np.arange(len(TEST)) % 2 == 1)[:, None]
    assert len(ask(fitted(name), replace(TEST, hidden=some))) == 36


@every_model
def test_locations_need_no_centres_unless_the_model_says_so(name: str) -> None:
    train, valid, test = parts(city(centres=False))
    try:
        model = cheap(name).fit(train, valid)
    except DataError as error:
        assert "centre" in str(error)  # noqa: PT017 - a model may need centres, but then it must say so
    else:
        ask(model, test)


@every_model
def test_a_dataset_of_one_location_is_certain(name: str) -> None:
    train, _, test = parts(city(n_locations=1))
    assert np.allclose(ask(cheap(name).fit(train), test), 0, atol=1e-5)


@every_model
def test_a_model_of_other_locations_says_so(name: str) -> None:
    with pytest.raises(DataError, match="trained on another dataset"):
        list(fitted(name).scores(parts(city(n_locations=7))[2]))
