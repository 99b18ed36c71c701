"""The models side by side: which results belong together, and a table of them with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from attnmove.measure.table import ALL
from attnmove.models.registry import MODELS
from attnmove.reporting.axes import NAIVE, Scale, Series, series_of, way
from attnmove.reporting.inputs import Result
from attnmove.reporting.markup import Html, Part, joined, tag
from attnmove.reporting.page import Section, figure, scrolling, tiles

_HEADS = {
    "recall": "recall",
    "map": "MAP",
    "distance_m": "distance (m)",
    "recall_at_3": "recall@3",
    "recall_at_5": "recall@5",
    "nll": "NLL",
    "ece": "ECE",
}
_LESS_IS_BETTER = ("distance_m", "nll", "ece")
MOST_LINES = 4
"""Models in one chart, the naive rules beside them."""
STUDIED = ("width", "heads", "layers")
"""The settings of the paper's Figure 5."""


@dataclass(frozen=True)
class Group:
    """Results that may be compared: same dataset, protocol and split."""

    dataset: str
    dataset_hash: str
    protocol: str
    split: str
    results: Sequence[Result]
    looks: Mapping[str, Series] = field(default_factory=dict)
    """How each model looks, in the table and in every chart; the same in all groups."""

    @property
    def title(self) -> str:
        name = self.dataset or "dataset"
        mark = f" {self.dataset_hash[:12]}" if self.dataset_hash else ""
        protocol = f", {self.protocol} protocol" if self.protocol else ""
        return f"{name}{mark}, {self.split} days{protocol}"

    @property
    def whole(self) -> list[Result]:
        """The results on all targets, the best recall first."""
        mine = [result for result in self.results if result.slice == ALL]
        return sorted(mine, key=lambda result: _or_less(result.values["recall"]), reverse=True)

    @property
    def runs(self) -> list[str]:
        """Labels of the runs that were named."""
        return list(dict.fromkeys(result.label for result in self.results if result.run is not None))


def few(names: Sequence[str], first: Sequence[str] = ()) -> list[str]:
    """Of names, the best first, those a chart has room for: `first` before others, the naive rules always."""
    models = [name for name in names if name not in NAIVE]
    chosen = sorted(models, key=lambda name: name not in first)[:MOST_LINES]
    return [name for name in models if name in chosen] + [name for name in NAIVE if name in names]


def groups_of(results: Iterable[Result], *, split: str, first: str | None = None) -> list[Group]:
    """The results of the split, by dataset and protocol; the dataset with the hash `first` comes first.

    Results of other splits, and those of a study of settings, are left out.
    """
    studied = {id(result) for result in study_of(results)}
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.split == split and id(result) not in studied:
            found.setdefault(result.group, []).append(result)
    out = [
        Group(next((r.dataset for r in mine if r.dataset), ""), *key, split, distinct(mine))
        for key, mine in found.items()
    ]
    out = sorted(out, key=lambda group: group.dataset_hash != first)
    looks = series_of([result.label for group in out for result in (*group.whole, *group.results)])
    return [replace(group, looks=looks) for group in out]


def distinct(results: Sequence[Result]) -> list[Result]:
    """The results with labels that name one source each; of a naive rule that comes twice the last one stays."""
    sources: dict[str, list[str]] = {}
    for result in results:
        where = result.run or result.source
        if where not in sources.setdefault(result.label, []):
            sources[result.label].append(where)
    out = []
    for result in results:
        where, known = result.run or result.source, sources[result.label]
        if result.label in NAIVE:
            if where == known[-1]:
                out.append(result)
        elif where == known[0]:
            out.append(result)
        else:
            twin = f"{Path(where).parent.name}/{Path(where).name}" if result.run is None else Path(where).name
            out.append(replace(result, model=f"{result.model} ({twin})"))
    return out


