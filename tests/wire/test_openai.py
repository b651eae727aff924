from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
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
from enfold.wire import openai
from tests.wire import openai_values as values
from tests.wire.round_trips import edited, parts_of, swapped

_REASONING_FIELDS = tuple(values.thoughts)


# Untouched messages come back unchanged.


@given(values.conversations)
def test_nothing_that_is_given_is_changed(value: Any) -> None:
    before = dumps(value)
    conversation = openai.parse(value)
    openai.render(replace(conversation, messages=conversation.messages[1:], tools=()))
    assert dumps(value) == before


@pytest.mark.parametrize(
    "raw",
    [
        {"content": "role comes last", "role": "user"},
        {"role": "assistant", "refusal": "no"},
        {"role": "assistant", "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": [{"text": "type comes last", "type": "text"}]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": [{}]},
        {"role": "user", "content": "x", "tool_calls": [{"id": "a"}], "reasoning": "r"},
        {"role": "tool", "content": "x", "tool_call_id": "a", "name": "f"},
        {"role": "function", "content": None, "name": "f"},
        {"role": "assistant", "function_call": {"name": "f", "arguments": None}},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
    ],
    ids=repr,
)
def test_an_unusual_message_comes_back_as_it_was(raw: Any) -> None:
    assert dumps(openai.render_message(openai.parse_message(raw))) == dumps(raw)


# Typed fields.


def test_a_request_is_read() -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    function = {"name": "read", "description": "Reads a file", "parameters": parameters}
    body = {
        "model": "gpt-5",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Read it", "name": "ann", "id": "m1"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "I should read",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{"}},
                    {"id": "b", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "found"}]},
        ],
        "tools": [
            {"type": "function", "function": function},
            {"type": "custom", "custom": {"name": "sh", "description": "A shell"}},
            {"type": "web_search"},
        ],
        "functions": [{"name": "old"}],
    }
    conversation = openai.parse(body)
    system, user, assistant, tool = conversation.messages
    assert (system.role, system.parts) == ("system", (Text("Be brief."),))
    assert (user.role, user.parts, user.name, user.id) == ("user", (Text("Read it"),), "ann", "m1")
    thought, first, second = assistant.parts
    assert isinstance(thought, Reasoning)
    assert thought.text == "I should read"
    assert isinstance(first, ToolCall)
    assert (first.id, first.name, first.arguments) == ("a", "read", "{")
    assert isinstance(second, ToolCall)
    assert (second.id, second.name, second.arguments) == ("b", "sh", "ls")
    (result,) = tool.parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.parts[0]) == ("a", Text("found", result.parts[0].extras))
    assert [(tool.name, tool.description, tool.parameters) for tool in conversation.tools] == [
        ("read", "Reads a file", parameters),
        ("sh", "A shell", None),
        ("", "", None),
        ("old", "", {}),
    ]
    assert conversation.extras is body
    assert conversation.dialect == "openai"
    assert {message.dialect for message in conversation.messages} == {"openai"}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"type": "text", "text": "hi"}, Text("hi")),
        ({"type": "refusal", "refusal": "no"}, Text("no")),
        (
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            Attachment(url="https://example.org/a.png"),
        ),
        (
            {"type": "image_url", "image_url": "data:image/png;base64,aGk="},
            Attachment(mime="image/png", size=2, data="aGk="),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "aGVsbG8h", "format": "mp3"}},
            Attachment(mime="audio/mp3", size=6, data="aGVsbG8h"),
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "aGk="}},
            Attachment(name="a.pdf", size=2, data="aGk="),
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}},
            Attachment(mime="application/pdf", size=2, data="aGk="),
        ),
        ({"type": "file", "file": {"file_id": "file-1"}}, Attachment()),
        ({"type": "video_url", "video_url": {"url": "x"}}, Unknown({})),
    ],
    ids=repr,
)
def test_a_block_is_read(raw: Any, expected: Any) -> None:
    (part,) = openai.parse_message({"role": "user", "content": [raw]}).parts
    assert part == replace(expected, extras=raw)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "text": "b"}]}, "a"),
        ({"reasoning_details": [{"text": "a"}, {"summary": "b"}, {"data": "c"}, 5]}, "a\n\nb"),
        ({"thinking_blocks": [{"thinking": "a", "signature": "s"}]}, "a"),
        ({"reasoning_opaque": "sealed"}, ""),
        ({"reasoning_details": {"not": "an array"}}, ""),
    ],
    ids=repr,
)
def test_reasoning_is_one_part_with_what_can_be_read(fields: Any, text: str) -> None:
    raw = {"role": "assistant", "content": "", **fields}
    assert openai.parse_message(raw).parts == (Reasoning(text, fields),)


