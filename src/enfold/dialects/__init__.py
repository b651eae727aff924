"""Dialects: the wire formats of messages, one module each, all pure.

`parse` turns a wire value into a `Conversation` and `render` turns it back; what was not touched
in between comes back as it was. A conversation can also be rendered in another dialect than its
own: then its typed fields are translated and what only its own dialect can say stays behind.
"""

from __future__ import annotations

from typing import Any, Protocol

from enfold.dialects import openai
from enfold.errors import ConfigError
from enfold.messages import Conversation, Message


class Dialect(Protocol):
    """What every module of this package offers."""

    NAME: str

    def parse(self, value: Any) -> Conversation: ...
    def render(self, conversation: Conversation) -> Any: ...
    def parse_message(self, raw: Any) -> Message: ...
    def render_message(self, message: Message) -> Any: ...


DIALECTS: dict[str, Dialect] = {module.NAME: module for module in (openai,)}


def get(name: str) -> Dialect:
    """The dialect of that name."""
    if name in DIALECTS:
        return DIALECTS[name]
    raise ConfigError(f"no dialect {name!r}; there are {', '.join(DIALECTS)}")


def render(conversation: Conversation, dialect: str | None = None) -> Any:
    """The conversation as a wire value, in its own dialect unless another is named."""
    return get(dialect or conversation.dialect).render(conversation)
