"""Write the tables of docs/results.md from the results of record; with --check, only say whether the page is theirs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import tables
from attnmove.errors import RunError
from attnmove.measure.files import write_whole
from records import DATASETS, RESULTS, run, tell

PAGE = Path(__file__).parents[1] / "docs" / "results.md"
_BLOCK = re.compile(r"<!-- (?!end)(\S+) -->\n.*?<!-- end -->", flags=re.S)

BLOCKS: dict[str, Callable[[Path], str]] = {
    **{f"table2:{name}": partial(tables.table2, dataset=name) for name in DATASETS},
    **{f"table2:{name}:strict": partial(tables.table2, dataset=name, protocol="strict") for name in DATASETS},
    **{f"table3:{name}": partial(tables.table3, dataset=name) for name in DATASETS},
    **{f"table4:{name}": partial(tables.table4, dataset=name) for name in DATASETS},
    **{
        f"figure4:{name}:{slicing}": partial(tables.figure4, dataset=name, slicing=slicing)
        for name in DATASETS
        for slicing in ("hour", "places", "gap")
    },
    **{f"own:{name}": partial(tables.own, dataset=name) for name in DATASETS},
    **{f"own:{name}:strict": partial(tables.own, dataset=name, protocol="strict") for name in DATASETS},
    "sure": tables.sure,
    "evidence:geolife": partial(tables.evidence, dataset="geolife"),
    **{
        f"slices:{name}:{slicing}": partial(tables.slices, dataset=name, slicing=slicing)
        for name in DATASETS
        for slicing in ("missing_rate", "hour", "gap")
    },
    **{f"often:{name}": partial(tables.often, dataset=name) for name in DATASETS},
    **{f"beyond:{name}": partial(tables.beyond, dataset=name) for name in DATASETS},
    **{f"downstream:{name}": partial(tables.downstream, dataset=name) for name in DATASETS},
    **{f"figure5:geolife:{part}": partial(tables.figure5, dataset="geolife", part=part) for part in ("width", "grid")},
}
"""What stands between `<!-- name -->` and `<!-- end -->`."""


def rendered(page: str, results: Path) -> str:
    """The page with every block as the results say. Raises RunError on a block that is unknown, lost or there twice."""
    names = [match.group(1) for match in _BLOCK.finditer(page)]
    if sorted(names) != sorted(BLOCKS):
        wrong = sorted(set(names) ^ set(BLOCKS)) or sorted({name for name in names if names.count(name) > 1})
        raise RunError(f"expected every block once on the page, found otherwise: {', '.join(wrong)}")
    return _BLOCK.sub(lambda match: f"<!-- {match[1]} -->\n{BLOCKS[match[1]](results)}\n<!-- end -->", page)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is not up to date")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results of record")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that holds the blocks")
    given = parser.parse_args(argv)
    old = given.page.read_text(encoding="utf-8")
    new = rendered(old, given.results)
    if given.check:
        if new != old:
            tell(f"{given.page.name}: not what the results say; run python experiments/render.py")
        return int(new != old)
    write_whole(given.page, new)
    tell(f"wrote {given.page.name}")
    return 0


if __name__ == "__main__":
    run(main)
