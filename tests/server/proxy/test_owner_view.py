"""The owner's view of proxied conversations: lists, search, figures, titles, clients and logs."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from starlette.responses import JSONResponse, Response

from enfold.engine import Engine
from enfold.records import KEY_NAMESPACE, SearchScope
from enfold.server.proxy.client import client_name
from enfold.server.proxy.routes import open_proxy
from enfold.server.request_log import JsonLines
from enfold.store import access, search, sessions, tree
from enfold.store.database import Database
from enfold.wiring import open_engine
from tests.server.proxy.stage import Stage, question, stage
from tests.store.samples import numbered

REMINDER = (
    "<system-reminder>\nAs you answer, use the following context:\n# claudeMd\n"
    "Contents of CLAUDE.md:\nAlways write tests.\n</system-reminder>"
)
TYPED = "Rename the harbour module to port and fix every import of it, please."


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


async def _chat(on: Stage, key: str, turns: int, **headers: str) -> list[Any]:
    messages: list[Any] = []
    async with openai.AsyncOpenAI(
        base_url=f"{on.address}/v1", api_key=key, default_headers=headers, max_retries=0
    ) as client:
        for number in range(turns):
            messages.append({"role": "user", "content": question(number)})
            reply = await client.chat.completions.create(model="small", messages=messages)
            messages.append({"role": "assistant", "content": reply.choices[0].message.content})
    await on.proxy.idle()
    return messages


async def _get(on: Stage, path: str, **headers: str) -> Any:
    async with httpx.AsyncClient(base_url=on.address, headers=headers, timeout=60) as api:
        response = await api.get(path)
        assert response.status_code == 200, response.text
        return response.json()


async def test_lists_search_usage_and_activity_show_clients_of_every_key(on: Stage) -> None:
    await _chat(on, "anna", 24)
    await _chat(on, "bert", 2)
    page = await _get(on, "/api/sessions")
    assert len(page["sessions"]) == 2
    assert {each["client"] for each in page["sessions"]} == {"OpenAI SDK (Python)"}
    assert {each["model"] for each in page["sessions"]} == {"openai:small"}
    hits = await _get(on, "/api/search?q=Question&limit=100")
    assert {hit["session"] for hit in hits} == {each["id"] for each in page["sessions"]}
    usage = await _get(on, "/api/usage")
    assert sum(each["calls"] for each in usage["totals"] if each["kind"] == "reply") == 26
    activity = await _get(on, "/api/activity")
    assert activity["total"]["compressions"] > 0
    for each in page["sessions"]:
        assert (await _get(on, f"/api/sessions/{each['id']}/status"))["model"] == "openai:small"


async def test_pages_of_the_list_have_every_session_once(on: Stage) -> None:
    for key in ("anna", "bert", "carl"):
        await _chat(on, key, 2)
    first = await _get(on, "/api/sessions?limit=2")
    rest = await _get(on, f"/api/sessions?limit=2&after={first['next']}")
    assert len({each["id"] for each in (*first["sessions"], *rest["sessions"])}) == 3


async def test_the_same_history_with_another_key_is_another_session(on: Stage) -> None:
    await _chat(on, "anna", 3)
    await _chat(on, "bert", 3)
    namespaces = {each["namespace"] for each in await _get(on, "/api/namespaces")}
    assert len(namespaces) == 2
    assert all(name.startswith(KEY_NAMESPACE) for name in namespaces)
    for name in namespaces:
        inside = await _get(on, "/api/sessions", **{"x-enfold-namespace": name})
        assert len(inside["sessions"]) == 1


async def test_a_token_keeps_its_sessions_apart(on: Stage) -> None:
    token = access.new_token()
    made = await on.engine.store.write(access.add, "ann", token)
    await _chat(on, "k", 2, **{"x-enfold-token": token})
    await _chat(on, "k", 2)
    (owners,) = (await _get(on, "/api/sessions"))["sessions"]
    (anns,) = (await _get(on, "/api/sessions", **{"x-enfold-token": token}))["sessions"]
    assert owners["created_at"] != anns["created_at"]
    looking = {"x-enfold-namespace": made.namespace}
    assert (await _get(on, "/api/sessions", **looking))["sessions"] == [anns]


async def test_events_of_clients_reach_the_owner(on: Stage) -> None:
    received: list[Any] = []
    on.engine.events.subscribe(received.append, namespace="")
    await _chat(on, "anna", 24)
    assert "compression.finished" in {event.name for event in received}


async def test_the_title_is_what_the_person_typed_first(on: Stage) -> None:
    blocks = [{"type": "text", "text": REMINDER}, {"type": "text", "text": TYPED}]
    messages: list[Any] = [{"role": "user", "content": blocks}]
    agent = {"user-agent": "claude-cli/2.1.0 (external, cli)"}
    async with anthropic.AsyncAnthropic(
        base_url=on.address, api_key="k", default_headers=agent
    ) as client:
        for text in ("And the tests?", "Thanks."):
            reply = await client.messages.create(model="small", max_tokens=9, messages=messages)
            messages.append({"role": "assistant", "content": reply.to_dict()["content"]})
            messages.append({"role": "user", "content": text})
    await on.proxy.idle()
    (session,) = (await _get(on, "/api/sessions"))["sessions"]
    assert session["title"] == TYPED
    assert session["client"] == "Claude Code"


async def test_a_title_set_by_a_person_stays(on: Stage) -> None:
    await _chat(on, "k", 2, **{"x-enfold-session": "mine"})
    session = await on.engine.find("mine")
    assert (await session.record()).title.startswith("Question 0: word a")
    await session.update(title="Harbour")
    await _chat(on, "k", 3, **{"x-enfold-session": "mine"})
    assert (await session.record()).title == "Harbour"


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"user-agent": "claude-cli/2.1.0 (external, cli)"}, "Claude Code"),
        ({"user-agent": "x", "x-claude-code-session-id": "1"}, "Claude Code"),
        ({"user-agent": "codex_cli_rs/0.166.0 (Debian 12; x86_64)"}, "Codex"),
        ({"user-agent": "node", "originator": "codex_exec"}, "Codex"),
        ({"user-agent": "opencode/1.0.12 ai-sdk/openai/2.0.1"}, "opencode"),
        ({"user-agent": "GeminiCLI/0.9.0/gemini-2.5-pro (linux; x64)"}, "Gemini CLI"),
        ({"user-agent": "OpenAI/Python 1.9", "x-title": "Aider"}, "aider"),
        ({"user-agent": "ai-sdk/openai/2.0.1 runtime/node/22"}, "AI SDK"),
        ({"user-agent": "AsyncOpenAI/Python 1.99.0"}, "OpenAI SDK (Python)"),
        ({"user-agent": "OpenAI/JS 5.0.0"}, "OpenAI SDK (JavaScript)"),
        ({"user-agent": "Anthropic/JS 0.60.0"}, "Anthropic SDK (JavaScript)"),
        ({"user-agent": "AsyncAnthropic/Python 0.60.0"}, "Anthropic SDK (Python)"),
        ({"user-agent": "google-genai-sdk/1.30 gl-python/3.11"}, "Google Gen AI SDK (Python)"),
        ({"user-agent": "google-genai-sdk/1.2 gl-node/22"}, "Google Gen AI SDK (JavaScript)"),
        ({"user-agent": "Agents/Python 0.3.0"}, "OpenAI Agents SDK"),
        ({"user-agent": "litellm/1.80.0"}, "LiteLLM"),
        ({"user-agent": "curl/8.5.0"}, "curl"),
        ({"user-agent": "(none)"}, None),
        ({}, None),
    ],
)
def test_clients_are_named_by_their_headers(headers: dict[str, str], name: str | None) -> None:
    assert client_name({key.encode(): value.encode() for key, value in headers.items()}) == name


async def test_a_compression_and_a_blocked_request_are_one_log_line_each(
    on: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "enfold.server")
    await _chat(on, "k", 24, **{"x-enfold-session": "mine"})
    session = await on.engine.find("mine")
    compressed = [line for line in _lines(caplog) if line["message"] == "compressed"]
    assert len(compressed) == len(await session.summaries())
    for line in compressed:
        assert (line["session"], line["decision"], line["cause"]) == ("mine", "compressed", "due")
        assert line["tokens_after"] < line["tokens_before"]
    requests = [line for line in _lines(caplog) if line["message"] == "request"]
    assert {line["decision"] for line in requests} == {"keep", "reused", "compressed"}
    assert {line["session"] for line in requests} == {"mine"}


async def test_a_blocked_request_is_one_log_line(
    on: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "enfold.server")
    await on.engine.set("proxy.client_key", True)
    on.provider.script = _refuse_summaries
    with pytest.raises(openai.ConflictError) as refused:
        await _chat(on, "k", 24, **{"x-enfold-session": "mine"})
    assert refused.value.response.headers["x-enfold-decision"] == "blocked"
    (line,) = [line for line in _lines(caplog) if line["message"] == "blocked"]
    assert (line["session"], line["decision"], line["level"]) == ("mine", "blocked", "warning")
    assert line["tokens_before"] > 0
    assert line["cause"]
    last = [line for line in _lines(caplog) if line["message"] == "request"][-1]
    assert (last["status"], last["session"], last["decision"]) == (409, "mine", "blocked")


def _refuse_summaries(_: Any, body: Any) -> Response | None:
    if not body.get("stream"):
        return None
    return JSONResponse({"error": {"message": "wrong key", "type": "x", "code": None}}, 401)


def _lines(caplog: pytest.LogCaptureFixture) -> list[Any]:
    written = JsonLines()
    return [
        json.loads(written.format(record))
        for record in caplog.records
        if record.name == "enfold.server"
    ]


async def test_older_sessions_are_listed_when_a_server_starts(url: str) -> None:
    async with open_engine(url) as engine:
        record = await engine.store.write(sessions.get_or_create, f"{KEY_NAMESPACE}1", "old")
        await engine.store.write(_unlist, record.key)
        await engine.store.write(tree.append, record.key, numbered(3))
        assert await engine.sessions() == []
        await _start(engine)
        (listed,) = await engine.sessions()
        assert listed.id == "old"
        text = "message"
        found = await engine.search(text)
        assert len(found) == 3
        assert await engine.search(text, namespace=f"{KEY_NAMESPACE}1") == found
        await (await engine.find("old")).delete()
        assert await engine.store.read(search.search, text, SearchScope(namespace="")) == []


async def _start(engine: Engine) -> None:
    async with open_proxy(engine):
        await engine.access.list_client_sessions()


def _unlist(db: Database, key: int) -> None:
    db.change("list_session", key=key, listed_in=f"{KEY_NAMESPACE}1", id="old")
