"""Presets over HTTP."""

from __future__ import annotations

from tests.server.conftest import Client


async def test_a_preset_is_saved_applied_and_deleted(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    new = {"strategy": "truncation", "config": {"preserveRecentCount": 7}}
    saved = await client.put("/api/presets/mine", json=new)
    assert saved.status_code == 200
    assert (await client.get("/api/presets/mine")).json() == saved.json()
    assert saved.json() in (await client.get("/api/presets")).json()
    applied = await client.post("/api/presets/mine/apply", json={"session": "chat"})
    assert applied.status_code == 200
    of_session = (await client.get("/api/sessions/chat/settings")).json()
    assert of_session["strategy"]["value"] == "truncation"
    assert of_session["strategy"]["level"] == of_session["strategy"]["source"] == "session"
    assert (await client.get("/api/settings")).json()["strategy"]["level"] == "default"
    assert (await client.delete("/api/presets/mine")).status_code == 204
    assert (await client.get("/api/presets/mine")).status_code == 404


async def test_a_preset_in_the_names_of_another_system_is_saved(client: Client) -> None:
    theirs = {"provider": "truncation", "truncationConfig": {"preserveRecentCount": 7}}
    saved = (await client.put("/api/presets/theirs", json=theirs)).json()
    assert (saved["name"], saved["strategy"]) == ("theirs", "truncation")
    assert saved["config"] == {"preserveRecentCount": 7}
    wrong = {**theirs, "provider": "nope"}
    answer = await client.put("/api/presets/theirs", json=wrong)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_setting")


async def test_errors_name_the_wrong_field(client: Client) -> None:
    wrong = {"strategy": "truncation", "config": {"preserveRecent": 7}}
    answer = await client.put("/api/presets/mine", json=wrong)
    assert answer.status_code == 400
    assert "config.preserveRecent" in answer.json()["error"]["message"]
    built_in = await client.put("/api/presets/speed", json={"strategy": "native"})
    assert built_in.status_code == 400
    missing = await client.post("/api/presets/speed/apply", json={"session": "none"})
    assert missing.status_code == 404