def test_a_refusal_is_text() -> None:
    raw = {"role": "assistant", "content": None, "refusal": "I will not"}
    (refusal,) = openai.parse_message(raw).parts
    assert isinstance(refusal, Text)
    assert refusal.text == "I will not"


def test_functions_of_the_old_kind_are_calls_and_results() -> None:
    called = openai.parse_message(
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    )
    answered = openai.parse_message({"role": "function", "name": "f", "content": "done"})
    (call,) = called.parts
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("", "f", "{}")
    assert answered.role == "tool"
    assert answered.parts == (ToolResult("", (Text("done"),), name="f"),)


# An edit shows, and nothing else.


@given(values.with_texts, st.data())
def test_an_edited_text_shows(value: Any, data: st.DataObject) -> None:
    conversation = openai.parse(value)
    index, part = data.draw(st.sampled_from(parts_of(conversation, Text)))
    before = conversation.messages[index].extras
    if not part.extras:
        expected = swapped(value, before, {**before, "content": "new"})
    elif part.extras.keys() == {"refusal"}:
        expected = swapped(value, before, {**before, "refusal": "new"})
    else:
        key = part.extras["type"]
        expected = swapped(value, part.extras, {**part.extras, key: "new"})
    changed = edited(conversation, index, part, replace(part, text="new"))
    assert dumps(openai.render(changed)) == dumps(expected)


@given(values.with_calls, st.data())
def test_edited_arguments_show(value: Any, data: st.DataObject) -> None:
    conversation = openai.parse(value)
    found = [(i, call) for i, call in parts_of(conversation, ToolCall) if call.name]
    assume(found)
    index, call = data.draw(st.sampled_from(found))
    kind = next(key for key in ("function", "custom", "function_call") if key in call.extras)
    inner = call.extras[kind]
    key = "input" if kind == "custom" else "arguments"
    expected = swapped(value, inner, {**inner, key: "new"})
    changed = edited(conversation, index, call, replace(call, arguments="new"))
    assert dumps(openai.render(changed)) == dumps(expected)


@given(values.with_results, st.data())
def test_an_edited_result_shows(value: Any, data: st.DataObject) -> None:
    conversation = openai.parse(value)
    index, result = data.draw(st.sampled_from(parts_of(conversation, ToolResult)))
    before = conversation.messages[index].extras
    expected = swapped(value, before, {**before, "content": "new"})
    changed = edited(conversation, index, result, replace(result, parts=(Text("new"),)))
    assert dumps(openai.render(changed)) == dumps(expected)


@given(values.with_thoughts, st.data())
def test_dropped_reasoning_is_gone(value: Any, data: st.DataObject) -> None:
    conversation = openai.parse(value)
    index, thought = data.draw(st.sampled_from(parts_of(conversation, Reasoning)))
    before = conversation.messages[index].extras
    kept = {
        key: inner for key, inner in before.items() if key not in _REASONING_FIELDS or not inner
    }
    rendered = openai.render(edited(conversation, index, thought))
    assert dumps(rendered) == dumps(swapped(value, before, kept))


@pytest.mark.parametrize("content", ["text", [{"type": "text", "text": "text"}]], ids=repr)
def test_without_its_text_a_message_of_calls_has_null(content: Any) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = openai.parse_message({"role": "assistant", "content": content, "tool_calls": [call]})
    without = replace(message, parts=message.parts[1:])
    assert openai.render_message(without) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [call],
    }


def test_without_its_text_any_other_message_is_empty() -> None:
    message = openai.parse_message({"role": "user", "content": "text"})
    assert openai.render_message(replace(message, parts=())) == {"role": "user", "content": ""}


def test_dropped_calls_and_refusals_are_gone() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    raw = {
        "role": "assistant",
        "content": "text",
        "refusal": "no",
        "function_call": {"name": "f"},
        "tool_calls": [call],
    }
    message = openai.parse_message(raw)
    without = replace(message, parts=message.parts[:1])
    assert openai.render_message(without) == {"role": "assistant", "content": "text"}


