"""Counted content of a message, by kind of part."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.tokens import STRUCTURE_TOKENS, Count, count_conversation, count_message, get

LONG = "x" * 5_000


def count(*parts: Part) -> Count:
    return count_conversation(Conversation((Message("assistant", parts),)))


def counts_as(part: Part) -> dict[str, int]:
    """The kinds that a part has tokens of."""
    return {kind: tokens for kind, tokens in count(part).by_part.items() if tokens}


def tokens_of(text: str) -> int:
    return get().count(text)


@pytest.mark.parametrize(
    ("part", "kind", "text"),
    [
        (Text("Good morning."), "text", "Good morning."),
        (Reasoning("First I look."), "text", "First I look."),
        (Data({"a": [1, None]}), "tool_result", '{"a":[1,null]}'),
        (Attachment("a.png", "image/png", 1_234), "attachment", "a.png image/png 1234"),
        (Attachment(mime="image/png"), "attachment", "image/png"),
        (Attachment("empty.txt", size=0), "attachment", "empty.txt 0"),
        (Unknown({"type": "novelty", "é": 1}), "text", '{"type":"novelty","é":1}'),
        (ToolResult("1", (Text('He said "no".'),)), "tool_result", 'He said "no".'),
        (ToolResult("1", (Data([1, 2]),)), "tool_result", "[1,2]"),
        (ToolResult("1", (Unknown({"type": "new"}),)), "tool_result", '{"type":"new"}'),
        (ToolResult("1", (Attachment("a.pdf"),)), "attachment", "a.pdf"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_a_part_counts_as_its_text(part: Part, kind: str, text: str) -> None:
    assert counts_as(part) == {kind: tokens_of(text)}
    assert count_message(Message("assistant", (part,))) == STRUCTURE_TOKENS + tokens_of(text)


@pytest.mark.parametrize(
    "part",
    [
        Text(""),
        Reasoning(extras={"encrypted_content": LONG}),
        Attachment(data=LONG, url=LONG),
        ToolResult(LONG, name=LONG, is_error=True),
    ],
    ids=lambda part: type(part).__name__,
)
def test_empty_parts_count_only_their_structure(part: Part) -> None:
    assert counts_as(part) == {}
    assert count(part).total == STRUCTURE_TOKENS


def test_the_content_of_an_attachment_does_not_count() -> None:
    named = Attachment("a.png", "image/png", 3_750)
    full = Attachment("a.png", "image/png", 3_750, data=LONG, url=LONG, extras={"type": LONG})
    assert counts_as(full) == counts_as(named)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"b": 1, "a": "é\n"}, '{"name":"f","arguments":{"b":1,"a":"é\\n"}}'),
        ('{"b": 1,\n "a": "\\u00e9\\n"}', '{"name":"f","arguments":{"b":1,"a":"é\\n"}}'),
        ("", '{"name":"f","arguments":{}}'),
        ({}, '{"name":"f","arguments":{}}'),
        ("[1, 2]", '{"name":"f","arguments":[1,2]}'),
        ('{"path": "a', '{"name":"f","arguments":"{\\"path\\": \\"a"}'),
        ("NaN", '{"name":"f","arguments":"NaN"}'),
        (f'{{"a": "{LONG}"}}', f'{{"name":"f","arguments":{{"a":"{LONG}"}}}}'),
        ('{"a": "\\ud800"}', '{"name":"f","arguments":{"a":"\\ud800"}}'),
    ],
    ids=lambda value: str(value)[:30].encode("ascii", "backslashreplace").decode(),
)
def test_a_call_counts_as_compact_json(arguments: Any, text: str) -> None:
    assert counts_as(ToolCall("1", "f", arguments)) == {"tool_call": tokens_of(text)}


def test_the_id_and_the_extras_of_a_call_do_not_count() -> None:
    bare = ToolCall("", "f", "{}")
    assert counts_as(ToolCall(LONG, "f", "{}", {"id": LONG})) == counts_as(bare)


def test_the_parts_of_a_result_count_one_by_one() -> None:
    inner: tuple[ResultPart, ...] = (Text("one"), Text("two"), Attachment("a.png", "image/png"))
    assert counts_as(ToolResult("1", inner)) == {
        "tool_result": tokens_of("one") + tokens_of("two"),
        "attachment": tokens_of("a.png image/png"),
    }


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (
            Tool("f", "Does it.", {"type": "object"}, {"type": "function", "strict": True}),
            '{"name":"f","description":"Does it.","parameters":{"type":"object"}}',
        ),
        (Tool("f", parameters={}), '{"name":"f","description":"","parameters":{}}'),
        (Tool("f"), '{"name":"f","description":"","parameters":{}}'),
        (Tool("web", extras={"type": "web_search"}), '{"type":"web_search"}'),
    ],
    ids=["function", "no parameters", "name alone", "built-in"],
)
def test_a_definition_counts_as_compact_json(tool: Tool, text: str) -> None:
    counted = count_conversation(Conversation((), tools=(tool,)))
    assert counted.tools == counted.total == tokens_of(text)
