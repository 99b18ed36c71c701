"""attnmove fills the gaps in people's daily trajectories."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnmove.version import __version__

if TYPE_CHECKING:
    from attnmove.city import City, synthesize, write_city
    from attnmove.filling.verbs import recover
    from attnmove.measure.compare import compare
    from attnmove.measure.downstream import evaluate_downstream
    from attnmove.measure.table import evaluate
    from attnmove.models.registry import MODELS
    from attnmove.models.runs import load_model, load_run, train_run
    from attnmove.prep.config import Preparation
    from attnmove.prep.dataset import Dataset, read_dataset
    from attnmove.prep.pipeline import prepare
    from attnmove.reporting.report import report

__all__ = [
    "MODELS",
    "City",
    "Dataset",
    "Preparation",
    "__version__",
    "compare",
    "evaluate",
    "evaluate_downstream",
    "load_model",
    "load_run",
    "prepare",
    "read_dataset",
    "recover",
    "report",
    "synthesize",
    "train_run",
    "write_city",
]

# Loaded when first used: a machine that only trains has neither Ibis nor DuckDB.
_HOMES = {
    "City": "city",
    "Dataset": "prep.dataset",
    "Preparation": "prep.config",
    "MODELS": "models.registry",
    "compare": "measure.compare",
    "evaluate": "measure.table",
    "evaluate_downstream": "measure.downstream",
    "load_model": "models.runs",
    "load_run": "models.runs",
    "prepare": "prep.pipeline",
    "read_dataset": "prep.dataset",
    "recover": "filling.verbs",
    "report": "reporting.report",
    "synthesize": "city",
    "train_run": "models.runs",
    "write_city": "city",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attnmove' has no attribute {name!r}")
    return getattr(import_module(f"attnmove.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
