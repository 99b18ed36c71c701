"""Commands about data: synth, prepare, info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnmove.cli.render import AsJson, bar, err, show, show_dataset, stages
from attnmove.cli.root import app
from attnmove.errors import ConfigError


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
    with bar("people", users) as tick:
        report = write_city(
            points, users=users, days=days, seed=seed, truth=truth, points_per_day=points_per_day, progress=tick
        )
    facts = {"points": report.points, "users": report.users, "user_days": report.user_days, "wrote": str(points)}
    if truth is not None:
        facts |= {"truth_rows": report.truth_rows, "truth": str(truth)}
    show(facts, as_json=as_json, title="A synthetic city")


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

    with stages() as stage:
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
    show_dataset({**made.facts, "wrote": str(dataset)}, as_json=as_json, title=f"Wrote {dataset}")
    if timezone is None and made.facts["source"]["format"] != "released" and not as_json:
        err.print("note: days are cut at midnight UTC; say --timezone for local days")


@app.command()
def info(
    path: Annotated[str, typer.Argument(help="A dataset, a run, or a file, folder or glob of points.")],
    format: Annotated[str, typer.Option(help="As for prepare.")] = "auto",
    columns: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    user: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    timezone: Annotated[str | None, typer.Option(help="As for prepare.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a dataset, a run or a source of points holds."""
    if (Path(path) / "config.json").is_file():
        from attnmove.models.runs import describe_run

        show(describe_run(path), as_json=as_json, title=path)
        return
    from attnmove.prep.describe import describe

    with stages() as stage:
        facts = describe(path, format=format, columns=columns, user=user, timezone=timezone, progress=stage)
    render = show_dataset if "hash" in facts else show
    render(facts, as_json=as_json, title=path)
