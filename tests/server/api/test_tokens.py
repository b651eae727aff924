"""Access tokens over HTTP: made, shown once, used, deleted."""

from __future__ import annotations

from enfold.server import App
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
    assert listed == {key: made[key] for key in ("id", "name", "created_at")}
    assert (await client.delete(f"/api/tokens/{made['id']}")).status_code == 204
    assert (await client.delete(f"/api/tokens/{made['id']}")).status_code == 404
    assert (await client.get("/api/tokens")).json() == []


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
