"""Events: what happens to a session, told to whoever listens. The same payload at every door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class CompressionStarted:
    """A compression runs. Its scope: how many messages, how many tokens."""

    name: ClassVar[str] = "compression.started"
    session: str
    messages: int
    tokens: int
    strategy: str
    automatic: bool

    def __str__(self) -> str:
        verb = "Summarizing" if self.strategy == "native" else "Condensing"
        return f"{verb} {self.messages:,} messages ({self.tokens:,} tokens)..."


@dataclass(frozen=True, slots=True)
class CompressionProgress:
    """A compression has come further."""

    name: ClassVar[str] = "compression.progress"
    session: str
    step: str
    messages: int

    def __str__(self) -> str:
        return f"{self.step} {self.messages:,} messages"


@dataclass(frozen=True, slots=True)
class CompressionFinished:
    """A compression was recorded."""

    name: ClassVar[str] = "compression.finished"
    session: str
    snapshot: str
    messages: int
    tokens_before: int
    tokens_after: int
    seconds: float
    author: str
    automatic: bool
    warnings: tuple[str, ...] = ()
    strategy: str = ""
    cost: float | None = None
    """Of the models that were called, in US dollars. None is unknown."""
    steps: tuple[tuple[str, int, int], ...] = ()
    """Each by its name, with the tokens before and after it."""

    def __str__(self) -> str:
        return (
            f"Folded {self.messages:,} messages: {self.tokens_before:,} → "
            f"{self.tokens_after:,} tokens in {self.seconds:.1f} s"
        )


@dataclass(frozen=True, slots=True)
class CompressionFailed:
    """A compression failed, gained nothing or was called off; nothing was changed."""

    name: ClassVar[str] = "compression.failed"
    session: str
    code: str
    reason: str
    retryable: bool
    automatic: bool

    def __str__(self) -> str:
        return f"Compression failed: {self.reason}"


@dataclass(frozen=True, slots=True)
class SessionBlocked:
    """No request goes out until a compression succeeds or the risk is acknowledged."""

    name: ClassVar[str] = "session.blocked"
    session: str
    reason: str

    def __str__(self) -> str:
        return f"Blocked: {self.reason}. Retry the compression, or acknowledge the risk to go on."


@dataclass(frozen=True, slots=True)
class SessionUnblocked:
    """Requests go out again."""

    name: ClassVar[str] = "session.unblocked"
    session: str
    acknowledged: bool
    """True if the risk was accepted, False if a compression succeeded."""

    def __str__(self) -> str:
        return "The risk was acknowledged." if self.acknowledged else "The session goes on."


Event: TypeAlias = (
    CompressionStarted
    | CompressionProgress
    | CompressionFinished
    | CompressionFailed
    | SessionBlocked
    | SessionUnblocked
)


def payload(event: Event) -> dict[str, Any]:
    """The event as JSON, its name under `event`."""
    return {"event": event.name, **asdict(event)}


class Events:
    """Hands events to listeners, in order. A listener is a plain function and must not block.

    Two namespaces may have a session of the same name, so what is emitted is emitted within one.
    """

    def __init__(self) -> None:
        self._namespace = ""
        self._listeners: list[tuple[str | None, Callable[[Event], None]]] = []

    def within(self, namespace: str) -> Events:
        """The same listeners, for what happens in a namespace."""
        events = Events()
        events._namespace = namespace
        events._listeners = self._listeners
        return events

    def emit(self, event: Event) -> None:
        """Tell every listener."""
        for namespace, listener in tuple(self._listeners):
            if namespace is None or namespace == self._namespace:
                listener(event)

    def subscribe(
        self, listener: Callable[[Event], None], *, namespace: str | None = None
    ) -> Callable[[], None]:
        """Listen to one namespace or to all; the answer stops listening."""
        entry = (namespace, listener)
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry)

    async def stream(
        self, session: str | None = None, *, namespace: str | None = None
    ) -> AsyncGenerator[Event, None]:
        """Events as they come, of one session or of all."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        stop = self.subscribe(queue.put_nowait, namespace=namespace)
        try:
            while True:
                event = await queue.get()
                if session is None or event.session == session:
                    yield event
        finally:
            stop()
