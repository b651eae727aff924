"""The library: functions that take a conversation in whatever form a program has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from enfold import dialects, tokens
from enfold.errors import InputError
from enfold.messages import Conversation, Message

Messages: TypeAlias = (
    Conversation | Sequence[Message] | Sequence[Mapping[str, Any]] | Mapping[str, Any]
)
"""A conversation, its messages, or what an API takes: a request body or its array of messages."""


def count(messages: str | Messages, tokenizer: str = tokens.DEFAULT) -> int:
    """The exact tokens of a conversation, or of one text.

    The wire format of a request body or an array of messages is recognised. A text is counted as
    it is; a message counts a few tokens of structure beside its content.
    """
    if isinstance(messages, str):
        return tokens.get(tokenizer).count(messages)
    return tokens.count_conversation(conversation_of(messages), tokenizer).total


def conversation_of(messages: Messages) -> Conversation:
    """The conversation that was meant."""
    if isinstance(messages, Conversation):
        return messages
    if isinstance(messages, Mapping) or not any(isinstance(each, Message) for each in messages):
        return dialects.parse(messages)
    own = tuple(each for each in messages if isinstance(each, Message))
    if len(own) != len(messages):
        raise InputError("messages of enfold and of a wire format are mixed; give one kind")
    return Conversation(own, dialect=own[0].dialect)
