"""One timed recovery in this process: `python -m attnmove.bench.recover_once ERRAND`, an `Errand` as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from attnmove.bench.child import peak_mib
from attnmove.bench.recover import HIDE, Errand
from attnmove.models.answers import best_answers
from attnmove.models.contract import Recoverer
from attnmove.models.runs import load_run
from attnmove.nouns import Cases
from attnmove.prep.dataset import read_dataset

_WARM_UP_DAYS = 8
_DAYS_AT_ONCE = 1024
"""Days given to the model in one go, so that what grows with their number is the model's own memory, if it does."""


def slices(cases: Cases, n_days: int) -> Iterator[Cases]:
    """The cases over and over until there are `n_days`, some at a time."""
    for first in range(0, n_days, _DAYS_AT_ONCE):
        yield cases.rows(np.arange(first, min(first + _DAYS_AT_ONCE, n_days)) % len(cases))


def recover(model: Recoverer, cases: Cases, top: int) -> int:
    """Find the most likely places of every target and let them go again; the number of targets."""
    return sum(len(answers.place) for answers in best_answers(model, cases, top=top))


def measure_once(errand: Errand) -> dict[str, Any]:
    """What one recovery took: targets, seconds, memory after the warm-up and at its highest."""
    model = load_run(errand.run).model
    cases = read_dataset(errand.dataset).cases(errand.split)
    cases = replace(cases, hidden=HIDE[errand.hide](cases))
    recover(model, next(slices(cases, _WARM_UP_DAYS)), errand.top)
    base_mib = peak_mib()
    began = time.perf_counter()
    targets = sum(recover(model, part, errand.top) for part in slices(cases, errand.days))
    seconds = time.perf_counter() - began
    return {
        "targets": targets,
        "seconds": seconds,
        "base_mib": round(base_mib, 1),
        "peak_mib": round(peak_mib(), 1),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure_once(Errand(**json.loads(sys.argv[1])))))
