"""The `langchain` dialect as dicts: every shape comes back as it was, and calls stay in step.

LangChain's own objects are in `test_langchain_objects.py`; nothing here needs LangChain.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from enfold.errors import ConfigError, DialectError
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
from enfold.wire import langchain, openai
from enfold.wire.langchain import change_fields, make_message, read_fields, shape_of
from tests.wire import langchain_values
from tests.wire.conversations import conversations, without_extras
from tests.wire.round_trips import edited

DICTS = ("data", "flat", "lc")

WEATHER: list[tuple[str, dict[str, Any]]] = [
    ("system", {"content": "Be brief."}),
    ("human", {"content": ["Look: ", {"type": "image_url", "image_url": "https://a.org/b"}]}),
    (
        "ai",
        {
            "content": [
                {"type": "thinking", "thinking": "Ask.", "signature": "c2ln"},
                {"type": "text", "text": "I ask."},
                {"type": "tool_use", "id": "c1", "name": "sky", "input": {"city": "Rome"}},
            ],
            "tool_calls": [{"name": "sky", "args": {"city": "Rome"}, "id": "c1"}],
            "invalid_tool_calls": [
                {"name": "sea", "args": '{"bay": ', "id": "c2", "error": "cut off"}
            ],
            "usage_metadata": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14},
            "response_metadata": {"model_name": "m"},
            "id": "run-1",
        },
    ),
    ("tool", {"content": "clear", "tool_call_id": "c1", "name": "sky", "artifact": {"c": 20}}),
    ("tool", {"content": "no such bay", "tool_call_id": "c2", "status": "error"}),
    ("chat", {"content": "Nice.", "role": "Critic"}),
    ("chat", {"content": "Thanks.", "role": "assistant"}),
    ("function", {"content": "42", "name": "sum"}),
    ("remove", {"content": "", "id": "run-0"}),
]
PARSED: tuple[Message, ...] = (
    Message("system", (Text("Be brief."),)),
    Message("user", (Text("Look: "), Attachment(url="https://a.org/b"))),
    Message(
        "assistant",
        (
            Reasoning("Ask."),
            Text("I ask."),
            ToolCall("c1", "sky", {"city": "Rome"}),
            ToolCall("c2", "sea", '{"bay": '),
        ),
        id="run-1",
    ),
    Message("tool", (ToolResult("c1", (Text("clear"),), name="sky"),)),
    Message("tool", (ToolResult("c2", (Text("no such bay"),), is_error=True),)),
    Message("user", (Text("Nice."),), name="Critic"),
    Message("assistant", (Text("Thanks."),)),
    Message("tool", (ToolResult("", (Text("42"),), name="sum"),)),
    Message("system", (Unknown({}),), id="run-0"),
)


def weather(shape: str) -> list[Any]:
    return [make_message(shape, type_, {"type": type_, **fields}) for type_, fields in WEATHER]


# Parsing


@pytest.mark.parametrize("shape", DICTS)
def test_every_shape_is_read_into_the_same_values(shape: str) -> None:
    assert without_extras(langchain.parse(weather(shape)).messages) == without_extras(PARSED)


@pytest.mark.parametrize(
    ("raw", "type_"),
    [
        ({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "AIMessage"]}, "ai"),
        ({"lc": 1, "type": "constructor", "id": ["my", "own", "Reply"]}, "AIMessageChunk"),
    ],
    ids=["written in JavaScript", "a subclass"],
)
def test_a_serialised_message_is_known_by_its_class_or_its_type(raw: Any, type_: str) -> None:
    raw["kwargs"] = {"content": "Hi"} if type_ == "ai" else {"content": "Hi", "type": type_}
    message = langchain.parse_message(raw)
    assert (message.role, message.parts) == ("assistant", (Text("Hi"),))
    assert langchain.render_message(message) is raw


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ("bare", Text("bare")),
        ({"type": "text", "text": "x"}, Text("x")),
        ({"type": "output_text", "text": "x"}, Text("x")),
        ({"type": "refusal", "refusal": "x"}, Text("x")),
        ({"type": "text-plain", "text": "x", "title": "a"}, Text("x")),
        ({"type": "file", "source_type": "text", "text": "x"}, Text("x")),
        ({"type": "document", "source": {"type": "text", "data": "x"}}, Text("x")),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            Attachment(mime="image/png", size=2, data="aGk="),
        ),
        (
            {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
            Attachment(mime="image/png", size=2, data="aGk="),
        ),
        (
            {"type": "file", "url": "https://a.org/b", "extras": {"filename": "b.pdf"}},
            Attachment("b.pdf", url="https://a.org/b"),
        ),
        ({"type": "video", "file_id": "f1"}, Attachment()),
        (
            {"type": "audio", "source_type": "base64", "data": "aGk=", "mime_type": "audio/wav"},
            Attachment(mime="audio/wav", size=2, data="aGk="),
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
            },
            Attachment(mime="image/png", size=2, data="aGk="),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            Attachment(mime="audio/wav", size=2, data="aGk="),
        ),
        (
            {"type": "file", "file": {"file_data": "data:a/b;base64,aGk=", "filename": "n"}},
            Attachment("n", "a/b", 2, "aGk="),
        ),
        (
            {"type": "media", "mime_type": "video/mp4", "file_uri": "gs://b/c"},
            Attachment(mime="video/mp4", url="gs://b/c"),
        ),
        ({"type": "reasoning", "reasoning": "Hm."}, Reasoning("Hm.")),
        ({"type": "reasoning", "summary": [{"text": "A"}, {"text": "B"}]}, Reasoning("A\n\nB")),
        ({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, Reasoning("Hm.")),
        ({"type": "redacted_thinking", "data": "ZW5j"}, Reasoning()),
        ({"type": "reasoning_content", "reasoning_content": {"text": "Hm."}}, Reasoning("Hm.")),
        (
            {"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": True},
            ToolResult("c", (Text("r"),), is_error=True),
        ),
        ({"type": "server_tool_call", "name": "web_search"}, Unknown({})),
        ({"text": "as Bedrock writes it"}, Unknown({})),
    ],
    ids=str,
)
def test_blocks_of_all_providers_become_parts(block: Any, part: Part) -> None:
    message = langchain.parse_message({"type": "human", "content": [block]})
    assert without_extras(message.parts) == without_extras((part,))


# Rendering


@given(langchain_values.messages)
def test_a_single_message_comes_back_itself(raw: Any) -> None:
    assert langchain.render_message(langchain.parse_message(raw)) is raw


@given(langchain_values.replies)
def test_edited_arguments_reach_every_place_where_a_call_stands(raw: Any) -> None:
    message = langchain.parse_message(raw)
    changed = [
        replace(part, arguments={"new": 1}) if isinstance(part, ToolCall) else part
        for part in message.parts
    ]
    rendered = langchain.render_message(replace(message, parts=tuple(changed)))
    again = langchain.parse_message(rendered)
    assert [_standing(part) for part in again.parts] == [_standing(part) for part in message.parts]
    for part in again.parts:
        for entry in part.extras.values() if isinstance(part, ToolCall) else ():
            written = next(
                entry[key] for key in ("args", "input", "arguments", "function") if key in entry
            )
            assert written in ({"new": 1}, '{"new":1}') or written["arguments"] == '{"new":1}'


def _standing(part: Part) -> Any:
    """Return the kind of a part, and its places if it is a call."""
    if isinstance(part, ToolCall):
        return part.id, part.name, list(part.extras)
    return part


def test_a_call_in_many_places_is_one_call() -> None:
    """As OpenAI's integration, Anthropic's and Google's leave it behind."""
    raw = {
        "type": "AIMessageChunk",
        "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}],
        "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}],
        "tool_call_chunks": [{"name": "f", "args": '{"a": 1}', "id": "c1", "index": 0}],
        "additional_kwargs": {
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}],
            "function_call": {"name": "f", "arguments": '{"a": 1}'},
        },
    }
    message = langchain.parse_message(raw)
    (call,) = message.parts
    assert isinstance(call, ToolCall)
    assert langchain.render_message(
        replace(message, parts=(replace(call, arguments={"a": 2}),))
    ) == {
        "type": "AIMessageChunk",
        "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 2}}],
        "tool_calls": [{"name": "f", "args": {"a": 2}, "id": "c1", "type": "tool_call"}],
        "tool_call_chunks": [{"name": "f", "args": '{"a":2}', "id": "c1", "index": 0}],
        "additional_kwargs": {
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a":2}'}}],
            "function_call": {"name": "f", "arguments": '{"a":2}'},
        },
    }
    assert langchain.render_message(replace(message, parts=())) == {
        "type": "AIMessageChunk",
        "content": "",
        "tool_calls": [],
        "tool_call_chunks": [],
        "additional_kwargs": {},
    }