def test_new_parts_join_those_of_the_wire() -> None:
    block = {"type": "text", "text": "old", "cache_control": {"type": "ephemeral"}}
    message = openai.parse_message({"role": "user", "content": [block]})
    more = replace(
        message, parts=(*message.parts, Text("new"), Attachment(mime="image/png", data="aGk="))
    )
    assert openai.render_message(more)["content"] == [
        block,
        {"type": "text", "text": "new"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]


def test_every_typed_field_of_a_call_and_a_message_is_written() -> None:
    raw = {
        "role": "developer",
        "content": "x",
        "name": "ann",
    }
    message = replace(openai.parse_message(raw), role="user", name="bob")
    assert openai.render_message(message) == {"role": "user", "content": "x", "name": "bob"}
    call = {"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}
    message = openai.parse_message({"role": "assistant", "tool_calls": [call]})
    (part,) = message.parts
    assert isinstance(part, ToolCall)
    renamed = replace(message, parts=(replace(part, id="b", name="g"),))
    assert openai.render_message(renamed)["tool_calls"] == [
        {"id": "b", "type": "custom", "custom": {"name": "g", "input": "x"}}
    ]


def test_tools_can_be_added_changed_and_removed() -> None:
    tool = {"type": "function", "function": {"name": "f", "strict": True}, "x": 1}
    body = {"messages": [], "tools": [tool, {"type": "web_search"}], "functions": [{"name": "g"}]}
    conversation = openai.parse(body)
    first, second, old = conversation.tools
    changed = replace(
        conversation,
        tools=(
            replace(first, description="Does f"),
            second,
            Tool("h", "Does h", {"type": "object"}),
            replace(old, name="G"),
        ),
    )
    assert openai.render(changed) == {
        "messages": [],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "strict": True, "description": "Does f"},
                "x": 1,
            },
            {"type": "web_search"},
            {
                "type": "function",
                "function": {
                    "name": "h",
                    "description": "Does h",
                    "parameters": {"type": "object"},
                },
            },
        ],
        "functions": [{"name": "G"}],
    }
    assert openai.render(replace(conversation, tools=())) == {"messages": []}


# Messages of other dialects are translated.


@given(values.foreign_conversations)
def test_translated_messages_belong_to_this_dialect(conversation: Conversation) -> None:
    rendered = openai.render(conversation)
    assert dumps(openai.render(openai.parse(rendered))) == dumps(rendered)


@given(values.foreign_conversations)
def test_only_a_user_sends_files(conversation: Conversation) -> None:
    for message in openai.parse(openai.render(conversation)).messages:
        if message.role != "user":
            inner = [part for part in message.parts if isinstance(part, ToolResult)]
            parts = [*message.parts, *(part for result in inner for part in result.parts)]
            assert not any(isinstance(part, Attachment) for part in parts)


def foreign(*messages: Message, **fields: Any) -> Conversation:
    return Conversation(messages, dialect="enfold", **fields)


def test_a_turn_with_tools_is_translated() -> None:
    conversation = foreign(
        Message("user", (Text("Look"), Attachment(mime="image/png", data="aGk=")), name="Ann Lee"),
        Message(
            "assistant",
            (
                Reasoning("hm", {"signature": "s"}),
                Text("Looking", {"citations": []}),
                ToolCall("a", "read", {"path": "x"}, {"caller": 1}),
                ToolCall("b", "read", "{}"),
            ),
            id="msg_1",
            extras={"stop_reason": "tool_use"},
        ),
        Message(
            "user",
            (
                Text("and this?"),
                ToolResult("a", (Text("one"), Text("two")), name="read"),
                ToolResult("b", (Data({"n": 1}),), is_error=True),
            ),
        ),
        system=Message("system", (Text("Be brief."),)),
        tools=(Tool("read", "Reads", {"type": "object"}), Tool("search", extras={"type": "s_1"})),
        extras={"max_tokens": 5},
    )
    assert openai.render(conversation) == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "name": "Ann_Lee",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                ],
            },
            {
                "role": "assistant",
                "content": "Looking",
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path":"x"}'},
                    },
                    {
                        "id": "b",
                        "type": "function",
                        "function": {"name": "read", "arguments": "{}"},
                    },
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "a",
                "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            },
            {"role": "tool", "tool_call_id": "b", "content": 'Error: {"n":1}'},
            {"role": "user", "content": "and this?"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads",
                    "parameters": {"type": "object"},
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ((Text("no such file"),), "Error: no such file"),
        ((Text("Error: no such file"),), "Error: no such file"),
        ((), "Error: "),
    ],
    ids=repr,
)
def test_a_failure_is_written_as_text(parts: Any, content: str) -> None:
    message = Message("tool", (ToolResult("a", parts, is_error=True),))
    assert openai.render_message(message) == {
        "role": "tool",
        "tool_call_id": "a",
        "content": content,
    }


