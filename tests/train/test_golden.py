"""A few losses, kept: a change of the loop, the masks or a network shows here before it shows in the results."""

from __future__ import annotations

import pytest

from attnmove.models.neural import Neural
from attnmove.models.registry import make_model
from builders import asked

TWO_PEOPLE = asked(
    {
        "ann": ["A A a B b . A c", "A a A B B . a C", "A A a b B . A c", "A A A b b . A C"],
        "bob": ["D . d B b . D e", "D d D B B . d E", "D D d b B . D E", "D D D b b . D e"],
    }
)
SMALL = {"width": 8, "epochs": 3, "batch_days": 4, "dropout": 0.0, "lr": 0.01}
LOSSES = {
    "lstm": [2.0372, 2.0269, 1.8062],
    "bilstm": [1.965, 1.9624, 1.6321],
    "deepmove": [2.1035, 1.7176, 1.5383],
    "bi-stddp": [1.5311, 1.7291, 1.9101],
    "attnmove-h": [2.2489, 1.9984, 1.8427],
    "attnmove": [2.3728, 2.0097, 1.8573],
    "attnmove-relu": [1.997, 1.8905, 1.8406],
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_first_losses_of_a_network_are_what_they_were(name: str) -> None:
    extra = {"history_dropout": 0.0} if name.startswith("attnmove") else {}
    extra |= {"stranger": 0.0} if name in ("deepmove", "bi-stddp") else {}
    model = make_model(name, settings={**SMALL, **extra}, seed=5, device="cpu").fit(TWO_PEOPLE, TWO_PEOPLE)
    assert isinstance(model, Neural)
    assert model.outcome is not None
    assert [row["loss"] for row in model.outcome.log] == pytest.approx(LOSSES[name], rel=1e-3)
