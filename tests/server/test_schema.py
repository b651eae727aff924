"""The API against its description, with generated requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from enfold.server.api.app import describe_api
from tests.server.processes import serve

load_all_checks()
schema = schemathesis.openapi.from_dict(describe_api()).exclude(path="/api/events")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the session of the examples in it."""
    folder: Path = tmp_path_factory.mktemp("schema")
    with serve(folder / "chats.db", "--no-ui") as process:
        httpx.post(f"{process.address}/api/sessions", json={"id": "festival"}, timeout=60)
        yield process.address


@schema.parametrize()
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case: Case[Any], address: str) -> None:
    # Values that the schema allows may still be wrong: a setting that does not exist, a taken name.
    case.call_and_validate(base_url=address, excluded_checks=[positive_data_acceptance])