def test_calls_in_neighbouring_messages_are_one_turn() -> None:
    conversation = foreign(
        Message("assistant", (Text("Reading both"),)),
        Message("assistant", (Reasoning("hm"),)),
        Message("assistant", (ToolCall("a", "read", "{}"),)),
        Message("assistant", (ToolCall("b", "read", "{}"),)),
        Message("tool", (ToolResult("a", (Text("A"),)),)),
        Message("tool", (ToolResult("b", (Text("B"),)),)),
        Message("assistant", (Text("Both read."),)),
        Message("assistant", (Text("Anything else?"),)),
    )
    rendered = openai.render(conversation)
    assert [(message["role"], message["content"]) for message in rendered] == [
        ("assistant", "Reading both"),
        ("tool", "A"),
        ("tool", "B"),
        ("assistant", "Both read."),
        ("assistant", "Anything else?"),
    ]
    assert [call["id"] for call in rendered[0]["tool_calls"]] == ["a", "b"]


def test_files_of_results_follow_the_run_of_results() -> None:
    picture = Attachment(name="a.png", mime="image/png", data="aGk=")
    rendered = openai.render(
        foreign(
            Message("assistant", (ToolCall("a", "shoot", "{}"), ToolCall("b", "shoot", "{}"))),
            Message("tool", (ToolResult("a", (Text("see"), picture)),)),
            Message("tool", (ToolResult("b", (picture,)),)),
            Message("assistant", (Text("I see"),)),
        )
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    note = "[attachment: a.png, image/png]"
    assert rendered[1:] == [
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [{"type": "text", "text": "see"}, {"type": "text", "text": note}],
        },
        {"role": "tool", "tool_call_id": "b", "content": note},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[attachments of the tool results above]"},
                image,
                image,
            ],
        },
        {"role": "assistant", "content": "I see"},
    ]


@pytest.mark.parametrize(
    ("file", "block"),
    [
        (
            Attachment(mime="audio/mpeg", data="aGk="),
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        ),
        (
            Attachment(name="a.pdf", mime="application/pdf", data="aGk="),
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
            },
        ),
        (
            Attachment(url="https://example.org/a"),
            {"type": "image_url", "image_url": {"url": "https://example.org/a"}},
        ),
        (
            Attachment(mime="application/pdf", url="https://example.org/a"),
            {"type": "text", "text": "[attachment: application/pdf, https://example.org/a]"},
        ),
        (
            Attachment(extras={"file_id": "f"}),
            {"type": "text", "text": "[attachment]"},
        ),
    ],
    ids=repr,
)
def test_a_file_is_translated(file: Attachment, block: Any) -> None:
    rendered = openai.render_message(Message("user", (Text("see"), file)))
    assert rendered["content"] == [{"type": "text", "text": "see"}, block]


def test_calls_without_ids_are_paired_with_their_results() -> None:
    call, result = openai.render(
        foreign(
            Message("assistant", (ToolCall("", "read", {}),)),
            Message("user", (ToolResult("", (Text("done"),), name="read"),)),
        )
    )
    assert call["tool_calls"][0]["id"]
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]


def test_an_id_that_is_too_long_is_replaced_in_call_and_result() -> None:
    call, result, other, fits = openai.render(
        foreign(
            Message("assistant", (ToolCall("x" * 41, "read", "{}"),)),
            Message("tool", (ToolResult("x" * 41, (Text("done"),)),)),
            Message("tool", (ToolResult("y" * 41, (Text("done"),)),)),
            Message("tool", (ToolResult("x" * 40, (Text("done"),)),)),
        )
    )
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert len(result["tool_call_id"]) <= 40
    assert other["tool_call_id"] != result["tool_call_id"]
    assert fits["tool_call_id"] == "x" * 40


