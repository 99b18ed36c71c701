"""How much one request may ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from attnmove.errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """What a request may bring and how long it may take; each must be above 0, and finite."""

    max_body_mib: float = 8.0
    """Size of the body, in MiB."""
    max_points: int = 50_000
    max_users: int = 100
    max_days: int = 400
    """User-days, all users together."""
    timeout_s: float = 30.0
    """Seconds for the body to arrive, again for the answer to be ready, and again for it to be taken."""
    max_waiting: int = 256
    """Requests that wait for the model; more are told to come back."""
    max_held_mib: float = 256.0
    """Bodies and answers of all requests under way together, in MiB, or one if that is more; others are told to come
    back."""
    max_places: int = 600_000
    """User-days times slots times `top`: what an answer may grow to."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 < getattr(self, field.name) < math.inf:
                raise ConfigError(f"{field.name}: expected a number above 0, found {getattr(self, field.name)}")

    @property
    def max_body(self) -> int:
        """Bytes of the body."""
        return int(self.max_body_mib * 2**20)

    @property
    def max_held(self) -> int:
        """Bytes of all bodies and answers together."""
        return max(int(self.max_held_mib * 2**20), self.max_body)
