"""Profiles over HTTP: the key goes in and never comes out."""

from __future__ import annotations

import pytest

from tests.server.conftest import Client

FIELDS = {"provider": "openai", "model": "gpt-4o", "base_url": "http://127.0.0.1:9/v1"}


async def test_a_profile_is_saved_shown_and_deleted(client: Client) -> None:
    saved = await client.put("/api/profiles/mine", json={"fields": FIELDS})
    assert saved.status_code == 200
    assert (await client.get("/api/profiles/mine")).json() == saved.json()
    assert saved.json() in (await client.get("/api/profiles")).json()
    made = await client.post("/api/sessions", json={"id": "chat", "profile": "mine"})
    assert made.json()["profile"] == "mine"
    unknown = await client.patch("/api/sessions/chat", json={"profile": "none"})
    assert unknown.status_code == 404
    assert (await client.delete("/api/profiles/mine")).status_code == 204
    assert (await client.get("/api/profiles/mine")).status_code == 404


async def test_a_key_is_stored_and_never_shown(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.put("/api/profiles/mine", json={"fields": FIELDS})
    key = "sk-very-private-key"
    stored = await client.put("/api/profiles/mine/key", json={"key": key})
    assert stored.status_code in {200, 400}, stored.text
    for answer in (stored, await client.get("/api/profiles"), await client.get("/api/audit")):
        assert key not in answer.text


async def test_no_file_is_named_over_http(client: Client) -> None:
    fields = {**FIELDS, "key": "file:/etc/passwd"}
    answer = await client.put("/api/profiles/mine", json={"fields": fields})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


async def test_a_trial_says_what_is_wrong(client: Client) -> None:
    fields = {**FIELDS, "key": "env:NO_SUCH_VARIABLE"}
    await client.put("/api/profiles/mine", json={"fields": fields})
    answer = await client.post("/api/profiles/mine/test")
    assert answer.status_code == 400
    assert "NO_SUCH_VARIABLE" in answer.json()["error"]["message"]


async def test_the_costs_of_profiles_are_compared(client: Client) -> None:
    assert (await client.get("/api/costs")).json() == []
    for name, model in (("large", "gpt-4o"), ("small", "gpt-4o-mini")):
        fields = {"provider": "openai", "model": model}
        await client.put(f"/api/profiles/{name}", json={"fields": fields})
    costs = (await client.get("/api/costs?input_tokens=100000&output_tokens=2000")).json()
    assert [each["profile"] for each in costs if each["is_cheapest"]]
    assert {"large", "large, cheap model", "small"} == {each["profile"] for each in costs}
    assert costs == sorted(costs, key=lambda each: each["cost"])
    dear, cheap = costs[-1], costs[0]
    assert (dear["profile"], dear["saved"], dear["measured_calls"]) == ("large", 0.0, 0)
    assert cheap["saved"] == dear["cost"] - cheap["cost"] > 0
    assert [each["reason"] is not None for each in costs] == [True, False, False]
