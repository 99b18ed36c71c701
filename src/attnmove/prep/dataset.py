"""A dataset: a folder of Days, Locations, Targets and a page of facts, readable without this project."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attnmove.errors import DataError, RunError
from attnmove.nouns import MISSING, Cases, Days, Int32, Locations, Targets
from attnmove.prep.cases import cases_of
from attnmove.space import read_locations, write_locations

FORMAT_VERSION = 1
_FILES = {"days.parquet", "locations.parquet", "targets.parquet", "rejects.parquet", "dataset.json"}
_DAYS = ("user", "date", "split", "loc")
_TARGETS = ("user", "date", "draw", "slots", "history")


@dataclass(frozen=True)
class Dataset:
    """Prepared days with their locations and targets."""

    days: Days
    locations: Locations
    targets: Targets
    facts: Mapping[str, Any]
    """How it was made and what was dropped: the content of dataset.json."""

    @property
    def hash(self) -> str:
        """SHA-256 of the content, as in the facts; computed where they do not have it."""
        return str(self.facts.get("hash") or content_hash(self.days, self.locations, self.targets))

    @property
    def train(self) -> Cases:
        """The cases to learn from."""
        return self.cases("train")

    @property
    def valid(self) -> Cases:
        """The cases to choose on."""
        return self.cases("valid")

    @property
    def test(self) -> Cases:
        """The cases to report on."""
        return self.cases("test")

    def cases(self, split: str, *, protocol: str = "paper") -> Cases:
        """The days of a split as a model meets them; the protocol (paper or strict) says what earlier days show."""
        return cases_of(self, split, protocol=protocol)


def count(days: Days, locations: Locations, targets: Targets) -> dict[str, Any]:
    """The numbers `attnmove info` prints."""
    seen = days.loc[days.loc != MISSING]
    splits = {name: int((days.split == name).sum()) for name in ("past", "train", "valid", "test")}
    return {
        "users": len(np.unique(days.user)),
        "days": len(days),
        **splits,
        "locations": len(locations),
        "locations_visited": len(np.unique(seen)),
        "draws": targets.n_draws,
        "targets": len(targets.slot),
        "observed_slots": len(seen),
        "first_date": str(days.date.min()) if len(days) else None,
        "last_date": str(days.date.max()) if len(days) else None,
    }


def content_hash(days: Days, locations: Locations, targets: Targets) -> str:
    """SHA-256 over everything a model or a metric can see."""
    digest = hashlib.sha256()
    for part in (days.user, days.split, locations.name, targets.user):
        digest.update(json.dumps(part.tolist()).encode())  # quoted, so that no two lists of texts look the same
    places = (locations.lon, locations.lat)
    hidden = (targets.date, targets.draw, targets.start, targets.slot, targets.history)
    for array in (days.date, days.loc, *places, *hidden):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_dataset(folder: Path, dataset: Dataset, *, rejects: Path | None = None) -> None:
    """Write the folder at once: it is complete or not there. An older dataset in its place is replaced."""
    check_writable(folder)
    with replaced_whole(folder, "dataset") as new:
        pq.write_table(_days_table(dataset.days), new / "days.parquet", compression="zstd")
        pq.write_table(_targets_table(dataset.targets), new / "targets.parquet", compression="zstd")
        write_locations(new / "locations.parquet", dataset.locations)
        page = json.dumps(dataset.facts, indent=2, ensure_ascii=False) + "\n"
        (new / "dataset.json").write_text(page, encoding="utf-8")
        if rejects is not None:
            shutil.move(rejects, new / "rejects.parquet")


@contextmanager
def replaced_whole(folder: Path, what: str) -> Iterator[Path]:
    """An empty folder to write to, which takes the place of `folder` when all went well and is gone when not.

    Raises RunError where the disk refuses; `what` is being written.
    """
    try:
        home = folder.resolve().parent
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=home, ignore_cleanup_errors=True) as temporary:
            new = Path(temporary) / "new"
            new.mkdir()
            yield new
            _put(new, folder.resolve(), aside=Path(temporary) / "old")
    except OSError as error:
        raise RunError(f"{folder}: the {what} cannot be written ({error.strerror or error})") from error


def _put(new: Path, folder: Path, *, aside: Path) -> None:
    """Move `new` to `folder`; what was there goes `aside`, and back again when the move fails."""
    if not folder.exists():
        new.replace(folder)
        return
    try:
        folder.replace(aside)
        new.replace(folder)
    except BaseException:
        # Whatever happened, and however far it came: the old dataset is put back before anything is cleaned up.
        if aside.exists() and not folder.exists():
            aside.replace(folder)
        raise


def check_writable(folder: Path) -> None:
    """Raise RunError when a dataset must not or cannot be written to `folder`; ask before the work, not after it."""
    check_folder(folder, _FILES)
    if folder.is_dir() and any(folder.iterdir()):
        _check_ours(folder)


def check_folder(folder: Path, ours: Collection[str]) -> None:
    """Raise RunError when `folder` is a file, holds other files than `ours`, or cannot be replaced as a whole."""
    if folder.is_file():
        raise RunError(f"{folder}: this is a file; name a folder")
    if folder.is_dir():
        foreign = sorted(path.name for path in folder.iterdir() if path.name not in ours)
        if foreign:
            raise RunError(f"{folder}: the folder holds other things ({foreign[0]}); name a new or empty one")
    if folder.resolve().is_mount():
        raise RunError(f"{folder}: cannot be replaced as a whole; name a folder inside it")
    # The folder is moved into its place, so it is the one above that must be writable.
    above = next(parent for parent in folder.resolve().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise RunError(f"{folder}: cannot be written; {above} is not a folder one may write to")


def _check_ours(folder: Path) -> None:
    """Raise RunError unless the folder's dataset.json was written by attnmove, whichever version."""
    try:
        facts = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: not a dataset of attnmove, so it is not replaced; name a new folder") from error
    if not isinstance(facts, dict) or "format_version" not in facts:
        raise RunError(f"{folder}: not a dataset of attnmove, so it is not replaced; name a new folder")


