"""The tables of docs/results.md, each a text made from the results of record and the numbers of the paper."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnmove.errors import RunError
from attnmove.measure.record import read_results, sorted_results, summarise
from attnmove.measure.table import ALL, Row
from attnmove.models.registry import MODELS
from attnmove.models.settings import parse_settings
from records import rows_in

PAPER = Path(__file__).parent / "paper.csv"
NOT_YET = "not measured yet"
NOTHING = "–"
METRICS = ("recall", "map", "distance_m")
HEADS = {"recall": "recall", "map": "MAP", "distance_m": "distance m"}
TABLE2 = (
    *("top", "history", "linear", "rf", "lstm", "bilstm", "deepmove", "bi-stddp", "attnmove-h", "attnmove"),
    *("attnmove-relu", "attnmove-missing", "rf-copy", "nearest", "vote"),
)
TABLE3 = {
    "attnmove": "nothing",
    "attnmove-no-historical": "historical intra-trajectory attention",
    "attnmove-no-current": "current intra-trajectory attention",
    "attnmove-no-inter": "inter-trajectory attention",
    "attnmove-no-generation": "location generation attention",
    "attnmove-h": "all history (AttnMove-H)",
}
TABLE4 = ("bi-stddp", "attnmove", "nearest", "vote")
FIGURE4 = ("bilstm", "bi-stddp", "attnmove", "nearest", "vote")


OURS = ("boost", "copymove")
OWN = (*OURS, "attnmove", "bi-stddp", "rf-copy", "nearest", "vote")
WITHOUT = {
    "": "nothing",
    "without=day": "day",
    "without=past": "past",
    "without=others": "others",
    "without=space": "space",
    "without=others,space": "others and space",
}
DOWNSTREAM = {
    "crowd": "crowd at a place by hour of the day",
    "crowd_rms": "– squared",
    "crowd_by_date": "crowd at a place by date and hour",
    "crowd_by_date_rms": "– squared",
    "radius_m": "radius of gyration of a day, m",
    "radius_median_m": "– median",
    "places": "places of a day",
    "flows": "flows between places",
    "flows_rms": "– squared",
    "flows_apart": "– not in common",
}
OFTEN = ("missing_rate", "hour", "gap")
SURE_OF = (0.7, 0.8, 0.9)
LESS_IS_BETTER = ("distance_m", "nll", "ece")


@dataclass(frozen=True)
class Cell:
    """A number of a table and how it reads."""

    value: float = math.nan
    """Rounded as it is shown, so that what reads alike is alike."""
    text: str = NOTHING


def table2(results: Path, dataset: str, protocol: str = "paper") -> str:
    """A row a model: ours, and beside it the paper's where it has the dataset and the protocol."""
    rows = [row for row in _test(results / "table2.csv", dataset, protocol) if row["slice"] == ALL]
    found = {row["model"]: row for row in rows}
    published = _published("2", dataset.title()) if protocol == "paper" else {}
    columns = {"model": list(TABLE2)}
    for metric in METRICS:
        columns[HEADS[metric]] = _marked([_measured(found.get(model), metric) for model in TABLE2], metric)
    for metric in METRICS if published else ():
        cells = [_number(published.get((model, ALL)), metric) for model in TABLE2]
        columns[f"paper: {HEADS[metric]}"] = _marked(cells, metric)
    return _page(rows, columns)


def table3(results: Path, dataset: str) -> str:
    """A row an ablation: the measures, the difference to the full model with its interval, the paper's on Tencent."""
    rows = _test(results / "table3.csv", dataset)
    found = {row["model"]: row for row in rows}
    gained = {(row["model"], row["metric"]): row for row in _paired(results / "table3_paired.csv", rows)}
    published = _published("2", "Tencent") | _published("3", "Tencent")  # the full model is in Table 2 only
    columns = {"without": list(TABLE3.values())}
    for metric in METRICS:
        columns[HEADS[metric]] = _marked([_measured(found.get(model), metric) for model in TABLE3], metric)
        columns[f"Δ {HEADS[metric]}"] = [_difference(gained.get((model, metric)), metric) for model in TABLE3]
    for metric in METRICS:
        columns[f"paper, Tencent: {HEADS[metric]}"] = [
            _number(published.get((model, ALL)), metric).text for model in TABLE3
        ]
    return _page(rows, columns)


