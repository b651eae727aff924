"""Session ids that clients send: their own compactions and resumes stay in one session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest

from enfold.server.proxy.client import client_session, has_compacted
from tests.server.proxy.stage import Stage, question, stage
from tests.server.proxy.voices import Say, Use, script

ID = "0f3b6f0e-6a0e-4d55-9d0b-2f5d6f0c1c11"
CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. The "
    "conversation is summarized below:\nThey renamed the harbour module."
)
SECRET = "The lamp in the cabin is teal."
LONG = 900
"""Words of a question of which nine do not fit."""
TOOLS: Any = [{"name": "look", "input_schema": {"type": "object"}}]


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


class SessionClient:
    """A client that sends a session id, and keeps its history."""

    def __init__(self, on: Stage, *, key: str = "k", id: str = ID) -> None:
        self.messages: list[Any] = []
        self._on = on
        self._headers = {"x-claude-code-session-id": id}
        self._key = key

    async def say(self, text: str, **options: Any) -> Any:
        """Send the text, append the reply, and return the response's headers."""
        self.messages.append(_message("user", text))
        async with anthropic.AsyncAnthropic(
            base_url=self._on.address, api_key=self._key, default_headers=self._headers
        ) as client:
            raw = await client.messages.with_raw_response.create(
                model="small", max_tokens=50, messages=self.messages, **options
            )
        reply = await raw.parse()
        self.messages.append({"role": "assistant", "content": reply.to_dict()["content"]})
        await self._on.proxy.idle()
        return raw.headers


async def test_a_compaction_by_the_client_stays_in_its_session(on: Stage) -> None:
    agent = SessionClient(on)
    for number in range(3):
        await agent.say(question(number))
    agent.messages = []
    await agent.say(CONTINUED)
    after = await agent.say("Go on.")
    (record,) = await on.engine.sessions()
    assert record.client_session == ID
    assert after["x-enfold-session"] == record.id
    session = await on.engine.find(record.id)
    assert sorted(branch.depth for branch in await session.branches()) == [3, 5]
    assert await on.engine.search("Question")


async def test_sub_agents_with_the_same_id_have_their_own_sessions(on: Stage) -> None:
    agent, helper = SessionClient(on), SessionClient(on)
    for number in range(2):
        await agent.say(question(number))
        await helper.say(f"Find the callers. {question(50 + number)}")
    assert len(await on.engine.sessions()) == 2


async def test_a_compaction_without_an_id_is_a_conversation_of_its_own(on: Stage) -> None:
    first, second = SessionClient(on, id="short"), SessionClient(on, id="short")
    await first.say(question(1))
    await first.say(question(2))
    await second.say(CONTINUED)
    await second.say("Go on.")
    assert len(await on.engine.sessions()) == 2


async def test_a_client_goes_on_after_it_has_changed_its_key(on: Stage) -> None:
    agent = SessionClient(on)
    for number in range(9):
        before = await agent.say(question(number, LONG))
    renewed = SessionClient(on, key="another")
    renewed.messages = agent.messages
    after = await renewed.say("And now?")
    assert before["x-enfold-session"] == after["x-enfold-session"]
    assert after["x-enfold-decision"] == "reused"
    assert len(await on.engine.sessions()) == 1


async def test_recall_finds_messages_from_before_the_clients_compaction(on: Stage) -> None:
    agent = SessionClient(on)
    await agent.say(f"{SECRET} {question(0)}")
    for number in range(1, 3):
        await agent.say(question(number))
    agent.messages = []
    await agent.say(CONTINUED)
    for number in range(100, 109):
        headers = await agent.say(question(number, LONG), tools=TOOLS)
    assert headers["x-enfold-decision"] in {"compressed", "reused"}
    on.provider.script = script([Use("r1", "recall", {"query": "lamp cabin"})], [Say("Teal.")])
    await agent.say("Which colour has the lamp?", tools=TOOLS)
    assert SECRET in json.dumps(on.provider.last["messages"][-1])


