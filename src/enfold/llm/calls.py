"""Model calls: connection, call, reply, and the `Gateway` interface.

Code that needs a model depends on `Gateway`; only its implementation knows client libraries.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Protocol, TypeAlias

from enfold.amounts import CallUsage
from enfold.messages import Message

Ending: TypeAlias = Literal["stop", "length", "tool_call"]


class Secret:
    """A key that does not appear in representations, logs or pickles."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key, for sending only."""
        return self._value

    def __repr__(self) -> str:
        return "(secret)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of a model and the key for it."""

    provider: str
    """The name of a provider in `enfold.llm.providers`."""
    model: str
    """The provider's name for the model."""
    key: Secret | None = None
    base_url: str | None = None
    """Replaces the provider's public address."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of some providers: `region`, `project`, `api_version` …"""
    timeout: float = 60.0
    """Seconds without any data after which a call is given up."""
    retries: int = 2
    """Number of retries after status 429 or 5xx, with growing pauses."""

    @property
    def name(self) -> str:
        """The model's full name: provider:model."""
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model."""

    messages: tuple[Message, ...]
    system: str | None = None
    max_tokens: int | None = None
    """Limit of the reply."""
    temperature: float | None = None
    """None: the model's default, which is also used if the model accepts no temperature."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tools that the model may call: `name`, `description` and `parameters` (a JSON schema)."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The complete reply of a model."""

    message: Message
    """The assistant's message, with its text and tool calls."""
    usage: CallUsage
    ending: Ending
    model: str
    """The model that answered, as the provider reports it."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply that is being streamed."""

    text: str


class Gateway(Protocol):
    """The only place that calls models. Failures are `GatewayError`s."""

    async def complete(self, connection: Connection, call: Call) -> ModelReply:
        """Return the complete reply."""
        ...

    def stream(
        self, connection: Connection, call: Call
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        """Yield the reply in pieces; the last item is the complete `ModelReply`.

        Closing the generator ends the call at the provider.
        """
        ...
