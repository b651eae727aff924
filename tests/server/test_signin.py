"""Signing in: a token once, a cookie after that, for the web UI and for nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx
import pytest

from enfold.engine import Engine
from enfold.server import App, create_app
from tests.server.conftest import Client, client_of
from tests.server.test_front import ui

PAGE = {"accept": "text/html,*/*"}


@pytest.fixture
def app(engine: Engine) -> App:
    return create_app(engine, ui=ui, token_required=True)


@pytest.fixture
async def client(app: App) -> AsyncIterator[Client]:
    async with client_of(app) as made:
        yield made


async def sign_in(client: Client, token: str, onwards: str = "/") -> httpx.Response:
    return await client.post("/signin", data={"token": token, "onwards": onwards})


async def test_a_page_asks_for_the_token(client: Client) -> None:
    answer = await client.get("/s/chat?x=1", headers=PAGE)
    assert answer.status_code == 401
    assert 'type="password"' in answer.text
    assert 'value="/s/chat?x=1"' in answer.text


async def test_a_program_hears_it_as_before(client: Client) -> None:
    answer = await client.get("/s/chat")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_required")


async def test_a_sign_in_lasts_until_the_sign_out(client: Client, tokens: tuple[str, str]) -> None:
    answer = await sign_in(client, tokens[0], "/settings")
    assert (answer.status_code, answer.headers["location"]) == (303, "/settings")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert (await client.get("/", headers=PAGE)).text == "ui / ann"
    await client.post("/signout")
    assert (await client.get("/", headers=PAGE)).status_code == 401


async def test_a_wrong_token_is_refused_and_attempts_are_limited(client: Client) -> None:
    answer = await sign_in(client, "<script>")
    assert answer.status_code == 401
    assert "invalid access token" in answer.text
    assert "set-cookie" not in answer.headers
    statuses = {(await sign_in(client, f"guess {n}")).status_code for n in range(40)}
    assert statuses == {401, 429}


@pytest.mark.parametrize(
    "onwards", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
async def test_sign_in_redirects_only_to_local_paths(
    client: Client, tokens: tuple[str, str], onwards: str
) -> None:
    assert (await sign_in(client, tokens[0], onwards)).headers["location"] == "/"


async def test_the_cookie_opens_no_door_for_programs(
    client: Client, tokens: tuple[str, str]
) -> None:
    await sign_in(client, tokens[0])
    assert (await client.get("/api/sessions")).status_code == 401
    assert (await client.get("/metrics")).status_code == 401


async def test_a_cookie_of_another_server_does_no_harm(engine: Engine) -> None:
    app = create_app(engine, ui=ui)
    async with client_of(app) as client:
        headers = {"cookie": f"theirs=1; enfold-token={quote('not ours')}"}
        assert (await client.get("/", headers=headers)).text == "ui / "


async def test_a_form_is_small(client: Client) -> None:
    assert (await sign_in(client, "x" * 10_000)).status_code == 413