def table4(results: Path, dataset: str) -> str:
    """A row a missing rate: recall and distance of each model, and the paper's on Tencent."""
    rows = _test(results / "table2.csv", dataset)
    found, slices = _sliced(rows, "missing_rate")
    published = _published("4", "Tencent")
    columns = _slice_columns(rows, found, slices, "missing rate")
    recall, distance_m = (_by_slice(found, slices, TABLE4, metric) for metric in ("recall", "distance_m"))
    for model in TABLE4:
        columns[f"{model}: recall / m"] = _joined(recall[model], distance_m[model])
    for model in dict.fromkeys(model for model, _ in published):
        parts = [
            [_number(published.get((model, name)), metric).text for name in slices]
            for metric in ("recall", "distance_m")
        ]
        columns[f"paper, Tencent: {model}"] = _joined(*parts)
    return _page(_whole_of(rows, TABLE4), columns)


def figure4(results: Path, dataset: str, slicing: str) -> str:
    """A row a slice: its share of the targets (the shades of the figure) and each model's recall (its lines)."""
    rows = _test(results / "table2.csv", dataset)
    found, slices = _sliced(rows, slicing)
    columns = _slice_columns(rows, found, slices, slicing) | _by_slice(found, slices, FIGURE4, "recall")
    return _page(_whole_of(rows, FIGURE4), columns)


def figure5(results: Path, dataset: str, part: str) -> str:
    """A row a shape of AttnMove: `width` with the usual heads and layers, or `grid` of heads and layers."""
    rows = _shapes(results / "figure5.csv", dataset)
    usual = _usual_shape(rows)
    names = ("width",) if part == "width" else ("heads", "layers")
    fixed = [name for name in ("width", "heads", "layers") if name not in names]
    rows = [row for row in rows if all(row[name] == usual[name] for name in fixed)]
    rows = sorted(rows, key=lambda row: [row[name] for name in names])
    test = [row for row in rows if row["split"] == "test"]
    valid = [row for row in rows if row["split"] == "valid"]
    columns = {name: [str(row[name]) for row in test] for name in names}
    for split, mine in (("validation", valid), ("test", test)):
        for metric in ("recall", "map"):
            columns[f"{split} {HEADS[metric]}"] = _marked([_measured(row, metric) for row in mine], metric)
    page = _page(test, columns)
    return page if page == NOT_YET else f"{page} {', '.join(f'{name} {usual[name]}' for name in fixed).capitalize()}."


def own(results: Path, dataset: str, protocol: str = "paper") -> str:
    """Our own models beside the best of Table 2, with how well they know what they know."""
    rows = [row for row in _test(results / "own.csv", dataset, protocol) if row["slice"] == ALL and not row["settings"]]
    beside = [row for row in _test(results / "table2.csv", dataset, protocol) if row["slice"] == ALL]
    found = {row["model"]: row for row in [*beside, *rows]}
    columns = {"model": list(OWN)}
    for metric, head in (HEADS | {"nll": "NLL", "ece": "calibration error"}).items():
        columns[head] = _marked([_measured(found.get(model), metric) for model in OWN], metric)
    return _page([found[model] for model in OWN if model in found], columns)


def evidence(results: Path, dataset: str) -> str:
    """What a kind of evidence is worth: boost without it, on the same seed."""
    rows = [row for row in read_results(results / "own.csv") if (row["dataset"], row["seed"]) == (dataset, 0)]
    rows = [row for row in rows if (row["model"], row["protocol"], row["slice"]) == ("boost", "paper", ALL)]
    found = {(row["settings"], row["split"]): row for row in rows}
    kinds = [kind for kind in WITHOUT if (kind, "test") in found]
    if len(kinds) < 2:
        return NOT_YET
    columns = {"without": [WITHOUT[kind] for kind in kinds]}
    for split in ("valid", "test"):
        for metric in METRICS:
            columns[f"{split}: {HEADS[metric]}"] = [_text(found[kind, split][metric], metric) for kind in kinds]
    return _page([row | {name: {row[name]} for name in ("version", "device")} | {"seeds": 1} for row in rows], columns)


