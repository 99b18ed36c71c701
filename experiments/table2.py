"""Table 2: every model of the paper, beside the rules it left out, on both datasets under both protocols.

Table 4 and Figure 4 are views on the same fits: some models are also measured slice by slice.
"""

from __future__ import annotations

from collections.abc import Sequence

from records import Task, bring_up_to_date, parse, run

SLICED = ("nearest", "vote", "bilstm", "bi-stddp", "attnmove")
"""The models of Table 4 and Figure 4, and the two rules that stand beside the networks in every table."""
WHOLE = (
    "top",
    "history",
    "linear",
    "rf",
    "rf-copy",
    "lstm",
    "deepmove",
    "attnmove-h",
    "attnmove-relu",
    "attnmove-missing",
)
SLICINGS = ("missing_rate", "hour", "places", "gap")

PLAN = (
    Task(SLICED, by=SLICINGS),
    Task(WHOLE),
    Task(SLICED + WHOLE, protocol="strict"),
)
SEEDS = 3


def main(argv: Sequence[str] | None = None) -> int:
    return bring_up_to_date("table2", PLAN, parse(argv, __doc__, seeds=SEEDS))


if __name__ == "__main__":
    run(main)
