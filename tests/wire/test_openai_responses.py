from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import DialectError
from enfold.jsontext import dumps
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.wire import openai_responses
from tests.wire import openai_responses_values as values
from tests.wire.openai_values import foreign_conversations
from tests.wire.round_trips import edited, parts_of, swapped

parse = openai_responses.parse
render = openai_responses.render
parse_message = openai_responses.parse_message
render_message = openai_responses.render_message


# Untouched messages come back unchanged.


@given(values.conversations)
def test_nothing_that_is_given_is_changed(value: Any) -> None:
    before = dumps(value)
    conversation = parse(value)
    render(replace(conversation, messages=conversation.messages[1:], tools=(), system=None))
    assert dumps(value) == before


@given(values.conversations)
def test_an_item_is_a_message(value: Any) -> None:
    given_input = value if isinstance(value, list) else value.get("input")
    items = [given_input] if isinstance(given_input, str) else given_input or []
    assert len(parse(value).messages) == len(items)


@pytest.mark.parametrize(
    "body",
    [
        {"input": "hi"},
        {"input": ""},
        {"input": [], "instructions": ""},
        {"input": [{"content": "role comes last", "role": "user"}]},
        {"input": [{"role": "assistant"}], "instructions": None},
        {"prompt": {"id": "pmpt_1"}},
        {"conversation": "conv_1", "input": None, "tools": []},
    ],
    ids=repr,
)
def test_an_unusual_body_comes_back_as_it_was(body: Any) -> None:
    assert dumps(render(parse(body))) == dumps(body)


# Typed fields.


def test_a_request_is_read() -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    body = {
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [
            {"role": "developer", "content": "Use tools."},
            {"role": "user", "content": [{"type": "input_text", "text": "Read it"}]},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "I should"}],
                "content": [{"type": "reasoning_text", "text": "read"}],
                "encrypted_content": "gAAA",
            },
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAA"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "a",
                "name": "read",
                "arguments": "{",
                "status": "completed",
            },
            {"type": "custom_tool_call", "call_id": "b", "name": "sh", "input": "ls"},
            {"type": "function_call_output", "call_id": "a", "output": "found", "name": "read"},
            {
                "type": "custom_tool_call_output",
                "call_id": "b",
                "output": [
                    {"type": "input_text", "text": "seen"},
                    {"type": "input_image", "file_id": "file-1"},
                ],
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": "Done", "annotations": []},
                    {"type": "refusal", "refusal": "but not that"},
                ],
            },
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        ],
        "tools": [
            {"type": "function", "name": "read", "description": "Reads", "parameters": parameters},
            {"type": "custom", "name": "sh"},
            {"type": "web_search"},
        ],
    }
    conversation = parse(body)
    raw: Any = body["input"]
    assert conversation.extras is body
    assert conversation.dialect == "openai-responses"
    assert conversation.system is not None
    assert (conversation.system.role, conversation.system.parts) == ("system", (Text("Be brief."),))
    assert [(message.role, message.id, message.parts) for message in conversation.messages] == [
        ("system", None, (Text("Use tools."),)),
        ("user", None, (Text("Read it", raw[1]["content"][0]),)),
        ("assistant", "rs_1", (Reasoning("I should\n\nread", raw[2]),)),
        ("assistant", "rs_2", (Reasoning("", raw[3]),)),
        ("assistant", "fc_1", (ToolCall("a", "read", "{", raw[4]),)),
        ("assistant", None, (ToolCall("b", "sh", "ls", raw[5]),)),
        ("tool", None, (ToolResult("a", (Text("found"),), name="read", extras=raw[6]),)),
        (
            "tool",
            None,
            (
                ToolResult(
                    "b",
                    (
                        Text("seen", raw[7]["output"][0]),
                        Attachment(extras=raw[7]["output"][1]),
                    ),
                    extras=raw[7],
                ),
            ),
        ),
        (
            "assistant",
            "msg_1",
            (Text("Done", raw[8]["content"][0]), Text("but not that", raw[8]["content"][1])),
        ),
        ("assistant", "ws_1", (Unknown(raw[9]),)),
    ]
    assert {message.dialect for message in conversation.messages} == {"openai-responses"}
    assert [(tool.name, tool.description, tool.parameters) for tool in conversation.tools] == [
        ("read", "Reads", parameters),
        ("sh", "", None),
        ("", "", None),
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
            Attachment(mime="image/png", size=2, data="aGk="),
        ),
        (
            {"type": "input_image", "image_url": "https://example.org/a.png"},
            Attachment(url="https://example.org/a.png"),
        ),
        ({"type": "input_image", "image_url": None, "file_id": "file-1"}, Attachment()),
        (
            {"type": "input_file", "file_data": "aGk=", "filename": "a.pdf"},
            Attachment(name="a.pdf", size=2, data="aGk="),
        ),
        (
            {"type": "input_file", "file_data": "data:text/plain;base64,aGk="},
            Attachment(mime="text/plain", size=2, data="aGk="),
        ),
        (
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            Attachment(url="https://example.org/a.pdf"),
        ),
        ({"type": "input_file", "file_id": "file-1"}, Attachment()),
        (
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            Attachment(mime="audio/wav", size=2, data="aGk="),
        ),
        ({"type": "computer_screenshot"}, Unknown({})),
    ],
    ids=repr,
)
def test_a_block_is_read(raw: Any, expected: Any) -> None:
    (part,) = parse_message({"role": "user", "content": [raw]}).parts
    assert part == replace(expected, extras=raw)


