"""The command that writes the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from attnmove.cli.models import Device, Protocol
from attnmove.cli.render import AsJson, err, out, print_json, steps
from attnmove.cli.root import app


@app.command()
def report(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RESULTS_OR_RUN…",
            help="Results of compare, files of evaluate --json or --curves, folders of runs; any number of them.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[Path, typer.Option("-o", "--out", metavar="FILE.html", help="The page to write.")] = Path(
        "report.html"
    ),
    dataset: Annotated[
        Path | None,
        typer.Option(
            metavar="DATASET", help="The prepared dataset: shows the data, and asks the runs, nearest and vote."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="The days to report on: train, valid or test.")] = "test",
    protocol: Protocol = "paper",
    title: Annotated[str | None, typer.Option(help="The title of the page.", show_default="from the names")] = None,
    seed: Annotated[int, typer.Option(help="Draws the example days and begins k-means.")] = 0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Write one HTML page about results and runs; it opens from disk, without internet.

    What needs days (the data, calibration, example days, embedding, attention) is there with --dataset.
    """
    from attnmove.reporting.report import report as write

    with steps(None) as step:
        made = write(
            inputs or [],
            page,
            dataset=dataset,
            split=split,
            protocol=protocol,
            seed=seed,
            device=device,
            title=title,
            progress=step,
        )
    for text in made.notes:
        err.print(f"note: {escape(text)}", highlight=False, soft_wrap=True)
    if as_json:
        facts = {"wrote": str(made.wrote), "bytes": made.n_bytes, "sections": made.sections}
        print_json(facts | {"left_out": made.left_out, "notes": made.notes})
        return
    for text in made.left_out:
        err.print(f"left out: {escape(text)}", highlight=False, soft_wrap=True)
    size = f"{len(made.sections)} sections, {made.n_bytes / 1e6:.1f} MB"
    out.print(f"wrote {escape(str(made.wrote))} ({size})", highlight=False, soft_wrap=True)