def sure(results: Path) -> str:
    """A row a dataset: how well boost knows what it knows, in the mean over the seeds and at the worst."""
    rows = rows_in(results / "sure.csv")
    if not rows:
        return NOT_YET
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    of = {name: [row for row in rows if row["dataset"] == name] for name in names}
    if any(len({(row["dataset_hash"], row["protocol"]) for row in mine}) > 1 for mine in of.values()):
        raise RunError("sure.csv: results of two different datasets of one name; remove those of the older one")
    columns = {"dataset": names, "seeds": [str(len(of[name])) for name in names]}
    columns |= {
        "calibration error (worst)": [_mean_and(of[name], "ece", max) for name in names],
        "at least 90 % sure of": [f"{_mean(of[name], 'sure_n') / float(of[name][0]['n']):.1%}" for name in names],
        "right of these (worst)": [_mean_and(of[name], "sure_recall", min) for name in names],
    }
    for wanted in SURE_OF:
        parts = (f"precision_{wanted}", f"coverage_{wanted}")
        both = [[_mean(of[name], part) for part in parts] for name in names]
        columns[f"asked for {wanted:g}: right, of how many"] = [
            NOTHING if math.isnan(right) else f"{right:.3f} of {many:.0%}" for right, many in both
        ]
    hashes = ", ".join(f"`{of[name][0]['dataset_hash'][:12]}`" for name in names)
    versions, devices = (", ".join(sorted({row[name] for row in rows})) for name in ("version", "device"))
    return f"{_lines(columns)}\n\nTest; paper protocol; datasets {hashes}; attnmove {versions}; computed on {devices}."


def slices(results: Path, dataset: str, slicing: str) -> str:
    """A row a slice: recall of boost, and by how much it is ahead of the other model that comes nearest to it."""
    rows = [row for row in _test(results / "own.csv", dataset) if not row["settings"]]
    found, names = _sliced([row for row in rows if row["model"] == "boost"], slicing)
    gained = [row for row in _paired(results / "paired.csv", rows) if row["metric"] == "recall"]
    columns = _slice_columns(rows, found, names, slicing)
    columns["boost"] = [_measured(found["boost", name], "recall").text for name in names]
    nearest = [
        min(
            (row for row in gained if row["slice"] == name and row["model"] not in OURS),
            key=lambda row: float(row["difference"]),
            default=None,
        )
        for name in names
    ]
    columns["next"] = [NOTHING if row is None else row["model"] for row in nearest]
    columns["ahead by [95 % over users]"] = [_difference(row, "recall") for row in nearest]
    return _page(_whole_of(rows, ("boost",)), columns)


def often(results: Path, dataset: str) -> str:
    """A row another model: by how much boost is ahead of it in all, and in how many slices of which it is not."""
    rows = [row for row in rows_in(results / "often.csv") if row["dataset"] == dataset]
    if not rows:
        return NOT_YET
    models = list(dict.fromkeys(row["model"] for row in rows))
    found = {(row["model"], row["metric"]): row for row in rows if row["slice"] == ALL}
    columns = {"model": models}
    for metric in ("recall", "map"):
        ahead = [_difference(found[model, metric], metric) for model in models]
        columns[f"{HEADS[metric]}: ahead by [95 % over users]"] = ahead
    once = {row["model"]: row for row in rows if (row["slice"], row["metric"]) == ("there=once", "recall")}
    if once:
        columns["recall, people there once"] = [_difference(once[model], "recall") for model in models]
    parts = [
        [
            row
            for row in rows
            if (row["model"], row["metric"]) == (model, "recall") and row["slice"].partition("=")[0] in OFTEN
        ]
        for model in models
    ]
    columns["slices"] = [str(len(part)) for part in parts]
    columns["ahead"] = [str(sum(float(row["difference"]) > 0 for row in part)) for part in parts]
    columns["level"] = [str(sum(float(row["difference"]) == 0 for row in part)) for part in parts]
    columns["behind"] = [
        "; ".join(
            f"{row['slice'].replace('=', ' ').replace('_', ' ')} (n {int(row['n']):,}, {row['users']} users): "
            f"{_difference(row, 'recall')}"
            for row in part
            if float(row["difference"]) < 0
        )
        or "nowhere"
        for part in parts
    ]
    whole = next(iter(found.values()))
    return (
        f"{_lines(columns)}\n\nTest: {int(whole['n']):,} targets; paper protocol; dataset `{whole['dataset_hash']}`; "
        f"{' to '.join(sorted({row['seeds'].partition('-')[0] for row in rows}))} seeds of boost. All slices: "
        f"{sum(map(int, columns['slices']))}, ahead in {sum(map(int, columns['ahead']))}, level in "
        f"{sum(map(int, columns['level']))}."
    )


