"""The command line: parse, call one library function, render."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from attnmove.errors import AttnMoveError, ConfigError
from attnmove.version import __version__

app = typer.Typer(
    name="attnmove",
    help="Fill the gaps in people's daily trajectories.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench_app = typer.Typer(help="How fast, how much memory, how it grows.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")

out = Console()
err = Console(stderr=True)
_INTERRUPTED = 130

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]


def main() -> None:
    """Run the command line; our own errors are one sentence on standard error and exit status 1."""
    # What ends a job politely must clean up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except AttnMoveError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}")
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            err.print("stopped; no unfinished file was left behind")
        raise


def _fail(sentence: str) -> None:
    err.print(f"[bold red]error:[/] {_escape(sentence)}", soft_wrap=True, highlight=False)
    sys.exit(1)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"attnmove {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Fill the gaps in people's daily trajectories."""


@app.command()
def synth(
    points: Annotated[Path, typer.Argument(metavar="OUT.parquet", help="Where to write the points.")],
    users: Annotated[int, typer.Option(help="Number of people.")] = 200,
    days: Annotated[int, typer.Option(help="Days each of them is followed.")] = 28,
    seed: Annotated[int, typer.Option(help="Another seed, another city.")] = 0,
    truth: Annotated[Path | None, typer.Option(help="Also write where everybody really was, every half hour.")] = None,
    points_per_day: Annotated[float, typer.Option(help="Mean number of fixes a user-day.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Make up a city: people with homes, work and habits, and phones that report now and then."""
    from attnmove.city import write_city

    for file in (points, truth):
        if file is not None and file.suffix not in (".parquet", ".pq"):
            raise ConfigError(f"{file}: the city is written as Parquet; name a file that ends in .parquet")
    with _bar("people", users) as tick:
        report = write_city(
            points, users=users, days=days, seed=seed, truth=truth, points_per_day=points_per_day, progress=tick
        )
    facts = {"points": report.points, "users": report.users, "user_days": report.user_days, "wrote": str(points)}
    if truth is not None:
        facts |= {"truth_rows": report.truth_rows, "truth": str(truth)}
    _show(facts, as_json=as_json, title="A synthetic city")


@app.command()
def prepare(
    source: Annotated[str, typer.Argument(help="A file, folder or glob of points, or the released files.")],
    dataset: Annotated[Path, typer.Option("-o", "--out", metavar="DATASET", help="The folder to write.")],
    tessellation: Annotated[
        str, typer.Option(help="grid:METRES, h3:RES, a polygon file (GeoJSON, GeoParquet), or roads:FILE.")
    ] = "grid:500",
    format: Annotated[
        str, typer.Option(help="auto, csv, tsv, parquet, ndjson, geolife, gpx, google or released.")
    ] = "auto",
    columns: Annotated[str | None, typer.Option(help="Override the columns found: user=…,time=…,lat=…,lon=…")] = None,
    user: Annotated[str | None, typer.Option(help="All points are this person's.")] = None,
    timezone: Annotated[
        str | None, typer.Option(help="IANA zone of the days, and of times without a zone in text. Default: UTC days.")
    ] = None,
    naive_timezone: Annotated[
        str | None, typer.Option(help="Zone of times that carry none, when it is not that of the days.")
    ] = None,
    datum: Annotated[str, typer.Option(help="Of the coordinates: wgs84, gcj02 or bd09.")] = "wgs84",
    slot_minutes: Annotated[int, typer.Option(help="Length of a slot: 5 to 120 minutes, dividing a day.")] = 30,
    slot_rule: Annotated[
        str, typer.Option(help="mode: the location with most fixes (tie: earlier); last: of the last fix.")
    ] = "mode",
    min_slots: Annotated[
        int | None, typer.Option(help="Drop days with fewer observed slots. Default: a quarter of the day.")
    ] = None,
    min_days: Annotated[int, typer.Option(help="Drop users with fewer days.")] = 5,
    hide: Annotated[int | None, typer.Option(help="Slots to hide a day. Default: 10 of 48, in proportion.")] = None,
    draws: Annotated[int, typer.Option(help="Times the hidden slots are drawn.")] = 1,
    pattern: Annotated[str, typer.Option(help="Of the hidden slots: uniform, burst or night.")] = "uniform",
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    centres: Annotated[
        Path | None, typer.Option(help="Centres of the released locations: CSV of region_id, lat, lon.")
    ] = None,
    location_name: Annotated[
        str | None, typer.Option(help="Polygon property that names a location. Default: found.")
    ] = None,
    snap_m: Annotated[
        float | None, typer.Option(help="Points in no polygon go to the nearest within so many metres. Default: 100.")
    ] = None,
    road_classes: Annotated[
        str | None,
        typer.Option(help="OSM highway values that bound blocks. Default: motorway to tertiary, with links."),
    ] = None,
    engine: Annotated[str, typer.Option(help="duckdb, spark, or spark:MASTER.")] = "duckdb",
    as_json: AsJson = False,
) -> None:
    """Turn points into a dataset: days of slots, locations, splits and hidden targets."""
    from attnmove.prep.pipeline import prepare as run

    with _stages() as stage:
        made = run(
            source,
            tessellation,
            out=dataset,
            format=format,
            columns=columns,
            user=user,
            timezone=timezone,
            naive_timezone=naive_timezone,
            datum=datum,
            centres=centres,
            location_name=location_name,
            snap_m=snap_m,
            road_classes=road_classes.split(",") if road_classes else None,
            slot_minutes=slot_minutes,
            slot_rule=slot_rule,
            min_slots=min_slots,
            min_days=min_days,
            hide=hide,
            draws=draws,
            pattern=pattern,
            seed=seed,
            engine=engine,
            progress=stage,
        )
    _show_dataset({**made.facts, "wrote": str(dataset)}, as_json=as_json, title=f"Wrote {dataset}")
    if timezone is None and made.facts["source"]["format"] != "released" and not as_json:
        err.print("note: days are cut at midnight UTC; say --timezone for local days")


@app.command()
def info(
    path: Annotated[str, typer.Argument(help="A dataset, or a file, folder or glob of points.")],
    format: Annotated[str, typer.Option(help="As for prepare.")] = "auto",
    columns: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    user: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    timezone: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a dataset or a source of points holds."""
    from attnmove.prep.describe import describe

    with _stages() as stage:
        facts = describe(path, format=format, columns=columns, user=user, timezone=timezone, progress=stage)
    show = _show_dataset if "hash" in facts else _show
    show(facts, as_json=as_json, title=path)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where to put what it makes.")] = Path(
        "demo"
    ),
) -> None:
    """Go the whole way on a synthetic city: make it, prepare it, sum it up."""
    points, truth, dataset = folder / "points.parquet", folder / "truth.parquet", folder / "dataset"
    folder.mkdir(parents=True, exist_ok=True)
    common = ["--timezone", "Asia/Shanghai"]
    for command in (
        ["synth", str(points), "--users", "200", "--days", "28", "--truth", str(truth)],
        ["prepare", str(points), "-o", str(dataset), *common],
        ["info", str(dataset)],
    ):
        out.print(f"\n[bold]$ attnmove {_escape(' '.join(command))}[/]", highlight=False, soft_wrap=True)
        app(command, standalone_mode=False)


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
    with _stages() as stage:
        rows = measure(sizes, tessellations.split(","), pandas_up_to=int(pandas_up_to), folder=folder, progress=stage)
    if as_json:
        _print_json(rows)
        return
    heads = ("points", "cells", "tool", "fold s", "whole s", "points/s", "MiB", "× pandas", "same")
    table = Table(*heads)
    for row in rows:
        table.add_row(*(_cell(value) for name, value in row.items() if name != "checksum"))
    out.print(table)


@contextmanager
def _stages() -> Iterator[Any]:
    """A spinner that says what is being done; silent where nobody looks."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda stage: progress.update(task, description=stage)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Any]:
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def _show(facts: dict[str, Any], *, as_json: bool, title: str) -> None:
    if as_json:
        _print_json(facts)
        return
    table = Table(title=_escape(title), show_header=False, title_justify="left")
    for name, value in facts.items():
        for label, text in _lines(name, value):
            table.add_row(label, text)
    out.print(table)


def _show_dataset(facts: dict[str, Any], *, as_json: bool, title: str) -> None:
    """What people want to know of a dataset; `--json` has everything."""
    per_day = facts["observed_slots"] / max(1, facts["days"])
    dropped = facts["dropped"]
    draws = f"{facts['draws']} draw{'s' * (facts['draws'] != 1)}"
    rows = {
        "people": f"{facts['users']:,} users, {facts['days']:,} user-days, {facts['first_date']} to "
        f"{facts['last_date']}",
        "split": f"{facts['train']:,} train, {facts['valid']:,} valid, {facts['test']:,} test; "
        f"{facts['past']:,} more are history only",
        "slots": f"{facts['slot_minutes']} minutes, days of {facts['timezone']}; on average {per_day:.1f} of "
        f"{facts['slots_per_day']} observed",
        "locations": f"{facts['locations']:,} of {facts['tessellation']['spec']}, "
        f"{facts['locations_visited']:,} visited",
        "targets": f"{facts['targets']:,} hidden slots in {draws}",
        "columns": "; ".join(f"{role} = {how}" for role, how in facts["source"]["columns"].items()) or None,
        "points": f"{facts['points']:,} read, {facts['points_used']:,} used" if "points" in facts else None,
        "refused rows": facts["rejects"] or "none",
        "dropped": f"{dropped['days_too_sparse']:,} days with too few observed slots; "
        f"{dropped['users_with_too_few_days']:,} users without enough days"
        if dropped
        else None,
        "hash": facts["hash"][:16],
    }
    _show(facts if as_json else {k: v for k, v in rows.items() if v is not None}, as_json=as_json, title=title)


def _lines(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A fact as rows of a table: a group of facts becomes a row each."""
    label = name.replace("_", " ")
    if not isinstance(value, dict):
        yield label, _cell(value)
    elif not value:
        yield label, "none"
    else:
        for key, part in value.items():
            yield from _lines(f"{label}: {key}", part)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 1_000 else f"{value:,.0f}"
    return _escape(str(value))


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


if __name__ == "__main__":
    main()