@pytest.mark.parametrize("raw", [{"id": "msg_1"}, {"id": "msg_1", "type": None}], ids=repr)
def test_a_reference_may_leave_out_its_type(raw: Any) -> None:
    message = parse_message(raw)
    assert (message.role, message.id, message.parts) == ("assistant", "msg_1", (Unknown(raw),))


def test_a_text_is_what_the_user_says() -> None:
    (message,) = parse({"input": "hi"}).messages
    assert (message.role, message.parts) == ("user", (Text("hi"),))


# An edit shows, and nothing else.


@given(values.with_texts, st.data())
def test_an_edited_text_shows(value: Any, data: st.DataObject) -> None:
    conversation = parse(value)
    index, part = data.draw(st.sampled_from(parts_of(conversation, Text)))
    before = conversation.messages[index].extras
    if not part.extras:
        expected = swapped(value, before, {**before, "content": "new"})
    else:
        key = "refusal" if part.extras["type"] == "refusal" else "text"
        expected = swapped(value, part.extras, {**part.extras, key: "new"})
    changed = edited(conversation, index, part, replace(part, text="new"))
    assert dumps(render(changed)) == dumps(expected)


@given(values.with_calls, st.data())
def test_edited_arguments_show(value: Any, data: st.DataObject) -> None:
    conversation = parse(value)
    index, call = data.draw(st.sampled_from(parts_of(conversation, ToolCall)))
    key = {"function_call": "arguments", "custom_tool_call": "input"}[call.extras["type"]]
    expected = swapped(value, call.extras, {**call.extras, key: "new"})
    changed = edited(conversation, index, call, replace(call, arguments="new"))
    assert dumps(render(changed)) == dumps(expected)


@given(values.with_results, st.data())
def test_an_edited_result_shows(value: Any, data: st.DataObject) -> None:
    conversation = parse(value)
    index, result = data.draw(st.sampled_from(parts_of(conversation, ToolResult)))
    expected = swapped(value, result.extras, {**result.extras, "output": "new"})
    changed = edited(conversation, index, result, replace(result, parts=(Text("new"),)))
    assert dumps(render(changed)) == dumps(expected)


@given(values.with_one_part, st.data())
def test_an_item_that_is_one_part_goes_with_it(items: Any, data: st.DataObject) -> None:
    conversation = parse(items)
    kinds = (Reasoning, ToolCall, ToolResult)
    found = [spot for kind in kinds for spot in parts_of(conversation, kind)]
    index, part = data.draw(st.sampled_from(found))
    assert render(edited(conversation, index, part)) == items[:index] + items[index + 1 :]


def test_without_its_text_a_message_is_empty() -> None:
    raw = {"type": "message", "id": "msg_1", "role": "user", "content": "text"}
    message = replace(parse_message(raw), parts=())
    assert render_message(message) == {**raw, "content": ""}