def test_calls_that_share_an_id_or_lack_one_stay_apart() -> None:
    calls: list[tuple[str | None, Any]] = [("c", {"n": 1}), ("c", {"n": 2}), (None, {"n": 3})]
    entries = [{"name": "f", "args": args, "id": id} for id, args in calls]
    blocks = [{"type": "tool_use", "id": id, "name": "f", "input": args} for id, args in calls]
    raw = {"type": "ai", "content": blocks, "tool_calls": entries}
    message = langchain.parse_message(raw)
    assert [part.arguments for part in message.parts if isinstance(part, ToolCall)] == [
        {"n": 1},
        {"n": 2},
        {"n": 3},
    ]
    assert langchain.render_message(message) is raw


# Edits


@pytest.mark.parametrize("shape", DICTS)
@pytest.mark.parametrize(
    ("index", "position", "change", "fields"),
    [
        (0, 0, {"text": "Be kind."}, {"content": "Be kind."}),
        (1, 0, {"text": "See: "}, {"content": ["See: ", WEATHER[1][1]["content"][1]]}),
        (3, 0, {"parts": (Text("…"),)}, {"content": "…"}),
        (3, 0, {"parts": (), "is_error": True}, {"content": "", "status": "error"}),
        (4, 0, {"is_error": False}, {"status": "success"}),
    ],
    ids=["text", "bare text", "result", "emptied result", "error"],
)
def test_an_edited_part_is_the_only_change(
    shape: str, index: int, position: int, change: dict[str, Any], fields: dict[str, Any]
) -> None:
    wire = weather(shape)
    conversation = langchain.parse(wire)
    part = conversation.messages[index].parts[position]
    rendered = langchain.render(edited(conversation, index, part, replace(part, **change)))
    expected = weather(shape)
    expected[index] = change_fields(expected[index], shape, fields)
    assert rendered == expected


