"""What a path holds: the files behind a file, folder or glob, and their format."""

from __future__ import annotations

import glob
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from attnmove.errors import ConfigError, DataError
from attnmove.io.texts import BROKEN, open_bytes

FORMATS = ("auto", "csv", "tsv", "parquet", "ndjson", "geolife", "gpx", "google", "released")
_ENDINGS: Mapping[str, str] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".gpx": "gpx",
    ".plt": "geolife",
    ".zip": "geolife",
    ".json": "json",
}
_IN_JSON = ("google", "ndjson")
SECTIONS = ("locations", "semanticSegments", "rawSignals")
"""The arrays of Google's exports."""
_COMPRESSED = (".gz",)
_LONGEST_LINE = 1_000_000


def find_files(source: str | Path, format: str = "auto") -> tuple[str, list[Path]]:
    """The format of `source` and its files, sorted.

    `source` is a file, a folder (searched to any depth) or a glob. Raises DataError when there is nothing to read,
    when the formats are mixed, or when the format cannot be told.
    """
    if format not in FORMATS:
        raise ConfigError(f"there is no format {format!r}: use one of {', '.join(FORMATS)}")
    if not str(source):
        raise ConfigError("the name of the source is empty: name a file, folder or glob of points")
    path = Path(source)
    try:
        if path.is_dir():
            return _of_folder(path, format)
        files = _matches(path)
    except OSError as error:
        raise DataError(f"{source}: cannot be looked at ({error.strerror})") from error
    if format == "auto":
        format = _one_format(files, str(source))
    if format == "released":
        raise DataError(f"{source}: --format released expects the folder that holds pos.train.txt")
    return format, files


def _matches(path: Path) -> list[Path]:
    found = [path] if path.exists() else sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207 - any path, not below one
    files = [file for file in found if file.is_file()]
    if not files:
        raise DataError(f"{path}: " + ("not a file" if found else "there is no such file, folder or glob match"))
    return files


def _of_folder(path: Path, format: str) -> tuple[str, list[Path]]:
    if (path / "dataset.json").exists():
        raise DataError(f"{path}: this is a prepared dataset already; see attnmove info {path}")
    if format == "released" or (format == "auto" and (path / "pos.train.txt").exists()):
        return "released", [path]
    below = sorted(file for file in path.rglob("*") if file.is_file() and not _is_hidden(file, path))
    tracks = [file for file in below if _ending(file) == "geolife" and file.suffix.lower() != ".zip"]
    if format in ("auto", "geolife") and tracks:
        # Geolife lays a labels.txt beside the tracks; it is not a track.
        return "geolife", tracks
    known = [file for file in below if _ending(file) is not None]
    if format == "auto":
        if not known:
            raise DataError(f"{path}: no file here ends in {', '.join(_ENDINGS)}; name the files with a glob")
        return _one_format(known, str(path)), known
    files = [file for file in known if _ending(file) == format or (_ending(file) == "json" and format in _IN_JSON)]
    if not files:
        raise DataError(f"{path}: no {format} file in this folder")
    return format, files


def _one_format(files: list[Path], source: str) -> str:
    formats = {_format_of(file) for file in files}
    if len(formats) > 1:
        raise DataError(f"{source}: files of several formats ({', '.join(sorted(formats))}); choose one with --format")
    return formats.pop()


def _format_of(file: Path) -> str:
    ending = _ending(file)
    if ending == "json":
        return _json_kind(file)
    if ending is None:
        raise DataError(f"{file}: cannot tell the format by its name; say --format {'|'.join(FORMATS[1:])}")
    if file.suffix.lower() == ".zip":
        if not zipfile.is_zipfile(file):
            raise DataError(f"{file}: not a zip file (or cut off); download it again")
        with zipfile.ZipFile(file) as archive:
            if not any(name.lower().endswith(".plt") for name in archive.namelist()):
                raise DataError(f"{file}: no .plt track in this zip; unpack it and name the files inside")
    return ending


def _json_kind(file: Path) -> str:
    """Google's exports are one object or array, often over many lines; NDJSON starts with an object on one line."""
    try:
        with open_bytes(file) as handle:
            line = handle.readline(_LONGEST_LINE)
            while line and not line.strip():
                line = handle.readline(_LONGEST_LINE)
    except BROKEN as error:
        raise DataError(f"{file}: cannot be read ({error}); fetch the file again") from error
    line = line.removeprefix(b"\xef\xbb\xbf").strip()
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return "ndjson" if line.startswith(b"{") and line.endswith(b"}") and len(line) < _LONGEST_LINE else "google"
    is_export = not isinstance(first, dict) or not first or any(isinstance(first.get(name), list) for name in SECTIONS)
    return "google" if is_export else "ndjson"


def _ending(file: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        return _ENDINGS.get(suffixes[-2]) if len(suffixes) > 1 else None
    return _ENDINGS.get(suffixes[-1]) if suffixes else None


def _is_hidden(file: Path, below: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(below).parts) or any(
        (parent / "dataset.json").exists() for parent in file.parents if parent.is_relative_to(below)
    )
