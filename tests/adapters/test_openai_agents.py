"""The session for the OpenAI Agents SDK, in the SDK's own runner."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Session,
    SessionSettings,
    Usage,
    function_tool,
)
from agents.items import TResponseStreamEvent
from agents.run_internal.session_persistence import rewind_session_items
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from enfold.adapters.openai_agents import AgentSession
from enfold.engine import Engine
from enfold.errors import DialectError
from enfold.summaries import HEADING
from tests.adapters.conftest import MODEL, WINDOW

QUIET = RunConfig(tracing_disabled=True)
LONG = "the tide turns at noon and the ropes hold well " * 12


class CallingModel(Model):
    """Calls the tool twice at once on every turn, then answers; remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        items = kwargs["input"] if "input" in kwargs else args[1]
        self.sent.append(json.loads(json.dumps(items)))
        number = len(self.sent)
        if items[-1].get("type") == "function_call_output":
            return _response(_output_message(number, f"Answer {number}: {LONG}"))
        return _response(_call(f"call_{number}_a"), _call(f"call_{number}_b"))

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError


def _response(*output: Any) -> ModelResponse:
    return ModelResponse(output=list(output), usage=Usage(), response_id=None)


def _output_message(number: int, text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{number}",
        content=[content],
        role="assistant",
        status="completed",
        type="message",
    )


def _call(id: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        call_id=id, name="tide", arguments='{"port": "East"}', type="function_call"
    )


@function_tool
def tide(port: str) -> str:
    """The tide of a port."""
    return f"{port}: {LONG}"


def item(text: str, role: str = "user") -> Any:
    return {"role": role, "content": text}


async def session_of(engine: Engine, id: str = "chat") -> AgentSession:
    return AgentSession(await engine.session(id, model=MODEL))


def unpaired(items: list[Any]) -> set[str]:
    """Calls without a result, and results without a call before them."""
    calls: set[str] = set()
    wrong: set[str] = set()
    for each in items:
        if each.get("type") == "function_call":
            calls.add(each["call_id"])
        elif each.get("type") == "function_call_output":
            wrong |= {each["call_id"]} - calls
            calls.discard(each["call_id"])
    return calls | wrong


async def test_the_adapter_implements_the_session_of_the_sdk(engine: Engine) -> None:
    session = await session_of(engine)
    assert isinstance(session, Session)
    assert session.session_id == "chat"


async def test_runs_go_on_past_the_window_and_nothing_is_lost(engine: Engine) -> None:
    model = CallingModel()
    agent = Agent(name="Pilot", model=model, tools=[tide])
    stored = await engine.session("chat", model=MODEL)
    session = AgentSession(stored)
    for turn in range(12):
        await Runner.run(agent, f"Question {turn}?", session=session, run_config=QUIET)
    history = await session.get_items(limit=1_000)
    assert len(history) == 12 * 6
    questions = [each["content"] for each in history if each.get("role") == "user"]  # type: ignore[typeddict-item]  # a user's item has one
    assert questions == [f"Question {turn}?" for turn in range(12)]
    assert any(str(items[0].get("content")).startswith(HEADING) for items in model.sent)
    assert all(not unpaired(items) for items in model.sent)
    status = await stored.status()
    assert status.current_token_count < WINDOW
    view = await session.get_items()
    assert len(view) < len(history)
    assert view[-1] == history[-1]


async def test_kept_items_come_back_as_they_were(engine: Engine) -> None:
    session = await session_of(engine)
    items: list[Any] = [
        item("Look at this"),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "new_field": [1]},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Seen.", "annotations": [{"a": 1}]}],
        },
    ]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[-2:]
    assert await session.get_items(limit=0) == []


async def test_changes_to_returned_items_do_not_reach_the_session(engine: Engine) -> None:
    session = await session_of(engine)
    await session.add_items([{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}])
    given: list[Any] = await session.get_items()
    given[0]["content"][0]["text"] = "scribbled"
    again: list[Any] = await session.get_items()
    assert again[0]["content"][0]["text"] == "Hi"


async def test_an_item_is_popped_and_the_next_takes_its_place(engine: Engine) -> None:
    session = await session_of(engine)
    assert await session.pop_item() is None
    await session.add_items([item("one"), item("two"), item("three")])
    assert await session.pop_item() == item("three")
    await session.add_items([item("four")])
    assert await session.get_items() == [item("one"), item("two"), item("four")]
    assert [await session.pop_item() for _ in range(4)] == [
        item("four"),
        item("two"),
        item("one"),
        None,
    ]


async def test_popped_items_stay_stored(engine: Engine) -> None:
    stored = await engine.session("chat", model=MODEL)
    session = AgentSession(stored)
    await session.add_items([item("the anchor weighs nine stone"), item("and more")])
    await session.pop_item()
    await session.clear_session()
    assert await session.get_items() == []
    assert len(await stored.search("anchor")) == 1
    assert not await stored.search("anchor", on_branch=True)


async def test_a_cleared_session_begins_anew(engine: Engine) -> None:
    session = await session_of(engine)
    await session.add_items([item("one"), item("two")])
    await session.clear_session()
    await session.add_items([item("one")])
    assert await session.get_items() == [item("one")]
    assert await session.pop_item() == item("one")
    assert await session.pop_item() is None


@pytest.mark.parametrize("kind", ["encrypted_content", "id"])
async def test_reasoning_stays_with_the_answer_that_it_led_to(engine: Engine, kind: str) -> None:
    def turn(number: int) -> list[Any]:
        reasoning = {"type": "reasoning", "summary": [], kind: f"rs_{number}"}
        return [item("Hello"), reasoning, item(f"Answer {number}", "assistant")]

    session = await session_of(engine)
    await session.add_items(turn(1))
    await session.clear_session()
    await session.add_items(turn(2))
    assert await session.get_items() == turn(2)


async def test_the_sdk_can_take_back_what_it_wrote(engine: Engine) -> None:
    session = await session_of(engine)
    await session.add_items([item("before"), item("try"), item("again", "assistant")])
    await rewind_session_items(session, [item("try"), item("again", "assistant")])
    assert await session.get_items() == [item("before")]


async def test_a_limit_of_the_sdk_never_leaves_a_result_without_its_call(engine: Engine) -> None:
    model = CallingModel()
    agent = Agent(name="Pilot", model=model, tools=[tide])
    session = await session_of(engine)
    session.session_settings = SessionSettings(limit=3)
    for turn in range(3):
        await Runner.run(agent, f"Question {turn}?", session=session, run_config=QUIET)
    assert len(await session.get_items()) == 3
    assert all(not unpaired(items) for items in model.sent)


async def test_sessions_do_not_see_each_other(engine: Engine) -> None:
    mine, other = await session_of(engine, "mine"), await session_of(engine, "other")
    await mine.add_items([item("secret")])
    assert await other.get_items() == []


async def test_settings_hold_for_what_it_reads(engine: Engine) -> None:
    stored = await engine.session("chat", model=MODEL)
    await AgentSession(stored).add_items([item(f"{n} {LONG}") for n in range(24)])
    whole = await AgentSession(stored, max_tokens=100_000).get_items()
    assert len(whole) == 24
    summarized = await AgentSession(stored, max_tokens=2_000).get_items()
    assert len(summarized) < 24


async def test_a_wrong_item_is_refused_and_nothing_is_written(engine: Engine) -> None:
    session = await session_of(engine)
    wrong: Any = [item("fine"), {"role": "pirate", "content": "arr"}]
    with pytest.raises(DialectError, match="pirate"):
        await session.add_items(wrong)
    assert await session.get_items() == []
