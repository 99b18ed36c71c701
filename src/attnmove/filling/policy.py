"""What is left missing: gaps that are too long, answers that are not sure enough."""

from __future__ import annotations

import re
from dataclasses import dataclass

from attnmove.errors import ConfigError
from attnmove.measure.confidence import check_share
from attnmove.models.runs import Thresholds
from attnmove.nouns import MINUTES_PER_DAY

_UNITS = {"d": MINUTES_PER_DAY, "h": 60, "m": 1}
_LENGTH = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?")

SKIPPED = "skipped by the clock"
NO_CANDIDATE = "no candidate"


@dataclass(frozen=True)
class Policy:
    """From when on a slot is left missing; the default recovers every slot."""

    max_gap_minutes: int | None = None
    """Slots of a longer gap stay missing; 1 or more."""
    min_confidence: float | None = None
    """Answers of a lower probability are not given; 0 to 1."""
    precision: float | None = None
    """The same, with the least confidence whose answers were right this often on the validation days; 0 to 1."""

    def __post_init__(self) -> None:
        longest = self.max_gap_minutes
        if longest is not None and not (isinstance(longest, int) and longest >= 1):
            raise ConfigError(f"max_gap: expected whole minutes, 1 or more, or a length such as 4h; found {longest!r}")
        if self.min_confidence is not None and self.precision is not None:
            raise ConfigError("expected a least confidence or a precision it is chosen for, found both; leave one out")
        for name in ("min_confidence", "precision"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))

    @property
    def too_long(self) -> str:
        """Why the slots of a long gap are missing."""
        return f"gap longer than {length_text(self.max_gap_minutes or 0)}"


def least_confidence(policy: Policy, thresholds: Thresholds | None) -> float | None:
    """The probability from which on an answer is given; None: every one is.

    `thresholds` are those of the run, needed for a precision. Raises ConfigError when it was not reached.
    """
    if policy.precision is None:
        return policy.min_confidence
    if not thresholds:
        raise ConfigError(
            "precision: the run had too few validation targets to tell which confidence reaches it; name a least "
            "confidence instead"
        )
    reached = [confidence for precision, confidence in thresholds if precision >= policy.precision]
    if not reached:
        raise ConfigError(
            f"precision {policy.precision:g} is not reached on the run's validation days, {thresholds[-1][0]:.4g} at "
            "most; ask for that or less"
        )
    return reached[0]


def parse_length(text: str) -> int:
    """Minutes of a length of time such as 4h, 90m, 1d or 1d12h.

    >>> parse_length("4h"), parse_length("1h30m")
    (240, 90)
    """
    found = _LENGTH.fullmatch(text.strip().lower())
    if found is None or not any(found.groups()):
        raise ConfigError(f"expected a length of time such as 4h, 90m or 1d, found {text!r}")
    return sum(int(number) * minutes for number, minutes in zip(found.groups("0"), _UNITS.values(), strict=True))


def length_text(minutes: int) -> str:
    """The length in its largest whole unit.

    >>> length_text(240), length_text(90)
    ('4h', '90m')
    """
    unit = next(unit for unit, size in _UNITS.items() if minutes % size == 0)
    return f"{minutes // _UNITS[unit]}{unit}"
