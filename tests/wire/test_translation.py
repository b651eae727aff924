"""Translation: every dialect expresses the others' messages as far as it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import wire
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
)
from tests.wire.gist import gist

NAMES = tuple(wire.DIALECTS)

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
IMAGE = Attachment("a.png", "image/png", 2, "aGk=")
GO = Message("user", (Text("Go on."),))


def _loop(*results: ToolResult, calls: tuple[ToolCall, ...]) -> tuple[Message, ...]:
    return (
        GO,
        Message("assistant", (Text("I look."), *calls)),
        *(Message("tool", (result,)) for result in results),
        Message("assistant", (Text("Done."),)),
    )


CONVERSATIONS: dict[str, Conversation] = {
    "a question and its answer": Conversation(
        (GO, Message("assistant", (Text("Fine."),)), Message("user", (Text("Thanks."),)))
    ),
    "several texts in one message": Conversation(
        (Message("user", (Text("One."), Text("Two.\n\n"), Text("\u00a0漢字 \U0001f600 \x00"))),)
    ),
    "a system prompt beside the messages": Conversation(
        (GO,), system=Message("system", (Text("Be brief."),))
    ),
    "a system prompt among the messages": Conversation(
        (Message("system", (Text("Be brief."),)), GO)
    ),
    "both, and tools": Conversation(
        (Message("system", (Text("Be kind."),)), GO),
        system=Message("system", (Text("Be brief."),)),
        tools=(Tool("read", "Reads a file.", SCHEMA), Tool("list", "Lists.", {"type": "object"})),
        extras={},
    ),
    "a call and its result": Conversation(
        _loop(
            ToolResult("call_1", (Text("hello"),), name="read"),
            calls=(ToolCall("call_1", "read", {"path": "a.txt"}),),
        )
    ),
    "parallel calls, answered in another order": Conversation(
        _loop(
            ToolResult("call_2", (Text("two"),), name="read"),
            ToolResult("call_1", (Text("one"),), name="read"),
            ToolResult("call_3", (Text("three"),), name="list"),
            calls=(
                ToolCall("call_1", "read", {"path": "1"}),
                ToolCall("call_2", "read", '{"path": "2"}'),
                ToolCall("call_3", "list", {}),
            ),
        )
    ),
    "a failed tool": Conversation(
        _loop(
            ToolResult("call_1", (Text("no such file"),), is_error=True, name="read"),
            calls=(ToolCall("call_1", "read", {"path": "b.txt"}),),
        )
    ),
    "structured output": Conversation(
        _loop(
            ToolResult("call_1", (Data({"lines": [1, 2.5, None], "ok": True}),), name="read"),
            calls=(ToolCall("call_1", "read", {"deep": [{"path": "c"}]}),),
        )
    ),
    "arguments that are broken": Conversation(
        _loop(
            ToolResult("call_1", (Text("cannot parse"),), is_error=True, name="read"),
            calls=(ToolCall("call_1", "read", '{"path": '),),
        )
    ),
    "images": Conversation(
        (
            Message("user", (Text("Compare."), IMAGE, Attachment(url="https://example.org/b.png"))),
            Message("assistant", (Text("They differ."),)),
        )
    ),
    "a document": Conversation(
        (Message("user", (Attachment("a.pdf", "application/pdf", 2, "aGk="), Text("Read."))),)
    ),
    "a call that waits for its result": Conversation(
        (GO, Message("assistant", (ToolCall("call_1", "read", {"path": "a"}),)))
    ),
    "results and words in one message": Conversation(
        (
            GO,
            Message("assistant", (ToolCall("call_1", "read", {}), ToolCall("call_2", "read", {}))),
            Message(
                "user",
                (
                    ToolResult("call_1", (Text("one"),), name="read"),
                    ToolResult("call_2", (Text("two"),), name="read"),
                    Text("And now?"),
                ),
            ),
        )
    ),
}


def _through(conversation: Conversation, name: str) -> Conversation:
    """The conversation as it is read in another dialect, whose value comes back as it was."""
    value = wire.render(conversation, name)
    again = wire.parse(value, name)
    assert dump_text(wire.render(again)) == dump_text(value)
    return again


@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_dialect_says_it_after_every_other(name: str, first: str, second: str) -> None:
    conversation = _through(CONVERSATIONS[name], first)
    assert gist(conversation) == gist(CONVERSATIONS[name])
    assert gist(_through(conversation, second)) == gist(CONVERSATIONS[name])


# Generated conversations, of what all dialects can say

_words = st.text("abc é漢\n\x00😀", min_size=1, max_size=12).filter(str.strip)
_plain = st.text("abc", min_size=1, max_size=5)
_arguments = st.dictionaries(_plain, st.none() | st.booleans() | st.integers() | _words, max_size=2)
_files = st.sampled_from(
    [IMAGE, Attachment(url="https://example.org/a"), Attachment("", "application/pdf", 2, "aGk=")]
)


@st.composite
def _turns(draw: st.DrawFn, number: int) -> list[Message]:
    """Draw a question, the model's calls, their results, and its answer."""
    parts: list[Part] = [Text(draw(_words))]
    parts += draw(st.lists(_files | st.builds(Text, _words), max_size=2))
    turn = [Message("user", tuple(parts))]
    for step in range(draw(st.integers(0, 2))):
        ids = [f"call_{number}_{step}_{index}" for index in range(draw(st.integers(1, 3)))]
        texts = [Text(words) for words in draw(st.lists(_words, max_size=1))]
        calls = [ToolCall(id, draw(_plain), draw(_arguments)) for id in ids]
        turn.append(Message("assistant", (*texts, *calls)))
        turn += [
            Message("tool", (ToolResult(id, (Text(draw(_words)),), draw(st.booleans())),))
            for id in draw(st.permutations(ids))
        ]
    return [*turn, Message("assistant", (Text(draw(_words)),))]


