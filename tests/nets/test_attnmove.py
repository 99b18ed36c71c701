"""AttnMove against a slow loop written from the equations, and value tests of what meets what."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnmove.errors import ConfigError
from attnmove.nets.attnmove import AttnMove
from attnmove.nets.batch import Batch
from attnmove.nets.config import AttnMoveConfig
from attnmove.nets.layers import Attention, Places, slot_code
from attnmove.nouns import MISSING

N_SLOTS, N_LOCATIONS = 6, 5
PAPER = AttnMoveConfig(width=8, heads=2, layers=2, dropout=0.0, blocks="relu", attend_missing=True)
VARIANTS = {
    "paper": PAPER,
    "visible slots only": replace(PAPER, attend_missing=False),
    "without history": replace(PAPER, use_history=False),
    "no historical": replace(PAPER, historical_attention=False),
    "no current": replace(PAPER, current_attention=False),
    "no inter": replace(PAPER, inter_attention=False),
    "no generation": replace(PAPER, generation_attention=False),
}
Vectors = list[list[float]]


def batch(*, visible: list[list[int]], history: list[list[int]] | None = None, asked: list[tuple[int, int]]) -> Batch:
    """A batch without earlier days; MISSING where a row says -1."""
    day = torch.tensor(visible, dtype=torch.int32)
    row, slot = torch.tensor(asked).T
    return Batch(
        visible=day,
        history=torch.tensor(history, dtype=torch.int32) if history else torch.full_like(day, MISSING),
        user=torch.zeros(len(day), dtype=torch.int64),
        past=torch.full((len(day), 0, day.shape[1]), MISSING),
        row=row,
        slot=slot,
    )


TWO_DAYS = {
    "visible": [[0, -1, 2, -1, -1, 4], [-1, -1, 3, 3, -1, 1]],
    "history": [[0, 0, -1, 2, 2, 4], [-1, -1, -1, -1, -1, -1]],
    "asked": [(0, 1), (0, 4), (1, 0)],
}


def network(config: AttnMoveConfig, seed: int = 0) -> AttnMove:
    torch.manual_seed(seed)
    return AttnMove(config, n_locations=N_LOCATIONS, n_slots=N_SLOTS).eval()


# --- the slow loop: one number at a time, from the equations ---------------------------------------------------------


def slow_matrix(weight: Tensor, x: list[float]) -> list[float]:
    return [sum(w * v for w, v in zip(row, x, strict=True)) for row in weight.tolist()]


def slow_code(t: int, width: int) -> list[float]:
    """Eq. 1."""
    out = []
    for i in range(width // 2):
        angle = t / 10_000 ** (2 * i / width)
        out += [math.sin(angle), math.cos(angle)]
    return out


def slow_embed(net: AttnMove, loc: list[int]) -> Vectors:
    """Eq. 2, the location scaled by the square root of the width."""
    width = net.config.width
    rows = net.places.table.tolist()
    out = []
    for t, place in enumerate(loc):
        e_l = rows[-1] if place == MISSING else rows[place]
        code = slow_code(t, width)
        out.append([math.sqrt(width) * e + c for e, c in zip(e_l, code, strict=True)])
    return out


def slow_block(layer: nn.Module, query: Vectors, key: Vectors, value: Vectors, allowed: list[bool]) -> Vectors:
    """Eqs. 4–8 (and 9–13): ReLU of the heads side by side plus W times the query."""
    attention: Attention = layer.attention  # type: ignore[assignment]
    width = len(query[0])
    head = width // attention.heads
    if not any(allowed):
        allowed = [True] * len(key)
    values = [slow_matrix(attention.value.weight, v) for v in value]
    out = []
    for t, x in enumerate(query):
        mixed: list[float] = []
        for h in range(attention.heads):
            part = slice(h * head, (h + 1) * head)
            if not attention.attend:
                mixed += values[t][part]
                continue
            q = slow_matrix(attention.query.weight[part], x)
            phi = []
            for k in key:
                product = sum(a * b for a, b in zip(q, slow_matrix(attention.key.weight[part], k), strict=True))
                phi.append(math.exp(product / math.sqrt(head)))
            phi = [p if ok else 0.0 for p, ok in zip(phi, allowed, strict=True)]
            alpha = [p / sum(phi) for p in phi]
            mixed += [sum(a * v[i] for a, v in zip(alpha, values, strict=True)) for i in range(width)[part]]
        raw = slow_matrix(layer.raw.weight, x)  # type: ignore[union-attr, arg-type]
        out.append([max(0.0, m + r) for m, r in zip(mixed, raw, strict=True)])
    return out


def slow_forward(net: AttnMove, visible: list[int], history: list[int]) -> Vectors:
    """(T, L) logits of one day."""
    config = net.config

    def attendable(loc: list[int]) -> list[bool]:
        return [config.attend_missing or place != MISSING for place in loc]

    raw = slow_embed(net, visible)
    current = raw
    for layer in net.current:
        current = slow_block(layer, current, current, current, attendable(visible))
    fused = current
    if config.use_history:
        past = slow_embed(net, history)
        for layer in net.historical:
            past = slow_block(layer, past, past, past, attendable(history))
        fused = slow_block(net.inter, current, past, past, attendable(history))
    final = slow_block(net.generation, fused, raw, raw, attendable(visible))
    rows = net.places.table.tolist()[:-1]
    return [[sum(a * b for a, b in zip(x, e, strict=True)) for e in rows] for x in final]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_network_agrees_with_a_slow_loop_over_the_equations(name: str) -> None:
    net = network(VARIANTS[name])
    fast = net(batch(**TWO_DAYS)).tolist()  # type: ignore[arg-type]
    days = zip(TWO_DAYS["visible"], TWO_DAYS["history"], strict=True)
    slow = [slow_forward(net, visible, history) for visible, history in days]  # type: ignore[arg-type]
    for got, (row, slot) in zip(fast, TWO_DAYS["asked"], strict=True):
        assert got == pytest.approx(slow[row][slot], rel=1e-4, abs=1e-4)  # type: ignore[index]


def test_every_layer_of_the_paper_agrees_with_its_equation() -> None:
    net = network(PAPER)
    visible, history = TWO_DAYS["visible"][0], TWO_DAYS["history"][0]
    yes = [True] * N_SLOTS
    raw = net.embed(torch.tensor([visible]))
    assert np.allclose(raw[0].tolist(), slow_embed(net, visible), atol=1e-5)  # type: ignore[arg-type]
    day, past = slow_embed(net, visible), slow_embed(net, history)  # type: ignore[arg-type]
    fast_day, fast_past = raw, net.embed(torch.tensor([history]))
    for current, historical in zip(net.current, net.historical, strict=True):
        day, past = slow_block(current, day, day, day, yes), slow_block(historical, past, past, past, yes)
        fast_day = current(fast_day, fast_day, fast_day, None)
        fast_past = historical(fast_past, fast_past, fast_past, None)
        assert np.allclose(fast_day[0].tolist(), day, atol=1e-4)
        assert np.allclose(fast_past[0].tolist(), past, atol=1e-4)
    fused = slow_block(net.inter, day, past, past, yes)
    fast_fused = net.inter(fast_day, fast_past, fast_past, None)
    assert np.allclose(fast_fused[0].tolist(), fused, atol=1e-4)


def test_the_slot_code_is_sine_on_even_and_cosine_on_odd_dimensions() -> None:
    code = slot_code(48, 4)
    assert code[0].tolist() == [0, 1, 0, 1]
    assert code[3].tolist() == pytest.approx([math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)])


def test_slot_t_of_the_history_meets_slot_t_of_the_day() -> None:
    """With the inter-trajectory attention ablated, history can only reach the slot it belongs to."""
    alone = replace(PAPER, historical_attention=False, inter_attention=False, generation_attention=False)
    net = network(alone)
    everywhere = [(0, t) for t in range(N_SLOTS)]
    plain = net(batch(visible=[[-1] * N_SLOTS], history=[[0] * N_SLOTS], asked=everywhere))
    for t in range(N_SLOTS):
        history = [0] * N_SLOTS
        history[t] = 3
        changed = net(batch(visible=[[-1] * N_SLOTS], history=[history], asked=everywhere))
        moved = (changed - plain).abs().sum(1) > 1e-6
        assert moved.nonzero().flatten().tolist() == [t]


def test_a_target_reads_its_own_day_at_its_own_slot() -> None:
    lonely = replace(PAPER, use_history=False, current_attention=False, generation_attention=False)
    net = network(lonely)
    everywhere = [(row, t) for row in range(2) for t in range(N_SLOTS)]
    plain = net(batch(visible=[[0] * N_SLOTS, [1] * N_SLOTS], asked=everywhere))
    other = [[0] * N_SLOTS, [1] * N_SLOTS]
    other[1][4] = 2
    moved = (net(batch(visible=other, asked=everywhere)) - plain).abs().sum(1) > 1e-6
    assert moved.nonzero().flatten().tolist() == [N_SLOTS + 4]


def test_attention_weights_are_those_the_attention_uses() -> None:
    torch.manual_seed(3)
    attention = Attention(8, 2, attend=True)
    x = torch.randn(1, N_SLOTS, 8)
    allowed = torch.tensor([[True, False, True, True, False, True]])
    alpha = attention.weights(x, x, allowed)  # (1, A, T, T)
    values = attention.value(x).view(1, N_SLOTS, 2, 4).transpose(1, 2)
    by_hand = (alpha @ values).transpose(1, 2).flatten(2)
    assert torch.allclose(by_hand, attention(x, x, x, allowed), atol=1e-6)
    assert torch.allclose(alpha.sum(-1), torch.ones(1, 2, N_SLOTS))
    assert alpha[..., [1, 4]].abs().max() == 0


def test_missing_slots_are_attended_only_where_the_configuration_says_so() -> None:
    day = {"visible": [[0, -1, 2, -1, -1, 4]], "asked": [(0, 1)]}
    for attend_missing in (True, False):
        net = network(replace(PAPER, attend_missing=attend_missing, use_history=False))
        plain = net(batch(**day))  # type: ignore[arg-type]
        with torch.no_grad():
            net.code[4] += 5.0  # the code of a missing slot that is not the target
        assert torch.allclose(net(batch(**day)), plain) is not attend_missing  # type: ignore[arg-type]


@pytest.mark.parametrize("blocks", ["relu", "prenorm"])
def test_a_day_with_nothing_visible_still_has_finite_scores(blocks: str) -> None:
    net = network(replace(PAPER, blocks=blocks, attend_missing=False))
    logits = net(batch(visible=[[-1] * N_SLOTS], asked=[(0, 2)]))
    assert logits.isfinite().all()


def test_the_missing_location_is_no_answer_and_has_a_row_of_its_own() -> None:
    places = Places(N_LOCATIONS, 8)
    assert places.logits(torch.randn(3, 8)).shape == (3, N_LOCATIONS)
    embedded = places(torch.tensor([MISSING, 0, N_LOCATIONS - 1]))
    assert torch.equal(embedded, places.table[[-1, 0, -2]] * math.sqrt(8))


def test_the_prenorm_block_is_residual_attention_then_feed_forward_behind_norms() -> None:
    net = network(replace(PAPER, blocks="prenorm"))
    block = net.current[0]
    x = torch.randn(2, N_SLOTS, 8)
    own = block.norm_x(x)
    after = x + block.join(block.attention(own, own, own, None))
    by_hand = after + block.feed(block.norm_out(after))
    assert torch.allclose(block(x, x, x, None), by_hand, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"width": 7}, "width 7 must be even"),
        ({"width": 10, "heads": 4}, "divisible by heads 4"),
        ({"layers": 0}, "layers must be 1 or more"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"blocks": "postnorm"}, "relu or prenorm, found 'postnorm'"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_with_a_reason(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        AttnMoveConfig(**wrong)  # type: ignore[arg-type]
