"""The node in compiled graphs: blocking, asynchronous and streaming, with a SQLite checkpointer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel

from enfold.langgraph import RunningSummary, SummarizationNode, summarization
from tests.langgraph.models import ScriptedModel, chat, ids, scripted_model

pytestmark = pytest.mark.filterwarnings("ignore:more is summarized:RuntimeWarning")
THREAD: Any = {"configurable": {"thread_id": "1"}}


class State(MessagesState):
    """As LangMem's documentation has it."""

    context: dict[str, Any]
    summarized_messages: list[AnyMessage]


@pytest.fixture(autouse=True)
def fresh_warnings() -> None:
    summarization._warn.cache_clear()


def node(model: Any = None, **options: Any) -> SummarizationNode:
    options = {"max_tokens": 6, "max_summary_tokens": 1, "token_counter": len, **options}
    return SummarizationNode(model=model or scripted_model(), **options)


def graph(
    answers: ScriptedModel, summarize: SummarizationNode, saver: BaseCheckpointSaver[Any]
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A chat: fold, then answer what is shown."""
    key = summarize.output_messages_key

    def answer(state: State) -> dict[str, Any]:
        shown = state["messages"] if key == "messages" else state["summarized_messages"]
        return {"messages": [answers.invoke(shown)]}

    built = StateGraph(State)
    built.add_node("summarize", summarize)
    built.add_node("answer", answer)
    built.add_edge(START, "summarize")
    built.add_edge("summarize", "answer")
    return built.compile(checkpointer=saver)


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as opened:
        yield opened


# A state goes in and an update comes out.


def test_the_update_has_langmems_keys() -> None:
    update = node(scripted_model("They talked.")).invoke({"messages": chat(9)})
    assert list(update) == ["summarized_messages", "context"]
    assert ids(update["summarized_messages"]) == [None, "7", "8", "9"]
    assert update["context"]["running_summary"].summary == "They talked."


def test_without_a_summary_only_messages_are_written() -> None:
    assert node().invoke({"messages": chat(3)}) == {"summarized_messages": chat(3)}
    same = node(output_messages_key="messages")
    assert same.invoke({"messages": chat(3)}) == {"messages": chat(3)}


def test_other_fields_of_the_context_stay() -> None:
    update = node().invoke({"messages": chat(9), "context": {"mood": "calm"}})
    assert update["context"]["mood"] == "calm"


def test_no_context_is_none() -> None:
    assert "context" in node().invoke({"messages": chat(9), "context": None})


def test_a_summary_that_no_longer_applies_leaves_the_context() -> None:
    context = node().invoke({"messages": chat(9)})["context"]
    update = node().invoke({"messages": chat(2), "context": context})
    assert update == {"summarized_messages": chat(2), "context": {"running_summary": None}}


def test_the_same_key_replaces_the_messages() -> None:
    update = node(output_messages_key="messages").invoke({"messages": chat(9)})
    assert [message.type for message in update["messages"]][:2] == ["remove", "system"]
    assert ids(update["messages"][2:]) == ["7", "8", "9"]


class Pydantic(BaseModel):
    """A state as a model."""

    history: list[Any]
    context: dict[str, Any] = {}


@dataclass
class Plain:
    """A state as a dataclass."""

    history: list[Any]
    context: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize("kind", [Pydantic, Plain])
def test_a_state_may_be_an_object(kind: Any) -> None:
    update = node(input_messages_key="history").invoke(kind(history=chat(9)))
    assert ids(update["summarized_messages"]) == [None, "7", "8", "9"]


def test_other_states_are_refused() -> None:
    with pytest.raises(ValueError, match="Invalid input type: list"):
        node().invoke(chat(9))
    with pytest.raises(ValueError, match="Missing required field `messages`"):
        node().invoke({"history": chat(9)})


async def test_asynchronous_updates_are_the_same() -> None:
    update = await node(scripted_model("They talked.")).ainvoke({"messages": chat(9)})
    assert update == node(scripted_model("They talked.")).invoke({"messages": chat(9)})


# In graphs.


def test_a_chat_goes_on_across_restarts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = scripted_model(*(f"Summary {n}." for n in range(20)))
    shown: list[list[Any]] = []
    for turn in range(12):
        answers = scripted_model(f"answer {turn}")
        with (
            SqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver,
            caplog.at_level(logging.WARNING),
        ):
            state = graph(answers, node(writer), saver).invoke(
                {"messages": [HumanMessage(f"question {turn}")]}, THREAD
            )
        shown.append(answers.requests[0])
    assert caplog.text == ""
    assert len(state["messages"]) == 24
    running = state["context"]["running_summary"]
    assert isinstance(running, RunningSummary)
    assert shown[-1][0].content == f"Summary of the conversation so far: {running.summary}"
    assert len(writer.requests) > 1
    for turn, request in enumerate(shown):
        assert request[-1].content == f"question {turn}"
        assert len(request) <= 6 + 1


def test_a_chat_that_overwrites_its_messages_keeps_one_summary(saver: SqliteSaver) -> None:
    writer, answers = (
        scripted_model(*(f"Summary {n}." for n in range(20))),
        scripted_model("answer"),
    )
    built = graph(answers, node(writer, output_messages_key="messages"), saver)
    first = [SystemMessage("Be kind."), HumanMessage("question")]
    state = built.invoke({"messages": first}, THREAD)
    for turn in range(12):
        state = built.invoke({"messages": [HumanMessage(f"question {turn}")]}, THREAD)
        kinds = [message.type for message in state["messages"]]
        assert kinds.count("system") == 1 + ("running_summary" in (state.get("context") or {}))
        assert kinds[0] == "system"
        assert state["messages"][-2].content == f"question {turn}"
        assert len(kinds) <= 9
    assert len(writer.requests) > 1


def test_going_back_to_a_checkpoint_goes_back_to_its_summary(saver: SqliteSaver) -> None:
    writer, answers = (
        scripted_model(*(f"Summary {n}." for n in range(20))),
        scripted_model("answer"),
    )
    built = graph(answers, node(writer), saver)
    for turn in range(8):
        built.invoke({"messages": [HumanMessage(f"question {turn}")]}, THREAD)
    history = built.get_state_history(THREAD)
    early = next(past for past in history if len(past.values["messages"]) == 6)
    state = built.invoke({"messages": [HumanMessage("another way")]}, early.config)
    assert [str(message.content) for message in state["messages"]][6:] == ["another way", "answer"]
    assert answers.requests[-1][-1].content == "another way"
    running = (state.get("context") or {}).get("running_summary")
    stored_ids = set(ids(state["messages"]))
    assert running is None or running.summarized_message_ids <= stored_ids


async def test_an_asynchronous_chat(tmp_path: Path) -> None:
    writer, answers = (
        scripted_model(*(f"Summary {n}." for n in range(20))),
        scripted_model("answer"),
    )
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver:
        built = graph(answers, node(writer), saver)
        for turn in range(8):
            state = await built.ainvoke({"messages": [HumanMessage(f"question {turn}")]}, THREAD)
    assert isinstance(state["context"]["running_summary"], RunningSummary)
    assert answers.requests[-1][-1].content == "question 7"


def test_the_summary_is_not_streamed_as_an_answer(saver: SqliteSaver) -> None:
    writer, answers = scripted_model("The secret summary."), scripted_model("The answer.")
    built = graph(answers, node(writer), saver)
    streamed = ""
    for turn in range(8):
        question = {"messages": [HumanMessage(f"question {turn}")]}
        for chunk, _ in built.stream(question, THREAD, stream_mode="messages"):
            streamed += chunk.text if isinstance(chunk, AIMessage) else ""
    assert writer.requests
    assert "The answer." in streamed
    assert "secret" not in streamed


async def test_nor_is_it_in_an_asynchronous_stream(tmp_path: Path) -> None:
    writer, answers = scripted_model("The secret summary."), scripted_model("The answer.")
    streamed = ""
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver:
        built = graph(answers, node(writer), saver)
        for turn in range(8):
            question = {"messages": [HumanMessage(f"question {turn}")]}
            async for chunk, _ in built.astream(question, THREAD, stream_mode="messages"):
                streamed += chunk.text if isinstance(chunk, AIMessage) else ""
    assert writer.requests
    assert "The answer." in streamed
    assert "secret" not in streamed


def test_a_model_that_fails_leaves_the_thread_as_it_was(saver: SqliteSaver) -> None:
    writer = scripted_model(TimeoutError("too slow"), "Summary.")
    built = graph(scripted_model("answer"), node(writer), saver)
    built.invoke({"messages": chat(5)}, THREAD)
    with pytest.raises(TimeoutError, match="too slow"):
        built.invoke({"messages": [HumanMessage("question", id="7")]}, THREAD)
    state = built.invoke(None, THREAD)
    assert state["context"]["running_summary"].summary == "Summary."
    assert state["messages"][-1].content == "answer"


def test_a_node_knows_its_name() -> None:
    assert node().get_name() == "summarization"
    assert node(name="fold").get_name() == "fold"
