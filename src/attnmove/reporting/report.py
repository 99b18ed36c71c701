"""The verb: read what was named, ask the runs, put the sections together, write the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from attnmove.errors import ConfigError, check_names
from attnmove.measure.files import make_room, write_whole
from attnmove.prep.cases import PROTOCOLS
from attnmove.prep.dataset import Dataset, read_dataset
from attnmove.reporting.answers import Answered, Asked, Progress, ask
from attnmove.reporting.confidence import confidence_section
from attnmove.reporting.data import data_section
from attnmove.reporting.examples import examples_section
from attnmove.reporting.inputs import Inputs, Result, read_inputs
from attnmove.reporting.inside import inside_section
from attnmove.reporting.markup import Html, joined, tag
from attnmove.reporting.page import Section, page
from attnmove.reporting.scores import Group, groups_of, models_section
from attnmove.reporting.slices import slices_section
from attnmove.reporting.study import study_section
from attnmove.reporting.training import training_section
from attnmove.version import __version__


@dataclass(frozen=True)
class Report:
    """What a written report holds."""

    wrote: Path
    n_bytes: int
    sections: list[str]
    """Titles of the sections that are there."""
    left_out: list[str]
    """What is not there, why, and how to get it: a sentence each."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know before anything else."""


@dataclass(frozen=True)
class _Sources:
    """What was named, read and asked."""

    inputs: Inputs
    dataset: Dataset | None = None
    asked: Asked | None = None

    @property
    def answered(self) -> list[Answered]:
        return [] if self.asked is None else self.asked.answered

    @property
    def unasked(self) -> dict[Path, str]:
        return {} if self.asked is None else self.asked.unasked

    @property
    def results(self) -> list[Result]:
        return [*self.inputs.results, *(result for one in self.answered for result in one.results)]


