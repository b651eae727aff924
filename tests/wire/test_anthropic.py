"""The `anthropic` dialect: everything comes back as it was, and other dialects arrive whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import DialectError
from enfold.jsontext import dump_text, loads
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.wire import anthropic, gemini
from tests.wire import anthropic_values, gemini_values
from tests.wire.round_trips import (
    edited,
    fresh,
    parts_of,
    swapped,
)

NEW_TEXT = "changed to this"

LOOP: dict[str, Any] = {
    "model": "claude",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "What is in the file?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look first.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZW5j"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "hello"},
                {"type": "text", "text": "And the other?"},
            ],
        },
    ],
    "tools": [
        {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
}


# Parsing


def test_a_request_is_read_into_typed_values() -> None:
    conversation = anthropic.parse(LOOP)
    question, reply, answered = conversation.messages
    assert conversation.system == Message(
        "system", (Text("Be brief.", LOOP["system"][0]),), dialect="anthropic"
    )
    assert question.parts == (Text("What is in the file?"),)
    assert [type(part) for part in reply.parts] == [Reasoning, Reasoning, Text, ToolCall]
    assert reply.parts[0] == Reasoning("Look first.", LOOP["messages"][1]["content"][0])
    assert answered.role == "user"
    assert isinstance(reply.parts[3], ToolCall)
    assert isinstance(answered.parts[0], ToolResult)
    assert reply.parts[3].arguments == {"path": "a.txt"}
    assert reply.parts[3].id == answered.parts[0].call_id == "toolu_1"
    assert answered.parts[0].parts == (Text("hello"),)
    assert [(tool.name, tool.parameters) for tool in conversation.tools] == [
        ("read", {"type": "object"}),
        ("web_search", None),
    ]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        pytest.param(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
            },
            Attachment(mime="image/png", size=2, data="aGk="),
            id="image in base64",
        ),
        pytest.param(
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            Attachment(url="https://example.org/a.png"),
            id="image by address",
        ),
        pytest.param(
            {"type": "document", "title": "Plan", "source": {"type": "file", "file_id": "f_1"}},
            Attachment(name="Plan"),
            id="document held by the provider",
        ),
        pytest.param(
            {"type": "document", "source": {"type": "text", "data": "All of it."}},
            Text("All of it."),
            id="document of plain text",
        ),
        pytest.param(
            {"type": "document", "source": {"type": "content", "content": "x"}},
            Unknown({}),
            id="document of blocks",
        ),
        pytest.param({"type": "compaction", "content": "x"}, Unknown({}), id="unknown block"),
    ],
)
def test_blocks_become_parts(block: dict[str, Any], part: Part) -> None:
    message = anthropic.parse_message({"role": "user", "content": [block]})
    assert message.parts == (replace(part, extras=block),)


def test_a_message_keeps_the_id_that_it_came_with() -> None:
    assert anthropic.parse_message({"role": "user", "content": "x", "id": "m1"}).id == "m1"
    assert anthropic.parse_message({"role": "user", "content": "x", "id": 7}).id is None


# Rendering


def test_real_conversations_come_back_as_they_were(data_dir: Path) -> None:
    files = sorted(data_dir.glob("cc_*.jsonl"))
    assert files
    for line in (line for file in files for line in file.read_bytes().splitlines()):
        messages = loads(line)["messages"]
        assert dump_text(anthropic.render(anthropic.parse(messages))) == dump_text(messages)


# Edits


@given(st.data(), anthropic_values.with_text | anthropic_values.with_text_document)
def test_an_edited_text_is_the_only_change(data: st.DataObject, value: Any) -> None:
    wire = fresh(value)
    conversation = anthropic.parse(wire)
    index, text = data.draw(st.sampled_from(parts_of(conversation, Text)))
    raw = text.extras
    if not raw:
        holder = conversation.messages[index].extras
        expected = swapped(wire, holder, {**holder, "content": NEW_TEXT})
    elif raw["type"] == "text":
        expected = swapped(wire, raw, {**raw, "text": NEW_TEXT})
    else:
        expected = swapped(wire, raw["source"], {**raw["source"], "data": NEW_TEXT})
    rendered = anthropic.render(edited(conversation, index, text, replace(text, text=NEW_TEXT)))
    assert dump_text(rendered) == dump_text(expected)


@given(st.data(), anthropic_values.with_call)
def test_an_edited_call_is_the_only_change(data: st.DataObject, value: Any) -> None:
    wire = fresh(value)
    conversation = anthropic.parse(wire)
    index, call = data.draw(st.sampled_from(parts_of(conversation, ToolCall)))
    arguments = data.draw(st.sampled_from([{"a": 1}, '{"a": 1}']))
    expected = swapped(wire, call.extras, {**call.extras, "input": {"a": 1}})
    changed = edited(conversation, index, call, replace(call, arguments=arguments))
    assert dump_text(anthropic.render(changed)) == dump_text(expected)


@given(st.data(), anthropic_values.with_result)
def test_an_edited_result_is_the_only_change(data: st.DataObject, value: Any) -> None:
    wire = fresh(value)
    conversation = anthropic.parse(wire)
    index, result = data.draw(st.sampled_from(parts_of(conversation, ToolResult)))
    expected = swapped(wire, result.extras, {**result.extras, "content": NEW_TEXT})
    changed = edited(conversation, index, result, replace(result, parts=(Text(NEW_TEXT),)))
    assert dump_text(anthropic.render(changed)) == dump_text(expected)


@given(st.data(), anthropic_values.with_thought)
def test_a_dropped_thought_is_gone_and_nothing_else(data: st.DataObject, value: Any) -> None:
    wire = fresh(value)
    conversation = anthropic.parse(wire)
    index, thought = data.draw(st.sampled_from(parts_of(conversation, Reasoning)))
    holder = conversation.messages[index].extras
    kept = [block for block in holder["content"] if block is not thought.extras]
    expected = swapped(wire, holder, {**holder, "content": kept or ""})
    assert dump_text(anthropic.render(edited(conversation, index, thought))) == dump_text(expected)


def test_a_text_within_a_result_is_edited_in_place() -> None:
    block = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    raw = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": [block]}],
    }
    message = anthropic.parse_message(raw)
    (result,) = message.parts
    assert isinstance(result, ToolResult)
    (text,) = result.parts
    assert isinstance(text, Text)
    shorter = replace(result, parts=(replace(text, text="short"),))
    rendered = anthropic.render_message(replace(message, parts=(shorter,)))
    assert rendered["content"][0]["content"] == [{**block, "text": "short"}]


def test_a_part_added_to_a_bare_text_makes_blocks_of_both() -> None:
    message = anthropic.parse_message({"role": "user", "content": "old"})
    rendered = anthropic.render_message(replace(message, parts=(Text("new"), *message.parts)))
    assert rendered["content"] == [
        {"type": "text", "text": "new"},
        {"type": "text", "text": "old"},
    ]


def test_the_system_prompt_can_be_changed_removed_and_added() -> None:
    conversation = anthropic.parse(LOOP)
    assert conversation.system is not None
    longer = replace(conversation.system, parts=(*conversation.system.parts, Text("Be kind.")))
    assert anthropic.render(replace(conversation, system=longer))["system"] == [
        *LOOP["system"],
        {"type": "text", "text": "Be kind."},
    ]
    assert "system" not in anthropic.render(replace(conversation, system=None))
    bare = anthropic.parse(LOOP["messages"])
    assert anthropic.render(replace(bare, system=Message("system", (Text("Be kind."),)))) == {
        "messages": LOOP["messages"],
        "system": "Be kind.",
    }


def test_a_tool_can_be_added() -> None:
    conversation = anthropic.parse(LOOP)
    more = replace(conversation, tools=(*conversation.tools, Tool("recall", "Finds.")))
    assert anthropic.render(more)["tools"] == [
        *LOOP["tools"],
        {
            "name": "recall",
            "description": "Finds.",
            "input_schema": {"type": "object", "properties": {}},
        },
    ]


# Refused values


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("text", ""),
        ({"contents": []}, ""),
        ({"messages": {}}, "messages"),
        ([1], "messages[0]"),
        ([{"content": "x"}], "messages[0].role"),
        ([{"role": "model", "content": "x"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "content": [[]]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"text": "x"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": []}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        (
            [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}],
            "messages[0].content[0].source.data",
        ),
        (
            [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b"}]}],
            "messages[0].content[0].input",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": 1}]}],
            "messages[0].content[0].tool_use_id",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}
                    ],
                }
            ],
            "messages[0].content[0].content[0].text",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": "no"}],
                }
            ],
            "messages[0].content[0].is_error",
        ),
        ({"messages": [], "system": 1}, "system"),
        ({"messages": [], "system": [{"type": "text"}]}, "system[0].text"),
        ({"messages": [], "tools": {}}, "tools"),
        ({"messages": [], "tools": [{}]}, "tools[0].name"),
        ({"messages": [], "tools": [{"name": "a", "input_schema": 1}]}, "tools[0].input_schema"),
    ],
)
def test_errors_name_the_place(value: Any, place: str) -> None:
    with pytest.raises(DialectError) as caught:
        anthropic.parse(value)
    assert caught.value.place == place


# From other dialects


def test_a_conversation_from_elsewhere_is_translated() -> None:
    conversation = Conversation(
        messages=(
            Message("system", (Text("Be brief."),), dialect="openai", extras={"role": "developer"}),
            Message("user", (Text("Read both.", {"type": "input"}),), name="Ann", dialect="openai"),
            Message(
                "assistant",
                (
                    Reasoning("Hm.", {"reasoning_content": "Hm."}),
                    ToolCall("call_1", "read", '{"path": "a"}', {"type": "function"}),
                    ToolCall("call_2", "read", "{broken"),
                ),
                dialect="openai",
            ),
            Message("tool", (ToolResult("call_1", (Text("A"),)),), dialect="openai"),
            Message("tool", (ToolResult("call_2", (Data([1]),), is_error=True),), dialect="openai"),
            Message("user", (Text("And?"), Unknown({"type": "odd"})), dialect="openai"),
        ),
        dialect="openai",
        tools=(Tool("read", "Reads.", {"type": "object"}, {"type": "function"}),),
        extras={"model": "gpt", "messages": []},
    )
    assert anthropic.render(conversation) == {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Read both."},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}},
                    {
                        "type": "tool_use",
                        "id": "call_2",
                        "name": "read",
                        "input": {"arguments": "{broken"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "A"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "[1]"}],
                        "is_error": True,
                    },
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
    }


def test_system_prompts_in_the_field_and_in_messages_become_one() -> None:
    conversation = Conversation(
        messages=(Message("system", (Text("Second."),)), Message("user", (Text("Hi"),))),
        system=Message("system", (Text("First."),)),
    )
    assert anthropic.render(conversation) == {
        "messages": [{"role": "user", "content": "Hi"}],
        "system": [{"type": "text", "text": "First."}, {"type": "text", "text": "Second."}],
    }


def test_a_conversation_of_messages_alone_stays_a_bare_array() -> None:
    conversation = Conversation(
        (Message("user", (Text("Hi"),)), Message("assistant", (Text("Yo"),)))
    )
    assert anthropic.render(conversation) == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yo"},
    ]


@pytest.mark.parametrize(
    ("file", "block"),
    [
        (
            Attachment(mime="image/png", data="aGk="),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
            },
        ),
        (
            Attachment(url="https://example.org/a"),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a"}},
        ),
        (
            Attachment(mime="application/pdf", url="https://example.org/a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        ),
        (
            Attachment(name="a.wav", mime="audio/wav", data="aGk="),
            {"type": "text", "text": "[attachment: a.wav, audio/wav]"},
        ),
        (Attachment(name="a.pdf"), {"type": "text", "text": "[attachment: a.pdf]"}),
        (Attachment(url="gs://a/b"), {"type": "text", "text": "[attachment: gs://a/b]"}),
        (Attachment(data="aGk="), {"type": "text", "text": "[attachment]"}),
    ],
    ids=[
        "image",
        "address",
        "document",
        "of no use here",
        "out of reach",
        "nothing to fetch from",
        "of no known type",
    ],
)
def test_files_from_elsewhere_become_blocks(file: Attachment, block: dict[str, Any]) -> None:
    message = Message("user", (Text("See"), file))
    assert anthropic.render_message(message)["content"][1] == block


def test_ids_that_anthropic_refuses_are_spelt_out_alike_in_call_and_result() -> None:
    conversation = Conversation(
        (
            Message("user", (Text("Go"),)),
            Message("assistant", (ToolCall("f.run:0", "run", {}), ToolCall("f_run:0", "run", {}))),
            Message("tool", (ToolResult("f.run:0"), ToolResult("f_run:0"))),
        )
    )
    _, reply, answered = anthropic.render(conversation)
    ids = [block["id"] for block in reply["content"]]
    assert ids == [block["tool_use_id"] for block in answered["content"]]
    assert ids == ["f_2erun_3a0", "f_run_3a0"]


def test_calls_that_came_without_ids_are_given_one() -> None:
    conversation = Conversation(
        (
            Message("user", (Text("Go"),)),
            Message("assistant", (ToolCall("", "run", "{}"),), dialect="openai"),
            Message("tool", (ToolResult("", (Text("done"),), name="run"),), dialect="openai"),
        ),
        dialect="openai",
    )
    _, reply, answered = anthropic.render(conversation)
    assert reply["content"][0]["id"] == answered["content"][0]["tool_use_id"] == "run_231"


def test_a_message_made_by_hand_leaves_its_neighbours_as_they_were() -> None:
    conversation = anthropic.parse(LOOP)
    first, *rest = conversation.messages
    summary = Message("user", (Text("What was said before."),))
    rendered = anthropic.render(replace(conversation, messages=(first, summary, *rest)))
    assert rendered["messages"] == [
        LOOP["messages"][0],
        {"role": "user", "content": "What was said before."},
        *LOOP["messages"][1:],
    ]


def test_a_thought_made_by_hand_in_this_dialect_is_written() -> None:
    message = Message("assistant", (Reasoning("Hm."), Text("Yes.")), dialect="anthropic")
    assert anthropic.render_message(message)["content"][0] == {
        "type": "thinking",
        "thinking": "Hm.",
    }


@given(gemini_values.values)
def test_gemini_conversations_become_valid_anthropic_turns(value: Any) -> None:
    rendered = anthropic.render(gemini.parse(value))
    messages = rendered if isinstance(rendered, list) else rendered["messages"]
    for index, message in enumerate(messages):
        assert message["role"] == ("user", "assistant")[index % 2]
        blocks = message["content"]
        if isinstance(blocks, str):
            assert blocks.strip()
            continue
        assert blocks
        kinds = [block["type"] for block in blocks]
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result")
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert anthropic.render(anthropic.parse(rendered)) == rendered
