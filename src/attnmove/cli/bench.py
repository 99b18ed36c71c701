"""Commands that measure speed and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from attnmove.cli.render import AsJson, cell, out, print_json, print_table, stages
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


@bench_app.command("train")
def bench_train(
    widths: Annotated[str, typer.Option(help="Widths of the network, separated by commas.")] = "64,128",
    layers: Annotated[int, typer.Option(help="Layers of the network.")] = 4,
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 8,
    locations: Annotated[int, typer.Option(help="Number of locations.")] = 8_998,
    days: Annotated[int, typer.Option(help="User-days an epoch, made up.")] = 65_536,
    batch: Annotated[
        str | None, typer.Option(help="User-days a step, separated by commas.", show_default="64,256; GPU 64,512,4096")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[
        str | None, typer.Option(help="fp32, bf16, fp16, separated by commas.", show_default="fp32; GPU fp32,bf16")
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long the steps of each shape are timed.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """User-days a second and peak memory of training AttnMove, beside the matrix products the device can do."""
    from attnmove.bench.train import measure, parse_numbers

    with stages() as stage:
        rows = measure(
            widths=parse_numbers("--widths", widths),
            batches=parse_numbers("--batch", batch) if batch else (),
            precisions=precision.split(",") if precision else (),
            layers=layers,
            heads=heads,
            locations=locations,
            days=days,
            device=device,
            seconds=seconds,
            progress=stage,
        )
    if as_json:
        print_json(rows)
        return
    title = f"{rows[0]['device_name']}, {layers} layers, {heads} heads, {locations:,} locations"
    table = Table(*_TRAIN_COLUMNS, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(cell(value) for value in _train_cells(row)))
    print_table(table)


_TRAIN_COLUMNS = (
    "precision", "width", "days a step", "threads", "days/s", "days/s with drawing", "GFLOP a step", "GFLOP/s",
    "ceiling GFLOP/s", "% of ceiling", "MiB",
)  # fmt: skip


def _train_cells(row: dict[str, Any]) -> list[Any]:
    """A row as the table shows it, in the order of its columns."""
    return [
        *(row[name] for name in ("precision", "width", "batch", "threads", "days_per_second", "whole_days_per_second")),
        row["flop_per_step"] / 1e9,
        row["flop_per_second"] / 1e9,
        row["ceiling_flop_per_second"] / 1e9,
        row["share_of_ceiling"] * 100,
        row["peak_mib"],
    ]


@bench_app.command("recover")
def bench_recover(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="The folder of a prepared dataset.")],
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")],
    days: Annotated[str, typer.Option(help="Numbers of user-days, separated by commas.")] = "1000,10000",
    split: Annotated[str, typer.Option(help="The days that are gone over: train, valid or test.")] = "test",
    hide: Annotated[
        str,
        typer.Option(help="What is asked: stored (the targets), all (every slot not visible); or both, by a comma."),
    ] = "stored,all",
    top: Annotated[int, typer.Option(help="Places that are found for a slot.")] = 5,
    as_json: AsJson = False,
) -> None:
    """User-days a second and peak memory of recovering with trained runs, on a dataset's days over and over."""
    from attnmove.bench.recover import measure
    from attnmove.bench.train import parse_numbers

    with stages() as stage:
        rows = measure(
            str(dataset),
            [str(run) for run in runs],
            days=parse_numbers("--days", days),
            split=split,
            hide=hide.split(","),
            top=top,
            progress=stage,
        )
    _show(rows, _RECOVER_COLUMNS, title=f"{dataset}, {split}, {top} places a slot", as_json=as_json)


_RECOVER_COLUMNS = {
    "run": "run",
    "model": "model",
    "hide": "asked",
    "days": "days",
    "targets": "targets",
    "seconds": "s",
    "days_per_second": "days/s",
    "targets_per_second": "targets/s",
    "base_mib": "MiB at first",
    "peak_mib": "MiB",
}
"""Heads of the table by what a row calls them."""


@bench_app.command("serve")
def bench_serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.")],
    clients: Annotated[str, typer.Option(help="Numbers of clients, separated by commas.")] = "1,8,64",
    seconds: Annotated[float, typer.Option(help="How long each number of clients asks.")] = 8.0,
    days: Annotated[int, typer.Option(help="Days of one person in a request.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Requests a second and latency of the service on this machine, with batching on and off."""
    from attnmove.bench.serve import Load, measure
    from attnmove.bench.train import parse_numbers
    from attnmove.serving.server import check_libraries

    check_libraries()
    with stages() as stage:
        rows = measure(str(run), Load(parse_numbers("--clients", clients), seconds, days), progress=stage)
    _show(rows, _SERVE_COLUMNS, title=f"{run}, {days} days of a person a request", as_json=as_json)


_SERVE_COLUMNS = {
    "batching": "batching",
    "clients": "clients",
    "requests": "requests",
    "errors": "errors",
    "requests_per_second": "requests/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "requests_in_one_go": "requests in one go",
}
"""Heads of the table by what a row calls them."""


def _show(rows: list[dict[str, Any]], columns: dict[str, str], *, title: str, as_json: bool) -> None:
    """The rows as a table; `columns` has its heads by what a row calls them."""
    if as_json:
        print_json(rows)
        return
    table = Table(*columns.values(), title=escape(title), title_justify="left")
    for row in rows:
        table.add_row(*(cell(row[name]) for name in columns))
    print_table(table)
