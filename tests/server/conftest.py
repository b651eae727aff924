"""A server's app over an engine of its own, and clients that speak to it without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

import enfold
from enfold.engine import Engine
from enfold.server import App, create_app
from enfold.store import access
from enfold.testing import ScriptedSummarizer
from tests.databases import opened_before

MODEL = "test:small"
WINDOW = 4_000
HERE = "http://127.0.0.1:8787"

Client: TypeAlias = httpx.AsyncClient
NewClient: TypeAlias = Callable[..., Client]


@pytest.fixture
def summarizer() -> ScriptedSummarizer:
    return ScriptedSummarizer("They agreed on the plan.")


@pytest.fixture
async def engine(tmp_path: Path, summarizer: ScriptedSummarizer) -> AsyncIterator[Engine]:
    """An engine with a small model."""
    url = opened_before(tmp_path / "chats.db")
    async with enfold.open(url, summarizers={"scripted": summarizer}) as opened:
        await opened.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        await opened.set("summarizer", "scripted")
        await opened.set("model", MODEL)
        yield opened


@pytest.fixture
def app(engine: Engine) -> App:
    """The app as it is on this machine: no token is needed."""
    return create_app(engine)


def client_of(app: App, token: str | None = None) -> Client:
    """A client, with a token or without; an error of ours is an answer, not an exception."""
    headers = {"x-enfold-token": token} if token else {}
    transport = httpx.ASGITransport(app.asgi, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=HERE, headers=headers)


@pytest.fixture
async def client(app: App) -> AsyncIterator[Client]:
    async with client_of(app) as made:
        yield made


@pytest.fixture
async def tokens(engine: Engine) -> tuple[str, str]:
    """The tokens of two people, Ann and Ben."""
    made = access.new_token(), access.new_token()
    for name, token in zip(("ann", "ben"), made, strict=True):
        await engine.store.write(access.add, name, token)
    return made


@pytest.fixture
async def ann(app: App, tokens: tuple[str, str]) -> AsyncIterator[Client]:
    async with client_of(app, tokens[0]) as made:
        yield made


@pytest.fixture
async def ben(app: App, tokens: tuple[str, str]) -> AsyncIterator[Client]:
    async with client_of(app, tokens[1]) as made:
        yield made


async def talk(client: Client, session: str, turns: int = 20, *, words: int = 50) -> None:
    """Make the session and append a number of turns."""
    await client.post("/api/sessions", json={"id": session})
    messages = [
        {"role": role, "content": f"{role} {turn}: " + "alpha " * words}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    answer = await client.post(f"/api/sessions/{session}/messages", json={"messages": messages})
    assert answer.status_code == 201, answer.text


@pytest.fixture(autouse=True)
def summarize_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let people's words be summarized like all others; their tests set a share."""
    monkeypatch.setenv("ENFOLD_WORDS_SHARE", "0")
