"""Everything: the fits of every table and figure that are not done yet, then the page of results.

Without --seeds every script takes its own number.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import beyond
import downstream
import figure5
import often
import own
import paired
import render
import sure
import table2
import table3
from records import RESULTS, parse, run


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    asked = parse(argv, __doc__, seeds=table2.SEEDS)
    failed = table2.main(argv) | table3.main(argv) | own.main(argv) | paired.main(argv) | beyond.main(argv)
    failed |= often.main(argv) | sure.main(argv) | downstream.main(argv)
    if "geolife" in asked.datasets:
        failed |= figure5.main([word for word in argv if not word.startswith("city=")])
    # The page shows the results of record, not those of a trial elsewhere.
    return failed | render.main([]) if asked.results == RESULTS else failed


if __name__ == "__main__":
    run(main)
