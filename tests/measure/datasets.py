"""A small dataset on disk: three people, six days each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attnmove.nouns import SPLITS, Days
from attnmove.prep.config import Preparation
from attnmove.prep.dataset import Dataset, content_hash, write_dataset
from attnmove.prep.hide import draw_targets
from builders import days_of, some_locations

_WEEK = ("past", "train", "train", "train", "valid", "test")


def write_small(folder: Path, *, centres: bool = True, splits: tuple[str, ...] = _WEEK) -> Path:
    """Write the dataset; `splits` are those of each person's days."""
    assert set(splits) <= set(SPLITS)
    home, work = " ".join("AAAABBBBBBAC" * 4), " ".join("DDDDDDBBBBDE" * 4)
    days = days_of({"ann": [home] * len(splits), "bob": [work] * len(splits), "cy": [home, work] * (len(splits) // 2)})
    split = np.array([name for _ in range(3) for name in splits], dtype=object)
    days = Days(days.user, days.date, days.loc, split)
    locations, targets = some_locations(5, centres=centres), draw_targets(days, Preparation())
    facts = {
        "format_version": 1,
        "slots_per_day": 48,
        "days": len(days),
        "hash": content_hash(days, locations, targets),
    }
    write_dataset(folder, Dataset(days, locations, targets, facts))
    return folder
