"""Commands that measure speed and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from attnmove.cli.render import AsJson, cell, out, print_json, stages
from attnmove.cli.root import app

bench_app = typer.Typer(help="How fast, how much memory, how it grows.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")


@bench_app.command("prepare")
def bench_prepare(
    points: Annotated[str, typer.Option(help="Numbers of points, separated by commas.")] = "1e6,1e7",
    tessellations: Annotated[str, typer.Option(help="Tessellations, separated by commas.")] = "grid:500,h3:8",
    pandas_up_to: Annotated[float, typer.Option(help="Largest number of points given to pandas.")] = 1e7,
    folder: Annotated[Path | None, typer.Option(help="Keep the synthetic points here for the next time.")] = None,
    as_json: AsJson = False,
) -> None:
    """Points a second and peak memory of prepare, beside a plain pandas fold of the same points."""
    from attnmove.bench.prepare import measure, parse_sizes

    sizes = parse_sizes(points)
    with stages() as stage:
        rows = measure(sizes, tessellations.split(","), pandas_up_to=int(pandas_up_to), folder=folder, progress=stage)
    if as_json:
        print_json(rows)
        return
    heads = ("points", "cells", "tool", "fold s", "whole s", "points/s", "MiB", "× pandas", "same")
    table = Table(*heads)
    for row in rows:
        table.add_row(*(cell(value) for name, value in row.items() if name != "checksum"))
    out.print(table)
