"""A handful of points in memory, checked as `normal` checks a table on an engine: for answers in milliseconds."""

from __future__ import annotations

import time as clock
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from attnmove.errors import DataError
from attnmove.io.normal import FIRST_US, NEAR_ZERO_DEGREES
from attnmove.nouns import Float64, Int64

BLANK = " \t\n\r\v\f"
"""What engines take away around a text; Python would take more."""


def accepted(points: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """The fixes that can be used (`user, time_us, lon, lat`), and how many cannot, by reason.

    `points` has the columns user (text), time (timestamps; without a zone they are UTC), lon and lat (numbers). Raises
    DataError when it has not.
    """
    user, time_us, lon, lat = _columns(points)
    lost = pc.is_null(time_us).to_numpy(zero_copy_only=False)
    instant: Int64 = time_us.fill_null(0).to_numpy(zero_copy_only=False)
    no_number = np.isnan(lat) | np.isnan(lon)
    with np.errstate(invalid="ignore"):
        checks = {
            "no_user": np.array([not name for name in user.to_pylist()], dtype=np.bool_),
            "unparsable_time": lost,
            "not_a_number": no_number,
            "out_of_range": (np.abs(lat) > 90) | (np.abs(lon) > 180),
            "null_island": (np.abs(lat) < NEAR_ZERO_DEGREES) & (np.abs(lon) < NEAR_ZERO_DEGREES),
            "before_1990": instant < FIRST_US,
            "future": instant > int(clock.time() * 1_000_000),
        }
    good = np.ones(len(points), dtype=np.bool_)
    refused: Counter[str] = Counter()
    for reason, applies in checks.items():
        refused[reason] = int((good & applies).sum())
        good &= ~applies
    table = pa.table({"user": user, "time_us": instant, "lon": lon, "lat": lat})
    return table.filter(pa.array(good)), +refused


def _columns(points: pa.Table) -> tuple[pa.Array, pa.Array, Float64, Float64]:
    """Users without blanks around them, microseconds since 1970, longitude and latitude with NaN for null."""
    lost = [name for name in ("user", "time", "lon", "lat") if name not in points.column_names]
    if lost:
        raise DataError(f"points: no column {', '.join(lost)}; expected user, time, lon and lat")
    try:
        user = pc.utf8_trim(points["user"].cast(pa.string()).combine_chunks(), characters=BLANK)
        time = points["time"].combine_chunks()
        if not pa.types.is_timestamp(time.type):
            raise DataError(f"points: column time holds {time.type}; expected timestamps")
        micros = pc.cast(time, pa.timestamp("us", time.type.tz), safe=False).cast(pa.int64())
        lon, lat = (points[name].cast(pa.float64()).fill_null(float("nan")).to_numpy() for name in ("lon", "lat"))
    except pa.ArrowException as error:
        raise DataError(f"points: {str(error).splitlines()[0]}; expected text, timestamps and two numbers") from error
    return user, micros, lon, lat
