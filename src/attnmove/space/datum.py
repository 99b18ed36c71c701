"""Coordinates that Chinese maps shift, and back: GCJ-02 (AMap, Tencent) and BD-09 (Baidu)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnmove.errors import ConfigError
from attnmove.nouns import Bool, Float64

DATUMS = ("wgs84", "gcj02", "bd09")

_MAJOR_AXIS_M = 6_378_245.0  # the Krasovsky 1940 ellipsoid, on which the shift is defined
_ECCENTRICITY_SQUARED = 0.00669342162296594323
_BD_TURN = np.pi * 3000 / 180
_TOLERANCE_DEGREES = 1e-10
_MAX_STEPS = 30

_Shift = Callable[[Float64, Float64], tuple[Float64, Float64]]


def to_wgs84(lon: Float64, lat: Float64, datum: str) -> tuple[Float64, Float64]:
    """WGS-84 longitude and latitude of coordinates given in `datum`, to better than 1e-7 degrees.

    Outside the box 72.004..137.8347 E, 0.8293..55.8271 N coordinates are not shifted and come back as they are.
    """
    shift = _shift_of(datum)
    return _inside_china(lon, lat, lambda x, y: _invert(shift, x, y))


def from_wgs84(lon: Float64, lat: Float64, datum: str) -> tuple[Float64, Float64]:
    """Longitude and latitude in `datum` of WGS-84 coordinates; the inverse of `to_wgs84`."""
    return _inside_china(lon, lat, _shift_of(datum))


def _shift_of(datum: str) -> _Shift:
    shifts: dict[str, _Shift] = {"wgs84": lambda x, y: (x, y), "gcj02": _to_gcj02, "bd09": _to_bd09}
    if datum not in shifts:
        raise ConfigError(f"datum must be one of {', '.join(DATUMS)}; found {datum!r}")
    return shifts[datum]


def _inside_china(lon: Float64, lat: Float64, change: _Shift) -> tuple[Float64, Float64]:
    lon, lat = np.array(lon, dtype=np.float64), np.array(lat, dtype=np.float64)
    inside: Bool = (lon >= 72.004) & (lon <= 137.8347) & (lat >= 0.8293) & (lat <= 55.8271)
    lon[inside], lat[inside] = change(lon[inside], lat[inside])
    return lon, lat


def _invert(shift: _Shift, lon: Float64, lat: Float64) -> tuple[Float64, Float64]:
    """The point that `shift` moves to `lon, lat`."""
    # The shift hardly changes over its own length, so each step comes some hundred times closer.
    x, y = lon, lat
    for _ in range(_MAX_STEPS):
        shifted_lon, shifted_lat = shift(x, y)
        x, y = x + lon - shifted_lon, y + lat - shifted_lat
        miss = np.maximum(np.abs(lon - shifted_lon), np.abs(lat - shifted_lat))
        if miss.max(initial=0.0) < _TOLERANCE_DEGREES:
            break
    return x, y


def _to_gcj02(lon: Float64, lat: Float64) -> tuple[Float64, Float64]:
    x, y = lon - 105.0, lat - 35.0
    root = np.sqrt(np.abs(x))
    ripple = (20 * np.sin(6 * x * np.pi) + 20 * np.sin(2 * x * np.pi)) * 2 / 3
    north_m = -100 + 2 * x + 3 * y + 0.2 * y * y + 0.1 * x * y + 0.2 * root + ripple
    north_m += (20 * np.sin(y * np.pi) + 40 * np.sin(y / 3 * np.pi)) * 2 / 3
    north_m += (160 * np.sin(y / 12 * np.pi) + 320 * np.sin(y * np.pi / 30)) * 2 / 3
    east_m = 300 + x + 2 * y + 0.1 * x * x + 0.1 * x * y + 0.1 * root + ripple
    east_m += (20 * np.sin(x * np.pi) + 40 * np.sin(x / 3 * np.pi)) * 2 / 3
    east_m += (150 * np.sin(x / 12 * np.pi) + 300 * np.sin(x / 30 * np.pi)) * 2 / 3
    phi = np.radians(lat)
    w = 1 - _ECCENTRICITY_SQUARED * np.sin(phi) ** 2
    meridian_radius_m = _MAJOR_AXIS_M * (1 - _ECCENTRICITY_SQUARED) / (w * np.sqrt(w))
    normal_radius_m = _MAJOR_AXIS_M / np.sqrt(w)
    return lon + np.degrees(east_m / (normal_radius_m * np.cos(phi))), lat + np.degrees(north_m / meridian_radius_m)


def _to_bd09(lon: Float64, lat: Float64) -> tuple[Float64, Float64]:
    x, y = _to_gcj02(lon, lat)
    length = np.hypot(x, y) + 0.00002 * np.sin(y * _BD_TURN)
    angle = np.arctan2(y, x) + 0.000003 * np.cos(x * _BD_TURN)
    return length * np.cos(angle) + 0.0065, length * np.sin(angle) + 0.006