def beyond(results: Path, dataset: str) -> str:
    """A row a variant and model."""

    def what(row: Row) -> str:
        """The variant first, then what else is set."""
        words = sorted(row["settings"].split(), key=lambda word: word.startswith("practice"))
        return ", ".join(words).replace("=", " ")

    rows = sorted(_test(results / "beyond.csv", dataset), key=lambda row: (what(row), row["model"]))
    columns = {
        "what": [what(row) for row in rows],
        "n": [f"{row['n']:,}" for row in rows],
        "model": [row["model"] for row in rows],
    }
    for metric, head in (HEADS | {"nll": "NLL", "ece": "calibration error"}).items():
        columns[head] = [_measured(row, metric).text for row in rows]
    return _page(rows, columns, tested="n targets")


def downstream(results: Path, dataset: str) -> str:
    """A row a measure and model: errors of the sparse and the recovered days, and what recovery takes away."""
    rows = [row for row in rows_in(results / "downstream.csv") if row["dataset"] == dataset]
    rows = sorted(rows, key=lambda row: list(DOWNSTREAM).index(row["measure"]))
    columns = {"error of": [DOWNSTREAM[row["measure"]] for row in rows], "model": [row["model"] for row in rows]}
    for name in ("sparse", "sparse_scaled", "most_likely", "expected"):
        columns[name.replace("_", " ")] = [_error(row, name) for row in rows]
        if name in ("most_likely", "expected"):
            columns[f"{name.replace('_', ' ')}: less"] = [_less(row, f"{name}_reduction") for row in rows]
    days = [int(row["n"]) for row in rows if row["measure"] == "places"]
    made = [row | {name: {row[name]} for name in ("version", "device")} | {"seeds": 1} for row in rows]
    return _page(made, columns, tested=f"{max(days, default=0):,} user-days, one a draw")


def _test(path: Path, dataset: str, protocol: str = "paper") -> list[Row]:
    """Means over seeds on the test days."""
    return [row for row in _summed(path, dataset, protocol) if row["split"] == "test"]


def _summed(path: Path, dataset: str, protocol: str = "paper") -> list[Row]:
    """Means over seeds, each with the versions and devices that made it.

    Raises RunError when the file mixes two makings of the dataset.
    """
    mine = [row for row in read_results(path) if (row["dataset"], row["protocol"]) == (dataset, protocol)]
    if len({row["dataset_hash"] for row in mine}) > 1:
        raise RunError(f"{path}: results of two different datasets called {dataset}; remove those of the older one")
    made: dict[tuple[str, str], list[Row]] = {}
    for row in mine:
        made.setdefault((row["model"], row["settings"]), []).append(row)
    return [
        row | {name: {old[name] for old in made[row["model"], row["settings"]]} for name in ("version", "device")}
        for row in summarise(sorted_results(mine))
    ]


def _shapes(path: Path, dataset: str) -> list[Row]:
    return [
        row | {name: int(str(value)) for name, value in parse_settings(row["settings"].split()).items()}
        for row in _summed(path, dataset)
    ]


def _usual_shape(rows: Sequence[Row]) -> dict[str, int]:
    """The one shape that both parts of the figure go through: each of its numbers is the most frequent one."""
    values = {name: [row[name] for row in rows] for name in ("width", "heads", "layers")}
    return {name: max(set(seen), key=lambda value: (seen.count(value), value)) for name, seen in values.items() if seen}


def _sliced(rows: Iterable[Row], slicing: str) -> tuple[dict[tuple[str, str], Row], list[str]]:
    """The rows of a slicing by model and slice, and its slices in order."""
    found = {(row["model"], row["slice"]): row for row in rows if row["slice"].startswith(f"{slicing}=")}
    return found, list(dict.fromkeys(name for _, name in found))


def _slice_columns(
    rows: Sequence[Row], found: dict[tuple[str, str], Row], slices: Sequence[str], head: str
) -> dict[str, list[str]]:
    n = {name: next(row["n"] for (_, mine), row in found.items() if mine == name) for name in slices}
    whole = max((row["n"] for row in rows if row["slice"] == ALL), default=0)
    return {
        head: [name.partition("=")[2] for name in slices],
        "n": [f"{n[name]:,}" for name in slices],
        "share": [f"{n[name] / whole:.1%}" for name in slices],
    }


def _by_slice(
    found: dict[tuple[str, str], Row], slices: Sequence[str], models: Sequence[str], metric: str
) -> dict[str, list[str]]:
    """A column a model, the best of each row in bold."""
    lines = [_marked([_measured(found.get((model, name)), metric) for model in models], metric) for name in slices]
    return {model: [line[i] for line in lines] for i, model in enumerate(models)}