def test_a_text_stays_one_while_it_is_one_plain_text() -> None:
    body = {"input": "hi", "model": "m"}
    conversation = parse(body)
    (message,) = conversation.messages
    new = replace(message, parts=(Text("hey"),))
    assert render(replace(conversation, messages=(new,))) == {"input": "hey", "model": "m"}
    assert render(replace(conversation, messages=())) == {"input": [], "model": "m"}
    answer = Message("assistant", (Text("hello"),))
    item = {"type": "message", "role": "user", "content": "hi"}
    assert render(replace(conversation, messages=(message, answer))) == {
        "input": [item, {"type": "message", "role": "assistant", "content": "hello"}],
        "model": "m",
    }
    with_image = replace(message, parts=(*message.parts, Attachment(mime="image/png", data="aGk=")))
    assert render(replace(conversation, messages=(with_image,)))["input"] == [
        {
            **item,
            "content": [
                {"type": "input_text", "text": "hi"},
                {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": "data:image/png;base64,aGk=",
                },
            ],
        }
    ]


def test_a_new_text_joins_those_of_the_wire() -> None:
    block = {"type": "output_text", "text": "old", "annotations": [{"type": "url_citation"}]}
    raw = {"type": "message", "id": "msg_1", "role": "assistant", "content": [block]}
    message = parse_message(raw)
    more = replace(message, parts=(*message.parts, Text("new")))
    added = {"type": "output_text", "text": "new", "annotations": []}
    assert render_message(more) == {**raw, "content": [block, added]}


def test_instructions_can_be_added_changed_and_removed() -> None:
    body = {"instructions": "Be brief.", "input": []}
    conversation = parse(body)
    system = Message("system", (Text("Be long."), Text("Be kind.")))
    assert render(replace(conversation, system=system)) == {
        "instructions": "Be long.\n\nBe kind.",
        "input": [],
    }
    assert render(replace(conversation, system=None)) == {"input": []}
    assert render(replace(parse({"input": []}), system=system)) == {
        "input": [],
        "instructions": "Be long.\n\nBe kind.",
    }


def test_every_typed_field_of_an_item_is_written() -> None:
    raw = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}
    message = parse_message(raw)
    (call,) = message.parts
    assert isinstance(call, ToolCall)
    renamed = replace(message, parts=(replace(call, id="b", name="g"),))
    assert render_message(renamed) == {**raw, "call_id": "b", "name": "g"}
    output = {"type": "function_call_output", "call_id": "a", "output": "x", "name": "f"}
    message = parse_message(output)
    (result,) = message.parts
    assert isinstance(result, ToolResult)
    renamed = replace(message, parts=(replace(result, call_id="b", name="g"),))
    assert render_message(renamed) == {**output, "call_id": "b", "name": "g"}
    item = {"role": "developer", "content": "x"}
    assert render_message(replace(parse_message(item), role="user")) == {**item, "role": "user"}


def test_tools_can_be_added_changed_and_removed() -> None:
    tool = {"type": "function", "name": "f", "parameters": None, "strict": True, "x": 1}
    body = {"input": [], "tools": [tool, {"type": "web_search"}]}
    conversation = parse(body)
    first, second = conversation.tools
    new = Tool("g", "Does g", {"type": "object"})
    changed = replace(conversation, tools=(replace(first, description="Does f"), second, new))
    assert render(changed)["tools"] == [
        {**tool, "description": "Does f"},
        {"type": "web_search"},
        {
            "type": "function",
            "name": "g",
            "description": "Does g",
            "parameters": {"type": "object"},
            "strict": False,
        },
    ]
    assert render(replace(conversation, tools=())) == {"input": []}


# Messages of other dialects are translated.


@given(foreign_conversations)
def test_translated_messages_belong_to_this_dialect(conversation: Conversation) -> None:
    rendered = render(conversation)
    assert dumps(render(parse(rendered))) == dumps(rendered)


def foreign(*messages: Message, **fields: Any) -> Conversation:
    return Conversation(messages, dialect="enfold", **fields)


