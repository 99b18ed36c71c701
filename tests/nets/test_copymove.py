"""CopyMove's copying against a slow loop, and what must have no effect."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from attnmove.errors import ConfigError
from attnmove.nets.batch import Batch, CaseTensors, plan_of
from attnmove.nets.candidates import NEVER, Candidates, CandidateTensors
from attnmove.nets.config import CopyMoveConfig
from attnmove.nets.copymove import N_KINDS, CopyMove, Pointer, summed_by_place
from attnmove.nouns import MISSING
from attnmove.train.loop import loss_of

N_SLOTS, N_LOCATIONS, N_FEATURES = 4, 6, 3
SMALL = CopyMoveConfig(width=8, heads=2, past_days=2, hidden=5, steps=2, places=True)
THURSDAY = 7_000
"""A Thursday, in days since 1970: whole weeks after the first."""


def candidates(places: list[list[int]], *, seed: int = 0) -> Candidates:
    """The candidates of each target, with numbers of chance about them."""
    sizes = [len(mine) for mine in places]
    values = torch.randn(sum(sizes), N_FEATURES, generator=torch.Generator().manual_seed(seed)).half()
    return Candidates(
        target=torch.repeat_interleave(torch.tensor(sizes)),
        position=torch.cat([torch.arange(n) for n in sizes]),
        place=torch.tensor([place for mine in places for place in mine], dtype=torch.int64),
        values=values,
        known=torch.ones(len(values), 2, dtype=torch.bool),
        entry=torch.arange(len(values)),
    )


def batch(places: list[list[int]] | None = None) -> Batch:
    """Three targets of two days; the second day has one earlier day, the first two."""
    visible = torch.tensor([[0, -1, 2, -1], [-1, 3, 3, -1]], dtype=torch.int32)
    past = torch.tensor([[[0, 0, 5, -1], [0, 1, 2, 1]], [[-1] * 4, [-1, 3, -1, 4]]], dtype=torch.int32)
    return Batch(
        visible=visible,
        history=torch.full_like(visible, MISSING),
        user=torch.zeros(2, dtype=torch.int64),
        past=past,
        row=torch.tensor([0, 0, 1]),
        slot=torch.tensor([1, 3, 0]),
        date=torch.tensor([THURSDAY, THURSDAY]),
        past_date=torch.tensor([[THURSDAY - 7, THURSDAY - 1], [THURSDAY, THURSDAY - 5]]),
        candidates=candidates(places or [[0, 1, 2, 5], [0, 2], [3, 4, 5]]),
    )


def network(config: CopyMoveConfig = SMALL) -> CopyMove:
    torch.manual_seed(3)
    net = CopyMove(config, n_locations=N_LOCATIONS, n_slots=N_SLOTS, n_features=N_FEATURES).eval()
    with torch.no_grad():
        net.copy_past.age.copy_(torch.randn(len(net.copy_past.age)))
    return net


def slow_weights(pointer: Pointer, x: Tensor, sightings: Tensor, asked: Batch, place: Tensor, age: Tensor) -> Tensor:
    """(M, N_LOCATIONS) the attention each place gets: one sighting at a time."""
    out = torch.zeros(len(asked.row), N_LOCATIONS)
    for m, (b, t) in enumerate(zip(asked.row.tolist(), asked.slot.tolist(), strict=True)):
        query = (pointer.query.weight @ x[b, t]).tolist()
        scores = {}
        for w in range(place.shape[1]):
            for then in range(N_SLOTS):
                if place[b, w, then] != MISSING:
                    key = (pointer.key.weight @ sightings[b, w * N_SLOTS + then]).tolist()
                    dot = sum(q * k for q, k in zip(query, key, strict=True)) / math.sqrt(x.shape[-1])
                    bias = pointer.apart[then - t + N_SLOTS - 1] + pointer.age[age[b, w]]
                    scores[w, then] = math.exp(dot + float(bias))
        for (w, then), score in scores.items():
            out[m, place[b, w, then]] += score / sum(scores.values())
    return out


@torch.no_grad()
def test_a_candidate_gets_the_attention_of_its_sightings_and_no_others() -> None:
    net, asked = network(), batch()
    chosen = asked.candidates
    assert chosen is not None
    x = torch.randn(2, N_SLOTS, SMALL.width)
    today, memory = torch.randn(2, N_SLOTS, SMALL.width), torch.randn(2, 2 * N_SLOTS, SMALL.width)
    age = net.age_of(asked)
    there = (asked.past != MISSING).flatten(1)
    now = net.copy_day(x, today, asked.visible != MISSING, None, asked)
    then = net.copy_past(x, memory, there, age, asked)
    for weight, place, pointer, sightings, ages in (
        (now, asked.visible[:, None], net.copy_day, today, torch.zeros(2, 1, dtype=torch.int64)),
        (then, asked.past, net.copy_past, memory, age),
    ):
        slow = slow_weights(pointer, x, sightings, asked, place, ages)
        fast = summed_by_place(weight, place.flatten(1)[asked.row], chosen)
        assert torch.allclose(fast, slow[chosen.target, chosen.place], atol=1e-6)
        assert torch.allclose(weight.sum(1), torch.ones(3))
    assert (now.sum(), then.sum()) == (pytest.approx(3), pytest.approx(3))


def test_weights_are_summed_by_place_and_what_is_no_candidate_is_left_out() -> None:
    weight = torch.tensor([[0.5, 0.2, 0.3], [0.6, 0.1, 0.3]])
    place = torch.tensor([[2, 0, 2], [1, MISSING, 4]])
    assert summed_by_place(weight, place, candidates([[0, 2, 3], [3, 4]])).tolist() == pytest.approx(
        [0.2, 0.8, 0, 0, 0.3]
    )
    assert summed_by_place(weight, torch.full_like(place, MISSING), candidates([[0], []])).tolist() == [0]
    assert len(summed_by_place(weight, place, candidates([[], []]))) == 0


def test_a_day_is_known_by_its_age_in_powers_of_two_and_its_weekday() -> None:
    asked = batch()
    ago = torch.tensor([[1, 2, 3, 4, 7, 8, 365, 5002], [0] * 8])
    dates = replace(asked, date=torch.tensor([THURSDAY, THURSDAY]), past_date=THURSDAY - ago)
    age, kind = network().age_of(dates)[0] // N_KINDS, network().age_of(dates)[0] % N_KINDS
    assert age.tolist() == [1, 2, 2, 3, 3, 4, 9, 9]
    assert kind.tolist() == [1, 1, 1, 2, 0, 1, 1, 2]  # 4 days before a Thursday is a Sunday, so is 5002
    assert network().age_of(replace(asked, past_date=None)).tolist() == [[0, 0], [0, 0]]


@torch.no_grad()
@pytest.mark.parametrize("config", [SMALL, replace(SMALL, places=False)])
def test_a_score_does_not_depend_on_the_other_candidates_or_targets(config: CopyMoveConfig) -> None:
    net, asked = network(config), batch()
    logits = net(asked)
    assert logits.shape == (3, 4)
    assert (logits == NEVER).tolist() == [[False] * 4, [False, False, True, True], [False] * 3 + [True]]
    chosen = asked.candidates
    assert chosen is not None
    for e in range(len(chosen.place)):
        m = int(chosen.target[e])
        alone = replace(chosen, **{name: part[e : e + 1] for name, part in vars(chosen).items()})
        alone = replace(alone, target=torch.tensor([0]), position=torch.tensor([0]))
        only = replace(asked, row=asked.row[m : m + 1], slot=asked.slot[m : m + 1], candidates=alone)
        assert net(only)[0, 0].item() == pytest.approx(logits[m, chosen.position[e]].item(), abs=1e-5)


@torch.no_grad()
def test_days_that_are_not_there_and_companions_have_no_effect() -> None:
    net, asked = network(), batch()
    other = replace(asked, past=asked.past.clone(), past_date=asked.past_date)
    other.past[0] = 4
    assert torch.allclose(net(other)[2], net(asked)[2], atol=1e-5)
    assert not torch.allclose(net(other)[0], net(asked)[0], atol=1e-3)
    assert asked.past_date is not None
    dated = replace(asked, past_date=asked.past_date - torch.tensor([[0, 0], [300, 0]]))  # of a day that is not there
    assert torch.allclose(net(dated), net(asked), atol=1e-5)


@torch.no_grad()
def test_nothing_is_copied_where_the_evidence_is_withheld() -> None:
    net, asked = network(), batch()
    chosen = asked.candidates
    assert chosen is not None
    withheld = replace(asked, candidates=replace(chosen, known=torch.zeros_like(chosen.known)))
    seen = torch.tensor([place in (0, 1, 2) for place in chosen.place[:4].tolist()])
    same = torch.isclose(net(withheld)[0], net(asked)[0], atol=1e-6)
    assert not same[seen].any()


def test_places_that_are_not_told_apart_are_scored_by_their_evidence() -> None:
    net, asked = network(replace(SMALL, places=False)), batch()
    assert net.places.table.shape == (2, SMALL.width)
    moved = replace(asked, visible=torch.where(asked.visible == 2, 1, asked.visible))
    known = replace(batch([[4, 5], [4], [2]]), visible=moved.visible)
    assert torch.equal(net(known), net(batch([[4, 5], [4], [2]])))


@torch.no_grad()
def test_a_day_without_anything_visible_and_a_past_without_days_are_scored() -> None:
    net, asked = network(), batch()
    empty = replace(asked, visible=torch.full_like(asked.visible, MISSING), past=torch.full_like(asked.past, MISSING))
    assert torch.isfinite(net(empty)).all()


def test_numbers_are_standardised_clipped_and_zero_where_not_known() -> None:
    net = network()
    values = torch.tensor([[0.0, math.nan, 5.0], [math.e - 1, math.nan, 5.0], [1 - math.e, 2.0, 5.0]])
    net.standardise_by([values[:2], values[2:]])
    assert net.mean.tolist() == pytest.approx([0, math.log(3), math.log(6)])
    assert net.deviation.tolist() == pytest.approx([math.sqrt(2 / 3), 1, 1])
    out = net.standardised(torch.tensor([[math.nan, 2.0, 1e30], [math.e - 1, 2.0, 5.0]]))
    assert out.tolist() == [[0, 0, 6], [pytest.approx(math.sqrt(1.5), rel=1e-3), 0, 0]]


def test_a_number_is_given_in_steps_too() -> None:
    net = network()
    values = torch.cat([torch.zeros(50, 3), torch.linspace(-1, 1, 101)[:, None].expand(-1, 3)])
    net.standardise_by([values])
    assert (net.edges.diff() > 0).all()
    low, middle, high = net.edges[0].tolist()
    assert (low, middle, high) == (pytest.approx(-high, abs=0.01), pytest.approx(0, abs=0.01), pytest.approx(high))
    given = torch.tensor([[low - 1, middle, high + 1], [(low + middle) / 2, (middle + high) / 2, low]])
    wanted = [[0, 0, 2, 0, 2, 2], [1, 0, 2, 1, 0, 0]]
    assert net._in_steps(given).tolist() == [pytest.approx(row, abs=1e-3) for row in wanted]
    net.standardise_by([torch.full((4, N_FEATURES), 3.0)])
    assert (net.edges.diff() > 0).all()


def test_candidates_are_cut_from_those_stored_with_the_truth_as_a_position() -> None:
    number = torch.full((2, N_SLOTS), MISSING)
    truth = number.clone()
    number[0, 1], number[1, 0], number[1, 2] = 0, 1, 2
    truth[0, 1], truth[1, 0], truth[1, 2] = 2, 0, 1
    values = torch.arange(18.0).reshape(6, 3).half()
    stored = CandidateTensors(
        number=number,
        truth=truth,
        start=torch.tensor([0, 3, 4, 6]),
        place=torch.tensor([0, 2, 5, 1, 3, 4]),
        values=values,
        known=torch.ones(6, 2, dtype=torch.bool),
    )
    loc = torch.zeros(2, N_SLOTS, dtype=torch.int32)
    zeros = torch.zeros(2, dtype=torch.int64)
    data = CaseTensors(loc, loc, zeros, loc, zeros, zeros, candidates=stored)
    assert stored.numbers_per_target == 9
    plan = plan_of(data, (number != MISSING).numpy(), np.array([1, 0]))
    cut, answers = plan.cut(data, 0, 2, past_days=1)
    assert answers.tolist() == [0, 1, 2]
    chosen = cut.candidates
    assert chosen is not None
    assert chosen.target.tolist() == [0, 1, 1, 2, 2, 2]
    assert chosen.position.tolist() == [0, 0, 1, 0, 1, 2]
    assert chosen.place.tolist() == [1, 3, 4, 0, 2, 5]
    assert chosen.entry.tolist() == [3, 4, 5, 0, 1, 2]
    assert torch.equal(chosen.values, values[chosen.entry])
    assert chosen.padded(chosen.place.float(), 3).tolist() == [[1, NEVER, NEVER], [3, 4, NEVER], [0, 2, 5]]
    assert cut.to(torch.device("meta")).candidates.place.device.type == "meta"  # type: ignore[union-attr]


def test_smoothing_gives_nothing_to_padding() -> None:
    asked = batch([[0, 1], [2], [3, 4, 5]])
    assert asked.candidates is not None
    logits = asked.candidates.padded(torch.tensor([0.0, 1.0, 5.0, 1.0, 2.0, 3.0]), 3)
    answers = torch.tensor([0, 0, 2])
    wanted = []
    for m, (n, truth) in enumerate([(2, 0), (1, 0), (3, 2)]):
        wanted.append(torch.nn.functional.cross_entropy(logits[m, :n], torch.tensor(truth), label_smoothing=0.3))
    assert loss_of(logits, answers, asked, smoothing=0.3).item() == pytest.approx(torch.stack(wanted).mean().item())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"width": 7}, "width 7 must be even"),
        ({"heads": 3}, "divisible by heads 3"),
        ({"past_days": 65}, "past_days 1 to 64"),
        ({"hidden": 0}, "hidden must be 1 or more"),
        ({"steps": -1}, "steps 0 or more"),
        ({"dropout": 1.0}, "dropout must be from 0 to below 1"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(wrong: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        replace(SMALL, **wrong)
