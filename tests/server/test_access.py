"""Access: three ways to bring a token, and none to see what is another's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from enfold.engine import Engine
from enfold.server import create_app
from enfold.store import access
from tests.server.conftest import Client, client_of

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture
async def shut(engine: Engine) -> AsyncIterator[Client]:
    """A client without a token of a server that wants one."""
    await engine.store.write(access.put_first, TOKEN)
    app = create_app(engine, host="0.0.0.0", token_required=True)
    async with client_of(app) as made:
        yield made


@pytest.mark.parametrize("path", ["/api/sessions", "/metrics", "/v1/models", "/t//api/sessions"])
async def test_requests_without_a_token_are_refused(shut: Client, path: str) -> None:
    answer = await shut.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_required")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
async def test_health_and_metrics_need_no_token(shut: Client, path: str) -> None:
    assert (await shut.get(path)).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/sessions", {"x-enfold-token": TOKEN}),
        ("/api/sessions", {"authorization": f"Bearer {TOKEN}"}),
        ("/api/sessions", {"authorization": f"bearer {TOKEN}"}),
        (f"/t/{TOKEN}/api/sessions", {}),
        (f"/t/{TOKEN}/metrics", {}),
        ("/metrics", {"authorization": f"Bearer {TOKEN}"}),
    ],
    ids=["header", "bearer", "small bearer", "path", "path of figures", "bearer of figures"],
)
async def test_a_token_opens(shut: Client, path: str, headers: dict[str, str]) -> None:
    assert (await shut.get(path, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/sessions", {"x-enfold-token": f"{TOKEN}x"}),
        ("/api/sessions", {"authorization": f"Basic {TOKEN}"}),
        ("/api/sessions", {"authorization": TOKEN}),
        (f"/t/{TOKEN[:-1]}/api/sessions", {}),
        ("/t/%2e%2e/api/sessions", {}),
        ("/v1/models", {"authorization": f"Bearer {TOKEN}"}),
    ],
    ids=["another", "basic", "bare", "path", "dots", "a provider's key"],
)
async def test_anything_else_does_not(shut: Client, path: str, headers: dict[str, str]) -> None:
    assert (await shut.get(path, headers=headers)).status_code == 401


async def test_a_wrong_token_is_refused_even_where_none_is_needed(client: Client) -> None:
    answer = await client.get("/api/sessions", headers={"x-enfold-token": "wrong"})
    assert answer.status_code == 401


async def test_the_first_token_has_what_the_command_line_has(shut: Client, engine: Engine) -> None:
    await engine.session("chat")
    answer = await shut.get("/api/sessions", headers={"x-enfold-token": TOKEN})
    assert [each["id"] for each in answer.json()["sessions"]] == ["chat"]


async def test_guessing_is_slowed_down(shut: Client) -> None:
    answers = [
        await shut.get("/api/sessions", headers={"x-enfold-token": f"guess {number}"})
        for number in range(40)
    ]
    assert answers[0].status_code == 401
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) > 0
    assert (await shut.get("/api/sessions", headers={"x-enfold-token": TOKEN})).status_code == 200


async def test_a_namespace_that_cannot_be_one_is_refused(client: Client) -> None:
    answer = await client.get("/api/sessions", headers={"x-enfold-namespace": "n" * 257})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_input")
    assert "x-enfold-namespace" in answer.json()["error"]["message"]


async def test_figures_are_for_the_owner(shut: Client, engine: Engine) -> None:
    _, token = await engine.access.add_token("ann")
    answer = await shut.get("/metrics", headers={"x-enfold-token": token})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert (await shut.get("/metrics", headers={"x-enfold-token": TOKEN})).status_code == 200