def test_a_text_within_a_result_block_is_edited_in_place() -> None:
    inner = {"type": "text", "text": "long"}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [inner]}
    message = langchain.parse_message({"type": "human", "content": [result, "And?"]})
    part, *rest = message.parts
    assert isinstance(part, ToolResult)
    (text,) = part.parts
    assert isinstance(text, Text)
    shorter = replace(part, parts=(replace(text, text="short"),))
    assert langchain.render_message(replace(message, parts=(shorter, *rest)))["content"] == [
        {**result, "content": [{"type": "text", "text": "short"}]},
        "And?",
    ]


def test_a_refusal_is_edited_in_its_own_field() -> None:
    message = langchain.parse_message(
        {"type": "ai", "content": [{"type": "refusal", "refusal": "No"}]}
    )
    (text,) = message.parts
    assert isinstance(text, Text)
    rendered = langchain.render_message(replace(message, parts=(replace(text, text="N"),)))
    assert rendered["content"] == [{"type": "refusal", "refusal": "N"}]


def test_a_plain_document_is_edited_where_its_text_is() -> None:
    block = {"type": "document", "source": {"type": "text", "data": "long"}, "title": "t"}
    message = langchain.parse_message({"type": "human", "content": [block]})
    (text,) = message.parts
    assert isinstance(text, Text)
    rendered = langchain.render_message(replace(message, parts=(replace(text, text="short"),)))
    assert rendered["content"] == [
        {"type": "document", "source": {"type": "text", "data": "short"}, "title": "t"}
    ]


