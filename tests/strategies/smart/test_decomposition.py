"""Messages taken apart and put together again, in every dialect."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enfold import wire as dialects
from enfold.jsontext import dumps
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.strategies.smart.passes import MessageContent, decompose, recompose
from enfold.testing import assistant, call, result
from tests.strategies.conversations import conversations
from tests.wire.conversations import messages as any_messages

IMAGE = Attachment("a.png", "image/png", 6, "aGVsbG8h")
ODD = Unknown({"type": "of_next_year"})
MIXED = Message(
    "assistant",
    (
        Reasoning("Hm.", {"signature": "s"}),
        Text("One."),
        IMAGE,
        Text("Two."),
        ToolCall("1", "read", {"path": "a"}),
        ToolCall("2", "read", '{"path": "b"}'),
        ODD,
    ),
    id="m1",
)
RESULTS = Message(
    "user",
    (
        ToolResult("1", (Text("out"), IMAGE, Data({"n": 1})), is_error=True),
        ToolResult("2", ()),
        Text("Go on."),
    ),
)


def test_each_type_of_content_is_found() -> None:
    assert decompose(MIXED) == MessageContent("One.\n\nTwo.", ({"path": "a"}, {"path": "b"}), None)
    assert decompose(RESULTS) == MessageContent("Go on.", None, (("out", {"n": 1}), ()))
    assert decompose(Message("user")) == MessageContent()
    assert decompose(result("1", "done")) == MessageContent(None, None, (("done",),))


@given(any_messages)
def test_an_unchanged_message_is_the_same_object(message: Message) -> None:
    assert recompose(message, decompose(message)) is message


@pytest.mark.parametrize("dialect", dialects.DIALECTS)
@given(messages=conversations())
@settings(max_examples=15)
def test_a_wire_comes_back_to_the_byte(dialect: str, messages: tuple[Message, ...]) -> None:
    wire = dialects.render(Conversation(messages), dialect)
    parsed = dialects.parse(wire, dialect)
    again = tuple(recompose(message, decompose(message)) for message in parsed.messages)
    assert dumps(dialects.render(replace(parsed, messages=again))) == dumps(wire)


def test_new_text_stands_where_the_first_stood() -> None:
    new = recompose(MIXED, replace(decompose(MIXED), message_text="Short."))
    assert new.parts == (Text("Short."), IMAGE, *MIXED.parts[4:])
    assert (new.id, new.role) == (MIXED.id, MIXED.role)
    assert recompose(MIXED, replace(decompose(MIXED), message_text=None)).parts == (
        IMAGE,
        *MIXED.parts[4:],
    )
    silent = assistant("", call("1"))
    assert recompose(silent, replace(decompose(silent), message_text="Now.")).parts == (
        Text("Now."),
        *silent.parts,
    )


def test_new_parameters_keep_ids_and_stay_text_where_they_were() -> None:
    new = recompose(MIXED, replace(decompose(MIXED), tool_parameters=({"path": "c"}, {"x": 1})))
    first, second = (part for part in new.parts if isinstance(part, ToolCall))
    assert (first.id, first.arguments) == ("1", {"path": "c"})
    assert (second.id, second.arguments) == ("2", '{"x":1}')
    assert not any(isinstance(part, Reasoning) for part in new.parts)
    assert [part for part in new.parts if isinstance(part, Text)] == [Text("One."), Text("Two.")]


def test_new_results_keep_ids_errors_and_files() -> None:
    new = recompose(RESULTS, replace(decompose(RESULTS), tool_results=(("cut", [2]), ())))
    part = new.parts[0]
    assert part == ToolResult("1", (Text("cut"), IMAGE, Data([2])), is_error=True)
    assert new.parts[1:] == RESULTS.parts[1:]


@pytest.mark.parametrize("dialect", dialects.DIALECTS)
@given(messages=conversations(), data=st.data())
@settings(max_examples=15)
def test_edited_content_is_valid_in_every_dialect(
    dialect: str, messages: tuple[Message, ...], data: st.DataObject
) -> None:
    parsed = dialects.parse(dialects.render(Conversation(messages), dialect), dialect)
    index = data.draw(st.integers(0, len(parsed.messages) - 1))
    content = decompose(parsed.messages[index])
    changed = MessageContent(
        None if content.message_text is None else "said",
        None
        if content.tool_parameters is None
        else tuple({"p": 1} for _ in content.tool_parameters),
        None
        if content.tool_results is None
        else tuple(tuple("seen" for _ in each) for each in content.tool_results),
    )
    edited = list(parsed.messages)
    edited[index] = recompose(edited[index], changed)
    wire = dialects.render(replace(parsed, messages=tuple(edited)))
    back = dialects.parse(wire, dialect)
    assert dumps(dialects.render(back)) == dumps(wire)
