"""Runs and apps that several tests ask, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from attnmove.serving.app import make_app
from filling.worlds import TINY_BOOST, train_small


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("vote"))


@pytest.fixture(scope="session")
def boost_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("boost"), model="boost", **TINY_BOOST)


@pytest.fixture(scope="session")
def client(run: Path) -> Iterator[TestClient]:
    with TestClient(make_app(run), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def boost_client(boost_run: Path) -> Iterator[TestClient]:
    with TestClient(make_app(boost_run), raise_server_exceptions=False) as client:
        yield client
