"""Requests: what callers hand to a session, as messages and as figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from enfold import dialects
from enfold.budget import Load
from enfold.errors import InputError
from enfold.estimates import estimate
from enfold.llm.calls import Connection, Gateway
from enfold.messages import Conversation, Message, Text, Tool
from enfold.receipt import Means
from enfold.tokens import count_conversation

Said: TypeAlias = Message | Mapping[str, Any] | str
"""A message; a message of a dialect; or a text, which a user says."""


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A model that whoever asks brings along, with a key of their own; used for one call alone."""

    gateway: Gateway
    connection: Connection


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent beside the history, and what holds for this call alone."""

    pending: tuple[Message, ...] = ()
    """What the user says next; not stored yet."""
    system: str = ""
    tools: tuple[Tool, ...] = ()
    max_output: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[int, int] = (0, 0)
    """Tokens of a system prompt and of tools that somebody has counted already."""
    own: OwnModel | None = None
    """Who writes where neither a setting nor a profile says so."""
    restorable_by: Means = "store"
    """How what leaves the view can be had again by whoever is asked."""
    asked_at: int | None = None
    """When it was asked for, if nobody waits: a summary made since will do as well."""

    def load(self, history: int, estimated: int, tokenizer: str) -> Load:
        """All that would be sent, with a history of so many tokens."""
        prompt = Message("system", (Text(self.system),)) if self.system else None
        counted = count_conversation(
            Conversation(self.pending, system=prompt, tools=self.tools), tokenizer
        )
        of_prompt = counted.by_role.get("system", 0) if prompt is not None else 0
        return Load(
            history=history,
            system=of_prompt + self.beside[0],
            tools=counted.tools + self.beside[1],
            pending=counted.total - counted.tools - of_prompt,
            estimate=estimated + sum(map(estimate, self.pending)),
        )


def as_messages(said: Iterable[Said], dialect: str = "auto") -> tuple[Message, ...]:
    """What callers give as messages, made into messages."""
    return tuple(_as_message(one, dialect) for one in said)


def _as_message(said: Said, dialect: str) -> Message:
    if isinstance(said, Message):
        return said
    if isinstance(said, str):
        return Message("user", (Text(said),))
    if isinstance(said, Mapping):
        (message,) = dialects.parse([said], dialect).messages
        return message
    raise InputError(f"expected a message, a mapping or a text, found {type(said).__name__}")
