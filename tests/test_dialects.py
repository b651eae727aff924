"""Dialects by name: taken, detected, and told apart from what does not exist."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from enfold import dialects
from enfold.dialects import detection
from enfold.errors import ConfigError, DialectError
from enfold.messages import Conversation, Message, Text

SAID: list[Any] = [{"role": "user", "content": "Hi"}]


def test_every_dialect_is_registered_once_and_in_order() -> None:
    assert tuple(dialects.DIALECTS) == detection.ORDER
    assert all(name == dialects.get(name).NAME for name in dialects.DIALECTS)
    named = {name for names in detection.SIGNS.values() for name in names.split()}
    assert named | set(detection.HINTS.values()) == set(detection.ORDER)


def test_a_dialect_that_does_not_exist_is_refused() -> None:
    known = "there are openai, openai-responses, anthropic, gemini, langchain, enfold"
    for use in (dialects.get, lambda name: dialects.parse(SAID, name)):
        with pytest.raises(ConfigError, match=f"no dialect 'morse'; {known}"):
            use("morse")
    with pytest.raises(ConfigError, match="no dialect 'morse'"):
        dialects.render(Conversation(()), "morse")


def test_a_named_dialect_is_not_questioned() -> None:
    assert dialects.parse(SAID).dialect == "openai"
    assert dialects.parse(SAID, "auto").dialect == "openai"
    assert dialects.parse(SAID, "anthropic").dialect == "anthropic"
    with pytest.raises(DialectError, match="contents"):
        dialects.parse({"messages": SAID}, "gemini")


def test_a_conversation_is_rendered_in_its_own_dialect_or_the_one_that_is_named() -> None:
    conversation = dialects.parse({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]})
    assert dialects.render(conversation) == {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]
    }
    assert dialects.render(conversation, "openai") == {"messages": SAID}


@pytest.mark.parametrize(("source", "target"), list(permutations(dialects.DIALECTS, 2)))
def test_a_single_message_is_rendered_in_every_dialect(source: str, target: str) -> None:
    by_hand = dialects.get(source).render_message(Message("user", (Text("Hi"),)))
    message = dialects.get(source).parse_message(by_hand)
    raw = dialects.get(target).render_message(message)
    there = dialects.get(target).parse_message(raw)
    assert there.role == "user"
    assert [part.text for part in there.parts if isinstance(part, Text)] == ["Hi"]
