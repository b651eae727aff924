from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import wire as dialects
from enfold.errors import TokenCountError
from enfold.messages import Conversation, Message, Role, Text, Tool, ToolCall, ToolResult
from enfold.tokens import (
    STRUCTURE_TOKENS,
    Count,
    count_conversation,
    count_message,
    count_messages,
    get,
)

roles: st.SearchStrategy[Role] = st.sampled_from(["system", "user", "assistant", "tool"])
short_texts = st.text(max_size=20)
parts = st.one_of(
    st.builds(Text, short_texts),
    st.builds(ToolCall, short_texts, short_texts, short_texts),
    st.builds(
        ToolResult, short_texts, st.lists(st.builds(Text, short_texts), max_size=2).map(tuple)
    ),
)
messages = st.builds(Message, roles, st.lists(parts, max_size=4).map(tuple))
conversations = st.builds(
    Conversation,
    st.lists(messages, max_size=5).map(tuple),
    system=st.none() | messages,
    tools=st.lists(st.builds(Tool, short_texts), max_size=2).map(tuple),
)


def test_an_empty_message_is_all_structure() -> None:
    assert count_message(Message("user")) == STRUCTURE_TOKENS == 4


def test_a_message_is_structure_and_parts() -> None:
    message = Message("user", (Text("hello world"), Text("Hello, world!")))
    assert count_message(message) == 4 + 2 + 4
    assert count_message(message, "cl100k_base") == 4 + 2 + 4
    assert count_message(message, get("chars4")) == 4 + 2 + 3


def test_each_of_many_messages_has_its_own_count() -> None:
    many = [Message("user", (Text("hello world"),)), Message("user"), Message("user", (Text("x"),))]
    assert count_messages(many) == [6, 4, 5]
    assert count_messages([]) == []


def test_a_conversation_by_role_and_by_part() -> None:
    conversation = Conversation(
        messages=(
            Message("user", (Text("Where am I?"),)),
            Message("assistant", (Text("I look."), ToolCall("1", "where", "{}"))),
            Message("tool", (ToolResult("1", (Text("hello world"),)),)),
        ),
        system=Message("system", (Text("Be brief."),)),
        tools=(Tool("where", parameters={}),),
    )
    call = get().count('{"name":"where","arguments":{}}')
    definition = get().count('{"name":"where","description":"","parameters":{}}')
    counted = count_conversation(conversation)
    assert counted == Count(
        tokenizer="o200k_base",
        messages=3,
        by_role={"system": 4 + 3, "user": 4 + 4, "assistant": 4 + 3 + 4 + call, "tool": 4 + 2},
        by_part={"text": 3 + 4 + 3, "tool_call": call, "tool_result": 2, "attachment": 0},
        tools=definition,
    )
    assert counted.as_json() == {
        "tokenizer": "o200k_base",
        "total": 20 + 12 + call + definition,
        "messages": 3,
        "by_role": {"system": 7, "user": 8, "assistant": 11 + call, "tool": 6},
        "by_part": {"text": 10, "tool_call": call, "tool_result": 2, "attachment": 0},
        "tools": definition,
    }


def test_tools_are_shown_only_where_there_are_some() -> None:
    assert count_conversation(Conversation(())).as_json() == {
        "tokenizer": "o200k_base",
        "total": 0,
        "messages": 0,
        "by_role": {},
        "by_part": {"text": 0, "tool_call": 0, "tool_result": 0, "attachment": 0},
    }


def written_apart(message: Message) -> int:
    """Into how many entries a dialect divides it that writes each call and result by itself."""
    tools = sum(isinstance(part, ToolCall | ToolResult) for part in message.parts)
    return tools + (tools < len(message.parts) or not message.parts)


@given(conversations)
def test_sums_agree(conversation: Conversation) -> None:
    counted = count_conversation(conversation)
    systems = [conversation.system] if conversation.system else []
    everything = [*systems, *conversation.messages]
    assert counted.messages == len(conversation.messages)
    assert counted.total == sum(count_messages(everything)) + counted.tools
    assert counted.total == sum(counted.by_role.values()) + counted.tools
    structure = STRUCTURE_TOKENS * sum(map(written_apart, everything))
    assert counted.total == sum(counted.by_part.values()) + structure + counted.tools