def test_a_turn_with_tools_is_translated() -> None:
    conversation = foreign(
        Message("user", (Text("Look"), Attachment(mime="image/png", data="aGk=")), name="Ann"),
        Message(
            "assistant",
            (
                Reasoning("hm", {"signature": "s"}),
                Text("Looking", {"citations": []}),
                ToolCall("a", "read", {"path": "x"}, {"caller": 1}),
                ToolCall("b", "read", "{}"),
            ),
            id="m1",
            extras={"stop_reason": "tool_use"},
        ),
        Message(
            "user",
            (
                Text("and this?"),
                ToolResult("a", (Text("one"), Attachment(url="https://x/a")), name="read"),
                ToolResult("b", (Data({"n": 1}),), is_error=True),
            ),
        ),
        Message("assistant", (Text("first"), Text("second"))),
        system=Message("system", (Text("Be brief."),)),
        tools=(Tool("read", "Reads", {"type": "object"}), Tool("search", extras={"type": "s_1"})),
        extras={"max_tokens": 5},
    )
    assert render(conversation) == {
        "instructions": "Be brief.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look"},
                    {
                        "type": "input_image",
                        "detail": "auto",
                        "image_url": "data:image/png;base64,aGk=",
                    },
                ],
            },
            {"type": "message", "role": "assistant", "content": "Looking"},
            {
                "type": "function_call",
                "call_id": "a",
                "name": "read",
                "arguments": '{"path":"x"}',
            },
            {"type": "function_call", "call_id": "b", "name": "read", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "a",
                "output": [
                    {"type": "input_text", "text": "one"},
                    {"type": "input_image", "detail": "auto", "image_url": "https://x/a"},
                ],
            },
            {"type": "function_call_output", "call_id": "b", "output": 'Error: {"n":1}'},
            {"type": "message", "role": "user", "content": "and this?"},
            {"type": "message", "role": "assistant", "content": "first"},
            {"type": "message", "role": "assistant", "content": "second"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
    }


def test_without_a_body_the_system_prompt_is_an_item() -> None:
    conversation = foreign(
        Message("user", (Text("hi"),)), system=Message("system", (Text("Be brief."),))
    )
    assert render(conversation) == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {"type": "message", "role": "user", "content": "hi"},
    ]


@pytest.mark.parametrize(
    ("parts", "output"),
    [
        ((Text("no such file"),), "Error: no such file"),
        ((Text("Error: no such file"),), "Error: no such file"),
        ((), "Error: "),
    ],
    ids=repr,
)
def test_a_failure_is_written_as_text(parts: Any, output: str) -> None:
    message = Message("tool", (ToolResult("a", parts, is_error=True),))
    assert render_message(message) == {
        "type": "function_call_output",
        "call_id": "a",
        "output": output,
    }


@pytest.mark.parametrize(
    ("file", "block"),
    [
        (
            Attachment(name="a.pdf", mime="application/pdf", data="aGk="),
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,aGk=",
            },
        ),
        (
            Attachment(mime="application/pdf", url="https://example.org/a"),
            {"type": "input_file", "file_url": "https://example.org/a"},
        ),
        (Attachment(extras={"file_id": "f"}), {"type": "input_text", "text": "[attachment]"}),
    ],
    ids=repr,
)
def test_a_file_is_translated(file: Attachment, block: Any) -> None:
    rendered = render_message(Message("user", (Text("see"), file)))
    assert rendered["content"] == [{"type": "input_text", "text": "see"}, block]


def test_an_assistant_sends_no_files() -> None:
    picture = Attachment(name="a.png", mime="image/png", data="aGk=")
    rendered = render_message(Message("assistant", (picture,)))
    assert rendered["content"] == "[attachment: a.png, image/png]"


def test_calls_without_ids_are_paired_with_their_results() -> None:
    call, result = render(
        foreign(
            Message("assistant", (ToolCall("", "read", {}),)),
            Message("user", (ToolResult("", (Text("done"),), name="read"),)),
        )
    )
    assert call["call_id"]
    assert result["call_id"] == call["call_id"]


def test_an_id_that_is_too_long_is_replaced_in_call_and_result() -> None:
    call, result, other, fits = render(
        foreign(
            Message("assistant", (ToolCall("x" * 41, "read", "{}"),)),
            Message("tool", (ToolResult("x" * 41, (Text("done"),)),)),
            Message("tool", (ToolResult("y" * 41, (Text("done"),)),)),
            Message("tool", (ToolResult("x" * 40, (Text("done"),)),)),
        )
    )
    assert result["call_id"] == call["call_id"]
    assert len(result["call_id"]) <= 40
    assert other["call_id"] != result["call_id"]
    assert fits["call_id"] == "x" * 40


def test_a_new_message_among_those_of_the_wire_changes_none_of_them() -> None:
    items = [{"type": "function_call", "name": "f"}, {"type": "function_call_output", "output": ""}]
    conversation = parse({"model": "m", "input": items})
    summary = Message("system", (Text("Before: much."),))
    rendered = render(replace(conversation, messages=(summary, *conversation.messages)))
    summary_item = {"type": "message", "role": "system", "content": "Before: much."}
    assert rendered == {"model": "m", "input": [summary_item, *items]}


