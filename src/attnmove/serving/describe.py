"""What the service says about itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from attnmove.filling.fill import Filler
from attnmove.models.registry import MODELS
from attnmove.serving.limits import Limits
from attnmove.version import __version__


def model_facts(filler: Filler, limits: Limits, *, batching: bool, tiles: str | None) -> dict[str, Any]:
    """The model, its place and time, and what a request may bring."""
    facts, setting = filler.run.facts, filler.setting
    return {
        "model": filler.run.name,
        "summary": MODELS[filler.run.name].summary,
        "settings": facts["settings"],
        "seed": facts["seed"],
        "dataset_hash": facts["dataset_hash"],
        "trained_with": facts.get("version"),
        "version": __version__,
        "locations": len(setting.locations),
        "bounds": _bounds(filler),
        "tessellation": None if setting.tessellation is None else setting.tessellation.get("spec"),
        "timezone": setting.how.timezone,
        "slot_minutes": setting.how.slot_minutes,
        "slots": setting.n_slots,
        "slot_rule": setting.how.slot_rule,
        "datum": setting.datum,
        "limits": asdict(limits),
        "batching": batching,
        "tiles": tiles,
    }


def _bounds(filler: Filler) -> list[float] | None:
    """West, south, east and north of the centres."""
    centres = filler.setting.locations.centres
    known = centres[np.isfinite(centres).all(axis=1)]
    if len(known) == 0:
        return None
    ends = np.concatenate([known.min(axis=0), known.max(axis=0)]).round(6).tolist()
    return [float(end) for end in ends]
