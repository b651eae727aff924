"""Agents of LangChain: all messages stay in the state, the model is sent what fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

import enfold
from enfold import flush
from enfold.adapters.langchain import EnfoldMiddleware, read_view, record_of
from enfold.errors import ConfigError, SummaryError
from enfold.summaries import HEADING
from tests.langgraph.models import calls, chat, result, scripted_model

THREAD: Any = {"configurable": {"thread_id": "1"}}
LOG = "wind from the west, sea moderate, nothing in sight. " * 12
LIMIT = 2_000


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at}: {LOG}"


def talk(agent: Any, days: range) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for day in days:
        state = agent.invoke({"messages": [HumanMessage(f"day {day}: {LOG}")]}, THREAD)
    return state


def count(messages: Sequence[Any]) -> int:
    return enfold.count(messages)


def summaries(messages: list[Any]) -> list[Any]:
    return [message for message in messages if str(message.content).startswith(HEADING)]


def test_the_state_keeps_all_and_the_model_is_sent_what_fits(tmp_path: Path) -> None:
    model = scripted_model("noted")
    for part in (range(1, 16), range(16, 31)):
        with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as saver:
            middleware = [EnfoldMiddleware(max_tokens=LIMIT)]
            agent = create_agent(model, middleware=middleware, checkpointer=saver)
            state = talk(agent, part)
    assert len(state["messages"]) == 60
    assert summaries(state["messages"]) == []
    assert all(count(request) <= LIMIT for request in model.requests)
    assert all(str(request[-1].content).startswith("day") for request in model.requests)
    assert len(summaries(model.requests[-1])) == 1
    assert summaries(model.requests[0]) == []


def test_between_two_compressions_the_view_only_grows_at_its_end() -> None:
    model = scripted_model("noted")
    messages: list[Any] = []
    changed = 0
    with SqliteSaver.from_conn_string(":memory:") as saver:
        agent = create_agent(
            model, middleware=[EnfoldMiddleware(max_tokens=LIMIT)], checkpointer=saver
        )
        talk(agent, range(1, 31))
    for request in model.requests:
        contents = [message.content for message in request]
        changed += contents[: len(messages)] != messages
        messages = contents
    assert 1 <= changed <= len(model.requests) // 4


async def test_asynchronous_agents_are_sent_the_same(tmp_path: Path) -> None:
    model = scripted_model("noted")
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as saver:
        middleware = [EnfoldMiddleware(max_tokens=LIMIT)]
        agent: Any = create_agent(model, middleware=middleware, checkpointer=saver)
        for day in range(1, 16):
            await agent.ainvoke({"messages": [HumanMessage(f"day {day}: {LOG}")]}, THREAD)
    assert len(summaries(model.requests[-1])) == 1


async def test_a_blocking_agent_inside_an_event_loop_works_too() -> None:
    blocking = scripted_model("noted")
    agent: Any = create_agent(blocking, middleware=[EnfoldMiddleware(max_tokens=LIMIT)])
    agent.invoke({"messages": [HumanMessage(f"day {day}: {LOG}") for day in range(30)]})
    assert len(summaries(blocking.requests[-1])) == 1


def test_tool_results_stay_with_their_calls() -> None:
    script: list[Any] = []
    for n in range(12):
        made = [{"name": "look", "args": {"at": f"{n}{m}"}, "id": f"{n}{m}"} for m in "abc"]
        script.append(AIMessage("", tool_calls=made))
    model = scripted_model(*script, "done")
    middleware = [EnfoldMiddleware(max_tokens=LIMIT)]
    agent: Any = create_agent(model, [look], middleware=middleware)
    state = agent.invoke({"messages": [HumanMessage("look around")]}, {"recursion_limit": 99})
    assert state["messages"][-1].content == "done"
    for request in model.requests:
        called = [call["id"] for m in request if isinstance(m, AIMessage) for call in m.tool_calls]
        found = [m.tool_call_id for m in request if isinstance(m, ToolMessage)]
        assert called == found
        assert any(m.content == "look around" for m in request)
    assert summaries(model.requests[-1])


def test_the_window_is_the_models_own() -> None:
    model = scripted_model("noted")
    model.profile = {"max_input_tokens": 4_000, "max_output_tokens": 400}
    agent: Any = create_agent(model, middleware=[EnfoldMiddleware()])
    history = [HumanMessage(f"day {day}: {LOG}") for day in range(40)]
    agent.invoke({"messages": history})
    assert count(model.requests[0]) <= 4_000 * 0.95 * 0.6
    wide = scripted_model("noted")
    agent = create_agent(wide, middleware=[EnfoldMiddleware()])
    agent.invoke({"messages": history})
    assert len(wide.requests[0]) == 40


def test_system_prompt_and_tools_take_their_part_of_the_window() -> None:
    history = [HumanMessage(f"day {day}: {LOG}") for day in range(20)]
    for prompt, sent in (("Be kind. " * 800, 1), ("Be kind.", 0)):
        model = scripted_model("noted")
        middleware = [EnfoldMiddleware(window=5_000)]
        agent: Any = create_agent(model, [look], system_prompt=prompt, middleware=middleware)
        agent.invoke({"messages": history})
        assert len(summaries(model.requests[0])) == sent
        assert model.requests[0][0].content == prompt


def test_a_chat_model_writes_the_summaries_and_is_not_streamed() -> None:
    writer, model = scripted_model("The secret summary of the voyage."), scripted_model("noted")
    middleware = [EnfoldMiddleware(max_tokens=LIMIT, model=writer)]
    agent: Any = create_agent(model, middleware=middleware)
    history = [HumanMessage(f"day {day}: {LOG}") for day in range(30)]
    streamed = "".join(
        str(chunk.text)
        for chunk, _ in agent.stream({"messages": history}, stream_mode="messages")
        if isinstance(chunk, AIMessage)
    )
    assert streamed.strip() == "noted"
    assert "secret summary" in str(summaries(model.requests[0])[0].content)
    assert "day 5" in str(writer.requests[0][-1].content)


def test_a_summary_that_fails_leaves_the_agent_as_it_was(tmp_path: Path) -> None:
    writer, model = scripted_model("", "", "", "The voyage."), scripted_model("noted")
    with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as saver:
        middleware = [EnfoldMiddleware(max_tokens=LIMIT, model=writer)]
        agent: Any = create_agent(model, middleware=middleware, checkpointer=saver)
        history = [HumanMessage(f"day {day}: {LOG}") for day in range(30)]
        with pytest.raises(SummaryError, match="no text"):
            agent.invoke({"messages": history}, THREAD)
        assert model.requests == []
        writer.replies[:] = ["The voyage."]
        state = agent.invoke(None, THREAD)
    assert len(state["messages"]) == 31
    assert len(summaries(model.requests[0])) == 1


def test_an_answer_that_is_no_summary_leaves_it_to_the_built_in_summarizer() -> None:
    writer, model = scripted_model("no " * 60), scripted_model("noted")
    history = [HumanMessage(f"day {day}: {LOG}") for day in range(30)]
    middleware = [EnfoldMiddleware(max_tokens=LIMIT, model=writer)]
    agent: Any = create_agent(model, middleware=middleware)
    agent.invoke({"messages": history})
    assert writer.requests
    (summary,) = summaries(model.requests[0])
    assert "no no" not in str(summary.content)
    assert "sea moderate" in str(summary.content)


def test_an_edited_history_is_seen_as_it_is_now(tmp_path: Path) -> None:
    model = scripted_model("noted")
    with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as saver:
        middleware = [EnfoldMiddleware(max_tokens=LIMIT)]
        agent: Any = create_agent(model, middleware=middleware, checkpointer=saver)
        state = talk(agent, range(1, 16))
        removed = [RemoveMessage(id=message.id) for message in state["messages"][4:]]
        agent.update_state(THREAD, {"messages": removed})
        agent.invoke({"messages": [HumanMessage("and now?")]}, THREAD)
    assert [str(message.content)[:5] for message in model.requests[-1]] == [
        *("day 1", "noted", "day 2", "noted"),
        "and n",
    ]


@pytest.mark.parametrize("strategy", ["lossless", "truncation", "smart"])
def test_every_strategy_will_do(strategy: str) -> None:
    model = scripted_model("noted")
    middleware = [EnfoldMiddleware(strategy=strategy, max_tokens=LIMIT)]
    agent: Any = create_agent(model, [look], middleware=middleware)
    messages: list[AnyMessage] = [HumanMessage("look around")]
    for n in range(24):
        messages += [calls(f"{n}", f"c{n}"), result(f"r{n}", f"c{n}", f"{LOG}\n" * 9)]
    agent.invoke({"messages": [*messages, HumanMessage("and now?")]})
    assert count(model.requests[0]) < count(messages)
    assert model.requests[0][-1].content == "and now?"


def test_the_hook_is_given_what_was_summarized_once(tmp_path: Path) -> None:
    kept: list[str] = []
    model = scripted_model("noted")
    with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as saver:
        hooked = EnfoldMiddleware(
            max_tokens=LIMIT,
            memory_flush_hook=lambda messages: kept.extend(message.id for message in messages),
        )
        agent: Any = create_agent(model, middleware=[hooked], checkpointer=saver)
        state = talk(agent, range(1, 31))
    assert flush.drain(10)
    earlier_ids = [message.id for message in state["messages"]]
    assert len(kept) > 20
    assert len(kept) == len(set(kept))
    assert set(kept) <= set(earlier_ids)


def test_a_wrong_setting_is_an_error_at_once() -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        EnfoldMiddleware(strategy="nonsense")
    with pytest.raises(ConfigError, match="nonsense"):
        EnfoldMiddleware(tokenizer="nonsense")


@given(number=st.integers(1, 12), shown=st.sets(st.integers(0, 11)), more=st.integers(0, 3))
def test_a_record_survives_json_and_shows_the_same(number: int, shown: set[int], more: int) -> None:
    messages = chat(number)
    view = [SystemMessage("So far."), *(messages[n] for n in sorted(shown) if n < number)]
    record = json.loads(json.dumps(record_of(messages, view)))
    later = [*messages, *chat(more, number + 1)]
    assert read_view(later, record) == [*view, *later[number:]]
    other = [*messages[:-1], HumanMessage("other", id="other"), *chat(more, number + 1)]
    assert read_view(other, record) == other
    assert read_view(messages[:-1], record) == messages[:-1]


def test_messages_without_ids_are_not_remembered() -> None:
    assert record_of([HumanMessage("a"), HumanMessage("b")], []) is None
