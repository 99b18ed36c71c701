"""The demo: the whole way on a synthetic city, from points to recovered days, a report and a map."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from attnmove.cli.render import out
from attnmove.cli.root import app

_CITY = ("--users", "120", "--days", "21")
# Smaller models and less training than the defaults: half a minute on a core instead of many minutes.
_QUICK = {
    "boost": ("rankers=1", "rounds=100", "lr=0.1", "draws=0", "most_targets=12000", "practice=0"),
    "attnmove": ("width=64", "heads=4", "layers=1", "epochs=10", "lr=0.004", "weight_decay=0.3"),
}
_MADE = {
    "points.parquet": "what phones reported",
    "truth.parquet": "where everybody really was, every half hour",
    "dataset": "the points as days of slots",
    "run": "our default model, trained quickly",
    "paper-run": "a small AttnMove, trained quickly",
    "recovered.parquet": "every slot of every day: observed or recovered, with its probability",
    "report.html": "the report: open it in a browser",
}


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where to put what it makes.")] = Path(
        "demo"
    ),
) -> None:
    """Go the whole way on a synthetic city: make it, prepare, train two models, measure, recover, report."""
    folder.mkdir(parents=True, exist_ok=True)
    for command in _commands(folder):
        out.print(f"\n[bold]$ attnmove {escape(' '.join(command))}[/]", highlight=False, soft_wrap=True)
        app(command, standalone_mode=False)
    lines = [f"{escape(str(folder / name)):<{len(str(folder)) + 20}}{what}" for name, what in _MADE.items()]
    serve = f"attnmove serve {folder / 'run'} --examples {folder / 'dataset'}"
    lines.append(f"\nthe map: {escape(serve)}\nthen open http://127.0.0.1:8000 in a browser")
    out.print("\n[bold]Made[/]", *lines, sep="\n", highlight=False, soft_wrap=True)


def _commands(folder: Path) -> list[list[str]]:
    """What the demo does, as one would type it after `attnmove`."""
    points, truth, dataset, run, paper, recovered, report = (str(folder / name) for name in _MADE)
    return [
        ["synth", points, *_CITY, "--truth", truth],
        ["prepare", points, "-o", dataset, "--timezone", "Asia/Shanghai"],
        ["info", dataset],
        ["train", dataset, "-o", run, *_quickly("boost")],
        ["train", dataset, "-o", paper, *_quickly("attnmove")],
        ["evaluate", dataset, run, paper, "nearest", "vote"],
        ["evaluate", dataset, run, "--downstream"],
        ["recover", points, run, "-o", recovered],
        ["report", run, paper, "--dataset", dataset, "-o", report],
    ]


def _quickly(model: str) -> list[str]:
    return ["--model", model, *(part for pair in _QUICK[model] for part in ("--set", pair))]
