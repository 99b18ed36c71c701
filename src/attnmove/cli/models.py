"""Commands about models: which there are, training them, how good they are, how they compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from attnmove.cli.measures import show_comparison, show_downstream, show_measures
from attnmove.cli.render import AsJson, err, json_text, out, print_json, show, steps, training
from attnmove.cli.root import Stopped, app
from attnmove.errors import ConfigError

if TYPE_CHECKING:
    from attnmove.measure.named import Evaluation

Protocol = Annotated[
    str, typer.Option(help="What earlier validation and test days show. paper: everything; strict: visible slots only.")
]
By = Annotated[
    str | None,
    typer.Option(help="Also measure slice by slice: missing_rate, hour, places, gap; several separated by commas."),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(metavar="P", help="Answer only where the first answer's probability is P or more, from 0 to 1."),
]
Precision = Annotated[
    float | None,
    typer.Option(
        metavar="Q",
        help="Answer only from the confidence on that had the share Q right on the validation days. On --split valid, "
        "where it was chosen, that is optimistic.",
    ),
]
Curves = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="Also write risk against coverage, and accuracy bin by bin of confidence."),
]
AnswersFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also write every answer with its alternatives and where it comes from, to a .parquet or .csv file; for "
        "models that work with evidence.",
    ),
]
Downstream = Annotated[
    bool,
    typer.Option(
        "--downstream",
        help="Also measure what days are used for: crowds, radius of gyration, places and flows, sparse and recovered.",
    ),
]
DEFAULT_MODEL = "boost"
Device = Annotated[str, typer.Option(help="Where networks compute: auto, cpu, cuda, mps.")]


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the models and what each is."""
    from attnmove.models.registry import MODELS

    rows = [{"name": name, "kind": entry.kind, "summary": entry.summary} for name, entry in MODELS.items()]
    if as_json:
        print_json(rows)
        return
    table = Table("model", "kind", "what it is")
    for row in rows:
        table.add_row(*row.values())
    out.print(table)


@app.command()
def train(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="The folder of a prepared dataset.")],
    run: Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="The folder to write.")],
    model: Annotated[str, typer.Option(help="The model; attnmove models lists them.")] = DEFAULT_MODEL,
    config: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="Settings from a file.")] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, over that of the file; repeat for more."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the first weights, the order of days and the masks.")] = 0,
    protocol: Protocol = "paper",
    device: Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was stopped; it ends as if it had not been.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a dataset and write the run.

    Ctrl-C leaves a usable run of the epochs so far; a kill leaves the checkpoint of the last epoch. Either goes on with
    --resume.
    """
    from attnmove.models.runs import settings_of, train_run
    from attnmove.models.settings import parse_settings
    from attnmove.prep.dataset import read_dataset

    settings = parse_settings(pairs or [], config)
    with training(settings_of(model, settings).get("epochs")) as tell:
        made = train_run(
            read_dataset(dataset),
            model,
            run,
            settings=settings,
            seed=seed,
            device=device,
            protocol=protocol,
            resume=resume,
            tell=tell,
        )
    if not getattr(made.model, "writes", True):
        return  # one of several processes, and not the one that wrote
    facts = {"model": made.name, **made.metrics, "wrote": str(run)}
    shown = {key: f"{value:.4f}" if key.startswith("valid_") else value for key, value in facts.items()}
    if not made.metrics["interrupted"]:
        del shown["interrupted"]
    show(facts if as_json else shown, as_json=as_json, title=f"Wrote {run}")
    if made.metrics["interrupted"]:
        err.print(f"{escape(str(run))} holds the best of {made.metrics['epochs']} epochs; --resume goes on")
        raise Stopped
    if made.metrics.get("made_up_lessons"):
        err.print(
            "there is little to learn from here: days of made-up people helped; --set practice=0 does without them"
        )
    if not as_json:
        out.print(
            f"measure it: attnmove evaluate {escape(str(dataset))} {escape(str(run))} nearest vote", soft_wrap=True
        )


@app.command()
def evaluate(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="The folder of a prepared dataset.")],
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL_OR_RUN…",
            help="Models to fit and measure, or folders of runs. With --json, one that ends in .json is written.",
        ),
    ],
    split: Annotated[str, typer.Option(help="The days to measure on: train, valid or test.")] = "test",
    protocol: Protocol = "paper",
    by: By = None,
    intervals: Annotated[bool, typer.Option("--intervals", help="Add 95 % intervals over users.")] = False,
    min_confidence: MinConfidence = None,
    precision: Precision = None,
    curves: Curves = None,
    answers: AnswersFile = None,
    downstream: Downstream = False,
    seed: Annotated[int, typer.Option(help="Of the models that are fitted.")] = 0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure models and runs on the targets of a dataset.

    The rules nearest and vote cost seconds: name them beside a network to see what it is worth.
    """
    from attnmove.measure.curves import write_curves
    from attnmove.measure.files import check_apart, make_room, write_whole
    from attnmove.measure.named import evaluate_named
    from attnmove.measure.origins import check_ending, write_answers

    files = [Path(name) for name in names if as_json and name.endswith(".json")]
    wanted = [name for name in names if Path(name) not in files]
    if not wanted or len(files) > 1:
        raise ConfigError("expected one model or more, and one file at most; attnmove models lists the models")
    outputs = [*files, *(file for file in (curves, answers) if file is not None)]
    if answers is not None:
        check_ending(answers)
    check_apart(outputs, folders=[dataset, *(run for run in map(Path, wanted) if run.is_dir())])
    for file in outputs:
        make_room(file)
    with steps(len(wanted)) as step:
        made = evaluate_named(
            dataset,
            wanted,
            split=split,
            protocol=protocol,
            by=_listed(by),
            intervals=intervals,
            min_confidence=min_confidence,
            precision=precision,
            answers=answers is not None,
            downstream=downstream,
            seed=seed,
            device=device,
            progress=step,
        )
    _say_notes(made)
    only_json = as_json and not files
    if only_json:
        print_json(made.rows)
    else:
        show_measures(made.rows, title=f"{dataset}, {split}, {protocol} protocol", precision=precision)
        show_downstream(made.rows)
    for file in files:
        write_whole(file, json_text(made.rows) + "\n")
    if curves is not None:
        write_curves(curves, made.curves)
    if answers is not None:
        write_answers(answers, made.answers)
    for file in () if only_json else outputs:
        out.print(f"wrote {escape(str(file))}", highlight=False)