def test_dropped_reasoning_is_gone_from_wherever_it_was() -> None:
    raw = {
        "type": "ai",
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}],
        "additional_kwargs": {"reasoning_content": "Hm.", "reasoning": {"summary": []}, "x": 1},
    }
    message = langchain.parse_message(raw)
    kept = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    assert len(message.parts) - len(kept) == 3
    assert langchain.render_message(replace(message, parts=kept)) == {
        "type": "ai",
        "content": [{"type": "text", "text": "Yes."}],
        "additional_kwargs": {"x": 1},
    }


def test_invalid_calls_among_the_calls_stay() -> None:
    odd = [5, {"name": "f"}]
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    message = langchain.parse_message(
        {"type": "ai", "content": "Hi", "additional_kwargs": {"tool_calls": [odd[0], call, odd[1]]}}
    )
    texts = tuple(part for part in message.parts if isinstance(part, Text))
    rendered = langchain.render_message(replace(message, parts=texts))
    assert rendered["additional_kwargs"] == {"tool_calls": odd}


@pytest.mark.parametrize(
    "message",
    [
        {"type": "ai", "content": [{}], "additional_kwargs": {}},
        {"type": "ai", "content": "Hi", "additional_kwargs": {"tool_calls": 1}},
    ],
)
def test_unknown_values_in_known_places_come_back_as_they_were(message: dict[str, Any]) -> None:
    assert langchain.render(langchain.parse([message])) == [message]


def test_a_thought_made_by_hand_in_this_dialect_is_written() -> None:
    message = Message("assistant", (Reasoning("Hm."), Text("Yes.")), dialect="langchain")
    assert langchain.render_message(message)["data"]["content"] == [
        {"type": "reasoning", "reasoning": "Hm."},
        {"type": "text", "text": "Yes."},
    ]


def test_parts_are_refused_where_they_have_no_place() -> None:
    answered = langchain.parse_message({"type": "tool", "content": "r", "tool_call_id": "c"})
    with pytest.raises(DialectError, match="one tool result and nothing else"):
        langchain.render_message(replace(answered, parts=(Text("r"),)))
    human = langchain.parse_message({"type": "human", "content": "Hi"})
    with pytest.raises(DialectError, match="a ToolResult part has no place"):
        langchain.render_message(replace(human, parts=(*human.parts, ToolResult("c"))))


def test_id_and_name_can_be_changed() -> None:
    message = langchain.parse_message({"type": "human", "content": "Hi", "id": "a", "name": None})
    assert langchain.render_message(replace(message, id="b", name="Ann")) == {
        "type": "human",
        "content": "Hi",
        "id": "b",
        "name": "Ann",
    }


def test_a_state_keeps_its_other_fields() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": {}}}
    state = {"messages": weather("flat"), "tools": [tool], "step": 3}
    conversation = langchain.parse(state)
    assert without_extras(conversation.tools) == without_extras((Tool("f", "F.", {}),))
    assert langchain.render(conversation) == state
    assert langchain.parse({"messages": [], "tools": ["f"]}).tools == ()


def test_a_tool_can_be_added() -> None:
    recall = {"type": "function", "function": {"name": "recall"}}
    bare = langchain.parse(weather("flat"))
    assert langchain.render(replace(bare, tools=(Tool("recall"),))) == {
        "messages": weather("flat"),
        "tools": [recall],
    }
    tool = {"type": "function", "function": {"name": "f"}, "x": 1}
    conversation = langchain.parse({"messages": [], "tools": [tool], "step": 3})
    more = replace(conversation, tools=(*conversation.tools, Tool("recall")))
    assert langchain.render(more) == {"messages": [], "tools": [tool, recall], "step": 3}
    unreadable = langchain.parse({"messages": [], "tools": ["f"]})
    with pytest.raises(DialectError, match="none can be added"):
        langchain.render(replace(unreadable, tools=(Tool("recall"),)))


