"""Events: what happens to a session, told to whoever listens. The same payload at every door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class CompressionStarted:
    """A compression runs. Its scope: how many messages, how many tokens."""

    name: ClassVar[str] = "compression.started"
    session: str
    messages: int
    """How many may be folded or edited."""
    tokens: int
    """Of the view as it is."""
    strategy: str
    automatic: bool
    """True if it was due, False if somebody asked for it."""

    def __str__(self) -> str:
        verb = "Summarizing" if self.strategy == "native" else "Condensing"
        return f"{verb} {self.messages:,} messages ({self.tokens:,} tokens)..."


@dataclass(frozen=True, slots=True)
class CompressionProgress:
    """A compression has come further."""

    name: ClassVar[str] = "compression.progress"
    session: str
    step: str
    """What is done now, as the beginning of a sentence."""
    messages: int
    """How many it is done to."""

    def __str__(self) -> str:
        return f"{self.step} {self.messages:,} messages"


@dataclass(frozen=True, slots=True)
class CompressionFinished:
    """A compression was recorded."""

    name: ClassVar[str] = "compression.finished"
    session: str
    snapshot: str
    """What it is on record as."""
    messages: int
    """How many were folded or edited."""
    tokens_before: int
    tokens_after: int
    """Of the view, before and since."""
    seconds: float
    author: str
    """Who wrote the summary."""
    automatic: bool
    """True if it was due, False if somebody asked for it."""
    warnings: tuple[str, ...] = ()
    """What went otherwise than it should."""
    strategy: str = ""
    """Which did it, in the end."""
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
    """Of the error, as the table of errors has it."""
    reason: str
    """The same for people."""
    retryable: bool
    """Whether the same may succeed later."""
    automatic: bool
    """True if it was due: then the session is blocked."""

    def __str__(self) -> str:
        return f"Compression failed: {self.reason}"


@dataclass(frozen=True, slots=True)
class SessionBlocked:
    """No request goes out until a compression succeeds or the risk is acknowledged."""

    name: ClassVar[str] = "session.blocked"
    session: str
    reason: str
    """Why the compression failed."""

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


def from_payload(told: Mapping[str, Any]) -> Event | None:
    """The event that the JSON tells of; None if it is of a kind that only newer processes know."""
    kind = _KINDS.get(told["event"])
    if kind is None:
        return None
    names = {each.name for each in fields(kind)}
    given: dict[str, Any] = {name: _frozen(told[name]) for name in names & told.keys()}
    return kind(**given)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


_KINDS: Mapping[str, type[Event]] = {
    kind.name: kind
    for kind in (
        CompressionStarted,
        CompressionProgress,
        CompressionFinished,
        CompressionFailed,
        SessionBlocked,
        SessionUnblocked,
    )
}


Forward: TypeAlias = Callable[[str, Event], None]
"""Takes a namespace and what happened in it."""


@dataclass(frozen=True, slots=True)
class _Listener:
    hear: Callable[[Event], None]
    namespace: str | None
    """None for all."""
    elsewhere: bool


class Events:
    """Hands events to listeners, in order. A listener is a plain function and must not block.

    Two namespaces may have a session of the same name, so what is emitted is emitted within one.
    Where several processes share a database they tell each other; who wants to hear of what happens
    in the others says so.
    """

    def __init__(self) -> None:
        self._namespace = ""
        self._listeners: list[_Listener] = []
        self._forwards: list[Forward] = []

    def within(self, namespace: str) -> Events:
        """The same listeners, for what happens in a namespace."""
        events = Events()
        events._namespace = namespace
        events._listeners = self._listeners
        events._forwards = self._forwards
        return events

    def emit(self, event: Event) -> None:
        """Tell every listener, and those who pass it on."""
        for listener in tuple(self._listeners):
            if listener.namespace in {None, self._namespace}:
                listener.hear(event)
        for forward in tuple(self._forwards):
            forward(self._namespace, event)

    def repeat(self, event: Event) -> None:
        """Tell of what happened in another process to those who want to hear of it."""
        for listener in tuple(self._listeners):
            if listener.elsewhere and listener.namespace in {None, self._namespace}:
                listener.hear(event)

    def subscribe(
        self,
        hear: Callable[[Event], None],
        *,
        namespace: str | None = None,
        elsewhere: bool = False,
    ) -> Callable[[], None]:
        """Listen to one namespace or to all, `elsewhere` in other processes too.

        The answer stops listening.
        """
        listener = _Listener(hear, namespace, elsewhere)
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def forward(self, to: Forward) -> Callable[[], None]:
        """Pass on what is emitted here, with its namespace; the answer stops that."""
        self._forwards.append(to)
        return lambda: self._forwards.remove(to)

    async def stream(
        self, session: str | None = None, *, namespace: str | None = None
    ) -> AsyncGenerator[Event, None]:
        """Events as they come, of one session or of all, in whichever process they happen."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        stop = self.subscribe(queue.put_nowait, namespace=namespace, elsewhere=True)
        try:
            while True:
                event = await queue.get()
                if session is None or event.session == session:
                    yield event
        finally:
            stop()
