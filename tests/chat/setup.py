"""A chat with a small model, for tests of the chat and of its terminal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import enfold
from enfold.chat.controller import ChatController
from enfold.engine import Engine
from enfold.llm.calls import Call, Connection, Delta, Gateway, ModelReply
from enfold.messages import text_of
from enfold.testing import ScriptedGateway, ScriptedSummarizer, assistant, user
from tests.databases import opened_before

SMALL, LARGE = "compatible:small", "compatible:large"


@dataclass
class ChatSetup:
    """An engine with a scripted summarizer and a gateway that tests can replace."""

    engine: Engine
    summarizer: ScriptedSummarizer
    switch: Switch

    def answer_with(self, gateway: Gateway) -> None:
        """Use another gateway from now on."""
        self.switch.gateway = gateway

    async def open_chat(
        self, *, window: int | None = None, answered: bool = True
    ) -> ChatController:
        """Open a chat in the session `harbour`, with profiles to answer in it or without any."""
        session = await self.engine.session("harbour", model=SMALL)
        if answered:
            for name in ("small", "large"):
                await self.add(name)
        chat = ChatController(self.engine, session, window)
        await chat.begin("small" if answered else None, None)
        return chat

    async def add(self, name: str, **fields: str) -> None:
        """A profile of that name, for the model of that name."""
        given = {"provider": "compatible", "model": name, "base_url": "http://127.0.0.1:9/v1"}
        await self.engine.profiles.save(name, {**given, **fields}, replace=True)


@dataclass
class Switch:
    """A gateway whose answers come from another, which a test may change."""

    gateway: Gateway = field(default_factory=ScriptedGateway)

    async def complete(self, connection: Connection, call: Call) -> ModelReply:
        return await self.gateway.complete(connection, call)

    def stream(
        self, connection: Connection, call: Call
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        return self.gateway.stream(connection, call)


@pytest.fixture
async def chat_setup(tmp_path: Path) -> AsyncIterator[ChatSetup]:
    summarizer = ScriptedSummarizer("They agreed on the mooring plan.")
    url = opened_before(tmp_path / "chats.db")
    switch = Switch()
    async with enfold.open(url, summarizers={"scripted": summarizer}, gateway=switch) as engine:
        for model in (SMALL, LARGE):
            size = 4_000 if model == SMALL else 100_000
            await engine.models.edit(model, max_input=size, max_output=20_000, retention_tokens=300)
        await engine.set("summarizer", "scripted")
        yield ChatSetup(engine, summarizer, switch)


async def fill(chat: ChatController, turns: int) -> None:
    """Append `turns` questions and answers of about fifty tokens each."""
    for turn in range(turns):
        await chat.session.append(
            user(f"Question {turn}: " + "alpha " * 50), assistant(f"Answer {turn}: " + "beta " * 50)
        )


async def stored_texts(chat: ChatController) -> list[tuple[str, str]]:
    """Role and text of every message of the session."""
    return [(each.role, text_of(each.parts)) for each in await chat.session.messages()]
