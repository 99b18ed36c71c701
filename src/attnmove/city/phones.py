"""What a phone reports of one person's trips: bursts of noisy fixes by day, long silences at night."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.nouns import MINUTES_PER_DAY, Float64, Int64

BIN_MIN = 15
"""Step of the rhythm of reports, minutes."""
RHYTHM = np.array([5, 3, 2, 2, 2, 4, 14, 45, 70, 60, 55, 60, 75, 65, 55, 55, 60, 75, 85, 80, 75, 70, 50, 20]) / 48.8
"""Reports at each local hour for a person at rest with an average chronotype; its mean is about 1."""
MOVING = 2.5
"""People report this much more while they move."""
RATE_SIGMA = 0.5
"""Sigma of the lognormal of reporting rates across people."""
DAY_SHAPE = 4.0
"""Shape of the gamma of reporting rates across the days of a person: smaller is more uneven."""
SILENCES_PER_DAY, SILENCE_MIN, HUSHED = 0.5, 160.0, 0.03
"""How many silences a day has, how long one lasts on average, and what share of the reports is left in it."""
BURST_SIZE, BURST_POINTS_PER_DAY = 2.2, 60.0
"""Mean fixes in a burst at this many fixes a day; it grows with the square root, as does the number of bursts."""
GAP_S, EXTRA_GAP_S = 20.0, 45.0
"""The shortest time between fixes of a burst, and the mean of what comes on top, seconds."""
NOISE_M, OUTLIER_M, OUTLIER_SHARE = 18.0, 300.0, 0.015
"""Median standard deviation of a fix, that of outliers, and their share."""


@dataclass(frozen=True)
class Track:
    """Where one person is at every moment: a broken line, at rest between the trips.

    Times are minutes after the local midnight at which the first day begins.
    """

    time_min: Float64
    """(4N,) the corners of N trips in order."""
    x: Float64
    """Metres east of the centre at these times."""
    y: Float64
    """Metres north of the centre at these times."""

    def position(self, time_min: Float64) -> tuple[Float64, Float64]:
        """Metres east and north of the centre at each time."""
        return np.interp(time_min, self.time_min, self.x), np.interp(time_min, self.time_min, self.y)

    def moving_min(self, time_min: Float64) -> Float64:
        """Minutes spent moving from the first corner to each time."""
        since_depart = self.time_min.reshape(-1, 4) - self.time_min[::4, None]  # (N, 4)
        trip_min = since_depart[:, 3]
        spent = since_depart + (np.cumsum(trip_min) - trip_min)[:, None]
        return np.interp(time_min, self.time_min, spent.ravel())


def report_times(
    rng: np.random.Generator, track: Track, n_days: int, points_per_day: float, chronotype_min: float
) -> Int64:
    """The seconds after the first local midnight at which the phone reports, rising, none twice."""
    edges = np.arange(0, n_days * MINUTES_PER_DAY + 1, BIN_MIN, dtype=np.float64)
    wanted = points_per_day * n_days * rng.lognormal(-(RATE_SIGMA**2) / 2, RATE_SIGMA)
    size = max(1.0, BURST_SIZE * (points_per_day / BURST_POINTS_PER_DAY) ** 0.5)
    due = np.concatenate([[0.0], np.cumsum(_intensity(rng, track, n_days, edges, chronotype_min))])
    n_bursts = rng.poisson(wanted / size)
    burst_s = 60 * np.interp(rng.random(n_bursts) * due[-1], due, edges)
    sizes = rng.geometric(1 / size, n_bursts)
    gap_s = GAP_S + EXTRA_GAP_S * rng.standard_exponential(int(sizes.sum()), dtype=np.float32)
    waited = np.cumsum(gap_s, dtype=np.float64)
    first = np.cumsum(sizes) - sizes
    time_s = (np.repeat(burst_s - waited[first], sizes) + waited).astype(np.int64)
    time_s = np.sort(time_s[time_s < n_days * MINUTES_PER_DAY * 60])  # np.unique would hash, at a third of the speed
    rises: Int64 = time_s[np.diff(time_s, prepend=-1) > 0]
    return rises


def fixes(rng: np.random.Generator, track: Track, time_s: Int64) -> tuple[Float64, Float64]:
    """Metres east and north of the centre that the phone reports: the truth plus noise."""
    x, y = track.position(time_s / 60)
    n = len(time_s)
    scale = np.full(n, NOISE_M * rng.lognormal(0, 0.4), dtype=np.float32)
    scale[rng.integers(0, max(n, 1), rng.binomial(n, OUTLIER_SHARE))] = OUTLIER_M
    noise = rng.standard_normal((2, n), dtype=np.float32) * scale
    return x + noise[0], y + noise[1]


def _intensity(rng: np.random.Generator, track: Track, n_days: int, edges: Float64, chronotype_min: float) -> Float64:
    """How much is reported in each bin between `edges`, up to a factor."""
    hour = (edges[:-1] + BIN_MIN / 2 - 0.7 * chronotype_min) / 60 % 24
    rhythm = np.interp(hour, np.arange(25), np.append(RHYTHM, RHYTHM[0]))
    moving = np.diff(track.moving_min(edges)) / BIN_MIN
    mood = np.repeat(rng.gamma(DAY_SHAPE, 1 / DAY_SHAPE, n_days), MINUTES_PER_DAY // BIN_MIN)
    out: Float64 = rhythm * (1 + (MOVING - 1) * moving) * mood * _hush(rng, n_days, edges)
    return out


def _hush(rng: np.random.Generator, n_days: int, edges: Float64) -> Float64:
    """Factor on the reports in each bin: 1, and HUSHED while the phone is off or out of reach."""
    n = rng.poisson(SILENCES_PER_DAY * n_days)
    start = rng.random(n) * edges[-1]
    end = start + rng.exponential(SILENCE_MIN, n)
    change = np.bincount(np.searchsorted(edges, start), minlength=len(edges) + 1)
    change = change - np.bincount(np.searchsorted(edges, end), minlength=len(edges) + 1)
    return np.where(np.cumsum(change)[: len(edges) - 1] > 0, HUSHED, 1.0)