def _joined(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return [a if a == b == NOTHING else f"{a} / {b}" for a, b in zip(one, other, strict=True)]


def _whole_of(rows: Iterable[Row], models: Sequence[str]) -> list[Row]:
    return [row for row in rows if row["slice"] == ALL and row["model"] in models]


def _measured(row: Row | None, metric: str) -> Cell:
    """Mean ± standard deviation over seeds; no deviation where there was one fit."""
    if row is None or row[metric] is None or not math.isfinite(row[metric]):
        return Cell()
    text, sd = _text(row[metric], metric), row[f"{metric}_sd"]
    return Cell(_shown(row[metric], metric), text if sd is None else f"{text} ± {_text(sd, metric)}")


def _number(row: Row | None, metric: str) -> Cell:
    if row is None or not row[metric]:
        return Cell()
    return Cell(_shown(float(row[metric]), metric), _text(float(row[metric]), metric))


def _difference(row: Row | None, metric: str) -> str:
    if row is None:
        return NOTHING
    value, low, high = (f"{float(row[name]):+{_form(metric)}}" for name in ("difference", "low", "high"))
    return f"{value} [{low}, {high}]" if not math.isnan(float(row["low"])) else f"{value} (one user)"


def _mean(rows: Sequence[Row], name: str) -> float:
    """NaN where a fit has no such number."""
    return statistics.fmean(float(row[name] or "nan") for row in rows)


def _mean_and(rows: Sequence[Row], name: str, worst: Callable[[Iterable[float]], float]) -> str:
    return f"{_mean(rows, name):.4f} ({worst(float(row[name] or 'nan') for row in rows):.4f})"


def _error(row: Row, name: str) -> str:
    digits = 0 if row["measure"].startswith("radius") else 3
    return f"{float(row[name]):,.{digits}f}" if row[name] else NOTHING


def _less(row: Row, name: str) -> str:
    """Percent, with an interval where there is one."""
    value, low, high = (
        f"{float(row[part]):.0%}" if row[part] else "" for part in (name, f"{name}_low", f"{name}_high")
    )
    return f"{value} [{low}, {high}]" if low else value or NOTHING


def _text(value: float, metric: str) -> str:
    return f"{value:{_form(metric)}}"


def _shown(value: float, metric: str) -> float:
    return float(_text(value, metric).replace(",", ""))


def _form(metric: str) -> str:
    return ",.0f" if metric == "distance_m" else ".4f"


def _marked(cells: Sequence[Cell], metric: str) -> list[str]:
    """The texts, the best in bold."""
    values = [cell.value for cell in cells if math.isfinite(cell.value)]
    best = (min if metric in LESS_IS_BETTER else max)(values, default=None)
    return [f"**{cell.text}**" if cell.value == best else cell.text for cell in cells]


def _page(rows: Sequence[Row], columns: dict[str, list[str]], *, tested: str | None = None) -> str:
    """The table and, below, where its rows come from; they are measured on their n targets, or what is said."""
    if not rows:
        return NOT_YET
    tested = tested or f"{max(row['n'] for row in rows):,} targets"
    seeds = sorted({row["seeds"] for row in rows if MODELS[row["model"]].kind != "rule"}) or [1]
    counted = "1 seed" if seeds == [1] else f"{' to '.join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))} seeds"
    versions = ", ".join(sorted({name for row in rows for name in row["version"]}))
    devices = ", ".join(sorted({name for row in rows for name in row["device"]}))
    return (
        f"{_lines(columns)}\n\nTest: {tested}; {counted}; {rows[0]['protocol']} "
        f"protocol; dataset `{rows[0]['dataset_hash'][:12]}`; attnmove {versions}; computed on {devices}."
    )


def _lines(columns: dict[str, list[str]]) -> str:
    lines = [list(columns), ["---"] * len(columns), *map(list, zip(*columns.values(), strict=True))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _published(table: str, dataset: str) -> dict[tuple[str, str], Row]:
    """Rows of the paper's table by model and slice."""
    with PAPER.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["table"], row["dataset"]) == (table, dataset)]
    return {(row["model"], row["slice"]): row for row in rows}


def _paired(path: Path, rows: Sequence[Row]) -> list[Row]:
    """The differences on the dataset the rows are of."""
    if not rows:
        return []
    return [row for row in rows_in(path) if rows[0]["dataset_hash"].startswith(row["dataset_hash"])]
