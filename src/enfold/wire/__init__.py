"""Dialects: the wire formats of messages, one module each, all pure.

`parse` turns a wire value into a `Conversation` and `render` turns it back; what was not touched
in between comes back as it was. A conversation can also be rendered in another dialect than its
own: then its typed fields are translated and what only its own dialect can say stays behind.
"""

from __future__ import annotations

from typing import Any, Protocol

from enfold.errors import ConfigError
from enfold.messages import Conversation, Message
from enfold.wire import anthropic, enfold, gemini, langchain, openai, openai_responses
from enfold.wire.detection import detect


class Dialect(Protocol):
    """What every module of this package offers."""

    NAME: str

    def parse(self, value: Any) -> Conversation: ...
    def render(self, conversation: Conversation) -> Any: ...
    def parse_message(self, raw: Any) -> Message: ...
    def render_message(self, message: Message) -> Any: ...


_MODULES: tuple[Dialect, ...] = (
    openai,
    openai_responses,
    anthropic,
    gemini,
    langchain,
    enfold,
)
DIALECTS: dict[str, Dialect] = {module.NAME: module for module in _MODULES}
"""By name, in the order in which they are taken where nothing tells them apart."""
AUTO = "auto"
"""Instead of a name: the dialect is detected."""


def get(name: str) -> Dialect:
    """The dialect of that name."""
    if name in DIALECTS:
        return DIALECTS[name]
    raise ConfigError(f"no dialect {name!r}; there are {', '.join(DIALECTS)}")


def parse(value: Any, dialect: str = AUTO) -> Conversation:
    """The conversation of a wire value: a request body, or an array of its messages."""
    return get(detect(value) if dialect == AUTO else dialect).parse(value)


def render(conversation: Conversation, dialect: str | None = None) -> Any:
    """The conversation as a wire value, in its own dialect unless another is named."""
    return get(dialect or conversation.dialect).render(conversation)
