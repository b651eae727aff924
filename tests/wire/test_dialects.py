"""Dialects by name: taken, detected, and told apart from what does not exist."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from enfold import wire
from enfold.errors import ConfigError, DialectError
from enfold.messages import Conversation, Message, Text
from enfold.wire import detection

SAID: list[Any] = [{"role": "user", "content": "Hi"}]


def test_every_dialect_is_registered_once_and_in_order() -> None:
    assert tuple(wire.DIALECTS) == detection.ORDER
    assert all(name == wire.get(name).NAME for name in wire.DIALECTS)
    named = {name for names in detection.SIGNS.values() for name in names.split()}
    assert named | set(detection.HINTS.values()) == set(detection.ORDER)


def test_a_dialect_that_does_not_exist_is_refused() -> None:
    known = "there are openai, openai-responses, anthropic, gemini, langchain, enfold"
    for use in (wire.get, lambda name: wire.parse(SAID, name)):
        with pytest.raises(ConfigError, match=f"no dialect 'morse'; {known}"):
            use("morse")
    with pytest.raises(ConfigError, match="no dialect 'morse'"):
        wire.render(Conversation(()), "morse")


def test_a_named_dialect_is_not_questioned() -> None:
    assert wire.parse(SAID).dialect == "openai"
    assert wire.parse(SAID, "auto").dialect == "openai"
    assert wire.parse(SAID, "anthropic").dialect == "anthropic"
    with pytest.raises(DialectError, match="contents"):
        wire.parse({"messages": SAID}, "gemini")


def test_a_conversation_is_rendered_in_its_own_dialect_or_the_one_that_is_named() -> None:
    conversation = wire.parse({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]})
    assert wire.render(conversation) == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    assert wire.render(conversation, "openai") == {"messages": SAID}


@pytest.mark.parametrize(("source", "target"), list(permutations(wire.DIALECTS, 2)))
def test_a_single_message_is_rendered_in_every_dialect(source: str, target: str) -> None:
    by_hand = wire.get(source).render_message(Message("user", (Text("Hi"),)))
    message = wire.get(source).parse_message(by_hand)
    raw = wire.get(target).render_message(message)
    there = wire.get(target).parse_message(raw)
    assert there.role == "user"
    assert [part.text for part in there.parts if isinstance(part, Text)] == ["Hi"]
