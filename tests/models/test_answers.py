"""The most likely places of a target, of a model that scores every location."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from attnmove.errors import DataError
from attnmove.models.answers import best_answers
from attnmove.models.contract import Scores
from attnmove.nouns import Cases
from builders import asked


class Told:
    """Answers with the probabilities it was given."""

    def __init__(self, probability: list[list[float]]) -> None:
        self.log_prob = np.log(np.array(probability, dtype=np.float32))

    def scores(self, cases: Cases) -> Iterator[Scores]:
        yield Scores(cases.index, self.log_prob)


def test_the_best_come_first_and_of_equals_the_lower_id() -> None:
    cases = asked({"u": ["a b C"]}, n_locations=3)
    model = Told([[0.1, 0.6, 0.3], [0.25, 0.5, 0.25]])
    (found,) = best_answers(model, cases, top=2)  # type: ignore[arg-type]
    assert found.place.tolist() == [[1, 2], [1, 0]]
    assert found.probability == pytest.approx(np.array([[0.6, 0.3], [0.5, 0.25]]))
    (all_found,) = best_answers(model, cases, top=5)  # type: ignore[arg-type]
    assert all_found.place.tolist() == [[1, 2, 0, -1, -1], [1, 0, 2, -1, -1]]
    assert (all_found.probability[:, 3:] == 0).all()


def test_a_model_of_other_locations_is_refused() -> None:
    cases = asked({"u": ["a B"]}, n_locations=3)
    with pytest.raises(DataError, match="each of 3 locations"):
        list(best_answers(Told([[0.5, 0.5]]), cases))  # type: ignore[arg-type]
