"""The `gemini` dialect: everything comes back as it was, and other dialects arrive whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from enfold.wire import anthropic, gemini
from enfold.wire.translation import OPENING
from tests.wire import anthropic_values, gemini_values
from tests.wire.round_trips import (
    edited,
    fresh,
    parts_of,
    swapped,
)

NEW_TEXT = "changed to this"
SKIPPED = "skip_thought_signature_validator"

LOOP: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "What is in the files?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Look first.", "thought": True},
                {
                    "functionCall": {"name": "read", "args": {"path": "a"}},
                    "thoughtSignature": "c2ln",
                },
                {"functionCall": {"name": "read", "args": {"path": "b"}}},
                {"functionCall": {"name": "now"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"name": "now", "response": {"output": "noon"}}},
                {"functionResponse": {"name": "read", "response": {"error": "none"}}},
            ],
        },
    ],
    "tools": [
        {
            "functionDeclarations": [
                {"name": "read", "description": "Reads.", "parameters": {"type": "object"}},
                {"name": "now"},
            ]
        },
        {"googleSearch": {}},
    ],
}


# Parsing


def test_a_request_is_read_into_typed_values() -> None:
    conversation = gemini.parse(LOOP)
    question, reply, answered = conversation.messages
    assert conversation.system is not None
    assert conversation.system.role == "system"
    assert conversation.system.parts == (Text("Be brief.", {"text": "Be brief."}),)
    assert [question.role, reply.role, answered.role] == ["user", "assistant", "user"]
    assert reply.parts[0] == Reasoning("Look first.", LOOP["contents"][1]["parts"][0])
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert [call.arguments for call in calls] == [{"path": "a"}, {"path": "b"}, {}]
    results = [part for part in answered.parts if isinstance(part, ToolResult)]
    assert [result.parts for result in results] == [
        (Data({"output": "A"}),),
        (Data({"output": "noon"}),),
        (Data({"error": "none"}),),
    ]
    assert [result.is_error for result in results] == [False, False, True]
    assert [(tool.name, tool.description, tool.parameters) for tool in conversation.tools] == [
        ("read", "Reads.", {"type": "object"}),
        ("now", "", {}),
        ("googleSearch", "", None),
    ]


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        pytest.param(
            {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "a.png"}},
            Attachment(name="a.png", mime="image/png", size=2, data="aGk="),
            id="inline",
        ),
        pytest.param(
            {"inline_data": {"mime_type": "image/png", "data": "aGk="}},
            Attachment(mime="image/png", size=2, data="aGk="),
            id="inline in snake case",
        ),
        pytest.param(
            {"fileData": {"fileUri": "gs://a", "mimeType": "video/mp4"}, "videoMetadata": {}},
            Attachment(mime="video/mp4", url="gs://a"),
            id="by address",
        ),
        pytest.param({"text": "", "thoughtSignature": "c2ln"}, Reasoning(), id="a bare signature"),
        pytest.param({"thought_signature": "c2ln"}, Reasoning(), id="a signature alone"),
        pytest.param({"text": "Yes", "thought_signature": "c2ln"}, Text("Yes"), id="a signed text"),
        pytest.param(
            {"inlineData": {"data": "aGk="}, "thought": True}, Reasoning(), id="a thought in pixels"
        ),
        pytest.param({"text": "Yes", "inlineData": None}, Text("Yes"), id="a text beside nulls"),
        pytest.param({"executableCode": {"code": "1"}}, Unknown({}), id="code"),
        pytest.param({"videoMetadata": {"fps": 1}}, Unknown({}), id="metadata alone"),
    ],
)
def test_parts_are_known_by_their_field(raw: dict[str, Any], part: Part) -> None:
    assert gemini.parse_message({"parts": [raw]}).parts == (replace(part, extras=raw),)


def test_roles_are_read_and_a_missing_one_is_the_user() -> None:
    roles: list[dict[str, Any]] = [
        {"role": "user"},
        {"role": "model"},
        {"role": "function"},
        {"role": None},
        {},
    ]
    conversation = gemini.parse([{**role, "parts": []} for role in roles])
    assert [message.role for message in conversation.messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "user",
    ]


def test_files_within_a_result_follow_its_data() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    raw = {"functionResponse": {"name": "draw", "response": {"ok": True}, "parts": [picture]}}
    (result,) = gemini.parse_message({"parts": [raw]}).parts
    assert isinstance(result, ToolResult)
    assert result.parts == (
        Data({"ok": True}),
        Attachment(mime="image/png", size=2, data="aGk=", extras=picture),
    )


# Calls and their results


def test_calls_and_results_share_an_id_that_the_wire_never_sees() -> None:
    conversation = gemini.parse(LOOP)
    calls = {call.id: call.arguments for _, call in parts_of(conversation, ToolCall)}
    results = {result.call_id: result.parts for _, result in parts_of(conversation, ToolResult)}
    assert calls == {"read#1": {"path": "a"}, "read#2": {"path": "b"}, "now#1": {}}
    assert results == {
        "read#1": (Data({"output": "A"}),),
        "now#1": (Data({"output": "noon"}),),
        "read#2": (Data({"error": "none"}),),
    }
    assert "#" not in dump_text(gemini.render(conversation))


def test_an_id_of_the_wire_is_used_and_kept() -> None:
    contents = [
        {"role": "model", "parts": [{"functionCall": {"id": "x", "name": "a"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {}}}]},
    ]
    conversation = gemini.parse(contents)
    ((_, call),) = parts_of(conversation, ToolCall)
    ((_, result),) = parts_of(conversation, ToolResult)
    assert call.id == result.call_id == "x"
    assert gemini.render(conversation) == contents


def test_a_single_message_counts_its_own_calls() -> None:
    message = gemini.parse_message(LOOP["contents"][1])
    ids = [part.id for part in message.parts if isinstance(part, ToolCall)]
    assert ids == ["read#1", "read#2", "now#1"]


# Rendering


def test_a_result_with_an_empty_name_comes_back_as_it_was() -> None:
    value = {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": ""}}]}]}
    assert gemini.render(gemini.parse(value)) == value


# Edits


@given(st.data(), gemini_values.with_text)
def test_an_edited_text_is_the_only_change(data: st.DataObject, value: Any) -> None:
    wire = fresh(value)
    conversation = gemini.parse(wire)
    index, text = data.draw(st.sampled_from(parts_of(conversation, Text)))
    expected = swapped(wire, text.extras, {**text.extras, "text": NEW_TEXT})
    changed = edited(conversation, index, text, replace(text, text=NEW_TEXT))
    assert dump_text(gemini.render(changed)) == dump_text(expected)


@given(st.data(), gemini_values.with_call)
def test_an_edited_call_is_the_only_change(data: st.DataObject, value: Any) -> None:
    wire = fresh(value)
    conversation = gemini.parse(wire)
    index, call = data.draw(st.sampled_from(parts_of(conversation, ToolCall)))
    arguments = data.draw(st.sampled_from([{"a": 1}, '{"a": 1}']))
    inner = _inner(call.extras, "functionCall", "function_call")
    expected = swapped(wire, inner, {**inner, "args": {"a": 1}})
    changed = edited(conversation, index, call, replace(call, arguments=arguments))
    assert dump_text(gemini.render(changed)) == dump_text(expected)


@given(st.data(), gemini_values.with_result, st.booleans())
def test_an_edited_result_is_the_only_change(
    data: st.DataObject, value: Any, is_error: bool
) -> None:
    wire = fresh(value)
    conversation = gemini.parse(wire)
    index, result = data.draw(st.sampled_from(parts_of(conversation, ToolResult)))
    inner = _inner(result.extras, "functionResponse", "function_response")
    response = {"error" if is_error else "output": NEW_TEXT}
    expected = swapped(wire, inner, {**inner, "response": response})
    files = tuple(part for part in result.parts if not isinstance(part, Data))
    shorter = replace(result, parts=(Text(NEW_TEXT), *files), is_error=is_error)
    rendered = gemini.render(edited(conversation, index, result, shorter))
    assert dump_text(rendered) == dump_text(expected)


@given(st.data(), gemini_values.with_thought)
def test_a_dropped_thought_is_gone_and_nothing_else(data: st.DataObject, value: Any) -> None:
    wire = fresh(value)
    conversation = gemini.parse(wire)
    index, thought = data.draw(st.sampled_from(parts_of(conversation, Reasoning)))
    holder = conversation.messages[index].extras
    before = holder["parts"] if isinstance(holder["parts"], list) else [holder["parts"]]
    kept = [part for part in before if part is not thought.extras]
    expected = swapped(wire, holder, {**holder, "parts": kept})
    assert dump_text(gemini.render(edited(conversation, index, thought))) == dump_text(expected)


def _inner(part: dict[str, Any], *spellings: str) -> dict[str, Any]:
    return next(part[key] for key in spellings if key in part)


def test_edited_data_is_the_response() -> None:
    conversation = gemini.parse(LOOP)
    index, result = parts_of(conversation, ToolResult)[0]
    changed = edited(conversation, index, result, replace(result, parts=(Data({"rows": 2}),)))
    (part, *_) = gemini.render(changed)["contents"][2]["parts"]
    assert part == {"functionResponse": {"name": "read", "response": {"rows": 2}}}


def test_a_single_object_stays_an_object_until_a_second_comes() -> None:
    body = {"contents": {"parts": {"text": "Hi"}}, "system_instruction": {"parts": {"text": "S"}}}
    conversation = gemini.parse(body)
    assert gemini.render(conversation) == body
    more = Message("assistant", (Text("Yo"),))
    longer = replace(conversation, messages=(*conversation.messages, more))
    assert gemini.render(longer)["contents"] == [
        {"parts": {"text": "Hi"}},
        {"role": "model", "parts": [{"text": "Yo"}]},
    ]


def test_the_system_prompt_can_be_changed_removed_and_added() -> None:
    conversation = gemini.parse(LOOP)
    assert conversation.system is not None
    longer = replace(conversation.system, parts=(*conversation.system.parts, Text("Be kind.")))
    assert gemini.render(replace(conversation, system=longer))["systemInstruction"] == {
        "parts": [{"text": "Be brief."}, {"text": "Be kind."}]
    }
    assert "systemInstruction" not in gemini.render(replace(conversation, system=None))
    bare = gemini.parse(LOOP["contents"])
    assert gemini.render(replace(bare, system=Message("system", (Text("Be kind."),)))) == {
        "contents": LOOP["contents"],
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
    }


def test_a_tool_can_be_added() -> None:
    conversation = gemini.parse(LOOP)
    more = replace(conversation, tools=(*conversation.tools, Tool("recall", "Finds.")))
    assert gemini.render(more)["tools"] == [
        *LOOP["tools"],
        {"functionDeclarations": [{"name": "recall", "description": "Finds."}]},
    ]


# Refused values


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("text", ""),
        ({"messages": []}, ""),
        ({"contents": 5}, "contents"),
        ([1], "contents[0]"),
        ([{}], "contents[0]"),
        ([{"text": "Hi"}], "contents[0]"),
        ([{"role": "assistant", "parts": []}], "contents[0].role"),
        ([{"role": 1, "parts": []}], "contents[0].role"),
        ([{"parts": "Hi"}], "contents[0].parts"),
        ([{"parts": ["Hi"]}], "contents[0].parts[0]"),
        ([{"parts": [{"text": 1}]}], "contents[0].parts[0].text"),
        ([{"parts": [{"text": "x", "thought": "yes"}]}], "contents[0].parts[0].thought"),
        ([{"parts": [{"inlineData": {}}]}], "contents[0].parts[0].inlineData.data"),
        ([{"parts": [{"file_data": {}}]}], "contents[0].parts[0].file_data.fileUri"),
        ([{"parts": [{"functionCall": []}]}], "contents[0].parts[0].functionCall"),
        ([{"parts": [{"functionCall": {}}]}], "contents[0].parts[0].functionCall.name"),
        (
            [{"parts": [{"functionCall": {"name": "a", "args": "{}"}}]}],
            "contents[0].parts[0].functionCall.args",
        ),
        (
            [{"parts": [{"functionResponse": {"name": "a", "response": "ok"}}]}],
            "contents[0].parts[0].functionResponse.response",
        ),
        (
            [{"parts": [{"functionResponse": {"name": "a", "parts": [{"inlineData": 1}]}}]}],
            "contents[0].parts[0].functionResponse.parts[0].inlineData",
        ),
        ({"contents": [], "systemInstruction": "Be brief."}, "systemInstruction"),
        (
            {"contents": [], "system_instruction": {"parts": [1]}},
            "system_instruction.parts[0]",
        ),
        ({"contents": [], "tools": 1}, "tools"),
        (
            {"contents": [], "tools": [{"functionDeclarations": [{}]}]},
            "tools[0].functionDeclarations[0].name",
        ),
    ],
)
def test_errors_name_the_place(value: Any, place: str) -> None:
    with pytest.raises(DialectError) as caught:
        gemini.parse(value)
    assert caught.value.place == place


# From other dialects


def test_a_conversation_from_elsewhere_is_translated() -> None:
    conversation = Conversation(
        messages=(
            Message("system", (Text("Be brief."),), dialect="openai", extras={"role": "developer"}),
            Message("user", (Text("Read both.", {"type": "input"}),), dialect="openai"),
            Message(
                "assistant",
                (
                    Reasoning("Hm.", {"reasoning_content": "Hm."}),
                    ToolCall("call_1", "read", '{"path": "a"}', {"type": "function"}),
                    ToolCall("call_2", "list", "{}"),
                ),
                dialect="openai",
            ),
            Message("tool", (ToolResult("call_1", (Text("A"),)),), dialect="openai"),
            Message(
                "tool", (ToolResult("call_2", (Text("no"),), is_error=True),), dialect="openai"
            ),
            Message("user", (Text("And?"),), dialect="openai"),
        ),
        dialect="openai",
        tools=(Tool("read", "Reads.", {"type": "object"}, {"type": "function"}),),
        extras={"model": "gpt", "messages": []},
    )
    assert gemini.render(conversation) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Read both."}]},
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"id": "call_1", "name": "read", "args": {"path": "a"}},
                        "thoughtSignature": SKIPPED,
                    },
                    {
                        "functionCall": {"id": "call_2", "name": "list"},
                        "thoughtSignature": SKIPPED,
                    },
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "call_1",
                            "name": "read",
                            "response": {"output": "A"},
                        }
                    },
                    {
                        "functionResponse": {
                            "id": "call_2",
                            "name": "list",
                            "response": {"error": "no"},
                        }
                    },
                    {"text": "And?"},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read",
                        "description": "Reads.",
                        "parametersJsonSchema": {"type": "object"},
                    }
                ]
            }
        ],
    }


def test_a_conversation_of_messages_alone_stays_a_bare_array() -> None:
    conversation = Conversation((Message("assistant", (Text("Welcome."),)),))
    assert gemini.render(conversation) == [
        {"role": "user", "parts": [{"text": OPENING}]},
        {"role": "model", "parts": [{"text": "Welcome."}]},
    ]


@pytest.mark.parametrize(
    ("parts", "response"),
    [
        ((), {"output": ""}),
        ((Text("a"), Text("b")), {"output": "a\n\nb"}),
        ((Data({"a": 1}),), {"a": 1}),
        ((Data([1]),), {"output": [1]}),
        ((Text("a"), Data([1])), {"output": "a\n\n[1]"}),
    ],
    ids=["nothing", "texts", "an object", "an array", "a mixture"],
)
def test_the_text_of_a_tool_becomes_an_object(parts: tuple[Any, ...], response: Any) -> None:
    message = Message("tool", (ToolResult("1", parts, name="run"),))
    assert gemini.render_message(message) == {
        "role": "user",
        "parts": [{"functionResponse": {"id": "1", "name": "run", "response": response}}],
    }


def test_foreign_files_stand_next_to_or_within_a_result() -> None:
    inline = Attachment(mime="image/png", data="aGk=", extras={"type": "image"})
    address = Attachment(url="https://example.org/a.pdf", mime="application/pdf")
    message = Message(
        "user", (inline, ToolResult("1", (address,), name="get")), dialect="anthropic"
    )
    result, picture = gemini.render_message(message)["parts"]
    assert picture == {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    assert result["functionResponse"]["parts"] == [
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}}
    ]


def test_a_thought_made_by_hand_in_this_dialect_is_written() -> None:
    message = Message("assistant", (Reasoning("Hm."),), dialect="gemini")
    assert gemini.render_message(message) == {
        "role": "model",
        "parts": [{"text": "Hm.", "thought": True}],
    }


def test_a_message_made_by_hand_leaves_its_neighbours_as_they_were() -> None:
    conversation = gemini.parse(LOOP)
    first, *rest = conversation.messages
    summary = Message("user", (Text("What was said before."),))
    rendered = gemini.render(replace(conversation, messages=(first, summary, *rest)))
    assert rendered["contents"] == [
        LOOP["contents"][0],
        {"role": "user", "parts": [{"text": "What was said before."}]},
        *LOOP["contents"][1:],
    ]


@given(anthropic_values.values)
def test_anthropic_conversations_become_valid_gemini_turns(value: Any) -> None:
    rendered = gemini.render(anthropic.parse(value))
    contents = rendered if isinstance(rendered, list) else rendered["contents"]
    for index, content in enumerate(contents):
        assert content["role"] == ("user", "model")[index % 2]
        parts = content["parts"]
        assert parts
        is_result = ["functionResponse" in part for part in parts]
        assert is_result == sorted(is_result, reverse=True)
        assert all(part["text"].strip() for part in parts if "text" in part)
    assert gemini.render(gemini.parse(rendered)) == rendered