def _say_notes(made: Evaluation) -> None:
    """What a reader of the measures should know, on standard error."""
    for run in dict.fromkeys(row["run"] for row in made.rows if row["trained_on"] != row["dataset_hash"]):
        err.print(f"note: {escape(run)} learnt from another dataset; days measured here may be among its training days")
    for name, why in made.refused.items():
        err.print(f"note: {escape(name)} answers nothing: {escape(why)}", highlight=False, soft_wrap=True)


@app.command()
def compare(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="The folder of a prepared dataset.")],
    results: Annotated[
        Path, typer.Option("-o", "--out", metavar="RESULTS", help="The folder whose results.csv is brought up to date.")
    ],
    models: Annotated[
        str | None, typer.Option(help="Models, separated by commas.", show_default="those of Table 2")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Fits of each model that has chance in it: seeds 0, 1, …")] = 3,
    protocol: Protocol = "paper",
    by: By = None,
    jobs: Annotated[int, typer.Option(help="Fits at a time, each in a process of its own.")] = 1,
    device: Device = "auto",
    pairs: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, for every model that has it; repeat for more."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit models with several seeds, measure each on valid and test, and keep the results.

    What results.csv has already is not done again, so a stopped comparison goes on where it was.
    """
    from attnmove.measure.compare import compare as run
    from attnmove.measure.record import RESULTS, summarise
    from attnmove.models.registry import TABLE2
    from attnmove.models.settings import parse_settings

    with steps(None) as step:
        made = run(
            dataset,
            _listed(models) or TABLE2,
            seeds=range(seeds),
            protocol=protocol,
            by=_listed(by),
            jobs=jobs,
            device=device,
            out=results,
            settings=parse_settings(pairs or []),
            progress=step,
        )
    summary = summarise(made.rows)
    if as_json:
        print_json(summary)
    else:
        show_comparison(summary, title=f"{dataset}, test, {protocol} protocol")
        out.print(f"wrote {escape(str(results / RESULTS))}", highlight=False)
    for model, why in made.refused.items():
        err.print(f"note: {model} was left out: {escape(why)}", highlight=False, soft_wrap=True)


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
