"""The contract of all dialects: found by name, and exact in both directions."""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import wire
from enfold.errors import ConfigError, DialectError
from enfold.jsontext import dumps
from enfold.messages import Conversation, Message, Text
from enfold.wire import detection
from tests.wire import (
    anthropic_values,
    enfold_values,
    gemini_values,
    langchain_values,
    openai_responses_values,
    openai_values,
)
from tests.wire.round_trips import damaged, json_objects, json_values

MESSAGES: list[Any] = [{"role": "user", "content": "Hi"}]


class Generated(NamedTuple):
    """Values of a dialect."""

    conversations: st.SearchStrategy[Any]
    messages: st.SearchStrategy[Any]


VALUES = {
    "openai": Generated(openai_values.conversations, openai_values.messages),
    "openai-responses": Generated(
        openai_responses_values.conversations, openai_responses_values.items
    ),
    "anthropic": Generated(anthropic_values.values, anthropic_values.messages),
    "gemini": Generated(gemini_values.values, gemini_values.contents),
    "langchain": Generated(langchain_values.values, langchain_values.messages),
    "enfold": Generated(enfold_values.values, enfold_values.messages),
}
every_dialect = pytest.mark.parametrize("name", wire.DIALECTS)


@every_dialect
@given(data=st.data())
def test_a_conversation_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    dialect, value = wire.get(name), data.draw(VALUES[name].conversations)
    before = dumps(value)
    assert dumps(dialect.render(dialect.parse(value))) == before
    assert dumps(value) == before


@every_dialect
@given(data=st.data())
def test_a_single_message_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    dialect, raw = wire.get(name), data.draw(VALUES[name].messages)
    assert dumps(dialect.render_message(dialect.parse_message(raw))) == dumps(raw)


@every_dialect
@given(data=st.data())
def test_any_json_comes_back_as_it_was_or_is_refused(name: str, data: st.DataObject) -> None:
    damages = damaged(VALUES[name].conversations)
    value = data.draw(json_values | json_objects | damages | st.lists(json_values, max_size=2))
    try:
        conversation = wire.get(name).parse(value)
    except DialectError:
        return
    assert dumps(wire.get(name).render(conversation)) == dumps(value)


def test_every_dialect_is_registered_once_and_in_order() -> None:
    assert tuple(wire.DIALECTS) == detection.ORDER
    assert all(name == wire.get(name).NAME for name in wire.DIALECTS)
    named = {name for names in detection.SIGNS.values() for name in names.split()}
    assert named | set(detection.HINTS.values()) == set(detection.ORDER)


def test_a_dialect_that_does_not_exist_is_refused() -> None:
    listed = "available: openai, openai-responses, anthropic, gemini, langchain, enfold"
    for use in (wire.get, lambda name: wire.parse(MESSAGES, name)):
        with pytest.raises(ConfigError, match=f"no dialect 'morse'; {listed}"):
            use("morse")
    with pytest.raises(ConfigError, match="no dialect 'morse'"):
        wire.render(Conversation(()), "morse")


def test_a_named_dialect_is_not_questioned() -> None:
    assert wire.parse(MESSAGES).dialect == "openai"
    assert wire.parse(MESSAGES, "auto").dialect == "openai"
    assert wire.parse(MESSAGES, "anthropic").dialect == "anthropic"
    with pytest.raises(DialectError, match="contents"):
        wire.parse({"messages": MESSAGES}, "gemini")


def test_a_conversation_is_rendered_in_its_own_dialect_or_the_one_that_is_named() -> None:
    conversation = wire.parse({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]})
    assert wire.render(conversation) == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    assert wire.render(conversation, "openai") == {"messages": MESSAGES}


@pytest.mark.parametrize(("source", "target"), list(permutations(wire.DIALECTS, 2)))
def test_a_single_message_is_rendered_in_every_dialect(source: str, target: str) -> None:
    by_hand = wire.get(source).render_message(Message("user", (Text("Hi"),)))
    message = wire.get(source).parse_message(by_hand)
    raw = wire.get(target).render_message(message)
    there = wire.get(target).parse_message(raw)
    assert there.role == "user"
    assert [part.text for part in there.parts if isinstance(part, Text)] == ["Hi"]