def test_a_field_called_object_is_a_field() -> None:
    raw = {"type": "human", "content": "Hi", "object": "chat.message"}
    message = langchain.parse_message(raw)
    assert langchain.render_message(message) is raw
    assert langchain.render_message(replace(message, parts=(Text("Ho"),))) == {
        **raw,
        "content": "Ho",
    }


# Messages made by hand, and those of other dialects


@pytest.mark.parametrize("shape", DICTS)
def test_a_new_message_takes_the_shape_of_the_others(shape: str) -> None:
    conversation = langchain.parse(weather(shape))
    summary = Message("system", (Text("What was said."),), id="s")
    first, *rest = langchain.render(
        replace(conversation, messages=(summary, *conversation.messages))
    )
    assert rest == weather(shape)
    assert shape_of(first) == shape
    assert read_fields(first, shape) == (
        "system",
        {"content": "What was said.", "type": "system", "id": "s"},
    )


@pytest.mark.parametrize("shape", DICTS)
@pytest.mark.parametrize("target", DICTS)
def test_a_shape_can_be_asked_for(shape: str, target: str) -> None:
    conversation = langchain.parse(weather(shape))
    assert langchain.render(conversation, target) == weather(target)


def test_a_shape_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no shape 'xml'.*object, data, flat, lc"):
        langchain.render(Conversation(()), "xml")


def test_a_conversation_from_elsewhere_is_translated() -> None:
    conversation = Conversation(
        messages=(
            Message("user", (Text("Go", {"x": 1}),), id="u", name="Ann", dialect="other"),
            Message(
                "assistant",
                (
                    Reasoning("Hm."),
                    Text("First"),
                    ToolCall("c1", "f", '{"a": 1}'),
                    Text("then"),
                    ToolCall("", "g", "{broken"),
                ),
            ),
            Message(
                "user",
                (
                    Text("And?"),
                    ToolResult("c1", (Data([1]), Text("r")), is_error=True),
                    ToolResult("", name="g"),
                ),
                id="m",
            ),
            Message("user", (Attachment("a.png", "image/png", data="aGk="), Unknown({}))),
            Message("user", (Unknown({}),)),
        ),
        system=Message("system", (Text("Be brief."),)),
        tools=(Tool("f", "F.", {"type": "object"}),),
    )
    assert langchain.render(conversation, "flat") == {
        "messages": [
            {"content": "Be brief.", "type": "system"},
            {"content": "Go", "type": "human", "id": "u", "name": "Ann"},
            {
                "content": [
                    {"type": "text", "text": "First"},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                    {"type": "text", "text": "then"},
                    {"type": "tool_use", "id": "g#1", "name": "g", "input": "{broken"},
                ],
                "type": "ai",
                "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}],
                "invalid_tool_calls": [
                    {
                        "name": "g",
                        "args": "{broken",
                        "id": "g#1",
                        "error": None,
                        "type": "invalid_tool_call",
                    }
                ],
            },
            {
                "content": [{"type": "text", "text": "[1]"}, {"type": "text", "text": "r"}],
                "type": "tool",
                "tool_call_id": "c1",
                "status": "error",
                "id": "m",
                "name": "f",
            },
            {
                "content": "",
                "type": "tool",
                "tool_call_id": "g#1",
                "status": "success",
                "name": "g",
            },
            {"content": "And?", "type": "human"},
            {
                "content": [
                    {
                        "type": "image",
                        "mime_type": "image/png",
                        "base64": "aGk=",
                        "filename": "a.png",
                    }
                ],
                "type": "human",
            },
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "F.", "parameters": {"type": "object"}},
            }
        ],
    }


@given(conversations)
def test_any_conversation_can_be_written_and_read_again(conversation: Conversation) -> None:
    value = langchain.render(conversation)
    again = langchain.parse(value)
    assert dump_text(langchain.render(again)) == dump_text(value)
    texts = [part.text for m in again.messages for part in m.parts if isinstance(part, Text)]
    for message in conversation.messages:
        assert all(part.text in (*texts, "") for part in message.parts if isinstance(part, Text))