def report(
    inputs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    dataset: str | Path | None = None,
    split: str = "test",
    protocol: str = "paper",
    seed: int = 0,
    device: str = "auto",
    title: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Write one HTML page about results and runs, and say what it holds.

    `inputs` are results folders or files of `compare`, JSON or curves of `evaluate`, and folders of runs, in any order.
    With the dataset, the runs and the rules nearest and vote are asked for the targets of `split`; without it, the
    sections that need days are left out. `seed` draws the example days and begins k-means. The page loads nothing from
    elsewhere and is written at once.
    """
    paths = [Path(one) for one in ([inputs] if isinstance(inputs, str | Path) else inputs)]
    out = Path(out)
    check_names("split", [split], ("train", "valid", "test"))
    check_names("protocol", [protocol], PROTOCOLS)
    if not paths and dataset is None:
        raise ConfigError("nothing to report on: name results, a run, or a dataset")
    if not 0 <= seed < 2**32:
        raise ConfigError(f"seed: expected 0 to {2**32 - 1}, found {seed}")
    make_room(out)
    if out.suffix.lower() not in (".html", ".htm"):  # a slip must not cost the results that are reported on
        raise ConfigError(f"{out}: expected a page that ends in .html")
    read = read_inputs(paths)
    sources = _Sources(read)
    if dataset is not None:
        data = read_dataset(dataset)
        called = str(data.facts.get("name") or Path(dataset).resolve().name)
        asked = ask(data, read.runs, name=called, split=split, protocol=protocol, device=device, progress=progress)
        sources = _Sources(read, data, asked)
    groups = groups_of(sources.results, split=split, first=None if sources.dataset is None else sources.dataset.hash)
    sections = _sections(sources, groups, split=split, seed=seed)
    notes = _notes(sources)
    name = title or f"Report: {_subject(paths, dataset)}"
    facts = _footer(sources, paths, dataset, protocol=protocol, split=split, seed=seed)
    text = page(name, _lead(sources, groups), sections, notes=notes, footer=facts)
    write_whole(out, text)
    return Report(
        wrote=out,
        n_bytes=len(text.encode()),
        sections=[section.title for section in sections if section.body],
        left_out=list(dict.fromkeys(sentence for section in sections for sentence in section.left_out)),
        notes=notes,
    )


def _sections(sources: _Sources, groups: Sequence[Group], *, split: str, seed: int) -> list[Section]:
    curves = [*sources.inputs.curves, *(row for one in sources.answered for row in one.curves)]
    cases = None if sources.asked is None else sources.asked.cases
    models = models_section(groups)
    unasked = [
        f"Measures, slices, calibration, example days and Figure 3 of {run.name}: {sources.unasked[run.path]}; name "
        "the dataset it learnt from, or train on this one."
        for run in sources.inputs.runs
        if run.path in sources.unasked
    ]
    return [
        replace(models, left_out=[*models.left_out, *unasked]),
        slices_section(groups),
        confidence_section(curves, groups, split=split),
        examples_section(cases, sources.answered, seed=seed),
        data_section(sources.dataset),
        training_section(sources.inputs.runs),
        inside_section(sources.dataset, cases, sources.answered, seed=seed),
        study_section(sources.results),
    ]


def _lead(sources: _Sources, groups: Sequence[Group]) -> Html:
    """What was measured on what, in a sentence."""
    n_models = len({result.label for group in groups for result in group.results})
    models = f"{n_models} model{'s' * (n_models != 1)}" if n_models else "No results"
    what = f" in {len(groups)} tables" if len(groups) > 1 else f" on {groups[0].title}" if groups else ""
    n = max((result.n for group in groups for result in group.whole), default=0)
    targets = f", {n:,} hidden slots to recover" if n and len(groups) == 1 else ""
    return joined([tag("b", f"{models}{what}"), f"{targets}."])


def _subject(paths: Sequence[Path], dataset: str | Path | None) -> str:
    if dataset is not None:
        return Path(dataset).resolve().name
    return ", ".join(path.resolve().stem for path in paths)


def _notes(sources: _Sources) -> list[str]:
    """Runs and results that do not belong to the dataset."""
    if sources.dataset is None:
        return []
    own = sources.dataset.hash
    out = []
    for run in sources.inputs.runs:
        if run.path in sources.unasked:
            out.append(f"{run.path} learnt from another dataset and was not asked here: {sources.unasked[run.path]}.")
        elif run.facts.get("dataset_hash") != own:
            out.append(f"{run.path} learnt from another dataset; days measured here may be among its training days.")
    others = sorted({result.source for result in sources.inputs.results if result.dataset_hash not in ("", own)})
    out += [
        f"{source} holds results of another dataset than the one named; they stand in a table of their own."
        for source in others
    ]
    return out


def _footer(
    sources: _Sources, paths: Sequence[Path], dataset: str | Path | None, *, protocol: str, split: str, seed: int
) -> dict[str, Html | str]:
    hashes = dict.fromkeys(result.dataset_hash for result in sources.results if result.dataset_hash)
    versions = sorted({result.version for result in sources.results if result.version} | {__version__})
    devices = sorted({one.device for one in sources.answered})
    facts: dict[str, Html | str] = {"made from": ", ".join(map(str, paths)) or "the dataset alone"}
    if sources.dataset is not None:
        facts["dataset"] = joined([str(dataset), " ", tag("code", sources.dataset.hash)])
        runs = sources.inputs.runs
        if runs:
            same = all(run.facts.get("dataset_hash") == sources.dataset.hash for run in runs)
            facts["runs"] = "learnt from this dataset: the hashes agree" if same else "not all learnt from this dataset"
    elif hashes:
        facts["dataset"] = joined([tag("code", ", ".join(hashes)), " as the results say; it was not looked at"])
    facts["measured"] = f"{split} days, {protocol} protocol, seed {seed}" + (
        f", on {', '.join(devices)}" if devices else ""
    )
    facts["attnmove"] = ", ".join(versions)
    facts["written"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return facts
