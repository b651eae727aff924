"""Settings over HTTP: the values in force and their levels."""

from __future__ import annotations

from tests.server.conftest import Client


async def test_the_stronger_level_wins_and_is_named(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    changed = await client.patch("/api/settings", json={"settings": {"threshold": 0.5}})
    assert changed.json()["threshold"] == {"value": 0.5, "level": "database", "source": "database"}
    of_session = await client.patch(
        "/api/sessions/chat/settings", json={"settings": {"threshold": 0.7}}
    )
    assert of_session.json()["threshold"] == {"value": 0.7, "level": "session", "source": "session"}
    assert of_session.json()["keep_first"] == {"value": 0, "level": "default", "source": "default"}
    unset = await client.patch(
        "/api/sessions/chat/settings", json={"settings": {"threshold": None}}
    )
    assert unset.json()["threshold"] == {"value": 0.5, "level": "database", "source": "database"}


async def test_nothing_is_changed_if_anything_is_wrong(client: Client) -> None:
    wrong = {"settings": {"keep_first": 3, "threshold": 3}}
    answer = await client.patch("/api/settings", json=wrong)
    assert answer.status_code == 400
    assert "0.95" in answer.json()["error"]["message"]
    assert (await client.get("/api/settings")).json()["keep_first"]["value"] == 0
    assert (await client.patch("/api/settings", json={"settings": {}})).status_code == 400


async def test_strategies_are_listed_with_their_schemas(client: Client) -> None:
    found = {each["id"]: each for each in (await client.get("/api/strategies")).json()}
    assert list(found)[:4] == ["native", "lossless", "truncation", "smart"]
    truncation = found["truncation"]
    assert "preserveRecentCount" in truncation["config_schema"]["properties"]
    assert truncation["capabilities"]["individual"] is True
    assert truncation["version"]
