"""Events of sessions, and their listeners. The payload is the same at every door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias, get_args

from enfold.amounts import duration


@dataclass(frozen=True, slots=True)
class CompressionStarted:
    """A compression has started."""

    name: ClassVar[str] = "compression.started"
    session: str
    messages: int
    """The number of messages that may be summarized or edited."""
    tokens: int
    """The tokens of the current view."""
    strategy: str
    automatic: bool
    """True if it was due, False if a user requested it."""

    def __str__(self) -> str:
        verb = "Summarizing" if self.strategy == "native" else "Condensing"
        return f"{verb} {self.messages:,} messages ({self.tokens:,} tokens)..."


@dataclass(frozen=True, slots=True)
class CompressionProgress:
    """A compression has reached its next step."""

    name: ClassVar[str] = "compression.progress"
    session: str
    step: str
    """The current step, as the beginning of a sentence."""
    messages: int
    """The number of messages that the step handles."""
    part: int = 1
    """The part of the summary that is being written; the first is 1."""
    parts: int = 1
    """The number of parts. A summarizer with a small window needs several."""
    seconds_left: float | None = None
    """Estimated time for the remaining parts at the current speed. None: unknown."""

    def __str__(self) -> str:
        return f"{self.step} {self.messages:,} messages{self.progress}"

    @property
    def progress(self) -> str:
        """The part and the time left, as the end of a sentence; empty if there is one part."""
        if self.parts == 1:
            return ""
        left = ""
        if self.seconds_left is not None:
            left = f", about {duration(max(1.0, self.seconds_left))} left"
        return f", part {self.part:,} of {self.parts:,}{left}"


@dataclass(frozen=True, slots=True)
class CompressionFinished:
    """A compression was recorded."""

    name: ClassVar[str] = "compression.finished"
    session: str
    snapshot: str
    """The id of the snapshot."""
    messages: int
    """The number of messages that were summarized or edited."""
    tokens_before: int
    tokens_after: int
    """The tokens of the view, before and after."""
    seconds: float
    author: str
    """The author of the summary."""
    automatic: bool
    """True if it was due, False if a user requested it."""
    warnings: tuple[str, ...] = ()
    """Warnings."""
    strategy: str = ""
    """The strategy whose result was accepted."""
    cost: float | None = None
    """The cost of model calls in US dollars. None is unknown."""
    steps: tuple[tuple[str, int, int], ...] = ()
    """The steps: name, tokens before, tokens after."""

    def __str__(self) -> str:
        verb = "Summarized" if self.strategy in {"", "native"} else "Condensed"
        return (
            f"{verb} {self.messages:,} messages: {self.tokens_before:,} → "
            f"{self.tokens_after:,} tokens in {self.seconds:.1f} s"
        )


@dataclass(frozen=True, slots=True)
class CompressionFailed:
    """A compression failed, gained nothing or was cancelled. Nothing was changed."""

    name: ClassVar[str] = "compression.failed"
    session: str
    code: str
    """The error's code, as in `enfold.errors`."""
    reason: str
    """The error's message."""
    retryable: bool
    """True if a retry may succeed."""
    automatic: bool
    """True if it was due; the session is blocked then."""

    def __str__(self) -> str:
        return f"Compression failed: {self.reason}"


@dataclass(frozen=True, slots=True)
class SessionBlocked:
    """A session is blocked until a compression succeeds or the risk is acknowledged."""

    name: ClassVar[str] = "session.blocked"
    session: str
    reason: str
    """The reason why the compression failed."""

    def __str__(self) -> str:
        return f"Blocked: {self.reason}. Retry the compression, or acknowledge the risk."


@dataclass(frozen=True, slots=True)
class SessionUnblocked:
    """A session is no longer blocked."""

    name: ClassVar[str] = "session.unblocked"
    session: str
    acknowledged: bool
    """True if the risk was accepted, False if a compression succeeded."""

    def __str__(self) -> str:
        return "The risk was acknowledged." if self.acknowledged else "The session is unblocked."


Event: TypeAlias = (
    CompressionStarted
    | CompressionProgress
    | CompressionFinished
    | CompressionFailed
    | SessionBlocked
    | SessionUnblocked
)


def payload(event: Event) -> dict[str, Any]:
    """Return the event as JSON, with its name as `event`."""
    return {"event": event.name, **asdict(event)}


def from_payload(values: Mapping[str, Any]) -> Event | None:
    """Return the event of a payload; None for a kind that only a newer process knows."""
    kinds: Mapping[str, type[Event]] = {kind.name: kind for kind in get_args(Event)}
    kind = kinds.get(values["event"])
    if kind is None:
        return None
    names = {each.name for each in fields(kind)}
    given: dict[str, Any] = {name: _frozen(values[name]) for name in names & values.keys()}
    return kind(**given)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


Forward: TypeAlias = Callable[[str, Event], None]
"""Takes a namespace and an event in it."""


@dataclass(frozen=True, slots=True)
class _Listener:
    receive: Callable[[Event], None]
    namespace: str | None
    """None for all namespaces."""
    elsewhere: bool


class Events:
    """Passes events to listeners, in order. A listener is a plain function and must not block.

    Two namespaces may have sessions of the same name, so every event belongs to a namespace.
    Several processes that share a database exchange their events; a listener with `elsewhere` gets
    those too.
    """

    def __init__(self) -> None:
        self._namespace = ""
        self._reached: frozenset[str | None] = frozenset({None, ""})
        """The namespaces whose listeners get the events; None is that of listeners to all."""
        self._listeners: list[_Listener] = []
        self._forwards: list[Forward] = []

    def within(self, namespace: str, listed_in: str | None = None) -> Events:
        """Return the same listeners for events of a namespace.

        Listeners of the namespace `listed_in`, which lists its sessions, get the events too.
        """
        events = Events()
        events._namespace = namespace
        listing = namespace if listed_in is None else listed_in
        events._reached = frozenset({None, namespace, listing})
        events._listeners = self._listeners
        events._forwards = self._forwards
        return events

    def emit(self, event: Event) -> None:
        """Pass an event to the listeners and to other processes."""
        for listener in tuple(self._listeners):
            if listener.namespace in self._reached:
                listener.receive(event)
        for forward in tuple(self._forwards):
            forward(self._namespace, event)

    def repeat(self, event: Event) -> None:
        """Pass an event of another process to the listeners that want it."""
        for listener in tuple(self._listeners):
            if listener.elsewhere and listener.namespace in self._reached:
                listener.receive(event)

    def subscribe(
        self,
        receive: Callable[[Event], None],
        *,
        namespace: str | None = None,
        elsewhere: bool = False,
    ) -> Callable[[], None]:
        """Listen to one namespace or to all, with `elsewhere` also to other processes.

        Returns a function that stops it.
        """
        listener = _Listener(receive, namespace, elsewhere)
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def forward(self, to: Forward) -> Callable[[], None]:
        """Pass all events of this process on; return a function that stops it."""
        self._forwards.append(to)
        return lambda: self._forwards.remove(to)

    async def stream(
        self, session: str | None = None, *, namespace: str | None = None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of one session or of all, from all processes."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        stop = self.subscribe(queue.put_nowait, namespace=namespace, elsewhere=True)
        try:
            while True:
                event = await queue.get()
                if session is None or event.session == session:
                    yield event
        finally:
            stop()