@given(st.lists(messages, max_size=6))
def test_single_counts_equal_a_common_count(many: list[Message]) -> None:
    assert count_messages(many) == [count_message(message) for message in many]


# Counts can be added


@given(conversations, conversations)
def test_a_sum_is_the_count_of_both(one: Conversation, other: Conversation) -> None:
    systems = tuple(system for system in (one.system, other.system) if system)
    both = Conversation(
        (*systems, *one.messages, *other.messages), tools=(*one.tools, *other.tools)
    )
    whole = replace(count_conversation(both), messages=len(one.messages) + len(other.messages))
    assert count_conversation(one) + count_conversation(other) == whole


@given(conversations)
def test_nothing_added_changes_nothing(conversation: Conversation) -> None:
    counted = count_conversation(conversation)
    assert Count.nothing() + counted == counted == counted + Count.nothing("o200k_base")


def test_counts_of_two_tokenizers_are_not_added() -> None:
    with pytest.raises(TokenCountError, match="o200k_base and of cl100k_base"):
        Count.nothing("o200k_base") + Count.nothing("cl100k_base")


# The same content counts the same in every dialect.

CALL = {"path": "src/größe.py", "lines": [1, 2]}
OPENAI = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What does it do?"},
        {
            "role": "assistant",
            "content": "I read it.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {
                        "name": "read_file",
                        "arguments": '{"path": "src/gr\\u00f6\\u00dfe.py", "lines": [1, 2]}',
                    },
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "def f(): ..."},
        {"role": "assistant", "content": [{"type": "text", "text": "Nothing."}]},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "read_file",
                "description": "Reads.",
                "parameters": {"type": "object"},
            },
        }
    ],
}
ANTHROPIC = {
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "What does it do?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I read it."},
                {"type": "tool_use", "id": "toolu_9", "name": "read_file", "input": CALL},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_9", "content": "def f(): ..."}
            ],
        },
        {"role": "assistant", "content": "Nothing."},
    ],
    "tools": [
        {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}},
    ],
}
BY_HAND = Conversation(
    messages=(
        Message("user", (Text("What does it do?"),)),
        Message("assistant", (Text("I read it."), ToolCall("x", "read_file", CALL))),
        Message("tool", (ToolResult("x", (Text("def f(): ..."),), name="read_file"),)),
        Message("assistant", (Text("Nothing."),)),
    ),
    system=Message("system", (Text("Be brief."),)),
    tools=(Tool("read_file", "Reads.", {"type": "object"}),),
)


@pytest.mark.parametrize(
    ("dialect", "value"),
    [("openai", OPENAI), ("anthropic", ANTHROPIC)],
    ids=["openai", "anthropic"],
)
def test_every_dialect_counts_alike(dialect: str, value: Any) -> None:
    assert counted_parts(dialects.get(dialect).parse(value)) == counted_parts(BY_HAND)


def counted_parts(conversation: Conversation) -> tuple[int, Any, int]:
    """All but the names of roles and the place of the system prompt, which are the wire's own."""
    counted = count_conversation(conversation)
    return counted.total, counted.by_part, counted.tools


PARALLEL = Conversation(
    messages=(
        Message("user", (Text("Compare both."),)),
        Message("assistant", (ToolCall("a", "read_file", CALL), ToolCall("b", "read_file", CALL))),
        Message(
            "tool",
            tuple(ToolResult(id, (Text(id * 9),), name="read_file") for id in ("a", "b")),
        ),
        Message("user", (Text("And this one."),)),
        Message("assistant", (Text("I read it."), ToolCall("c", "read_file", CALL))),
        Message("tool", (ToolResult("c", (Text("def g(): ..."),), name="read_file"),)),
        Message("assistant", (Text("They differ."),)),
    )
)


@pytest.mark.parametrize("conversation", [BY_HAND, PARALLEL], ids=["one call", "parallel calls"])
@pytest.mark.parametrize("dialect", dialects.DIALECTS)
def test_a_translation_counts_the_same(dialect: str, conversation: Conversation) -> None:
    wire = dialects.render(conversation, dialect)
    assert counted_parts(dialects.get(dialect).parse(wire)) == counted_parts(conversation)
