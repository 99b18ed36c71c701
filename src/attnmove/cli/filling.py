"""The command that fills gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnmove.cli.render import AsJson, err, flow, out, show
from attnmove.cli.root import Stopped, app


@app.command()
def recover(
    source: Annotated[str, typer.Argument(help="A file, folder or glob of points, as for prepare; or a dataset.")],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.")],
    target: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT",
            help="The file to write: .parquet, .csv, .ndjson or .geojson; - writes NDJSON to standard output.",
        ),
    ],
    history: Annotated[
        Path | None, typer.Option(metavar="DATASET", help="A dataset with further days of the same users.")
    ] = None,
    max_gap: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Leave longer gaps missing: 4h, 90m, 1d.")
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(metavar="P", help="Leave slots missing whose answer is less probable, from 0 to 1.")
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            metavar="Q",
            help="The same, from the confidence on that had the share Q right on the run's validation days.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Places a recovered slot has: the answer and its alternatives.")] = 5,
    no_origins: Annotated[
        bool, typer.Option("--no-origins", help="Do not say where answers come from, which is faster.")
    ] = False,
    engine: Annotated[str, typer.Option(help="duckdb, spark, or spark:MASTER.")] = "duckdb",
    format: Annotated[str, typer.Option(help="As for prepare.")] = "auto",
    columns: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    user: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    naive_timezone: Annotated[
        str | None, typer.Option(help="Zone of times that carry none, when it is not that of the run.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where networks compute: auto, cpu, cuda, mps.")] = "auto",
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a recovery that was stopped; the file is as if it had not been."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fill the gaps of every user-day, and say of each slot how probable it is, or why it is left missing.

    The run brings its locations, slots and time zone. Ctrl-C or a kill leaves what is finished; --resume goes on.
    """
    from attnmove.filling.parts import Parts
    from attnmove.filling.verbs import STDOUT
    from attnmove.filling.verbs import recover as fill

    try:
        with flow("user-days") as tick:
            report = fill(
                source,
                run,
                out=target,
                history=history,
                max_gap=max_gap,
                min_confidence=min_confidence,
                precision=precision,
                top=top,
                origins=not no_origins,
                engine=engine,
                format=format,
                columns=columns,
                user=user,
                naive_timezone=naive_timezone,
                device=device,
                resume=resume,
                progress=tick,
            )
    except KeyboardInterrupt:
        if target == STDOUT or not Parts(Path(target)).folder.is_dir():
            raise
        err.print("stopped; --resume goes on with what is finished")
        raise Stopped from None
    console = err if target == STDOUT else out
    show(report.facts(), as_json=as_json, title=f"Recovered {source}", console=console)
