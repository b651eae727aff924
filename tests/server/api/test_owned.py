"""Common settings: every caller reads them, and only the owner changes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Client

CHANGES: list[tuple[str, str, Any]] = [
    ("PATCH", "/api/settings", {"settings": {"threshold": 0.5}}),
    ("PATCH", "/api/models/test:small", {"max_input": 1_000}),
    ("DELETE", "/api/models/test:small", None),
    ("PUT", "/api/presets/mine", {"strategy": "native"}),
    ("DELETE", "/api/presets/mine", None),
    ("POST", "/api/presets/speed/apply", {}),
    ("PUT", "/api/profiles/mine", {"fields": {"provider": "openai", "model": "gpt-4o"}}),
    ("PUT", "/api/profiles/mine/key", {"key": "secret"}),
    ("POST", "/api/profiles/mine/test", None),
    ("DELETE", "/api/profiles/mine", None),
    ("GET", "/api/tokens", None),
    ("POST", "/api/tokens", {"name": "eve"}),
    ("DELETE", "/api/tokens/some", None),
    ("GET", "/api/namespaces", None),
    ("DELETE", "/api/namespaces/some", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES, ids=lambda value: str(value)[:40])
async def test_others_may_not(ann: Client, method: str, path: str, body: Any) -> None:
    answer = await ann.request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("path", ["settings", "models", "presets", "profiles"])
async def test_every_caller_may_read(ann: Client, client: Client, path: str) -> None:
    answer = await ann.get(f"/api/{path}")
    assert answer.status_code == 200
    assert answer.json() == (await client.get(f"/api/{path}")).json()
