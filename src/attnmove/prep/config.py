"""The choices that turn points into a dataset, checked where they are made."""

from __future__ import annotations

from dataclasses import dataclass

from attnmove.errors import ConfigError
from attnmove.nouns import MINUTES_PER_DAY

SLOT_RULES = ("mode", "last")
PATTERNS = ("uniform", "burst", "night")


@dataclass(frozen=True)
class Preparation:
    """How points become days, splits and targets. The defaults are the paper's for Geolife."""

    slot_minutes: int = 30
    """Length of a slot: 5 to 120 minutes, dividing a day."""
    slot_rule: str = "mode"
    """Which location a slot gets: `mode`, that of most fixes (tie: seen earlier), or `last`, that of the last fix."""
    timezone: str = "UTC"
    """IANA zone whose calendar cuts the days."""
    min_slots: int | None = None
    """Days with fewer observed slots are dropped; None: a quarter of the day (12 of 48)."""
    min_days: int = 5
    """Users with fewer days left are dropped."""
    first_days: int = 3
    """The first days of each user, which are history only."""
    hide: int | None = None
    """Slots hidden a day, at most all observed ones but one; None: 10 of 48, in proportion for other slot lengths."""
    draws: int = 1
    """How many times the hidden slots are drawn."""
    pattern: str = "uniform"
    """`uniform` over the observed slots; `burst`, in runs of two hours; `night`, those of the night first."""
    seed: int = 0
    """Of the draws; anything that is not random does not depend on it."""

    def __post_init__(self) -> None:
        for name in ("slot_minutes", "min_slots", "min_days", "first_days", "hide", "draws", "seed"):
            value = getattr(self, name)
            if not (isinstance(value, int) or (value is None and name in ("min_slots", "hide"))):
                raise ConfigError(f"{name} must be a whole number; found {value!r}")
        if not 5 <= self.slot_minutes <= 120 or MINUTES_PER_DAY % self.slot_minutes:
            raise ConfigError(
                f"a slot of {self.slot_minutes} minutes does not fit: use 5 to 120 minutes that divide a day "
                "(5, 10, 15, 20, 30, 60, 120, …)"
            )
        _one_of("slot rule", self.slot_rule, SLOT_RULES)
        _one_of("pattern", self.pattern, PATTERNS)
        for name, value, least in (
            ("min-slots", self.n_min_slots, 1),
            ("min-days", self.min_days, 1),
            ("first-days", self.first_days, 0),
            ("hide", self.n_hide, 1),
            ("draws", self.draws, 1),
            ("seed", self.seed, 0),
        ):
            if value < least:
                raise ConfigError(f"--{name} must be at least {least}; found {value}")
        if self.n_min_slots > self.n_slots:
            raise ConfigError(
                f"--min-slots {self.n_min_slots}: a day of {self.slot_minutes}-minute slots has {self.n_slots}"
            )
        if self.n_hide >= self.n_slots:
            raise ConfigError(
                f"--hide {self.n_hide}: a day of {self.slot_minutes}-minute slots has {self.n_slots}, and at least one "
                "of them must stay visible"
            )

    @property
    def n_slots(self) -> int:
        """Slots a day."""
        return MINUTES_PER_DAY // self.slot_minutes

    @property
    def n_min_slots(self) -> int:
        """The least observed slots of a kept day."""
        return self._a_quarter if self.min_slots is None else self.min_slots

    @property
    def n_hide(self) -> int:
        """Slots hidden a day."""
        # A default never asks for all of a quarter of the day, as 10/48 rounded up would for slots of 80 minutes.
        usual = min(round(self.n_slots * 10 / 48), self._a_quarter - 1)
        return usual if self.hide is None else self.hide

    @property
    def _a_quarter(self) -> int:
        return max(2, self.n_slots // 4)


def _one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"there is no {what} {value!r}: use {' or '.join(known)}")
