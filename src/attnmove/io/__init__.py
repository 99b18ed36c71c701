"""Reading: any of the formats people have, into Points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnmove.engine import Engine
from attnmove.errors import ConfigError, DataError, check_text
from attnmove.io.clock import Zone
from attnmove.nouns import Points

if TYPE_CHECKING:
    import pyarrow as pa

Source = Any
"""A path, folder or glob; or a pandas, polars, pyarrow or Ibis table."""


def read_points(
    source: Source,
    engine: Engine,
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    zone: Zone | None = None,
    typed_zone: Zone | None = None,
    one_user: str | None = None,
) -> Points:
    """The points of `source`, not yet read: checks and conversions are part of the expression.

    `zone` reads text of times that carry none, which is refused without it; `typed_zone` reads timestamp columns that
    carry none, which are UTC without it; `one_user` names the person when the source has no user column.
    Raises DataError when the source is not what it claims to be.
    """
    from attnmove.io.normal import normalise
    from attnmove.io.sources import find_files
    from attnmove.io.tabular import explain_rows, scan_tabular, spool

    if one_user is not None:
        check_text("user", one_user)
    if isinstance(source, str | Path):
        name = str(source)
        format, files = find_files(source, format)
        if format == "released":
            raise ConfigError(f"{name}: the released files hold days, not points; use attnmove prepare")
        if format in _PARSERS:
            if columns:
                raise ConfigError(f"--columns has no meaning for {format} files, whose columns are known")
            rows = _PARSERS[format](files, one_user)
            files, one_user, tabular = [spool(engine, rows, format, source=name)], None, "parquet"
        else:
            tabular = format
    else:
        if format != "auto":
            raise ConfigError(f"format: a table in memory has none; leave out {format!r}")
        name, format, tabular = _what(source), "table", "parquet"
        files = [spool(engine, _table_batches(source), format, source=name)]
    called = None if format == tabular else name
    raw, found = scan_tabular(engine, tabular, files, columns, one_user=one_user, source=called)
    try:
        table, chosen = normalise(engine, raw, found, zone=zone, typed_zone=typed_zone, one_user=one_user, source=name)
        if tabular != "parquet":
            # Text is parsed once; what follows reads the parsed columns several times.
            table = engine.keep(table, "points")
    except DataError:
        explain_rows(tabular, files)
        raise
    return Points(table, name, format, chosen)


def _table_batches(source: Source) -> Iterator[pa.RecordBatch]:
    """Arrow batches of a pandas, polars, pyarrow or Ibis table."""
    import pyarrow as pa

    if hasattr(source, "to_pyarrow_batches"):
        yield from source.to_pyarrow_batches()
        return
    if type(source).__module__.startswith("polars") and hasattr(source, "to_arrow"):
        from polars import CompatLevel

        # Its newest Arrow types, such as dictionaries of string views, cannot be written to Parquet.
        source = source.to_arrow(compat_level=CompatLevel.oldest())
    if type(source).__module__.startswith("pandas"):
        try:
            source = pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            reason = "; ".join(map(str, error.args))
            raise DataError(f"{_what(source)}: columns must have one name and one type each ({reason})") from error
    if not hasattr(source, "__arrow_c_stream__"):
        raise DataError(
            f"cannot read points from {type(source).__name__}: expected a path or a pandas, polars, pyarrow or Ibis "
            "table"
        )
    yield from pa.RecordBatchReader.from_stream(source)


def _what(source: Source) -> str:
    """How a table is called in errors: pandas.DataFrame."""
    return f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"


def _geolife(files: Sequence[Path], one_user: str | None) -> Iterator[pa.RecordBatch]:
    from attnmove.io.geolife import read_geolife

    return read_geolife(files, one_user=one_user)


def _gpx(files: Sequence[Path], one_user: str | None) -> Iterator[pa.RecordBatch]:
    from attnmove.io.gpx import read_gpx
    from attnmove.io.texts import in_batches

    return in_batches(read_gpx(files, one_user=one_user))


def _google(files: Sequence[Path], one_user: str | None) -> Iterator[pa.RecordBatch]:
    from attnmove.io.google import read_google
    from attnmove.io.texts import in_batches

    return in_batches(read_google(files, one_user=one_user))


_PARSERS: Mapping[str, Callable[[Sequence[Path], str | None], Iterator[pa.RecordBatch]]] = {
    "geolife": _geolife,
    "gpx": _gpx,
    "google": _google,
}
