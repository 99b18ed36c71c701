"""The numbers that describe a candidate, by name: what kind of evidence each is, and what it is where there is none."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from attnmove.errors import OutdatedRunError
from attnmove.models.contract import State
from attnmove.nouns import Float32, Int64

FAR = 9999.0
"""Slots to a visible slot that is not there."""
LONG_AGO = 999.0
"""Days since a visit that never was."""
UNKNOWN = float("nan")

FAMILIES = ("day", "past", "others", "space")
"""Kinds of evidence that can speak for a candidate; "target" describes the question, whoever is the candidate."""


@dataclass(frozen=True)
class Feature:
    """A column of the evidence."""

    family: str
    about: str
    absent: float = 0.0
    """Its value for a candidate for which this family has nothing to say."""


DAY_DECAYS = (1.5, 4.0, 12.0)
"""Slots over which a sighting of today fades."""
CLOCK_WIDTHS = (0.6, 2.0, 6.0)
"""Slots of the clock around the target's in which earlier sightings count: standard deviations."""
DAY_WEIGHTS = ("all", "recent", "weekday", "kind", "alike")
"""Which of the last days count: all; recent ones; of the same weekday; of the same kind (weekend or not); those whose
visible part resembles today's."""
LOCAL_DECAYS = (2.0, 8.0)
"""Slots around the target over which a last day's agreement with today counts."""

NEAR_KM = (0.75, 3.0)
"""Kilometres over which what speaks for a place speaks for places around it; the second is four times the first."""
NEAR = {"day_4.0": "day", "past_all_2.0": "past", "past_alike_6.0": "past", "analogy": "past"}
"""Numbers about a place that are looked at around it too, and their families."""

IN_PLAY: dict[str, Feature] = {
    **{f"day_{d}": Feature("day", f"share of today's sightings, fading over {d} slots") for d in DAY_DECAYS},
    "day_weight": Feature("day", "sightings of today here, fading over 1.5 slots"),
    "day_share": Feature("day", "share of today's sightings"),
    "since_seen": Feature("day", "slots since it was last seen today", FAR),
    "until_seen": Feature("day", "slots until it is next seen today", FAR),
    **{
        f"past_{weight}_{width}": Feature("past", f"share of sightings around this time, days: {weight}")
        for weight in DAY_WEIGHTS
        for width in CLOCK_WIDTHS
    },
    **{
        f"past_{weight}_day": Feature("past", f"share of sightings at any time, days: {weight}")
        for weight in DAY_WEIGHTS
    },
    "past_count": Feature("past", "number of sightings around this time"),
    "days_since": Feature("past", "days since the last sighting", LONG_AGO),
    "n_days": Feature("past", "days on which it was seen"),
    "share_of_days": Feature("past", "share of days on which it was seen"),
    "dwell": Feature("past", "how often the user is still here one slot later", 0.5),
    "evening": Feature("past", "sightings shortly before midnight, fading into today"),
    "evening_share": Feature("past", "share of the sightings of the last hours before today"),
    **{f"local_{d}": Feature("past", "share among days that agree with today around the target") for d in LOCAL_DECAYS},
    "after_prev": Feature(
        "past", "share of earlier sightings within eight slots of the clock that follow the place before"
    ),
    "before_next": Feature("past", "the same, that precede the place after"),
    "analogy": Feature("past", "share of earlier sightings at this time with similar places before and after"),
    "analogy_either": Feature("past", "the same, one of the two sides similar"),
    "analogy_both": Feature("past", "the same, both sides similar, whatever the time within eight slots"),
}
"""What is known of places in play only: where the user is seen today or was on the last days."""

