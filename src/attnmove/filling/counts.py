"""How many slots were observed, recovered and left missing, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc


@dataclass
class Counts:
    """Counts over finished rows; pieces are added up."""

    users: int = 0
    user_days: int = 0
    observed: int = 0
    recovered: int = 0
    left_missing: Counter[str] = field(default_factory=Counter)
    """By reason."""
    first_user: str | None = None
    last_user: str | None = None

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The counts of a table sorted by user."""
        status = _by_value(table["status"])
        users = table["user"].combine_chunks().unique()
        return cls(
            users=len(users),
            user_days=int(pc.sum(pc.equal(table["slot"], 0)).as_py() or 0),
            observed=status["observed"],
            recovered=status["recovered"],
            left_missing=_by_value(table["reason"].drop_null()),
            first_user=users[0].as_py() if len(users) else None,
            last_user=users[-1].as_py() if len(users) else None,
        )

    def add(self, more: Counts) -> None:
        """Count further rows; a user may go on from one piece to the next."""
        self.users += more.users - (more.users > 0 and more.first_user == self.last_user)
        self.first_user = more.first_user if self.first_user is None else self.first_user
        self.last_user = more.last_user if more.users else self.last_user
        self.user_days += more.user_days
        self.observed += more.observed
        self.recovered += more.recovered
        self.left_missing += more.left_missing

    def facts(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "users": self.users,
            "user_days": self.user_days,
            "slots_observed": self.observed,
            "slots_recovered": self.recovered,
            "slots_left_missing": dict(sorted(self.left_missing.items())),
        }


def _by_value(column: pa.ChunkedArray) -> Counter[str]:
    return Counter({pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()})
