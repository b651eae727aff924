"""Which result belongs to which call, where the wire leaves it to name and order."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from enfold.messages import Message, ToolCall, ToolResult
from enfold.testing import assistant, user
from enfold.wire.translation import pair_calls


def _calls(*names: str) -> Message:
    return assistant("", *(ToolCall("", name, {}) for name in names))


def _results(*names: str) -> Message:
    return Message("tool", tuple(ToolResult("", name=name) for name in names))


def _ids(*messages: Message) -> list[str]:
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for message in pair_calls(messages)
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def test_results_belong_to_calls_by_name_and_order() -> None:
    assert _ids(_calls("a", "b", "a"), _results("a", "a", "b")) == [
        *("a#1", "b#1", "a#2"),
        *("a#1", "a#2", "b#1"),
    ]


def test_ids_are_counted_over_the_whole_conversation() -> None:
    turn = (_calls("a"), _results("a"))
    assert _ids(*turn, *turn) == ["a#1", "a#1", "a#2", "a#2"]


def test_a_call_that_was_interrupted_is_not_answered_later() -> None:
    messages = (_calls("a"), user("Never mind."), _calls("a"), _results("a"))
    assert _ids(*messages) == ["a#1", "a#2", "a#2"]


def test_the_calls_of_one_turn_may_stand_in_several_messages() -> None:
    messages = (_calls("a"), _calls("a"), _results("a"), _results("a"))
    assert _ids(*messages) == ["a#1", "a#2", "a#1", "a#2"]


def test_a_result_without_a_call_has_an_id_of_its_own() -> None:
    assert _ids(_results("a"), _calls("a")) == ["a#1", "a#2"]


def test_ids_of_the_wire_are_used_where_they_are() -> None:
    calls = assistant("", ToolCall("x", "a", {}), ToolCall("y", "a", {}))
    results = Message("tool", (ToolResult("y", name="a"), ToolResult("", name="a")))
    assert _ids(calls, results) == ["x", "y", "y", "x"]


def test_a_result_that_does_not_say_its_tool_learns_it_from_the_call() -> None:
    messages = (_calls("a"), assistant("", ToolCall("x", "b", {})))
    results = Message("tool", (ToolResult(""), ToolResult("x"), ToolResult("elsewhere")))
    (*_, paired) = pair_calls((*messages, results))
    assert paired.parts == (
        ToolResult("a#1", name="a"),
        ToolResult("x", name="b"),
        ToolResult("elsewhere"),
    )


def test_messages_without_calls_are_the_same_objects() -> None:
    message = user("Hi")
    assert pair_calls((message,))[0] is message


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), max_size=4),
    st.randoms(use_true_random=False),
)
def test_every_answered_call_finds_its_result(turns: list[list[str]], random: Random) -> None:
    messages: list[Message] = []
    for names in turns:
        messages += [_calls(*names), _results(*random.sample(names, len(names)))]
    parts = [part for message in pair_calls(messages) for part in message.parts]
    calls = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
    assert len(calls) == sum(len(names) for names in turns)
    assert calls == {part.call_id: part.name for part in parts if isinstance(part, ToolResult)}
