"""The gateway's port: what a model is asked, over which connection, and what it answers.

Whoever needs a model depends on `Gateway`; how a provider is reached is known to the gateway alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Protocol, TypeAlias

from enfold.amounts import CallUsage
from enfold.messages import Message

Ending: TypeAlias = Literal["stop", "length", "tool_call"]


class Secret:
    """A key, which shows itself only when it is asked to."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself; for the wire, never for a text that somebody reads."""
        return self._value

    def __repr__(self) -> str:
        return "(secret)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down")


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a model is, and what opens the door."""

    provider: str
    """One of the gateway's providers, such as `openai`."""
    model: str
    """As the provider names it."""
    key: Secret | None = None
    base_url: str | None = None
    """In place of the provider's public address."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What only some providers ask for: `region`, `project`, `api_version` …"""
    timeout: float = 60.0
    """Seconds without a sign of life after which a call is given up."""
    retries: int = 2
    """How often a call is repeated after 429 or 5xx, with growing pauses."""

    @property
    def name(self) -> str:
        """As people write it: provider:model."""
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model."""

    messages: tuple[Message, ...]
    system: str | None = None
    max_tokens: int | None = None
    """Of the answer."""
    temperature: float | None = None
    """None, and also where the model takes none: the model's own."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tools that the model may call: `name`, `description` and `parameters` (a JSON schema)."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole answer."""

    message: Message
    """The assistant's message, with its text and tool calls."""
    usage: CallUsage
    ending: Ending
    model: str
    """The model that answered, as the provider reports it."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer that is still being written."""

    text: str


class Gateway(Protocol):
    """The only place that calls models. Failures are `GatewayError`s."""

    async def complete(self, connection: Connection, call: Call) -> ModelReply:
        """The answer, whole."""
        ...

    def stream(
        self, connection: Connection, call: Call
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        """The answer as it is written; its last item is the whole `Reply`.

        Closing the generator ends the call at the provider.
        """
        ...