def test_a_new_message_among_those_of_the_wire_changes_none_of_them() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    answer = {"role": "function", "name": "f", "content": "done"}
    conversation = openai.parse({"model": "m", "messages": [old, answer]})
    summary = Message("system", (Text("Before: much."),))
    rendered = openai.render(
        replace(conversation, messages=(summary, *conversation.messages, summary))
    )
    summary_message = {"role": "system", "content": "Before: much."}
    assert rendered == {"model": "m", "messages": [summary_message, old, answer, summary_message]}


def test_a_message_of_reasoning_alone_leaves_nothing() -> None:
    assert openai.render(foreign(Message("assistant", (Reasoning("hm"),)))) == []


def test_an_empty_message_stays_a_message() -> None:
    assert openai.render(foreign(Message("user"))) == [{"role": "user", "content": ""}]


def test_a_message_that_becomes_several_is_refused_alone() -> None:
    message = Message("user", (ToolResult("a"), ToolResult("b")))
    with pytest.raises(DialectError, match="2 entries in openai"):
        openai.render_message(message)


def test_a_part_in_the_wrong_place_is_refused() -> None:
    with pytest.raises(DialectError, match="ToolCall part has no place"):
        openai.render_message(Message("user", (ToolCall("a", "f", "{}"),), dialect="openai"))


# Foreign values are refused, with their place.


def message(**fields: Any) -> Any:
    return [{"role": "user", "content": "x"}, {"role": "assistant", **fields}]


def user(**fields: Any) -> Any:
    return [{"role": "user", **fields}]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (5, ""),
        ({"input": []}, ""),
        ({"messages": "x"}, "messages"),
        ([None], "messages[0]"),
        ([{}], "messages[0].role"),
        ([{"role": "owner"}], "messages[0].role"),
        ([{"role": ["user"]}], "messages[0].role"),
        (message(content=5), "messages[1].content"),
        (message(content=["x"]), "messages[1].content[0]"),
        (message(content=[{"type": "text"}]), "messages[1].content[0].text"),
        (message(content=[{"type": "refusal", "refusal": 1}]), "messages[1].content[0].refusal"),
        (message(name=5), "messages[1].name"),
        (message(refusal=5), "messages[1].refusal"),
        (message(tool_calls={}), "messages[1].tool_calls"),
        (message(tool_calls=""), "messages[1].tool_calls"),
        (message(tool_calls=[5]), "messages[1].tool_calls[0]"),
        (message(tool_calls=[{}]), "messages[1].tool_calls[0].function"),
        (message(tool_calls=[{"id": 5}]), "messages[1].tool_calls[0].id"),
        (
            message(tool_calls=[{"function": {"name": 5}}]),
            "messages[1].tool_calls[0].function.name",
        ),
        (
            message(tool_calls=[{"type": "custom", "custom": {"input": []}}]),
            "messages[1].tool_calls[0].custom.input",
        ),
        (message(function_call="f"), "messages[1].function_call"),
        (message(function_call={"arguments": 5}), "messages[1].function_call.arguments"),
        (
            user(content=[{"type": "image_url", "image_url": {}}]),
            "messages[0].content[0].image_url.url",
        ),
        (user(content=[{"type": "image_url"}]), "messages[0].content[0].image_url"),
        (
            user(content=[{"type": "input_audio", "input_audio": {"data": 5}}]),
            "messages[0].content[0].input_audio.data",
        ),
        (
            user(content=[{"type": "file", "file": {"filename": 5}}]),
            "messages[0].content[0].file.filename",
        ),
        ([{"role": "tool", "tool_call_id": 5}], "messages[0].tool_call_id"),
        ({"messages": [], "tools": {}}, "tools"),
        ({"messages": [], "tools": [5]}, "tools[0]"),
        ({"messages": [], "tools": [{"type": "function"}]}, "tools[0].function"),
        (
            {"messages": [], "tools": [{"type": "function", "function": {"parameters": []}}]},
            "tools[0].function.parameters",
        ),
        ({"messages": [], "functions": [{"name": 5}]}, "functions[0].name"),
    ],
    ids=repr,
)
def test_errors_name_the_place(value: Any, place: str) -> None:
    with pytest.raises(DialectError) as caught:
        openai.parse(value)
    assert caught.value.place == place
