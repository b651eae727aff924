"""A reply: what a model said in one answer, in whichever form it was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from enfold.llm.calls import CallUsage


@dataclass(frozen=True, slots=True)
class Called:
    """A tool that the model calls."""

    id: str
    """As results refer to it; empty where the provider gives none."""
    name: str
    arguments: str
    """As JSON, or whatever else the model wrote."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What was read of an answer."""

    id: str | None = None
    """The provider's name for it."""
    usage: CallUsage = CallUsage()  # noqa: RUF009, frozen
    calls: tuple[Called, ...] = ()
    finish: str | None = None
    """Why it ended, in the provider's word. None: it did not, or broke off."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """The model's own words, as the messages of a request that goes on from there."""


class Gathering(Protocol):
    """Puts a reply of one form together."""

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of a stream."""
        ...

    def take_whole(self, body: Any) -> None:
        """An answer that was not streamed."""
        ...

    def reply(self) -> Reply:
        """What there is by now."""
        ...
