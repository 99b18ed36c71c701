"""How commands show things: tables and JSON on standard output, progress on standard error."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

out = Console()
err = Console(stderr=True)
_ANY_WIDTH = 10_000

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]


@contextmanager
def _task(*columns: Any, total: float | None, says: str = "starting") -> Iterator[Callable[..., None]]:
    """A display of one task on standard error, gone when done; takes what `Progress.update` takes.

    Where nobody looks nothing is shown.
    """
    if not err.is_terminal:
        yield lambda **_: None
        return
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(says, total=total)
        yield lambda **now: progress.update(task, **now)


@contextmanager
def stages() -> Iterator[Any]:
    """A spinner that says what is being done."""
    with _task(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), total=None) as update:
        yield lambda stage: update(description=stage)


@contextmanager
def bar(what: str, total: int) -> Iterator[Any]:
    with _task(TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), total=total) as update:
        yield lambda done, of: update(completed=done, total=of)


@contextmanager
def flow(what: str) -> Iterator[Any]:
    """A bar with how many a second there are, and the time left; it begins when their number is known."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("left"))
    with _task(*columns, TimeRemainingColumn(), total=None) as update:
        began: list[tuple[int, float]] = []

        def tick(done: int, of: int) -> None:
            now = time.perf_counter()
            began[:] = began or [(done, now)]
            first, then = began[0]
            rate = f", {(done - first) / (now - then):,.0f} a second" if done > first else ""
            update(completed=done, total=of, description=f"{what}{rate}")

        yield tick


@contextmanager
def steps(total: int | None) -> Iterator[Any]:
    """A bar that says which of several things is being done, or was done last."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with _task(*columns, total=total) as update:
        yield lambda what, done, of: update(description=escape(what), completed=done, total=of)


@contextmanager
def training(epochs: int | None) -> Iterator[Any]:
    """A bar of epochs with the loss, what validation says, and the time left; None where nobody looks.

    A model without epochs fills it by the share that is done, or leaves it moving.
    """
    count = "training" if epochs is None else "epoch {task.completed:.1f}/{task.total:.0f}"
    columns = (
        TextColumn(count),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left"),
    )
    says = "" if epochs is None else "starting"
    with _task(*columns, TimeRemainingColumn(), total=epochs, says=says) as update:

        def tell(now: dict[str, float]) -> None:
            text = f"loss {now['loss']:.3f}  " if "loss" in now else ""
            if "valid_recall" in now:
                text += f"valid recall {now['valid_recall']:.3f}, MAP {now['valid_map']:.3f}"
            update(completed=now["epoch"], total=epochs or 1, description=text)

        yield tell if err.is_terminal else None


def print_table(table: Table, console: Console = out) -> None:
    """Print a table; into a file or pipe as wide as it needs to be, for nothing may be cut there."""
    if console.is_terminal:
        console.print(table)
    else:
        width = Console(width=_ANY_WIDTH).measure(table).maximum
        Console(width=max(console.width, width), stderr=console.stderr).print(table)


def show(facts: dict[str, Any], *, as_json: bool, title: str, console: Console = out) -> None:
    if as_json:
        typer.echo(json_text(facts), err=console.stderr)
        return
    table = Table(title=escape(title), show_header=False, title_justify="left")
    for name, value in facts.items():
        for label, text in _lines(name, value):
            table.add_row(label, text)
    print_table(table, console)


def show_dataset(facts: dict[str, Any], *, as_json: bool, title: str) -> None:
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
        "there twice": "; ".join(
            f"{' and '.join(double['users'])} ({double['same']:,} of {double['slots']:,} slots at one place)"
            for double in facts.get("doubles", ())
        )
        or None,
        "hash": facts["hash"][:16],
    }
    show(facts if as_json else {k: v for k, v in rows.items() if v is not None}, as_json=as_json, title=title)


def _lines(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A fact as rows of a table: a group of facts becomes a row each."""
    label = name.replace("_", " ")
    if not isinstance(value, dict):
        yield label, cell(value)
    elif not value:
        yield label, "none"
    else:
        for key, part in value.items():
            yield from _lines(f"{label}: {key}", part)


def cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if 0 < abs(value) < 0.1:
            return f"{value:.3g}"  # a learning rate is not 0.00
        return f"{value:,.2f}" if abs(value) < 1_000 else f"{value:,.0f}"
    return escape(str(value))


def print_json(value: Any) -> None:
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """JSON for machines; a number that is not finite is null, for JSON has no other word for it."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value
