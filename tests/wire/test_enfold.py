"""The `enfold` dialect: everything comes back as it was, and everything can be said in it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from enfold.errors import DialectError
from enfold.jsontext import dump_text
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
from enfold.wire import enfold
from tests.wire.conversations import conversations, without_extras

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
TRIP: dict[str, Any] = {
    "id": "trip",
    "system": "Be brief.",
    "messages": [
        {"id": "m0", "role": "user", "content": "Where to?", "name": "Ann", "ts": "2024-01-01"},
        {
            "id": "m1",
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "Look it up."},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "find", "input": {"place": "Rome"}},
                {"type": "tool_use", "id": "c2", "name": "find", "input": '{"place": '},
            ],
            "parent_id": "m0",
        },
        {
            "id": "m2",
            "role": "tool",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "Rome", "is_error": False},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": [
                        {"type": "data", "value": {"code": 400}},
                        {"type": "attachment", "name": "a.png", "mime": "image/png", "size": 7},
                    ],
                    "is_error": True,
                },
            ],
        },
    ],
    "tools": [{"name": "find", "description": "Finds.", "parameters": {"type": "object"}}],
    "licence": "MIT",
}


# Parsing


def test_a_body_is_read_into_typed_values() -> None:
    question, reply, answered = TRIP["messages"]
    conversation = enfold.parse(TRIP)
    assert without_extras(conversation.system) == without_extras(
        Message("system", (Text("Be brief."),))
    )
    assert without_extras(conversation.tools) == without_extras(
        (Tool("find", "Finds.", {"type": "object"}),)
    )
    assert without_extras(conversation.messages) == without_extras(
        (
            Message("user", (Text("Where to?"),), id="m0", name="Ann", at=NEW_YEAR),
            Message(
                "assistant",
                (
                    Reasoning("Look it up."),
                    Text("I look."),
                    ToolCall("c1", "find", {"place": "Rome"}),
                    ToolCall("c2", "find", '{"place": '),
                ),
                id="m1",
            ),
            Message(
                "tool",
                (
                    ToolResult("c1", (Text("Rome"),)),
                    ToolResult(
                        "c2", (Data({"code": 400}), Attachment("a.png", "image/png", 7)), True
                    ),
                ),
                id="m2",
            ),
        )
    )
    assert [message.extras for message in conversation.messages] == [question, reply, answered]


# Rendering


@given(conversations)
def test_every_message_can_be_written(conversation: Conversation) -> None:
    value = enfold.render(conversation)
    again = enfold.parse(value)
    assert without_extras(again) == without_extras(conversation)
    assert dump_text(enfold.render(again)) == dump_text(value)


def test_a_message_made_by_hand_is_written_in_the_usual_order() -> None:
    message = Message("user", (Text("Hi"),), id="m1", name="Ann")
    assert dump_text(enfold.render_message(message)) == (
        '{"id":"m1","role":"user","content":"Hi","name":"Ann"}'
    )


def test_an_empty_text_made_by_hand_is_a_part_and_an_empty_content_is_none() -> None:
    raw = enfold.render_message(Message("user", (Text(""),)))
    assert raw["content"] == [{"type": "text", "text": ""}]
    assert enfold.render_message(Message("user", ()))["content"] == ""


def test_an_unknown_part_cannot_pass_for_one_that_is_known() -> None:
    message = Message("user", (Unknown({"type": "text", "text": "not a text"}),))
    raw = enfold.render_message(message)
    assert raw["content"] == [{"type": "unknown", "value": {"type": "text", "text": "not a text"}}]
    assert [type(part) for part in enfold.parse_message(raw).parts] == [Unknown]


# Edits


@pytest.mark.parametrize(
    ("index", "position", "change", "expected"),
    [
        (1, 0, {"text": "Hm."}, {"type": "reasoning", "text": "Hm."}),
        (1, 1, {"text": "Looking."}, {"type": "text", "text": "Looking."}),
        (
            1,
            2,
            {"arguments": {}},
            {"type": "tool_use", "id": "c1", "name": "find", "input": {}},
        ),
        (
            2,
            0,
            {"parts": (Text("R…"),), "is_error": True},
            {"type": "tool_result", "tool_use_id": "c1", "content": "R…", "is_error": True},
        ),
        (
            2,
            0,
            {"parts": ()},
            {"type": "tool_result", "tool_use_id": "c1", "content": "", "is_error": False},
        ),
    ],
    ids=["reasoning", "text", "arguments", "result", "emptied result"],
)
def test_an_edited_part_is_the_only_change(
    index: int, position: int, change: dict[str, Any], expected: dict[str, Any]
) -> None:
    conversation = enfold.parse(TRIP)
    message = conversation.messages[index]
    parts = list(message.parts)
    parts[position] = replace(parts[position], **change)
    messages = list(conversation.messages)
    messages[index] = replace(message, parts=tuple(parts))
    wanted = deepcopy(TRIP)
    wanted["messages"][index]["content"][position] = expected
    rendered = enfold.render(replace(conversation, messages=tuple(messages)))
    assert dump_text(rendered) == dump_text(wanted)


def test_all_fields_except_the_messages_can_be_changed() -> None:
    conversation = enfold.parse(TRIP)
    changed = replace(
        conversation,
        system=Message("system", (Text("Be kind."),), id="s1"),
        tools=(replace(conversation.tools[0], description="Seeks."), Tool("web", parameters=None)),
    )
    assert enfold.render(changed) == {
        **TRIP,
        "system": {"id": "s1", "role": "system", "content": "Be kind."},
        "tools": [
            {"name": "find", "description": "Seeks.", "parameters": {"type": "object"}},
            {"name": "web"},
        ],
    }
    bare = enfold.render(replace(conversation, system=None, tools=()))
    assert "system" not in bare
    assert bare["tools"] == []


def test_role_id_and_name_can_be_changed() -> None:
    message = enfold.parse_message(TRIP["messages"][0])
    changed = replace(message, role="assistant", id=None, name="Bo")
    assert enfold.render_message(changed) == {
        "id": None,
        "role": "assistant",
        "content": "Where to?",
        "name": "Bo",
        "ts": "2024-01-01",
    }


# Refused values


def _content(*blocks: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(blocks)}]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("text", ""),
        ({"contents": []}, ""),
        ({"messages": {}}, "messages"),
        ([1], "messages[0]"),
        ([{"content": "x"}], "messages[0].role"),
        ([{"role": "model", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "id": 5}], "messages[0].id"),
        (_content([]), "messages[0].content[0]"),
        (_content({"type": "text"}), "messages[0].content[0].text"),
        (_content({"type": "data"}), "messages[0].content[0].value"),
        (_content({"type": "tool_use", "input": []}), "messages[0].content[0].input"),
        (_content({"type": "attachment", "size": True}), "messages[0].content[0].size"),
        (_content({"type": "attachment", "size": 1.5}), "messages[0].content[0].size"),
        (_content({"type": "tool_result", "is_error": "no"}), "messages[0].content[0].is_error"),
        (
            _content({"type": "tool_result", "content": [{"type": "text"}]}),
            "messages[0].content[0].content[0].text",
        ),
        ({"messages": [], "system": 5}, "system"),
        ({"messages": [], "system": [{"type": "text"}]}, "system[0].text"),
        ({"messages": [], "system": {"role": 5}}, "system.role"),
        ({"messages": [], "tools": [{"parameters": 5}]}, "tools[0].parameters"),
    ],
    ids=str,
)
def test_errors_name_the_place(value: Any, place: str) -> None:
    with pytest.raises(DialectError) as caught:
        enfold.parse(value)
    assert caught.value.place == place


@pytest.mark.parametrize(
    "value", [[{"role": "user", "content": Text("x" * 50)}], [{"role": "x" * 50}]]
)
def test_an_error_never_quotes_a_message(value: Any) -> None:
    with pytest.raises(DialectError) as caught:
        enfold.parse(value)
    assert "xxx" not in str(caught.value)


def test_deep_nesting_is_carried() -> None:
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    value = [
        {"role": "user", "content": [{"type": "data", "value": deep}, {"type": "x", "y": deep}]}
    ]
    assert enfold.render(enfold.parse(value))[0]["content"][0]["value"] is deep


# From other dialects


def test_a_conversation_from_elsewhere_leaves_its_own_fields_behind() -> None:
    parts: tuple[Part, ...] = (
        Reasoning("Hm.", {"signature": "c2ln"}),
        Text("Hi", {"cache_control": {}}),
        ToolResult("c", (Text("r", {"x": 1}), Unknown({"type": "odd"})), extras={"y": 1}),
        Unknown({"type": "odd"}),
    )
    conversation = Conversation(
        messages=(
            Message("user", parts, id="m", dialect="other", extras={"stop": 1}),
            Message("system", (Unknown({"type": "odd"}),), dialect="other"),
        ),
        dialect="other",
        tools=(Tool("find", parameters={}, extras={"type": "function"}),),
        extras={"model": "x"},
    )
    assert enfold.render(conversation) == {
        "messages": [
            {
                "id": "m",
                "role": "user",
                "content": [
                    {"type": "reasoning", "text": "Hm."},
                    {"type": "text", "text": "Hi"},
                    {"type": "tool_result", "tool_use_id": "c", "content": "r"},
                ],
            }
        ],
        "tools": [{"name": "find", "parameters": {}}],
    }
