"""Runs that several tests recover with, trained once."""

from __future__ import annotations

from pathlib import Path

import pytest

from filling.worlds import TINY_BOOST, train_small


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("vote"))


@pytest.fixture(scope="session")
def boost_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("boost"), model="boost", **TINY_BOOST)