def test_a_message_that_becomes_several_needs_its_conversation() -> None:
    message = Message("user", (ToolResult("a"), ToolResult("b")))
    with pytest.raises(DialectError, match="render its conversation"):
        langchain.render_message(message)
    assert langchain.render_message(Message("user", (Text("Hi"),))) == {
        "type": "human",
        "data": {"content": "Hi", "type": "human"},
    }


def test_messages_that_only_a_graph_understands_stay_behind() -> None:
    conversation = langchain.parse(
        [{"type": "human", "content": "Hi"}, {"type": "remove", "content": "", "id": "x"}]
    )
    assert openai.render(conversation) == [{"role": "user", "content": "Hi"}]


# Refused values


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("text", ""),
        ({"contents": []}, ""),
        ({"messages": {}}, "messages"),
        ([1], "messages[0]"),
        ([{"role": "user", "content": "x"}], "messages[0].type"),
        ([{"type": "robot", "content": "x"}], "messages[0].type"),
        ([{"type": "human", "content": 5}], "messages[0].content"),
        ([{"type": "human", "content": [5]}], "messages[0].content[0]"),
        ([{"type": "human", "content": "x", "id": 5}], "messages[0].id"),
        ([{"type": "human", "data": 5}], "messages[0].data"),
        ([{"type": "human", "data": {"content": 5}}], "messages[0].data.content"),
        ([{"type": "chat", "content": "x"}], "messages[0].role"),
        ([{"type": "ai", "tool_calls": {"a": 1}}], "messages[0].tool_calls"),
        ([{"type": "ai", "tool_calls": [{"args": 5}]}], "messages[0].tool_calls[0].args"),
        (
            [{"type": "ai", "content": [{"type": "tool_use", "input": 5}]}],
            "messages[0].content[0].input",
        ),
        (
            [{"type": "ai", "additional_kwargs": {"tool_calls": [5, {"function": {"name": 5}}]}}],
            "messages[0].additional_kwargs.tool_calls[1].function.name",
        ),
        (
            [{"type": "ai", "additional_kwargs": {"function_call": {"arguments": 5}}}],
            "messages[0].additional_kwargs.function_call.arguments",
        ),
        ([{"lc": 1, "type": "secret", "id": ["KEY"]}], "messages[0].type"),
        ([{"lc": 1, "type": "constructor", "id": []}], "messages[0].kwargs"),
        ([{"lc": 1, "type": "constructor", "kwargs": {}}], "messages[0].kwargs.type"),
        (
            [{"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": {"content": [[]]}}],
            "messages[0].kwargs.content[0]",
        ),
    ],
    ids=str,
)
def test_errors_name_the_place(value: Any, place: str) -> None:
    with pytest.raises(DialectError) as caught:
        langchain.parse(value)
    assert caught.value.place == place


def test_deep_nesting_is_carried() -> None:
    deep: Any = {}
    for _ in range(50_000):
        deep = {"content": [deep], "reasoning_content": deep, "source": deep}
    blocks = [{"type": kind, **deep} for kind in ("text-plain", "reasoning", "image", "x")]
    value = [{"type": "ai", "content": blocks, "additional_kwargs": {"reasoning": deep}}]
    assert langchain.render(langchain.parse(value))[0] is value[0]


# Without LangChain


def test_dicts_need_no_langchain_and_objects_say_what_they_need() -> None:
    program = """
import sys
sys.modules["langchain_core"] = None  # as if it were not installed
from enfold import wire as dialects
from enfold.errors import ConfigError
messages = [{"type": "human", "data": {"content": "Hi"}}]
conversation = dialects.parse(messages)
assert dialects.render(conversation) == messages
assert dialects.render(dialects.parse([{"role": "user", "content": "Hi"}]), "langchain") == [
    {"type": "human", "data": {"content": "Hi", "type": "human"}}
]
try:
    dialects.langchain.render(conversation, "object")
except ConfigError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "install enfold[langchain]" in done.stdout
