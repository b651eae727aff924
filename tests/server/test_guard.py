"""The guard: foreign pages and foreign names are turned away; programs and our pages are not."""

from __future__ import annotations

import pytest

from enfold.engine import Engine
from enfold.server import create_app
from enfold.settings import ServerSettings
from tests.server.conftest import Client, client_of


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8787", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8787"]
)
async def test_names_of_this_machine_are_answered_to(client: Client, host: str) -> None:
    assert (await client.get("/api/sessions", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", ""])
async def test_other_names_are_not(client: Client, host: str) -> None:
    answer = await client.get("/api/sessions", headers={"host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert "ENFOLD_HOSTS" in answer.json()["error"]["message"]


async def test_a_name_can_be_allowed(engine: Engine) -> None:
    app = create_app(engine, serving=ServerSettings(hosts=("chat.example",)))
    async with client_of(app) as client:
        for host, status in (("chat.example", 200), ("localhost", 200), ("evil.example", 403)):
            answer = await client.get("/api/sessions", headers={"host": host})
            assert answer.status_code == status


async def test_elsewhere_any_name_will_do_because_a_token_is_needed(engine: Engine) -> None:
    app = create_app(engine, host="0.0.0.0", token_required=True)
    async with client_of(app) as client:
        assert (await client.get("/healthz", headers={"host": "any.example"})).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8787", 201),
        ("http://evil.example", 403),
        ("http://127.0.0.1:9999", 403),
        ("null", 403),
        ("http://127.0.0.1:8787.evil.example", 403),
    ],
)
async def test_only_our_own_pages_may_change_anything(
    client: Client, origin: str, status: int
) -> None:
    answer = await client.post("/api/sessions", json={"id": "chat"}, headers={"origin": origin})
    assert answer.status_code == status
    there = (await client.get("/api/sessions", headers={"origin": origin})).json()["sessions"]
    assert len(there) == (status == 201)