@st.composite
def _conversations(draw: st.DrawFn) -> Conversation:
    prompt = draw(st.none() | _words)
    tools = draw(st.lists(st.builds(Tool, _plain, _words, st.just(SCHEMA)), max_size=2))
    turns = [draw(_turns(number)) for number in range(draw(st.integers(1, 3)))]
    return Conversation(
        tuple(message for turn in turns for message in turn),
        system=None if prompt is None else Message("system", (Text(prompt),)),
        tools=tuple(tools),
        extras={} if tools else draw(st.sampled_from([None, {}])),
    )


@pytest.mark.parametrize("name", NAMES)
@given(conversation=_conversations())
def test_generated_conversations_are_written_in_every_dialect(
    name: str, conversation: Conversation
) -> None:
    assert gist(_through(conversation, name)) == gist(conversation)


@given(_conversations(), st.lists(st.sampled_from(NAMES), min_size=2, max_size=6))
def test_a_conversation_survives_any_journey(conversation: Conversation, way: list[str]) -> None:
    there = conversation
    for name in way:
        there = _through(there, name)
    assert gist(there) == gist(conversation)


@given(_conversations(), st.permutations(NAMES))
def test_a_translation_depends_only_on_the_content(
    conversation: Conversation, names: list[str]
) -> None:
    first, second = names[:2]
    there = _through(conversation, first)
    assert wire.render(there, second) == wire.render(_from_elsewhere(there), second)


def _from_elsewhere(value: Any) -> Any:
    """The same values, as if from a dialect that keeps nothing but what was said."""
    if isinstance(value, tuple):
        return tuple(_from_elsewhere(item) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {field.name: _from_elsewhere(getattr(value, field.name)) for field in fields(value)}
    changes["extras"] = None if changes["extras"] is None else {}
    if "dialect" in changes:
        changes["dialect"] = "elsewhere"
    return replace(value, **changes)


# Features of some dialects


def _parts(conversation: Conversation, kind: type) -> list[Any]:
    return [part for m in conversation.messages for part in m.parts if isinstance(part, kind)]


def _kinds(conversation: Conversation) -> list[str]:
    return [type(part).__name__ for m in conversation.messages for part in m.parts]


_FAILED = CONVERSATIONS["a failed tool"]
_MIXED = Conversation(
    (GO, Message("assistant", (ToolCall("call_1", "read", {}), Text("and"), Text("so on"))))
)
_NAMED = Conversation((Message("user", (Text("Hi"),), id="m1", name="Ann"),))
_LATER = Conversation((GO, Message("assistant", (Text("Yes."),)), Message("system", (Text("!"),))))
_PICTURED = Conversation(
    _loop(ToolResult("c", (Text("See"), IMAGE), name="f"), calls=(ToolCall("c", "f", {}),))
)
_BROKEN = CONVERSATIONS["arguments that are broken"]

ABILITIES: dict[str, tuple[Conversation, Callable[[Conversation], bool], set[str]]] = {
    "flag a failed result": (
        _FAILED,
        lambda there: _parts(there, ToolResult)[0].is_error,
        {"anthropic", "gemini", "langchain", "enfold"},
    ),
    "say something after a call": (
        _MIXED,
        lambda there: _kinds(there)[1:] == ["ToolCall", "Text", "Text"],
        {"anthropic", "gemini", "langchain", "enfold"},
    ),
    "name the speaker": (
        _NAMED,
        lambda there: there.messages[0].name == "Ann",
        {"openai", "langchain", "enfold"},
    ),
    "name the message": (
        _NAMED,
        lambda there: there.messages[0].id == "m1",
        {"langchain", "enfold"},
    ),
    "have a system message later": (
        _LATER,
        lambda there: there.messages[-1].role == "system",
        {"openai", "openai-responses", "langchain", "enfold"},
    ),
    "show a picture in a result": (
        _PICTURED,
        lambda there: any(isinstance(p, Attachment) for p in _parts(there, ToolResult)[0].parts),
        {"openai-responses", "anthropic", "gemini", "langchain", "enfold"},
    ),
    "keep broken arguments as text": (
        _BROKEN,
        lambda there: _parts(there, ToolCall)[0].arguments == '{"path": ',
        {"openai", "openai-responses", "langchain", "enfold"},
    ),
    "think aloud": (
        Conversation((GO, Message("assistant", (Reasoning("Hm."), Text("Yes."))))),
        lambda there: bool(_parts(there, Reasoning)),
        {"enfold"},
    ),
}


@pytest.mark.parametrize("ability", ABILITIES)
def test_features_of_some_dialects_are_written_there(ability: str) -> None:
    conversation, is_said, able = ABILITIES[ability]
    assert is_said(conversation)
    foreign = _from_elsewhere(conversation)
    assert {name for name in NAMES if is_said(_through(foreign, name))} == able
