"""Our own models beside those of Table 2: five seeds, slice by slice, both protocols; and what each kind of evidence is
worth, by leaving it out."""

from __future__ import annotations

from collections.abc import Sequence

from attnmove.models.evidence.features import FAMILIES
from records import Task, bring_up_to_date, parse, run

OWN = ("boost", "copymove")
SLICINGS = ("missing_rate", "hour", "places", "gap")
SEEDS = 5
WITHOUT = ("others,space", *FAMILIES)
"""Kinds of evidence left out, one at a time; and all that is not the user's own."""

PLAN = (
    Task(OWN, by=SLICINGS),
    Task(OWN, protocol="strict"),
    *(Task(("boost",), settings={"without": family}, seeds=2) for family in WITHOUT),
)


def main(argv: Sequence[str] | None = None) -> int:
    return bring_up_to_date("own", PLAN, parse(argv, __doc__, seeds=SEEDS))


if __name__ == "__main__":
    run(main)
