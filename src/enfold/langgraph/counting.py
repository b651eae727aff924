"""Counting: the tokens of LangChain messages, where a graph names no counter of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from langchain_core.messages import BaseMessage, MessageLikeRepresentation
from langchain_core.messages.utils import convert_to_messages

from enfold import tokens
from enfold.dialects.langchain import parse_message

TokenCounter: TypeAlias = Callable[[list[BaseMessage]], int]


def count_tokens(messages: Iterable[MessageLikeRepresentation]) -> int:
    """The tokens of the messages by `cl100k_base`.

    Where no tokenizer can be loaded a quarter of the characters is taken instead, with one warning.
    """
    tokenizer = tokens.get("cl100k_base", fallback="chars4")
    parsed = [parse_message(message) for message in convert_to_messages(list(messages))]
    return sum(tokens.count_messages(parsed, tokenizer))
