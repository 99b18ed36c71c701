"""Where the user comes from and where they go: the visible slots beyond those next to a target."""

from __future__ import annotations

import numpy as np

from attnmove.models.evidence.asked import Asked, Side
from attnmove.models.evidence.atlas import Atlas
from attnmove.models.evidence.clues import Clues
from attnmove.nouns import Float32, Float64

_AHEAD = 2
"""Slots that a way is thought to go on as it was."""
_LIVELY = 3
"""Slots between two sightings at most for the way between them to be the way one goes."""


def course(asked: Asked, atlas: Atlas) -> dict[str, Float32]:
    """(M, 3) points by the feature that is the distance to them: where the user comes from, goes to, would be."""
    before, after = asked.before, asked.after

    def onwards(side: Side) -> Float32:
        ahead = atlas.at(side.near) + _stride(side, atlas) * np.minimum(side.gap, _AHEAD)[:, None]
        return ahead.astype(np.float32)

    return {
        "km_from": atlas.at(before.other),
        "km_towards": atlas.at(after.other),
        "km_onwards": onwards(before),
        "km_backwards": onwards(after),
        "km_curve": _curve(before, after, atlas),
    }


def pace(asked: Asked, atlas: Atlas) -> Clues:
    """(M,) how fast the user goes on both sides of each target."""

    def speed(side: Side) -> Float64:
        out: Float64 = np.sqrt(np.square(_stride(side, atlas)).sum(axis=1))
        return out

    return {"speed_prev": speed(asked.before), "speed_next": speed(asked.after)}


def _stride(side: Side, atlas: Atlas) -> Float64:
    """(M, 3) kilometres a slot, towards the target; NaN where it is not known."""
    stride: Float64 = (atlas.at(side.near).astype(np.float64) - atlas.at(side.next)) / side.step[:, None]
    return stride


def _curve(before: Side, after: Side, atlas: Atlas) -> Float32:
    """(M, 3) where one is at the target's time who leaves and arrives going as one is seen to go: a cubic through both
    sides. NaN where a side is not known."""
    gap = np.maximum(1, before.gap + after.gap).astype(np.float64)[:, None]
    t = before.gap[:, None] / gap

    def leaning(side: Side) -> Float64:
        stride = np.where((side.step <= _LIVELY)[:, None], np.nan_to_num(_stride(side, atlas)), 0)
        lean: Float64 = stride * np.minimum(gap, _LIVELY)
        return lean

    point: Float64 = (1 + 2 * t) * (1 - t) ** 2 * atlas.at(before.near) + t**2 * (3 - 2 * t) * atlas.at(after.near)
    point += t * (1 - t) ** 2 * leaning(before) + t**2 * (1 - t) * leaning(after)
    out: Float32 = point.astype(np.float32)
    return out
