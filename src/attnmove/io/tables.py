"""Tables of other libraries: a result goes back as what its source was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def same_kind(table: pa.Table, source: Any) -> Any:
    """The table as pandas, polars or Ibis has it when `source` is one of theirs; otherwise as it is."""
    library = type(source).__module__.partition(".")[0]
    if library == "pandas":
        return table.to_pandas()
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    if library == "ibis":
        import ibis

        return ibis.memtable(table)
    return table
