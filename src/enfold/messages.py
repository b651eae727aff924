"""Messages and their parts: the values that every other module passes around.

All are frozen. A change is a new value: `dataclasses.replace(part, text=…)`.

What a typed field does not carry is in `extras`: the JSON object as it came off the wire, shared,
not copied. A dialect writes a value back by laying the typed fields over `extras`, so fields that
enfold does not know, their order and their exact shape survive, edited message or not. A part
made by hand has none. `extras` speak the dialect named by `Message.dialect`; another dialect
ignores them and writes the typed fields alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Extras: TypeAlias = Mapping[str, Any]

NOTHING: Extras = {}
"""Shared by everything made by hand. A plain dict, so that messages can be pickled."""


def _nothing() -> Extras:
    return NOTHING


@dataclass(frozen=True, slots=True, init=False)
class Text:
    """A text of a person, a model or a tool."""

    text: str
    extras: Extras = field(default_factory=_nothing, repr=False)

    def __init__(self, text: str, extras: Extras = NOTHING) -> None:
        # There are thousands in a history; this takes half of the time of a generated method.
        _set_text(self, text)
        _set_text_extras(self, extras)


_set_text, _set_text_extras = (getattr(Text, name).__set__ for name in Text.__slots__)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool."""

    id: str
    """Pairs the call with its result. Empty where the wire has none."""
    name: str
    arguments: str | Mapping[str, Any]
    """JSON text where the wire has text (it may be broken), the object where it has one."""
    extras: Extras = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, slots=True)
class Data:
    """A tool's structured output, on wires that carry JSON rather than text."""

    value: Any
    extras: Extras = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image, document, sound or file; its content is carried, never counted."""

    name: str = ""
    mime: str = ""
    size: int | None = None
    """In bytes. Unknown where only an address or a provider's file id is given."""
    data: str | None = field(default=None, repr=False)
    """The content in base64, where the wire has it."""
    url: str | None = None
    extras: Extras = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's thinking, kept as it came: it may be signed or encrypted."""

    text: str = ""
    """The readable text. Empty if the reasoning is opaque."""
    extras: Extras = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a kind that enfold does not know; `extras` is all of it."""

    extras: Extras


ResultPart: TypeAlias = Text | Data | Attachment | Unknown


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call."""

    call_id: str
    parts: tuple[ResultPart, ...] = ()
    is_error: bool = False
    name: str = ""
    """The tool's name, where the wire repeats it."""
    extras: Extras = field(default_factory=_nothing, repr=False)


Part: TypeAlias = Text | ToolCall | ToolResult | Attachment | Reasoning | Data | Unknown


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """One entry of a conversation."""

    role: Role
    parts: tuple[Part, ...] = ()
    id: str | None = None
    """As the wire gives it, if it does."""
    name: str | None = None
    """The speaker's name, where several people share a role."""
    dialect: str = "enfold"
    """The dialect that `extras`, here and in the parts, speak."""
    extras: Extras = field(default_factory=_nothing, repr=False)
    at: datetime | None = field(default=None, compare=False)
    """The time of the message, with a time zone. None if the source has no time.

    Two messages with the same content are equal whatever their times: a client that sends a
    history again sends no times.
    """

    def __init__(
        self,
        role: Role,
        parts: tuple[Part, ...] = (),
        id: str | None = None,
        name: str | None = None,
        dialect: str = "enfold",
        extras: Extras = NOTHING,
        at: datetime | None = None,
    ) -> None:
        _set_role(self, role)
        _set_parts(self, parts)
        _set_id(self, id)
        _set_name(self, name)
        _set_dialect(self, dialect)
        _set_extras(self, extras)
        _set_at(self, at)


_set_role, _set_parts, _set_id, _set_name, _set_dialect, _set_extras, _set_at = (
    getattr(Message, name).__set__ for name in Message.__slots__
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's definition, as offered to the model."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    """JSON schema. None for a provider's built-in tool, which `extras` describe."""
    extras: Extras = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The content of one request: messages, system prompt and tools."""

    messages: tuple[Message, ...]
    dialect: str = "enfold"
    system: Message | None = None
    """A system prompt that is sent apart from the messages; one among them is a message."""
    tools: tuple[Tool, ...] = ()
    extras: Extras | None = field(default=None, repr=False)
    """The request body it came in. None for a bare array of messages."""


def text_of(parts: tuple[Part, ...]) -> str:
    """Return all readable text of the parts, joined by blank lines; tool results included."""
    pieces: list[str] = []
    for part in parts:
        match part:
            case Text(text):
                pieces.append(text)
            case ToolResult(parts=inner):
                pieces.append(text_of(inner))
    return "\n\n".join(piece for piece in pieces if piece)
