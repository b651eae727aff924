"""Access tokens over HTTP: made, shown once, used, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.engine import Engine
from enfold.server import App
from enfold.store import access
from tests.server.conftest import Client, client_of


async def test_a_token_opens_a_namespace_of_its_own(client: Client, app: App) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    made = (await client.post("/api/tokens", json={"name": "eve"})).json()
    async with client_of(app, made["token"]) as eve:
        assert (await eve.get("/api/sessions")).json()["sessions"] == []
        await eve.post("/api/sessions", json={"id": "hers"})
        (entry,) = (await eve.get("/api/audit")).json()
        assert (entry["actor"], entry["action"]) == ("eve", "POST /api/sessions")
    (listed,) = (await client.get("/api/tokens")).json()
    assert listed == {key: made[key] for key in ("id", "name", "namespace", "created_at")}
    assert (await client.delete(f"/api/tokens/{made['id']}")).status_code == 200
    assert (await client.delete(f"/api/tokens/{made['id']}")).status_code == 404
    assert (await client.get("/api/tokens")).json() == []


async def _made(client: Client, app: App, name: str, sessions: int) -> dict[str, Any]:
    """Add a token whose owner has a number of sessions with the usual names."""
    made: dict[str, Any] = (await client.post("/api/tokens", json={"name": name})).json()
    async with client_of(app, made["token"]) as its:
        for number in range(sessions):
            await its.post("/api/sessions", json={"id": f"chat {number}"})
            body = {"messages": [{"role": "user", "content": f"{name} wrote of mooring"}]}
            await its.post(f"/api/sessions/chat {number}/messages", json=body)
    return made


async def test_deleting_a_token_leaves_its_sessions_to_the_owner(client: Client, app: App) -> None:
    made = await _made(client, app, "eve", 2)
    deleted = (await client.delete(f"/api/tokens/{made['id']}")).json()
    assert deleted == {
        "name": "eve",
        "namespace": made["namespace"],
        "sessions_deleted": 0,
        "sessions_left": 2,
    }
    (left,) = (await client.get("/api/namespaces")).json()
    assert left == {"namespace": made["namespace"], "token": None, "sessions": 2}
    acting = {"x-enfold-namespace": made["namespace"]}
    found = (await client.get("/api/sessions", headers=acting)).json()["sessions"]
    assert {each["id"] for each in found} == {"chat 0", "chat 1"}


async def test_a_token_is_deleted_with_its_sessions_on_request(client: Client, app: App) -> None:
    eve, ben = [await _made(client, app, name, 3) for name in ("eve", "ben")]
    await client.post("/api/sessions", json={"id": "chat 0"})
    path = f"/api/tokens/{eve['id']}"
    deleted = (await client.delete(path, params={"with_sessions": True})).json()
    assert (deleted["sessions_deleted"], deleted["sessions_left"]) == (3, 0)
    (left,) = (await client.get("/api/namespaces")).json()
    assert left == {"namespace": ben["namespace"], "token": "ben", "sessions": 3}
    assert len((await client.get("/api/sessions")).json()["sessions"]) == 1
    acting = {"x-enfold-namespace": ben["namespace"]}
    hits = await client.get("/api/search", params={"q": "mooring"}, headers=acting)
    assert len(hits.json()) == 3
    (entry, *_) = (await client.get("/api/audit")).json()
    assert entry["counts"] == {"sessions_deleted": 3}


@pytest.mark.parametrize("with_sessions", [True, False])
async def test_a_token_that_was_just_used_is_refused_once_it_is_deleted(
    client: Client, app: App, *, with_sessions: bool
) -> None:
    eve, ben = [await _made(client, app, name, 1) for name in ("eve", "ben")]
    path = f"/api/tokens/{eve['id']}"
    await client.delete(path, params={"with_sessions": with_sessions})
    for token, status in ((eve["token"], 401), (ben["token"], 201)):
        async with client_of(app, token) as its:
            assert (await its.post("/api/sessions", json={"id": "new"})).status_code == status
    names = [each["namespace"] for each in (await client.get("/api/namespaces")).json()]
    assert (eve["namespace"] in names) is not with_sessions


async def test_all_sessions_of_a_namespace_can_be_deleted(client: Client, app: App) -> None:
    made = [await _made(client, app, name, 2) for name in ("ann", "ben", "eve")]
    names = sorted(each["namespace"] for each in made)
    first = (await client.get("/api/namespaces", params={"limit": 2})).json()
    rest = (await client.get("/api/namespaces", params={"after": names[1]})).json()
    assert [each["namespace"] for each in (*first, *rest)] == names
    gone = await client.delete(f"/api/namespaces/{names[0]}")
    assert gone.json() == {"sessions_deleted": 2}
    assert (await client.delete(f"/api/namespaces/{names[0]}")).status_code == 404
    left = (await client.get("/api/namespaces")).json()
    assert [each["namespace"] for each in left] == names[1:]


async def test_the_first_tokens_sessions_are_the_command_lines_too(
    client: Client, engine: Engine
) -> None:
    row = await engine.store.write(access.put_first, "first token of this server")
    await client.post("/api/sessions", json={"id": "chat"})
    path = f"/api/tokens/{row.id}"
    refused = await client.delete(path, params={"with_sessions": True})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_input")
    assert (await client.get("/api/sessions/chat")).status_code == 200
    assert [row["id"] for row in (await client.get("/api/tokens")).json()] == [row.id]


async def test_a_name_is_taken_once(client: Client) -> None:
    assert (await client.post("/api/tokens", json={"name": "eve"})).status_code == 201
    assert (await client.post("/api/tokens", json={"name": "eve"})).status_code == 400


async def test_the_audit_log_comes_in_pages(client: Client) -> None:
    for number in range(5):
        await client.post("/api/sessions", json={"id": f"chat {number}"})
    page = (await client.get("/api/audit", params={"limit": 3})).json()
    rest = await client.get("/api/audit", params={"limit": 3, "before": page[-1]["seq"]})
    assert len(page) == 3
    assert len(rest.json()) == 2
