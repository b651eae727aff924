"""Replies and requests of a provider's server, in the same terms for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from enfold.llm.calls import Connection
from tests.llm.servers.loopback import Request, ScriptedAnswer

KEY = "sk-4rqXv9-never-to-be-seen"


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A scripted reply of the model with the usage that the provider counted."""

    pieces: tuple[str, ...] = ("Bonjour, ", "le ", "monde.")
    tool: tuple[str, str, dict[str, Any]] | None = None
    """A call's id, name and arguments."""
    ending: Literal["stop", "length", "refusal"] = "stop"
    input_tokens: int = 100
    """With what was read from the cache."""
    cached: int = 40
    output_tokens: int = 7


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request to the server, parsed from its protocol."""

    path: str
    key: str
    model: str
    system: str
    messages: list[tuple[str, str]]
    """Role and text."""
    max_tokens: int | None
    temperature: float | None


@dataclass(frozen=True, slots=True)
class ProviderProtocol:
    """One provider's protocol."""

    name: str
    connection: Callable[[str], Connection]
    """To a server at an address."""
    path: str
    streamed_path: str
    whole: Callable[[ScriptedReply], ScriptedAnswer]
    streamed: Callable[[ScriptedReply], ScriptedAnswer]
    read_request: Callable[[Request], ParsedRequest]
    failed: Callable[[int], ScriptedAnswer]
    """An error with that status, as the provider words it."""
    overflow: ScriptedAnswer
    """The request is too long for the model."""
    credential: str = KEY
    """The credential that the server receives."""