def read_dataset(folder: Path | str) -> Dataset:
    """The dataset in `folder`. Raises RunError, in one sentence, when it is not one or is damaged."""
    folder = Path(folder)
    facts = read_facts(folder)
    days = _read(folder / "days.parquet", _DAYS)
    targets = _read(folder / "targets.parquet", _TARGETS)
    locations = read_locations(folder / "locations.parquet")
    try:
        n_slots = int(facts["slots_per_day"])
        slots = targets["slots"].combine_chunks()
        return Dataset(
            days=Days(
                user=_text(days["user"]),
                date=days["date"].to_numpy().astype("datetime64[D]"),
                split=_text(days["split"]),
                loc=grid_of_lists(days["loc"].combine_chunks(), n_slots, len(locations)),
            ),
            locations=locations,
            targets=Targets(
                user=_text(targets["user"]),
                date=targets["date"].to_numpy().astype("datetime64[D]"),
                draw=targets["draw"].to_numpy().astype(np.int32),
                start=slots.offsets.to_numpy().astype(np.int64) - slots.offsets[0].as_py(),
                slot=_within(slots.flatten().to_numpy().astype(np.int32), 0, n_slots),
                history=grid_of_lists(targets["history"].combine_chunks(), n_slots, len(locations)),
            ),
            facts=facts,
        )
    except (DataError, pa.ArrowException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder}: damaged, its files do not fit together ({error}); prepare it again") from error


def read_facts(folder: Path | str) -> dict[str, Any]:
    """The content of a dataset's `dataset.json`."""
    path = Path(folder) / "dataset.json"
    try:
        if path.exists() and not path.is_file():
            raise FileNotFoundError(path)
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunError(f"{folder}: not a dataset (no dataset.json); make one with attnmove prepare") from error
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: broken; prepare the dataset again") from error
    if not isinstance(facts, dict) or facts.get("format_version") != FORMAT_VERSION:
        raise RunError(f"{path}: written by another version of attnmove; prepare the dataset again")
    lost = [name for name in ("days", "slots_per_day") if not isinstance(facts.get(name), int)]
    if lost:
        raise RunError(f"{path}: no number for {' and '.join(lost)}; prepare the dataset again")
    return facts


def _days_table(days: Days) -> pa.Table:
    return pa.table(
        {
            "user": pa.array(days.user.tolist(), pa.string()),
            "date": pa.array(days.date, pa.date32()),
            "split": pa.array(days.split.tolist(), pa.string()),
            "loc": _fixed_lists(days.loc),
        }
    )


def _targets_table(targets: Targets) -> pa.Table:
    return pa.table(
        {
            "user": pa.array(targets.user.tolist(), pa.string()),
            "date": pa.array(targets.date, pa.date32()),
            "draw": pa.array(targets.draw, pa.int32()),
            "slots": pa.ListArray.from_arrays(
                pa.array(targets.start.astype(np.int32)), pa.array(targets.slot, pa.int32())
            ),
            "history": _fixed_lists(targets.history),
        }
    )


def _fixed_lists(rows: Int32) -> pa.Array:
    kind = pa.list_(pa.int32(), rows.shape[1])
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel(), pa.int32()), type=kind)


def _read(path: Path, columns: tuple[str, ...]) -> pa.Table:
    try:
        table = pq.read_table(path)
    except FileNotFoundError as error:
        raise RunError(f"{path}: not there; prepare the dataset again") from error
    except PermissionError as error:
        raise RunError(f"{path}: may not be read; ask its owner for the right to") from error
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{path}: not a Parquet file, or cut off; prepare the dataset again") from error
    lost = [name for name in columns if name not in table.column_names]
    if lost:
        raise RunError(f"{path}: no column {', '.join(lost)}; prepare the dataset again")
    return table


def _text(column: pa.ChunkedArray) -> Any:
    if column.null_count:
        raise DataError("rows without a name")
    return np.array(column.to_pylist(), dtype=object)


def grid_of_lists(lists: pa.Array, n_slots: int, n_locations: int) -> Int32:
    """(N, T) the locations of rows that are lists. Raises DataError unless each has so many, all known or MISSING."""
    if not (
        pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type) or pa.types.is_fixed_size_list(lists.type)
    ):
        raise DataError(f"slots of {lists.type}, expected lists of whole numbers")
    values = lists.flatten()
    if not pa.types.is_integer(values.type) or values.null_count:
        raise DataError(f"slots of {values.type}, some perhaps empty, expected whole numbers")
    if lists.null_count or (pc.list_value_length(lists).to_numpy() != n_slots).any():
        raise DataError(f"not {n_slots} slots a row, as dataset.json says")
    numbers: Int32 = _within(values.to_numpy(zero_copy_only=False), MISSING, n_locations).astype(np.int32)
    return numbers.reshape(len(lists), n_slots)


def _within(values: Any, least: int, end: int) -> Any:
    if len(values) and not least <= values.min() <= values.max() < end:
        raise DataError(f"numbers from {values.min()} to {values.max()}, expected {least} to {end - 1}")
    return values