def test_a_message_of_several_items_is_refused_alone() -> None:
    message = Message("assistant", (Text("x"), ToolCall("a", "f", "{}")))
    with pytest.raises(DialectError, match="2 entries in openai-responses"):
        render_message(message)


def test_reasoning_made_by_hand_is_refused() -> None:
    message = Message("assistant", (Reasoning("hm"),), dialect="openai-responses")
    with pytest.raises(DialectError, match="Reasoning part"):
        render_message(message)


# Foreign values are refused, with their place.


def with_blocks(*blocks: Any) -> Any:
    return [{"role": "user", "content": "x"}, {"role": "user", "content": list(blocks)}]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (5, ""),
        ("hi", ""),
        ({}, ""),
        ({"messages": []}, ""),
        ({"input": None}, "input"),
        ({"input": {}}, "input"),
        ({"input": 5, "previous_response_id": "r"}, "input"),
        ({"input": [], "instructions": ["x"]}, "instructions"),
        ({"input": [], "tools": {}}, "tools"),
        ({"input": [], "tools": [None]}, "tools[0]"),
        ({"input": [], "tools": [{"type": "function", "name": 5}]}, "tools[0].name"),
        (
            {"input": [], "tools": [{"type": "function", "name": "f", "parameters": []}]},
            "tools[0].parameters",
        ),
        ([None], "input[0]"),
        ([{}], "input[0].role"),
        ([{"type": 5}], "input[0].type"),
        ([{"role": "tool"}], "input[0].role"),
        ([{"role": "user", "id": 5}], "input[0].id"),
        ([{"type": "web_search_call", "id": 5}], "input[0].id"),
        ([{"role": "user", "content": 5}], "input[0].content"),
        (with_blocks(5), "input[1].content[0]"),
        (with_blocks({"type": "input_text"}), "input[1].content[0].text"),
        (with_blocks({"type": "refusal"}), "input[1].content[0].refusal"),
        (with_blocks({"type": "input_image", "image_url": 5}), "input[1].content[0].image_url"),
        (with_blocks({"type": "input_file", "file_url": 5}), "input[1].content[0].file_url"),
        (with_blocks({"type": "input_file", "file_data": 5}), "input[1].content[0].file_data"),
        (
            with_blocks({"type": "input_audio", "input_audio": {}}),
            "input[1].content[0].input_audio.data",
        ),
        ([{"type": "function_call", "arguments": 5}], "input[0].arguments"),
        ([{"type": "function_call", "call_id": 5}], "input[0].call_id"),
        ([{"type": "custom_tool_call", "name": 5}], "input[0].name"),
        ([{"type": "custom_tool_call", "input": []}], "input[0].input"),
        ([{"type": "function_call_output", "call_id": 5}], "input[0].call_id"),
        ([{"type": "function_call_output", "output": {}}], "input[0].output"),
        ([{"type": "function_call_output", "output": [5]}], "input[0].output[0]"),
        ([{"type": "reasoning", "summary": "x"}], "input[0].summary"),
        ([{"type": "reasoning", "summary": [{"text": 5}]}], "input[0].summary[0].text"),
        ([{"type": "reasoning", "content": [5]}], "input[0].content[0]"),
    ],
    ids=repr,
)
def test_errors_name_the_place(value: Any, place: str) -> None:
    with pytest.raises(DialectError) as caught:
        parse(value)
    assert caught.value.place == place


def test_tools_that_an_item_declares_are_the_developers() -> None:
    tools = [{"type": "namespace"}]
    item = {"type": "additional_tools", "role": "developer", "tools": tools}
    parsed = openai_responses.parse([item])
    assert parsed.messages[0].role == "system"
    assert openai_responses.render(parsed) == [item]
    assert openai_responses.WIRE.tools_in(dumps(item)) == tools
    quoted = {"role": "user", "content": dumps(item).decode()}
    assert not openai_responses.WIRE.tools_in(dumps(quoted))


@pytest.mark.parametrize(
    ("kind", "role"),
    [("compaction", "system"), ("compaction_summary", "system"), ("compaction_trigger", "user")],
)
def test_compactions_of_the_provider_stay_as_they_are(kind: str, role: str) -> None:
    item = {"type": kind, "id": "cmp_1", "encrypted_content": "opaque"}
    parsed = openai_responses.parse([item])
    assert parsed.messages[0].role == role
    assert openai_responses.render(parsed) == [item]