async def test_recall_is_offered_from_the_first_request_after_a_compaction(on: Stage) -> None:
    agent = SessionClient(on)
    await agent.say(f"{SECRET} {question(0)}", tools=TOOLS)
    await agent.say(question(1), tools=TOOLS)
    assert [tool["name"] for tool in on.provider.last["tools"]] == ["look"]
    agent.messages = []
    for text in (CONTINUED, "Which colour has the lamp?", "Are you certain?"):
        recalls = [Use("r1", "recall", {"query": "lamp cabin"})]
        on.provider.script = script(recalls, [Say("Teal.")])
        headers = await agent.say(text, tools=TOOLS)
        assert headers["x-enfold-decision"] == "keep"
        request, answered = on.provider.bodies[-2:]
        assert SECRET not in json.dumps(json.loads(request)["messages"][-1])
        assert SECRET in json.dumps(json.loads(answered)["messages"][-1])
        assert "recall" not in json.dumps(agent.messages)
    # The provider gets the recalls of earlier turns again, with the same bytes.
    sent = [json.loads(raw)["messages"] for raw in on.provider.bodies[-6:]]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
    assert len({json.dumps(json.loads(raw)["tools"]) for raw in on.provider.bodies[-6:]}) == 1


async def test_compactions_do_not_count_as_a_history_that_keeps_changing(on: Stage) -> None:
    agent = SessionClient(on)
    for times in range(4):
        for number in range(9):
            headers = await agent.say(question(100 * times + number, LONG))
        assert headers["x-enfold-decision"] in {"compressed", "reused"}
        agent.messages = []
        await agent.say(f"{CONTINUED} For the {times + 1}th time.")
    assert len(await on.engine.sessions()) == 1


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({b"x-claude-code-session-id": ID.encode()}, ID),
        ({b"session-id": ID.encode()}, ID),
        ({b"session_id": ID.encode()}, ID),
        ({b"session-id": b"main"}, None),
        ({b"session-id": b"a b" * 20}, None),
        ({}, None),
    ],
)
def test_ids_are_taken_from_known_headers(headers: Any, found: str | None) -> None:
    assert client_session(headers) == found


def test_only_the_beginning_tells_of_a_compaction() -> None:
    raw = json.dumps(_message("user", CONTINUED)).encode()
    reply = json.dumps(_message("assistant", "Yes.")).encode()
    raw_question = json.dumps(_message("user", "Hi.")).encode()
    item = b'{"type":"compaction","encrypted_content":"x"}'
    assert has_compacted([raw, reply])
    assert has_compacted([raw_question, item])
    assert not has_compacted([raw_question, reply, raw])


COMPACT: Any = {"edits": [{"type": "compact_20260112"}]}
CLEAR: Any = {"edits": [{"type": "clear_tool_uses_20250919"}]}


@pytest.mark.parametrize(("management", "decision"), [(COMPACT, "keep"), (CLEAR, "compressed")])
async def test_a_compaction_that_the_provider_is_asked_for_is_left_to_it(
    on: Stage, management: Any, decision: str
) -> None:
    messages = [_message(("user", "assistant")[at % 2], question(at, LONG)) for at in range(11)]
    body = {
        "model": "small",
        "max_tokens": 50,
        "messages": messages,
        "context_management": management,
    }
    async with httpx.AsyncClient(
        base_url=on.address, headers={"x-api-key": "k"}, timeout=60
    ) as client:
        response = await client.post("/v1/messages", json=body)
    assert response.headers["x-enfold-decision"] == decision
    assert (on.provider.last == body) == (decision == "keep")


async def test_a_providers_summary_passes_byte_for_byte(on: Stage) -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "opaque " * 50}
    talk = [_message(("assistant", "user")[at % 2], question(at, LONG)) for at in range(12)]
    body = {"model": "small", "input": [_message("user", "Start."), item, *talk]}
    headers = {"authorization": "Bearer k"}
    async with httpx.AsyncClient(base_url=on.address, headers=headers, timeout=60) as client:
        response = await client.post("/v1/responses", content=json.dumps(body))
    assert response.headers["x-enfold-decision"] == "compressed"
    assert json.dumps(item).encode() in on.provider.bodies[-1]
