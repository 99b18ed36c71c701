"""What a run brings along: its locations, the rule that places points, its slots and its time zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from attnmove.errors import AttnMoveError, ConfigError, DataError, RunError
from attnmove.io.clock import Zone, load_zone
from attnmove.models.runs import LOCATIONS, Run, locations_hash
from attnmove.nouns import MISSING, Float64, Int32, Int64, Locations
from attnmove.prep.config import Preparation
from attnmove.prep.fold import Placing
from attnmove.space import DATUMS, read_locations, restore_tessellation

_RELEASED = "released"
_EXPECTED = {"datum": str, "timezone": str, "slot_minutes": int, "slot_rule": str}


@dataclass(frozen=True)
class Located:
    """Coordinates to the ids of the run's locations; MISSING, which is also NO_CELL, where there is none."""

    placing: Placing
    key: Int64 = field(repr=False)
    """Ascending."""
    ids: Int32 = field(repr=False)

    def __call__(self, lon: Float64, lat: Float64) -> Int64:
        found = self.placing(lon, lat)
        at = np.minimum(np.searchsorted(self.key, found), len(self.key) - 1)
        return np.where(self.key[at] == found, self.ids[at], MISSING).astype(np.int64)


class Names:
    """Names and centres of locations by id; null for MISSING and where a centre is not known."""

    def __init__(self, locations: Locations) -> None:
        self._name = pa.array([*locations.name.tolist(), None], pa.string())
        self._lon, self._lat = (np.append(side, np.nan) for side in (locations.lon, locations.lat))

    def of(self, ids: npt.NDArray[Any]) -> list[pa.Array]:
        """Name, longitude and latitude of each id."""
        at = np.where(ids == MISSING, len(self._lon) - 1, ids)
        sides = (pa.array(side[at], pa.float64(), from_pandas=True) for side in (self._lon, self._lat))
        return [self._name.take(pa.array(at)), *sides]


@dataclass(frozen=True)
class Setting:
    """The place and time of a run."""

    locations: Locations = field(repr=False)
    how: Preparation
    """Its slots, slot rule and time zone; nothing else of it is used."""
    tessellation: Mapping[str, Any] | None
    """As in the facts of the dataset; None where the locations have no rule."""
    datum: str

    @property
    def n_slots(self) -> int:
        return self.how.n_slots

    @property
    def zone(self) -> Zone:
        """The zone of its days."""
        return load_zone(self.how.timezone)

    @cached_property
    def names(self) -> Names:
        """What a table calls the locations."""
        return Names(self.locations)

    @cached_property
    def locate(self) -> Located:
        """What gives points their locations. Raises DataError where the locations are only names."""
        if self.tessellation is None or self.tessellation.get("kind") == _RELEASED:
            raise DataError(
                "the run's locations are names without a rule that places points; recover a dataset of these locations"
            )
        rule = {name: value for name, value in self.tessellation.items() if name != "spec"}
        try:
            placing = Placing(restore_tessellation(rule, self.locations), self.datum)
        except (AttnMoveError, OverflowError, TypeError, ValueError) as error:
            raise RunError(f"the run's tessellation is damaged ({error}); train it again") from error
        order = np.argsort(self.locations.key, kind="stable")
        return Located(placing, self.locations.key[order], order.astype(np.int32))

    def ids_for(self, facts: Mapping[str, Any], locations: Locations, *, name: str) -> Int32:
        """(L + 1,) the run's id of each location of a dataset, MISSING where the run has it not, and last.

        `facts` are the dataset's. Raises DataError when its slots, zone or tessellation are others than the run's.
        """
        same = locations_hash(locations) == locations_hash(self.locations)
        for what, mine, theirs in (
            ("number of slots a day", self.n_slots, facts["slots_per_day"]),
            ("time zone", self.how.timezone, facts.get("timezone", self.how.timezone)),
            ("tessellation", self.tessellation, self.tessellation if same else facts.get("tessellation")),
        ):
            if mine != theirs:
                shown = [part.get("spec") if isinstance(part, Mapping) else part for part in (mine, theirs)]
                raise DataError(f"{name}: another {what} than the run's ({shown[1]}, not {shown[0]}); prepare it alike")
        if same:
            return np.append(np.arange(len(locations)), MISSING).astype(np.int32)
        if self.tessellation is None or self.tessellation.get("kind") == _RELEASED:
            raise DataError(f"{name}: other locations than the run's, and names alone do not tell which are the same")
        id_of = {text: i for i, text in enumerate(self.locations.name.tolist())}
        return np.array([*(id_of.get(text, MISSING) for text in locations.name.tolist()), MISSING], dtype=np.int32)


def setting_of_run(run: Run) -> Setting:
    """The setting of a run. Raises RunError when the run has none or it does not fit."""
    folder, told = run.folder, run.facts.get("setting")
    if folder is None:
        raise RunError("the run lies in no folder; load it with load_run")
    if told is None or not (folder / LOCATIONS).exists():
        raise RunError(f"{folder}: trained before runs kept their locations and time zone; train it again")
    if not isinstance(told, dict) or any(type(told.get(name)) is not kind for name, kind in _EXPECTED.items()):
        raise RunError(f"{folder}/config.json: its setting is not such as it should be; train it again")
    locations = read_locations(folder / LOCATIONS)
    if locations_hash(locations) != run.facts["locations_hash"] or len(locations) == 0:
        raise RunError(f"{folder}/{LOCATIONS}: not the locations the model was trained on; train it again")
    rule, datum = told.get("tessellation"), told["datum"]
    if datum not in DATUMS or not (rule is None or isinstance(rule, dict)):
        raise RunError(f"{folder}/config.json: its datum or tessellation is damaged; train it again")
    try:
        how = Preparation(**{name: told[name] for name in ("slot_minutes", "slot_rule", "timezone")})
        load_zone(how.timezone)
    except ConfigError as error:
        raise RunError(f"{folder}/config.json: its setting is damaged ({error}); train it again") from error
    return Setting(locations, how, rule, datum)
