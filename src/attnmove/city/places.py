"""The map of the city: streets, homes, workplaces, other places, and the towns around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnmove.errors import ConfigError
from attnmove.nouns import EARTH_RADIUS_M, Float64, Int64

SHOP, RESTAURANT, GYM, PARK, SCHOOL, HOME, WORK, AWAY = range(8)
"""What a place is. The first five are the other places, where people go neither to sleep nor to work."""
N_OTHER_KINDS = 5
OTHER_SHARES = np.array([0.38, 0.32, 0.08, 0.12, 0.10])
"""The share of each kind among the other places, in the order above."""

PLACES_PER_TOWN = 12
LODGINGS_PER_TOWN = 4
"""The first places of a town are where visitors sleep."""
SETBACK_M = 40.0
"""Buildings stand up to this far from the middle of their street."""


@dataclass(frozen=True)
class City:
    """What the city is like; the seed then draws one such city."""

    lon: float = 116.40
    """Longitude of the centre in degrees (WGS-84), -180 to 180."""
    lat: float = 39.90
    """Latitude of the centre in degrees (WGS-84), -80 to 80: nearer the poles the flat map is wrong."""
    utc_offset_h: float = 8.0
    """Local time minus UTC in hours, -14 to 14; there is no daylight saving."""
    size_m: float = 20_000.0
    """Length of a side of the square city in metres, 2,000 to 200,000."""
    street_m: float = 500.0
    """Metres from one street to the next, 50 to `size_m / 4`."""
    n_homes: int = 2_400
    """Residential buildings, at least 10; several people may live in one."""
    n_works: int = 700
    """Workplaces, at least 10."""
    n_others: int = 1_600
    """Shops, restaurants, gyms, parks and schools together, at least 50."""
    n_subcentres: int = 4
    """Centres beside the main one, 0 to 50."""
    n_towns: int = 12
    """Towns outside the city that people travel to, 1 to 1,000."""

    def __post_init__(self) -> None:
        ranges: list[tuple[str, float, float]] = [
            ("lon", -180, 180),
            ("lat", -80, 80),
            ("utc_offset_h", -14, 14),
            ("size_m", 2_000, 200_000),
            ("street_m", 50, self.size_m / 4),
            ("n_homes", 10, 1_000_000),
            ("n_works", 10, 1_000_000),
            ("n_others", 50, 1_000_000),
            ("n_subcentres", 0, 50),
            ("n_towns", 1, 1_000),
        ]
        for name, low, high in ranges:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"city: {name} must be from {low:g} to {high:g}; found {value!r}")


@dataclass(frozen=True)
class Places:
    """The places of a city; row number = id, ordered by kind: homes, workplaces, five kinds of others, towns."""

    city: City
    x: Float64
    """Metres east of the centre."""
    y: Float64
    """Metres north of the centre."""
    kind: Int64
    """SHOP, …, AWAY."""
    popularity: Float64
    """How readily people choose it among the places of its kind, each kind summing to 1."""

    def ids(self, kind: int) -> Int64:
        """The ids of a kind of place: consecutive numbers."""
        return np.flatnonzero(self.kind == kind)

    def degrees(self, x: Float64, y: Float64) -> tuple[Float64, Float64]:
        """Longitude and latitude of points given in metres, rounded to 1e-6 degrees (0.1 m)."""
        per_metre = np.degrees(1 / EARTH_RADIUS_M)
        lon = self.city.lon + x * (per_metre / np.cos(np.radians(self.city.lat)))
        return np.round((lon + 180) % 360 - 180, 6), np.round(self.city.lat + y * per_metre, 6)


def draw_places(city: City, *, seed: int) -> Places:
    """The places of the city that `seed` stands for."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    half = city.size_m / 2
    angle, reach = rng.uniform(0, 2 * np.pi, city.n_subcentres), rng.uniform(0.4, 0.75, city.n_subcentres) * half
    centres = np.column_stack([np.append(0.0, reach * np.cos(angle)), np.append(0.0, reach * np.sin(angle))])
    counts = np.maximum(1, np.floor(OTHER_SHARES * city.n_others)).astype(np.int64)
    counts[SHOP] += city.n_others - counts.sum()

    parts = [(HOME, *_scatter(rng, city, centres, city.n_homes, spread=0.22, background=0.5), 0.5)]
    parts.append((WORK, *_scatter(rng, city, centres, city.n_works, spread=0.10, background=0.15), 0.8))
    for kind, n in enumerate(counts.tolist()):
        parts.append((kind, *_scatter(rng, city, centres, n, spread=0.16, background=0.3), 0.9))
    parts.append((AWAY, *_towns(rng, city), 0.8))

    y = np.concatenate([part[2] for part in parts])
    street = np.round(y / city.street_m) * city.street_m
    return Places(
        city=city,
        x=np.concatenate([part[1] for part in parts]),
        y=street + rng.uniform(-SETBACK_M, SETBACK_M, len(y)),
        kind=np.concatenate([np.full(len(part[1]), part[0]) for part in parts]),
        popularity=np.concatenate([_zipf(rng, len(part[1]), part[3]) for part in parts]),
    )


def _scatter(
    rng: np.random.Generator, city: City, centres: Float64, n: int, *, spread: float, background: float
) -> tuple[Float64, Float64]:
    """East and north of `n` places around the centres; a share `background` of them anywhere in the city."""
    half = city.size_m / 2
    weight = np.append(1.2, np.full(len(centres) - 1, 0.5))
    centre = rng.choice(len(centres), n, p=weight / weight.sum())
    width = np.where(centre == 0, 1.0, 0.5) * spread * half
    xy = centres[centre] + width[:, None] * rng.standard_t(4, (n, 2))
    anywhere = (rng.random(n) < background) | (np.abs(xy) > half).any(axis=1)
    xy = np.where(anywhere[:, None], rng.uniform(-half, half, (n, 2)), xy)
    return xy[:, 0], xy[:, 1]


def _towns(rng: np.random.Generator, city: City) -> tuple[Float64, Float64]:
    """East and north of the places of all towns, town after town."""
    angle = rng.uniform(0, 2 * np.pi, city.n_towns)
    reach = city.size_m * rng.uniform(1.2, 4.0, city.n_towns)
    x = np.repeat(reach * np.cos(angle), PLACES_PER_TOWN) + rng.normal(0, 900, city.n_towns * PLACES_PER_TOWN)
    y = np.repeat(reach * np.sin(angle), PLACES_PER_TOWN) + rng.normal(0, 900, city.n_towns * PLACES_PER_TOWN)
    return x, y


def _zipf(rng: np.random.Generator, n: int, exponent: float) -> Float64:
    """Shares that fall as rank^-exponent, in random order, summing to 1."""
    share = (1.0 + rng.permutation(n)) ** -exponent
    out: Float64 = share / share.sum()
    return out
