"""Figure 5: AttnMove with other widths, and with other numbers of heads and layers, on Geolife."""

from __future__ import annotations

from collections.abc import Sequence

from attnmove.models.networks import ATTNMOVE
from records import Task, bring_up_to_date, parse, run

WIDTHS = (16, 32, 64, 128, 256)
HEADS = (1, 2, 4, 8)
LAYERS = (1, 2, 4)

# All three are named in every setting, so that a row says what it is whatever the defaults become.
SHAPES = dict.fromkeys(
    [(width, ATTNMOVE.heads, ATTNMOVE.layers) for width in WIDTHS]
    + [(ATTNMOVE.width, heads, ATTNMOVE.layers) for heads in HEADS]
    + [(ATTNMOVE.width, ATTNMOVE.heads, layers) for layers in LAYERS]
)
PLAN = tuple(
    Task(("attnmove",), settings={"width": width, "heads": heads, "layers": layers}) for width, heads, layers in SHAPES
)
SEEDS = 3


def main(argv: Sequence[str] | None = None) -> int:
    return bring_up_to_date("figure5", PLAN, parse(argv, __doc__, seeds=SEEDS, names=("geolife",)))


if __name__ == "__main__":
    run(main)