FEATURES: dict[str, Feature] = IN_PLAY | {
    **{
        f"near_{name}_{km}": Feature(family, f"{name} of the other places in play, fading over {km} km")
        for name, family in NEAR.items()
        for km in NEAR_KM
    },
    "km_today": Feature("day", "kilometres to the nearest other place of today", UNKNOWN),
    "km_home": Feature("past", "kilometres to the place where the user was most", UNKNOWN),
    "km_second": Feature("past", "kilometres to the place where the user was second most", UNKNOWN),
    "crowd": Feature("others", "visits of others"),
    "crowd_now": Feature("others", "visits of others at this time of day"),
    "crowd_people": Feature("others", "others who were here"),
    "from_prev": Feature("others", "share of others' moves from the place before, if of today"),
    "from_prev_count": Feature(
        "others", "their number, stays with them, a move over n slots 1 / n; logarithm of one more"
    ),
    "to_next": Feature("others", "share of others' moves to the place after"),
    "to_next_count": Feature("others", "their number, likewise"),
    "km_prev": Feature("space", "kilometres from the place before", UNKNOWN),
    "km_next": Feature("space", "kilometres to the place after", UNKNOWN),
    "km_mid": Feature("space", "kilometres from the point between them at the time of the target", UNKNOWN),
    "detour_km": Feature("space", "kilometres more than straight on", UNKNOWN),
    "detour_ratio": Feature("space", "the way through it over the way straight on", UNKNOWN),
    "speed": Feature("space", "kilometres a slot on the faster of both legs", UNKNOWN),
    "spacing_km": Feature("space", "kilometres between locations here", UNKNOWN),
    "km_from": Feature("space", "kilometres from the last other place before the place before", UNKNOWN),
    "km_towards": Feature("space", "kilometres to the next other place after the place after", UNKNOWN),
    "km_onwards": Feature("space", "kilometres from where going on as before leads within two slots", UNKNOWN),
    "km_backwards": Feature("space", "kilometres from where one comes from, going as after, within two slots", UNKNOWN),
    "km_curve": Feature("space", "kilometres from a smooth way between the sides at the time of the target", UNKNOWN),
    "slot": Feature("target", "the slot of the day, in hours"),
    "weekday": Feature("target", "0 on Mondays"),
    "gap_prev": Feature(
        "target", "slots since the visible slot before, of the evening before where today has none", FAR
    ),
    "gap_next": Feature("target", "slots until the visible slot after", FAR),
    "same_sides": Feature("target", "1 where both are at one place"),
    "km_sides": Feature("target", "kilometres between them", UNKNOWN),
    "n_seen": Feature("target", "visible slots of the day"),
    "n_places_day": Feature("target", "places among them"),
    "changes": Feature("target", "share of the steps from one to the next that change the place", UNKNOWN),
    "most_share": Feature("target", "share of them at the place most seen today", UNKNOWN),
    "returns": Feature("target", "stays of today at a place that was left before", UNKNOWN),
    "returns_share": Feature("target", "their share of the stays", UNKNOWN),
    "n_days_past": Feature("target", "last days that are known"),
    "n_play": Feature("target", "places in play"),
    "stay": Feature("target", "how often the user is at the same place one slot later"),
    "speed_prev": Feature("target", "kilometres a slot on the way to the place before", UNKNOWN),
    "speed_next": Feature("target", "kilometres a slot on the way from the place after", UNKNOWN),
    "radius_km": Feature("target", "kilometres the user was from home on average", UNKNOWN),
    "home_share": Feature("target", "share of earlier sightings at home, the place where the user was most"),
}

NAMES = tuple(FEATURES)
_MAKING = "2"
"""Changes whenever a number is computed otherwise under its old name: runs of before must be trained again."""


def column(name: str) -> int:
    """The column of a feature."""
    return NAMES.index(name)


def columns_of(family: str) -> Int64:
    """The columns of a family."""
    return np.flatnonzero([feature.family == family for feature in FEATURES.values()])


ABSENT: Float32 = np.array([feature.absent for feature in FEATURES.values()], dtype=np.float32)
"""(F,) what each feature is where its family has nothing to say."""


def state() -> State:
    """What a run remembers of the numbers it learnt from: a mark of their names, their order and how they are made."""
    digest = hashlib.blake2b(" ".join((_MAKING, *NAMES)).encode(), digest_size=16).digest()
    return {"names": np.frombuffer(digest, dtype="<i8").astype(np.int64)}


def check(kept: State) -> None:
    """Raise OutdatedRunError unless a run learnt from the numbers that are gathered now."""
    if not np.array_equal(kept.get("names", ()), state()["names"]):
        raise OutdatedRunError("learnt from other evidence than this version of attnmove gathers; train it again")