def models_section(groups: Sequence[Group]) -> Section:
    """The table of models, one a group of results."""
    if not groups:
        sentence = (
            "Table of models: there are no results of this split; name results of compare, or a run and --dataset."
        )
        return Section("models", "The models", left_out=[sentence])
    intro = (
        "Recall is the share of hidden slots whose place was named first; MAP the mean of 1 / rank of the true place; "
        "distance the mean metres between both. A model is worth what it adds to the naive rules, which need no "
        "training."
    )
    tables = [group for group in groups if group.whole]
    left_out = [
        f"Table of models on {group.title}: its results are of slices only; name the rows of the slice {ALL} too."
        for group in groups
        if not group.whole
    ]
    left_out += [
        f"Naive rules for {group.title}: no {' or '.join(lost)} among the results; name --dataset, or add them to "
        "compare --models."
        for group in tables
        if (lost := [name for name in NAIVE if all(result.label != name for result in group.whole)])
    ]
    if not any(result.low and result.seeds == 1 for group in groups for result in group.whole):
        left_out.append("Intervals over users: name runs and --dataset, or a file of evaluate --intervals --json.")
    return Section("models", "The models", intro, joined([_best(groups[0]), *map(_table, tables)]), left_out)


def _best(group: Group) -> Html:
    """What the best model adds to the best naive rule, in the numbers to see first."""
    whole = [result for result in group.whole if math.isfinite(result.values["recall"])]
    learnt = [result for result in whole if result.label not in NAIVE]
    naive = [result for result in whole if result.label in NAIVE]
    facts = {}
    if learnt:
        facts["best model"] = (learnt[0].label, f"recall {learnt[0].values['recall']:.4f}")
    if naive:
        facts["best naive rule"] = (naive[0].label, f"recall {naive[0].values['recall']:.4f}")
    if learnt and naive:
        gain = 100 * (learnt[0].values["recall"] - naive[0].values["recall"])
        facts["gain over it"] = (f"{gain:+.1f} points", "of recall")
    if whole:
        facts["targets"] = (f"{whole[0].n:,}", f"of the {group.split} days")
    return tiles(facts) if facts else Html("")


def _table(group: Group) -> Html:
    rows = group.whole
    best = {name: _best_of(name, rows) for name in _HEADS}
    scale = _recall_scale(rows)
    heads: list[Part] = ["model", _ends_of(scale), *_HEADS.values(), "targets", "seeds"]
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in heads)))
    body = tag("tbody", *(_row(result, best, scale, group.looks[result.label]) for result in rows))
    shown = scrolling(tag("table", head, body), f"Models on {group.title}")
    return tag("div", figure(f"Models on {group.title}", _about(rows), shown, looks="wide"), class_="figures table")


def _about(rows: Sequence[Result]) -> str:
    kinds = []
    if any(result.low and result.seeds > 1 for result in rows):
        kinds.append("± is the standard deviation over seeds")
    if any(result.low and result.seeds == 1 for result in rows):
        kinds.append("two ends are a 95 % interval over users (1,000 draws of users)")
    if len(kinds) == 2:
        kinds.append("the first says how much luck was in the training, the second how much in the people")
    spread = f" Below a number, and as whiskers: {'; '.join(kinds)}." if kinds else " One fit each, no intervals."
    n = sorted({result.n for result in rows})
    count = f"{n[0]:,}" if len(n) == 1 else f"{n[0]:,} to {n[-1]:,}"
    return f"Every one of the {count} targets counts. The best of each column is in bold.{spread}"


def _row(result: Result, best: dict[str, float], scale: Scale, looks: Series) -> Html:
    known = MODELS.get(result.model)
    is_rule = known is not None and known.kind == "rule"
    badge = None
    if is_rule:
        badge = tag("span", "naive rule" if result.label in NAIVE else "rule", class_="badge")
    where = tag("span", _where(result), class_="where")
    cells = [tag("td", _plot(result, scale, looks), class_="plot")]
    for name in _HEADS:
        value = result.values[name]
        # What reads alike is alike: the best is the best of the numbers as they are shown.
        is_best = math.isfinite(value) and shown(name, value) == shown(name, best[name])
        cells.append(tag("td", shown(name, value), _ends(result, name), class_="best" if is_best else None))
    head = tag("th", result.label, " ", badge, where, scope="row")
    return tag(
        "tr", head, *cells, tag("td", f"{result.n:,}"), tag("td", result.seeds), class_="rule" if is_rule else None
    )


