"""Requests made up from the description of the service: no 5xx, and answers of the shape that is described."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from serving.services import service

_RIGHT, _WRONG = 30, 40
"""Requests a route that keep to the description, and such that do not."""


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    with service(run) as (address, _):
        yield address


def ask_many(operation: Any, mode: Any, n: int) -> set[int]:
    """Statuses of so many requests, each answered in the shape that is described."""
    seen: set[int] = set()

    @settings(max_examples=n, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        response = case.call()
        seen.add(response.status_code)
        assert response.status_code < 500, response.text
        if response.status_code >= 400:
            assert set(response.json()) == {"error"}
        checks = schemathesis.checks
        case.validate_response(response, checks=[checks.not_a_server_error, checks.response_schema_conformance])

    ask()
    return seen


def test_no_request_brings_the_service_down(address: str) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    seen: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        seen[operation.path] = ask_many(operation, schemathesis.GenerationMode.POSITIVE, _RIGHT)
        if operation.path in ("/v1/recover", "/v1/locations.geojson"):
            seen[operation.path] |= ask_many(operation, schemathesis.GenerationMode.NEGATIVE, _WRONG)
    assert 200 in seen["/v1/model"]
    assert {200, 422} <= seen["/v1/recover"]
