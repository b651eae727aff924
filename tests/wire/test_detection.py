"""Detection: right wherever the dialects can be told apart, and honest where they cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from enfold import wire
from enfold.errors import DialectError
from enfold.jsontext import dump_text
from enfold.messages import Conversation
from enfold.wire import detection
from tests.wire import (
    anthropic_values,
    enfold_values,
    gemini_values,
    langchain_values,
    openai_responses_values,
    openai_values,
)
from tests.wire.conversations import without_extras
from tests.wire.round_trips import damaged, json_objects, json_values

Values = st.SearchStrategy[Any]


def _has_no_system(value: Any) -> bool:
    """OpenAI knows no such field; with it, a body is a good one of Anthropic's."""
    return not (isinstance(value, dict) and "system" in value)


def _has_a_known_item(value: Any) -> bool:
    """Return False for unknown items, all of them or one that looks like a message."""
    if not isinstance(value, list) or not value:
        return True
    if any(item.get("type") == "item_of_next_year" and "role" in item for item in value):
        return False
    return any(
        f"message.{key} = {item.get(key)}" in detection.SIGNS or item.keys() == {"id"}
        for item in value
        for key in ("role", "type")
    )


def _has_parts(value: Any) -> bool:
    """False for an array of contents that say nothing, which may have the role `function`."""
    return not isinstance(value, list) or not value or any(raw.get("parts") for raw in value)


def _has_messages(value: Any) -> bool:
    return bool(value["messages"] if isinstance(value, dict) else value)


DIALECT_VALUES: dict[str, tuple[Values, Callable[[Any], bool]]] = {
    "openai": (openai_values.conversations, _has_no_system),
    "openai-responses": (openai_responses_values.conversations, _has_a_known_item),
    "anthropic": (anthropic_values.values, lambda _: True),
    "gemini": (gemini_values.values, _has_parts),
    "langchain": (langchain_values.values, _has_messages),
    "enfold": (enfold_values.usual_values, lambda _: True),
}
"""What each dialect writes, and which of it has something in it to know the dialect by."""


@pytest.mark.parametrize("name", DIALECT_VALUES)
@given(data=st.data())
def test_a_dialect_is_detected_or_another_that_reads_the_same(
    name: str, data: st.DataObject
) -> None:
    values, can_be_known = DIALECT_VALUES[name]
    value = data.draw(values)
    assume(can_be_known(value))
    found = wire.detect(value)
    if found != name:
        expected, other = wire.parse(value, name), wire.parse(value, found)
        assert _typed_fields(other) == _typed_fields(expected)


def _typed_fields(conversation: Conversation) -> Any:
    """All typed fields; an empty id is none."""
    messages = (replace(message, id=message.id or None) for message in conversation.messages)
    return without_extras(replace(conversation, messages=tuple(messages)))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ([], "openai"),
        ({"messages": []}, "openai"),
        ([{"role": "user", "content": "Hi"}], "openai"),
        ([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "openai"),
        ([{"role": "user", "content": "Hi", "id": 7}], "openai"),
        ([{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}], "openai"),
        ([{"role": "tool", "content": "x", "tool_call_id": "c"}], "openai"),
        ({"input": "Hi"}, "openai-responses"),
        ({"previous_response_id": "r"}, "openai-responses"),
        ([{"role": "user", "content": "x"}, {"type": "reasoning"}], "openai-responses"),
        ([{"role": "user", "content": "x"}, {"id": "msg_1"}], "openai-responses"),
        ([{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], "openai-responses"),
        ({"messages": [{"role": "user", "content": "Hi"}], "system": "Be brief."}, "anthropic"),
        ({"messages": [], "anthropic_version": "2023-06-01"}, "anthropic"),
        ({"messages": [], "tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
        ([{"role": "user", "content": [{"type": "tool_result"}]}], "anthropic"),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": [{"type": "image"}]}],
                }
            ],
            "anthropic",
        ),
        ({"contents": []}, "gemini"),
        ({"contents": {"parts": {"text": "x"}}}, "gemini"),
        ([{"parts": [{"text": "x"}]}], "gemini"),
        ([{"role": "model"}], "gemini"),
        ([{"type": "human", "content": "x"}], "langchain"),
        ([{"type": "ai", "data": {"content": "x"}}], "langchain"),
        ([{"lc": 1, "type": "constructor", "id": [], "kwargs": {}}], "langchain"),
        ([{"type": "chat", "role": "user", "content": [{"type": "thinking"}]}], "langchain"),
        ([{"id": "m0", "role": "user", "content": "Hi"}], "enfold"),
        ([{"role": "user", "content": [{"type": "attachment"}]}], "enfold"),
        ([{"id": "m", "role": "user", "content": [{"type": "tool_result"}]}], "enfold"),
        ({"messages": [{"role": "user"}], "system": {"role": "system"}}, "enfold"),
    ],
    ids=str,
)
def test_signs_tell_the_dialects_apart(value: Any, name: str) -> None:
    assert wire.detect(value) == name


MARKED: dict[str, Any] = {
    "openai": {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},
    "openai-responses": {"type": "function_call", "call_id": "c"},
    "anthropic": {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]},
    "gemini": {"role": "model", "parts": [{"text": "x"}]},
    "langchain": {"type": "human", "content": "x"},
    "enfold": {"role": "user", "content": [{"type": "attachment", "name": "a"}]},
}
"""A message of each dialect that no other would write."""


@pytest.mark.parametrize("pair", list(combinations(MARKED, 2)), ids=str)
def test_signs_that_contradict_each_other_are_refused(pair: tuple[str, str]) -> None:
    one, other = (MARKED[name] for name in pair)
    assert (wire.detect([one]), wire.detect([other])) == pair
    with pytest.raises(DialectError, match="no dialect fits") as caught:
        wire.detect([one, other])
    assert all(name in str(caught.value) for name in pair)
    assert "--dialect" in str(caught.value)


def test_two_conversations_in_one_body_are_refused() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(DialectError, match=r"body\.input: text.*body\.messages: array"):
        wire.detect({"messages": messages, "input": "Hi"})


@pytest.mark.parametrize(
    "value", [None, 5, "text", {}, [1], [{}], [{"type": "x"}], {"a": 1}], ids=str
)
def test_an_invalid_conversation_is_refused(value: Any) -> None:
    with pytest.raises(
        DialectError, match="looked for `messages`, `contents` or `input`"
    ) as caught:
        wire.detect(value)
    assert "--dialect" in str(caught.value)


@given(json_values | json_objects | st.lists(json_objects))
def test_any_json_is_some_dialect_or_refused(value: Any) -> None:
    try:
        found = wire.detect(value)
    except DialectError:
        return
    assert found in wire.DIALECTS


@pytest.mark.parametrize("name", DIALECT_VALUES)
@given(data=st.data())
def test_a_damaged_value_comes_back_as_it_was_or_is_refused(name: str, data: st.DataObject) -> None:
    value = data.draw(damaged(DIALECT_VALUES[name][0]))
    try:
        conversation = wire.parse(value)
    except DialectError:
        return
    assert dump_text(wire.render(conversation)) == dump_text(value)


@given(json_values)
def test_an_error_never_quotes_a_message(value: Any) -> None:
    secret = "the code is 4711"
    with pytest.raises(DialectError) as caught:
        wire.detect([MARKED["openai"], MARKED["gemini"], {"role": secret, "x": [value, secret]}])
    assert secret not in str(caught.value)


def test_deep_nesting_is_no_obstacle() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    assert wire.detect([{"role": "user", "content": deep, "id": "m"}]) == "enfold"
