"""The memory for LlamaIndex, in its own chat engine and agent."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    CachePoint,
    ChatMessage,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.memory import BaseMemory

from enfold import wire
from enfold.adapters import engines
from enfold.adapters.llama_index import EnfoldMemory, from_chat, to_chat
from enfold.errors import InputError
from enfold.messages import Message, Text, ToolCall, ToolResult
from enfold.summaries import HEADING
from enfold.testing import assistant, call, user
from tests.adapters.conftest import MODEL, add_small_model
from tests.conftest import ROOT

LONG = "the tide turns at noon and the ropes hold well " * 12
PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89"
)


@pytest.fixture
def memory(database: str) -> Iterator[EnfoldMemory]:
    memory = EnfoldMemory.from_defaults(session_id="chat", url=database, model=MODEL)
    engines.engine_at(database).run(add_small_model)
    yield memory
    memory.close()


def chat_message(text: str, role: MessageRole = MessageRole.USER, **extra: Any) -> ChatMessage:
    return ChatMessage(role=role, content=text, additional_kwargs=extra)


CASES = {
    "text": chat_message("Hello"),
    "nothing": ChatMessage(role=MessageRole.ASSISTANT, blocks=[]),
    "empty": chat_message(""),
    "developer": chat_message("Be brief", MessageRole.DEVELOPER),
    "chatbot": chat_message("Hi", MessageRole.CHATBOT),
    "two texts": ChatMessage(blocks=[TextBlock(text="one"), TextBlock(text="two")]),
    "beside": chat_message("Hi", MessageRole.ASSISTANT, refusal=None, audio={"id": "a1"}),
    "image": ChatMessage(blocks=[TextBlock(text="Look"), ImageBlock(image=PIXEL, detail="low")]),
    "image by address": ChatMessage(blocks=[ImageBlock(url="https://example.org/a.png")]),
    "document": ChatMessage(blocks=[DocumentBlock(data=b"tides", title="Tides")]),
    "cache point": ChatMessage(
        blocks=[TextBlock(text="Look"), CachePoint(cache_control={"type": "ephemeral"})]  # type: ignore[arg-type]  # as a wire has it
    ),
    "thinking": ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[ThinkingBlock(content="Hm", additional_information={"signature": "abc"})],
    ),
    "call": ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[ToolCallBlock(tool_call_id="c1", tool_name="tide", tool_kwargs={"port": "East"})],
    ),
    "call beside": ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[],
        additional_kwargs={
            "tool_calls": [{"id": "c1", "function": {"name": "tide", "arguments": "{}"}}]
        },
    ),
    "result": chat_message("high", MessageRole.TOOL, tool_call_id="c1"),
    "named result": chat_message("high", MessageRole.TOOL, tool_call_id="c1", name="tide"),
    "result of a function": chat_message("high", MessageRole.FUNCTION, name="tide"),
}


def stored(message: Message) -> Message:
    """The message as it comes out of the store."""
    dialect = wire.get(message.dialect)
    return dialect.parse_message(dialect.render_message(message))


@pytest.mark.parametrize("name", CASES)
def test_a_message_comes_back_as_it_was_put(name: str) -> None:
    assert to_chat([stored(from_chat(CASES[name]))]) == [CASES[name]]


@given(text=st.text(), role=st.sampled_from(list(MessageRole)))
def test_any_text_comes_back(text: str, role: MessageRole) -> None:
    put = chat_message(text, role)
    assert to_chat([stored(from_chat(put))]) == [put]


def test_calls_and_results_are_known_as_such() -> None:
    assert from_chat(CASES["call"]).parts == (call("c1", "tide", {"port": "East"}),)
    assert from_chat(CASES["call beside"]).parts == (ToolCall("c1", "tide", "{}"),)
    (result,) = from_chat(CASES["named result"]).parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, result.parts) == ("c1", "tide", (Text("high"),))


def test_two_files_are_not_taken_for_one() -> None:
    one = from_chat(ChatMessage(blocks=[ImageBlock(image=PIXEL)]))
    other = from_chat(ChatMessage(blocks=[ImageBlock(image=PIXEL + b"\x00")]))
    assert one.parts != other.parts


def test_an_edited_message_is_given_as_it_was_edited() -> None:
    put = from_chat(chat_message("high", MessageRole.FUNCTION, name="tide", tool_call_id="c1"))
    edited = Message("tool", (ToolResult("c1", (Text("[…]"),), name="tide"),), extras=put.extras)
    (given_,) = to_chat([edited])
    assert given_.content == "[…]"
    assert given_.additional_kwargs["tool_call_id"] == "c1"


def test_messages_of_other_doors_are_given_too() -> None:
    anthropic = wire.parse(
        [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "n", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "high"},
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
        "anthropic",
    )
    chat = to_chat(anthropic.messages)
    assert [each.role.value for each in chat] == ["assistant", "tool", "user"]
    assert chat[1].additional_kwargs == {"tool_call_id": "c"}
    assert chat[2].content == "And now?"
    assert [each.content for each in to_chat([user("Hi"), assistant("Ho")])] == ["Hi", "Ho"]


def test_a_value_that_cannot_be_stored_is_refused_and_nothing_is_written(
    memory: EnfoldMemory,
) -> None:
    with pytest.raises(InputError, match="additional_kwargs"):
        memory.put_messages([chat_message("fine"), chat_message("not", odd=object())])
    assert memory.get_all() == []


def test_the_memory_implements_base_memory(memory: EnfoldMemory) -> None:
    assert isinstance(memory, BaseMemory)
    assert memory.get() == []
    memory.put(chat_message("one"))
    memory.put_messages([chat_message("two"), chat_message("three")])
    assert [each.content for each in memory.get()] == ["one", "two", "three"]
    memory.set([chat_message("one"), chat_message("four")])
    assert [each.content for each in memory.get_all()] == ["one", "four"]
    memory.reset()
    assert memory.get_all() == []


async def test_the_memory_implements_the_async_methods(memory: EnfoldMemory) -> None:
    await memory.aput(chat_message("one"))
    await memory.aput_messages([chat_message("two")])
    assert [each.content for each in await memory.aget()] == ["one", "two"]
    await memory.aset([chat_message("three")])
    assert [each.content for each in await memory.aget_all()] == ["three"]
    await memory.areset()
    assert await memory.aget() == []


def test_a_chat_goes_on_past_the_window_and_nothing_is_lost(memory: EnfoldMemory) -> None:
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    for turn in range(14):
        engine.chat(f"Question {turn}: {LONG}")
    given_ = memory.get()
    assert (given_[0].content or "").startswith(HEADING)
    assert len(given_) < 28
    whole = engine.chat_history
    assert len(whole) == 28
    assert [each.content for each in whole if each.role == MessageRole.USER] == [
        f"Question {turn}: {LONG}" for turn in range(14)
    ]
    assert whole[-1] == given_[-1]


async def test_a_chat_without_threads_too(memory: EnfoldMemory) -> None:
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    for turn in range(3):
        await engine.achat(f"Question {turn}?")
    assert len(engine.chat_history) == 6


def tide(port: str) -> str:
    """The tide of a port."""
    return f"{port}: {LONG}"


class ToolCallingModel:
    """Calls the tool twice at once on every turn, then answers; remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: list[list[ChatMessage]] = []

    def __call__(self, messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        self.sent.append(list(messages))
        if messages[-1].role == MessageRole.TOOL:
            return chat_message(f"Answer: {LONG}", MessageRole.ASSISTANT)
        calls = [
            ToolCallBlock(
                tool_call_id=f"{len(self.sent)}{port}", tool_name="tide", tool_kwargs={"port": port}
            )
            for port in ("East", "West")
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=calls)


def unpaired(messages: Sequence[ChatMessage]) -> set[str]:
    """Calls without a result, and results without a call before them."""
    open_calls: set[str] = set()
    wrong: set[str] = set()
    for message in messages:
        blocks = message.blocks
        open_calls |= {
            each.tool_call_id or "" for each in blocks if isinstance(each, ToolCallBlock)
        }
        if message.role == MessageRole.TOOL:
            id = message.additional_kwargs["tool_call_id"]
            wrong |= {id} - open_calls
            open_calls.discard(id)
    return open_calls | wrong


# LlamaIndex's agents look at what pydantic deprecates.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211")
async def test_an_agent_with_tools_keeps_calls_and_results_together(memory: EnfoldMemory) -> None:
    speaker = ToolCallingModel()
    llm = MockFunctionCallingLLM(response_generator=speaker, is_chat_model=True)
    agent = FunctionAgent(tools=[tide], llm=llm, streaming=False)
    for turn in range(10):
        await agent.run(user_msg=f"Question {turn}?", memory=memory)
    whole = await memory.aget_all()
    assert len([each for each in whole if each.role == MessageRole.TOOL]) == 20
    assert any((sent[0].content or "").startswith(HEADING) for sent in speaker.sent)
    assert all(not unpaired(sent) for sent in speaker.sent)


def test_tokens_beside_the_history_are_counted(memory: EnfoldMemory) -> None:
    memory.put_messages([chat_message(f"{n} {LONG}") for n in range(20)])
    assert len(memory.get()) == 20
    assert len(memory.get(initial_token_count=2_000)) < 20


def test_a_memory_can_be_copied_pickled_and_serialized(memory: EnfoldMemory) -> None:
    memory.put(chat_message("one"))
    others = (
        copy.deepcopy(memory),
        pickle.loads(pickle.dumps(memory)),
        EnfoldMemory.from_dict(memory.to_dict()),
    )
    for other in others:
        assert [each.content for each in other.get_all()] == ["one"]


def test_sessions_do_not_see_each_other(memory: EnfoldMemory) -> None:
    memory.put(chat_message("secret"))
    other = EnfoldMemory.from_defaults(session_id="other", url=memory.url)
    elsewhere = EnfoldMemory.from_defaults(session_id="chat", url=memory.url, namespace="b")
    assert other.get_all() == elsewhere.get_all() == []


def test_from_defaults_goes_on_or_begins_with_a_history(memory: EnfoldMemory) -> None:
    memory.put(chat_message("one"))
    again = EnfoldMemory.from_defaults(session_id="chat", url=memory.url)
    assert [each.content for each in again.get_all()] == ["one"]
    EnfoldMemory.from_defaults("chat", [chat_message("two")], url=memory.url)
    assert [each.content for each in memory.get_all()] == ["two"]


def test_the_error_names_the_missing_extra() -> None:
    program = (
        "import sys; sys.modules['llama_index'] = None\n"
        "from enfold.errors import ConfigError\n"
        "try:\n    import enfold.adapters.llama_index\n"
        "except ConfigError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "enfold[llama-index]" in done.stdout
