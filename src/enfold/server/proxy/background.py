"""Background compressions: no client waits for them, and they start when they cost little.

A compression replaces the prefix that the provider has cached. It starts

- at once if a later one would come too late: past the threshold, or if the requests that arrive
  while a summary is written would fill the window. Sessions that grow fast and slow summarizers
  therefore start before the early mark;
- else past the early mark, when the session has been idle for so long that the provider is about to
  drop its cache: the next request would have to write all of it again in any case, and a summary
  request is still served from the cache.

Nothing is lost if one fails or the process ends: it comes again with a later request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from time import monotonic
from typing import Any, Protocol, TypeAlias

from enfold.budget import Decision
from enfold.errors import EnfoldError

SessionName: TypeAlias = tuple[str, str]
"""A namespace, and the name of a session in it."""
Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

CACHE_SECONDS = 300.0
"""Seconds for which providers keep a prompt in their cache after its last use, at least."""
IDLE_SECONDS = 240.0
"""Seconds without a request after which a compression starts that is not urgent."""
EARLIEST = 0.8
"""Share of the early mark from which a session is compressed if it grows fast or is idle."""
_USUAL_SECONDS = 30.0
"""The expected duration of a compression before one was measured."""
_SPARE_REQUESTS = 2
_MAX_FAILURES = 3
"""Failures in a row after which a session is compressed only when it must be."""
_MAX_RUNNING = 64
_MAX_PACES = 2_000
"""Sessions whose pace is remembered."""
_MAX_WAITING = 32
_MAX_WAITING_BYTES = 32 * 2**20
"""Sessions that wait until they are idle, and the bytes of their requests."""

_log = logging.getLogger("enfold.proxy")


@dataclass(frozen=True, slots=True)
class SessionPace:
    """Growth of a session."""

    at: float
    """The monotonic time of the last reply."""
    tokens: int
    """The tokens of the view then."""
    seconds: float | None = None
    """The seconds between two replies, on average; None after the first."""
    growth: float | None = None
    """The tokens that a request adds, on average; None after the first."""
    failures: int = 0
    """Compressions that failed in a row."""

    def after(self, now: float, tokens: int) -> SessionPace:
        """Return the pace with another reply."""
        grown = self.growth if tokens < self.tokens else float(tokens - self.tokens)
        return replace(
            self,
            at=now,
            tokens=tokens,
            seconds=_average(self.seconds, now - self.at),
            growth=_average(self.growth, grown),
        )


def _average(before: float | None, value: float | None) -> float | None:
    if before is None or value is None:
        return value
    return (before + value) / 2


class Timer(Protocol):
    """A call that comes later."""

    def cancel(self) -> None:
        """Call nothing."""
        ...


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Timer]
"""Calls a function after a number of seconds."""


def _call_later(seconds: float, call: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, call)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A compression that waits until its session is idle."""

    timer: Timer
    size: int


class BackgroundCompressions:
    """The compressions of one process that no client waits for, at most one per session."""

    def __init__(
        self,
        *,
        idle_seconds: float = IDLE_SECONDS,
        cache_seconds: float = CACHE_SECONDS,
        clock: Callable[[], float] = monotonic,
        call_later: CallLater = _call_later,
    ) -> None:
        self._idle_seconds = idle_seconds
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._call_later = call_later
        self._seconds = _USUAL_SECONDS
        """The duration of a compression that is not for an idle session, on average."""
        self._tasks: dict[SessionName, asyncio.Task[None]] = {}
        self._waiting: OrderedDict[SessionName, _Waiting] = OrderedDict()
        self._paces: OrderedDict[SessionName, SessionPace] = OrderedDict()
        self._turns = asyncio.Semaphore(_MAX_RUNNING)

    def task(self, key: SessionName) -> asyncio.Task[None] | None:
        """Return the compression of a session that is running now."""
        return self._tasks.get(key)

    def sizes(self) -> dict[str, int]:
        """Return the number of entries of each collection."""
        return {
            "background_paces": len(self._paces),
            "background_waiting": len(self._waiting),
            "background_running": len(self._tasks),
        }

    def is_cached(self, key: SessionName) -> bool:
        """Return True if the provider probably still has the session's last request cached."""
        pace = self._paces.get(key)
        return pace is not None and self._clock() - pace.at < self._cache_seconds

    def consider(
        self,
        key: SessionName,
        decision: Decision,
        size: int,
        work: Work,
        idle_work: Work | None = None,
    ) -> None:
        """Start a compression after a reply: `work` now, or `idle_work` when the session is idle.

        `size` is the number of bytes that they hold.
        """
        pace = self._note_reply(key, decision.tokens)
        self._drop_waiting(key)
        if key in self._tasks or pace.failures >= _MAX_FAILURES:
            return
        if decision.action == "must" or self._would_be_late(decision, pace):
            self._start(key, partial(self._measure, work))
            return
        if idle_work is None:
            return
        timer = self._call_later(self._idle_seconds, partial(self._start, key, idle_work))
        self._waiting[key] = _Waiting(timer, size)
        held = sum(each.size for each in self._waiting.values())
        while len(self._waiting) > _MAX_WAITING or held > _MAX_WAITING_BYTES:
            _, oldest = self._waiting.popitem(last=False)
            oldest.timer.cancel()
            held -= oldest.size

    def _note_reply(self, key: SessionName, tokens: int) -> SessionPace:
        now, before = self._clock(), self._paces.pop(key, None)
        pace = SessionPace(now, tokens) if before is None else before.after(now, tokens)
        self._paces[key] = pace
        while len(self._paces) > _MAX_PACES:
            self._paces.popitem(last=False)
        return pace

    def _would_be_late(self, decision: Decision, pace: SessionPace) -> bool:
        """Return True if the window would be full before a later compression had ended."""
        is_automatic = decision.reason in {"fits", "early_mark"}
        if not is_automatic or decision.tokens <= decision.early_tokens * EARLIEST:
            return False
        if pace.seconds is None or pace.growth is None:
            return False
        requests = ceil(self._seconds / max(pace.seconds, 0.001)) + _SPARE_REQUESTS
        return decision.tokens + pace.growth * requests > decision.ceiling

    def _start(self, key: SessionName, work: Work) -> None:
        self._waiting.pop(key, None)
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._run(key, work))

    async def _run(self, key: SessionName, work: Work) -> None:
        try:
            async with self._turns:
                await work()
            self._note_failures(key, 0)
        except EnfoldError as error:
            pace = self._paces.get(key)
            self._note_failures(key, 1 if pace is None else pace.failures + 1)
            _log.warning("session %s: a background compression failed: %s", key[1], error)
        finally:
            del self._tasks[key]

    async def _measure(self, work: Work) -> None:
        begin = self._clock()
        await work()
        self._seconds = (self._seconds + self._clock() - begin) / 2

    def take_failure(self, key: SessionName) -> bool:
        """Return True if the session's last compression failed, and forget that."""
        pace = self._paces.get(key)
        self._note_failures(key, 0)
        return pace is not None and pace.failures > 0

    def _note_failures(self, key: SessionName, failures: int) -> None:
        if key in self._paces:
            self._paces[key] = replace(self._paces[key], failures=failures)

    def _drop_waiting(self, key: SessionName) -> None:
        if (waiting := self._waiting.pop(key, None)) is not None:
            waiting.timer.cancel()

    async def idle(self) -> None:
        """Wait until no compression runs."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def close(self) -> None:
        """Stop everything that waits or runs."""
        for key in list(self._waiting):
            self._drop_waiting(key)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
