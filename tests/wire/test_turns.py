"""Conversations as user and assistant turns: joined, moved, described and omitted messages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from enfold.messages import (
    Attachment,
    Conversation,
    Message,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.testing import assistant, call, result, system, user
from enfold.wire.translation import OPENING, translate_to_turn, translate_to_turns
from tests.histories import histories


def _anthropic(message: Message) -> Message:
    return replace(message, dialect="anthropic")


def _turns(*messages: Message) -> tuple[Message, ...]:
    return translate_to_turns(Conversation(messages), "anthropic").messages


def test_its_own_conversation_is_left_as_it_is() -> None:
    messages = (
        _anthropic(assistant("a")),
        _anthropic(assistant("b")),
        _anthropic(system("c")),
        _anthropic(user(" ")),
    )
    conversation = Conversation(
        messages,
        "anthropic",
        _anthropic(system("Be brief.")),
        (Tool("built_in", extras={"x": 1}),),
        {},
    )
    assert translate_to_turns(conversation, "anthropic") == conversation


def test_results_and_words_become_one_turn_of_the_user() -> None:
    _, _, turn = _turns(
        user("Go"),
        assistant("", call("1"), call("2")),
        system("Careful."),
        result("1"),
        user("And?"),
        result("2"),
    )
    assert turn.role == "user"
    assert [type(part) for part in turn.parts] == [ToolResult, ToolResult, Text, Text]
    assert [part.text for part in turn.parts if isinstance(part, Text)] == ["Careful.", "And?"]


def test_messages_from_elsewhere_do_not_join_those_of_the_dialect() -> None:
    messages = (_anthropic(user("a")), user("b"), user("c"), _anthropic(user("d")))
    turns = translate_to_turns(Conversation(messages, "anthropic"), "anthropic").messages
    assert turns == (_anthropic(user("a")), _anthropic(user("b", Text("c"))), _anthropic(user("d")))


def test_leading_system_messages_join_the_system_prompt() -> None:
    conversation = Conversation((system("b"), system("c"), user("Hi")), system=system("a"))
    translated = translate_to_turns(conversation, "gemini")
    assert translated.messages == (replace(user("Hi"), dialect="gemini"),)
    assert translated.system == Message(
        "system", (Text("a"), Text("b"), Text("c")), dialect="gemini"
    )


def test_system_prompts_without_messages_become_a_user_message() -> None:
    translated = translate_to_turns(Conversation((system("a"), system("b"))), "gemini")
    assert translated.system is None
    assert translated.messages == (Message("user", (Text("a"), Text("b")), dialect="gemini"),)


def test_a_prompt_of_the_dialect_keeps_all_that_it_came_with() -> None:
    prompt = _anthropic(Message("system", (Text("a", {"cache_control": {}}),)))
    assert (
        translate_to_turns(Conversation((user("Hi"),), system=prompt), "anthropic").system == prompt
    )


def test_the_user_opens_where_the_assistant_began() -> None:
    assert _turns(assistant("Welcome.")) == (
        _anthropic(user(OPENING)),
        _anthropic(assistant("Welcome.")),
    )


def test_empty_messages_are_left_out_and_their_neighbours_join() -> None:
    hidden = Message("assistant", (Reasoning("Hm."), Unknown({"a": 1}), Text("\n")))
    assert _turns(user("One", Text(" ")), hidden, user("Two")) == (
        _anthropic(user("One", Text("Two"))),
    )


def test_files_become_words_where_they_cannot_go() -> None:
    out_of_reach = Attachment(name="a.pdf", extras={"file_id": "f"})
    shown = Attachment(mime="image/png", data="aGk=")
    message = Message("tool", (ToolResult("1", (out_of_reach, shown, Text(""))), out_of_reach))
    assert translate_to_turn(message, "anthropic").parts == (
        ToolResult("1", (Text("[attachment: a.pdf]"), shown)),
        Text("[attachment: a.pdf]"),
    )
    drawn = Message("assistant", (shown,))
    assert translate_to_turn(drawn, "anthropic").parts == (Text("[attachment: image/png]"),)


def test_calls_without_ids_are_paired_with_their_results() -> None:
    calls = Message("assistant", (ToolCall("", "run", "{}"),))
    results = Message("tool", (ToolResult("", name="run"),))
    _, reply, answered = _turns(user("Go"), calls, results)
    assert reply.parts == (ToolCall("run#1", "run", "{}"),)
    assert answered.parts == (ToolResult("run#1", name="run"),)


def test_built_in_tools_of_another_provider_stay_behind() -> None:
    tools = (Tool("read", parameters={}, extras={"a": 1}), Tool("web", extras={"type": "web"}))
    translated = translate_to_turns(Conversation((), "openai", tools=tools), "anthropic")
    assert translated.tools == (Tool("read", parameters={}),)


@pytest.mark.parametrize("extras", [None, {"model": "gpt"}])
def test_a_body_stays_a_body_without_what_only_it_can_say(extras: dict[str, str] | None) -> None:
    translated = translate_to_turns(
        Conversation((user("Hi"),), "openai", extras=extras), "anthropic"
    )
    assert translated.extras == (None if extras is None else {})


@given(histories())
def test_turns_alternate_and_the_user_begins(messages: list[Message]) -> None:
    turns = _turns(*messages)
    assert [turn.role for turn in turns] == [
        ("user", "assistant")[index % 2] for index in range(len(turns))
    ]