def _plot(result: Result, scale: Scale, looks: Series) -> Html:
    """Recall and its interval on a line that all rows share."""
    value = result.values["recall"]
    parts = [tag("line", class_="grid", x1=scale.start, x2=scale.end, y1=13, y2=13)]
    if math.isfinite(value):
        if "recall" in result.low and "recall" in result.high:
            ends = [(scale(result.low["recall"]), 13.0), (scale(result.high["recall"]), 13.0)]
            parts.append(tag("path", class_="line", d=way(ends), style="stroke-dasharray:none"))
        parts.append(looks.mark(scale(value), 13, size=4.2))
    about = f"recall {shown('recall', value)}"
    return tag(
        "svg",
        tag("title", about),
        tag("desc", about),
        *parts,
        viewBox="0 0 190 26",
        class_=looks.looks,
        role="img",
        aria_label=about,
    )


def _ends_of(scale: Scale) -> Html:
    """The head of the column of plots: where their line begins and ends."""
    parts = [
        tag("text", f"{value:.0%}", class_=f"tick {side}", x=scale(value), y=18)
        for value, side in ((scale.low, "start"), (scale.high, "end"))
    ]
    name = tag("text", "recall", class_="tick middle", x=(scale.start + scale.end) / 2, y=18)
    about = f"recall from {scale.low:.0%} to {scale.high:.0%}"
    names = (tag("title", about), tag("desc", about))
    return tag("svg", *names, *parts, name, viewBox="0 0 190 26", class_="ends", role="img", aria_label=about)


def _where(result: Result) -> str:
    """Where a result comes from, short enough for a table; the footer has the whole paths."""
    if result.run is not None:
        return f"run {Path(result.run).name}"
    path = Path(result.source)
    return f"{path.parent.name}/{path.name}" if path.suffix == ".csv" and path.parent.name else path.name


def _recall_scale(rows: Sequence[Result]) -> Scale:
    values = [result.values["recall"] for result in rows]
    values += [end["recall"] for result in rows for end in (result.low, result.high) if "recall" in end]
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = math.floor(min(known) * 20) / 20, math.ceil(max(known) * 20) / 20
    return Scale(max(0.0, low), max(min(1.0, high), low + 0.05), 8, 182)


def shown(name: str, value: float) -> str:
    """A measure as it is written; a dash where it is not defined."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.{ {'distance_m': 0, 'nll': 3}.get(name, 4) }f}"


def _ends(result: Result, name: str) -> Html | None:
    if name not in result.low or name not in result.high:
        return None
    low, high = result.low[name], result.high[name]
    if result.seeds > 1:
        return tag("small", f"± {shown(name, (high - low) / 2)}")
    digits = 0 if name == "distance_m" else 3
    return tag("small", f"{low:,.{digits}f}–{high:,.{digits}f}") if math.isfinite(low + high) else None


def _best_of(name: str, rows: Sequence[Result]) -> float:
    known = [result.values[name] for result in rows if math.isfinite(result.values[name])]
    if not known:
        return math.nan
    return min(known) if name in _LESS_IS_BETTER else max(known)


def study_of(results: Iterable[Result]) -> list[Result]:
    """Results on all targets of a network of several shapes: those whose settings name width, heads or layers.

    Fewer than three shapes are no study.
    """
    mine = [result for result in results if any(name in settings_of(result) for name in STUDIED)]
    return mine if len({result.settings for result in mine}) > 2 else []


def settings_of(result: Result) -> dict[str, str]:
    """The changed settings by name, as they are written."""
    pairs = (pair.partition("=") for pair in result.settings.split())
    return {name: value for name, _, value in pairs}


def _or_less(value: float) -> float:
    return value if math.isfinite(value) else -math.inf
