"""Load: how many requests are answered at once, and how many bytes of bodies are held for them.

Each caller has limits of its own, so that one caller cannot take the place of the others. Requests
above the number that is answered at once wait for their turn. One above the other limits is
answered with 503 and the time after which it may be repeated. Health checks are always answered at
once.

At most `computing` of these requests compute at a time, and callers take turns: a
caller with many requests does not delay those of a caller with one. Large requests compute in
threads, and have turns of their own. The turn of one begins while its body arrives: a body that
waits for its turn is not read, so that its sender waits, too, and its bytes take no memory. While
large requests of several callers wait, they get half of the time: after a turn, the next one begins
later by the time that it took.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from os import cpu_count
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.errors import OverloadError
from enfold.server.access import Caller, caller_in, first_headers

ALWAYS_ANSWERED = frozenset({"/healthz", "/readyz"})
"""Paths that no limit holds up: a busy server is not a dead one."""
_PROVIDER_KEYS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
_RETRY_SECONDS = 1.0
_MB = 2**20


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The limits of a server, and of each caller."""

    requests: int = 1_024
    """Requests that are answered at once."""
    caller_requests: int = 256
    waiting: int = 8_192
    """Requests that wait for their turn; their bodies are not read yet."""
    caller_waiting: int = 4_096
    wait_seconds: float = 120.0
    """The time that a request waits for its turn."""
    bytes: int = 384 * _MB
    """Bytes of bodies that have arrived and whose requests are not answered yet."""
    caller_bytes: int = 192 * _MB
    computing: int = 4
    """Requests that compute at once: those that wait for a model or send an answer do not count."""
    computing_seconds: float = 0.05
    """The time after which a request no longer counts as computing: it waits for the database."""
    large_bytes: int = 1 * _MB
    """A body from this size on is large."""
    large_requests: int = max(1, min(2, (cpu_count() or 1) - 1))
    """Large requests that are worked on at once, one per caller; one core is left to the others."""
    large_seconds: float = 10.0
    """The time that a large request waits for its turn."""
    large_turn_seconds: float = 5.0
    """The time after which the next large request has its turn: this one may wait for a model."""
    longest_pause: float = 1.0
    """The most seconds between the turns of two large requests, one of which has waited."""
    slow_seconds: float = 0.1
    slow_bytes: int = 1 * _MB
    """A body that brings fewer bytes in this time loses its turn until it has arrived, if other
    requests wait for theirs."""
    slow_pace: int = 16 * _MB
    """Bytes per second at which the rest of such a body is read."""


class LoadGuard:
    """Counts requests and bytes, and refuses those above the limits."""

    def __init__(self, app: ASGIApp, limits: LoadLimits | None = None) -> None:
        self._app = app
        self.limits = limits or LoadLimits()
        """The limits of this server."""
        self._max_requests = self.limits.requests + self.limits.waiting
        self._max_caller_requests = self.limits.caller_requests + self.limits.caller_waiting
        self._requests: dict[bytes | str, int] = {}
        """Requests of each caller, waiting ones included."""
        self._all_requests = 0
        self._places = _FairSemaphore(self.limits.requests)
        self._callers_places: dict[bytes | str, _FairSemaphore] = {}
        self._bytes: dict[bytes | str, int] = defaultdict(int)
        self._all_bytes = 0
        self._computing = _FairSemaphore(self.limits.computing)
        self._computing_since: dict[RequestLoad, float] = {}
        """The requests that compute, and the loop's time when they began; the oldest is first."""
        self._computing_check: asyncio.TimerHandle | None = None
        self._turns = asyncio.Semaphore(self.limits.large_requests)
        self.waiting_for_turns = 0
        """Large requests that wait for their turn."""
        self._callers_turns: WeakValueDictionary[bytes | str, asyncio.Semaphore]
        self._callers_turns = WeakValueDictionary()
        """Each is there as long as a request holds it or waits for it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_ANSWERED:
            await self._app(scope, receive, send)
            return
        requests, key = self._requests, _key(scope)
        count = requests.get(key, 0)
        if count >= self._max_caller_requests or self._all_requests >= self._max_requests:
            raise _overload("too many requests are in progress")
        requests[key] = count + 1
        self._all_requests += 1
        try:
            await self._answer_in_turn(key, scope, receive, send)
        finally:
            self._all_requests -= 1
            requests[key] = count = requests[key] - 1
            if not count:
                del requests[key]
                self._callers_places.pop(key, None)

    async def _answer_in_turn(
        self, key: bytes | str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Wait until the request may be answered, and answer it."""
        own = self._callers_places.get(key)
        if own is None:
            own = self._callers_places[key] = _FairSemaphore(self.limits.caller_requests)
        if not own.take_free():
            await self._take(key, own)
        elif not self._places.take_free():
            own.give_back()
            await self._take(key, own)
        scope["state"]["load"] = load = RequestLoad(self, key)

        async def send_answer(message: Message) -> None:
            load.stop_computing()
            await send(message)

        try:
            await self._app(scope, receive, send_answer)
        finally:
            load.release()
            own.give_back()
            self._places.give_back()

    async def _take(self, key: bytes | str, own: _FairSemaphore) -> None:
        """Wait for one of the caller's places and one of the server's."""
        try:
            async with asyncio.timeout(self.limits.wait_seconds):
                with ExitStack() as taken:
                    await own.take(key)
                    taken.callback(own.give_back)
                    await self._places.take(key)
                    taken.pop_all()
        except TimeoutError:
            raise _overload("other requests are in progress") from None

    async def start_computing(self, load: RequestLoad) -> None:
        """Wait for a compute place. It is taken back after a time if another request waits."""
        if not self._computing.take_free():
            if self._computing_check is None:
                self._free_overdue_places()
            await self._computing.take(load.key)
        self._computing_since[load] = asyncio.get_running_loop().time()

    def stop_computing(self, load: RequestLoad) -> None:
        """Give a compute place to the next request, unless it was taken back."""
        if self._computing_since.pop(load, None) is not None:
            self._computing.give_back()

    def _free_overdue_places(self) -> None:
        """Free the places that are held for too long; look again later while none is free."""
        loop, seconds = asyncio.get_running_loop(), self.limits.computing_seconds
        now, self._computing_check = loop.time(), None
        for load, since in list(self._computing_since.items()):
            if now - since >= seconds:
                self.stop_computing(load)
        oldest = next(iter(self._computing_since.values()), now)
        if not self._computing.is_free:
            self._computing_check = loop.call_at(oldest + seconds, self._free_overdue_places)

    def hold(self, key: bytes | str, size: int) -> None:
        """Count bytes of a body; raise `OverloadError` if too many are held."""
        if (
            self._all_bytes + size > self.limits.bytes
            or self._bytes[key] + size > self.limits.caller_bytes
        ):
            raise _overload("too many bytes of other requests are held")
        self._all_bytes += size
        self._bytes[key] += size

    def release(self, key: bytes | str, size: int) -> None:
        """Take back bytes that were counted."""
        self._all_bytes -= size
        self._bytes[key] -= size
        if not self._bytes[key]:
            del self._bytes[key]

    def is_large(self, size: int) -> bool:
        """Return True if a request of this size waits for a turn."""
        return size >= self.limits.large_bytes

    async def take_turn(self, key: bytes | str) -> Callable[[], None]:
        """Wait for the turn of a large request; return the function that ends it.

        Raise `OverloadError` if that takes too long.
        """
        own = self._callers_turns.setdefault(key, asyncio.Semaphore(1))
        self.waiting_for_turns += 1
        try:
            async with asyncio.timeout(self.limits.large_seconds):
                await _acquire_both(own, self._turns)
        except TimeoutError:
            raise _overload("other large requests are in progress") from None
        finally:
            self.waiting_for_turns -= 1
        loop = asyncio.get_running_loop()
        begin = loop.time()

        def give_back() -> None:
            own.release()
            if self.waiting_for_turns:
                pause = min(loop.time() - begin, self.limits.longest_pause)
                loop.call_later(pause, self._turns.release)
            else:
                self._turns.release()

        return _call_once_within(self.limits.large_turn_seconds, give_back)


async def _acquire_both(first: asyncio.Semaphore, second: asyncio.Semaphore) -> None:
    async with AsyncExitStack() as taken:
        await taken.enter_async_context(first)
        await second.acquire()
        taken.pop_all()


def _call_once_within(seconds: float, work: Callable[[], None]) -> Callable[[], None]:
    """Return a function that does work once; a timer does it if nothing calls the function."""
    is_done = False

    def call() -> None:
        nonlocal is_done
        if not is_done:
            is_done = True
            timer.cancel()
            work()

    timer = asyncio.get_running_loop().call_later(seconds, call)
    return call


class _FairSemaphore:
    """A semaphore that serves callers in turn, one request of each at a time.

    A caller that did not wait in the last round is served before that round goes on, so that one
    with a request now and then does not wait for a round of those with many.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._new: dict[bytes | str, deque[asyncio.Future[None]]] = {}
        """Callers that were not served in this round."""
        self._round: dict[bytes | str, deque[asyncio.Future[None]]] = {}
        """The others, the next one first. One whose turn comes without a request is left out."""

    @property
    def is_free(self) -> bool:
        """True if there is a place without a wait."""
        return self._free > 0

    def take_free(self) -> bool:
        """Take a place if one is free; return False if there is none."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def take(self, key: bytes | str) -> None:
        """Wait for a place."""
        if self.take_free():
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        callers = self._round if key in self._round else self._new
        callers.setdefault(key, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Give the place to the next in line."""
        if not (self._new or self._round):
            self._free += 1
            return
        while callers := self._new or self._round:
            key = next(iter(callers))
            places = callers.pop(key)
            if not places:
                continue
            place = places.popleft()
            self._round[key] = places
            if not place.done():  # else its request was cancelled
                place.set_result(None)
                return
        self._free += 1


class RequestLoad:
    """The load of one request: the bytes of its body, its place for computing, and its turn."""

    __slots__ = ("_end_turn", "_guard", "_is_computing", "key", "size")

    def __init__(self, guard: LoadGuard, key: bytes | str) -> None:
        self._guard = guard
        self.key = key
        """The caller."""
        self._is_computing = False
        self._end_turn: Callable[[], None] | None = None
        self.size = 0
        """Bytes that are counted."""

    @property
    def is_large(self) -> bool:
        """True if the bytes that have arrived are those of a large request."""
        return self._guard.is_large(self.size)

    @property
    def is_awaited(self) -> bool:
        """True if other large requests wait for their turn."""
        return self._guard.waiting_for_turns > 0

    @property
    def limits(self) -> LoadLimits:
        """The limits of the server."""
        return self._guard.limits

    def add(self, size: int) -> None:
        """Count bytes that have arrived."""
        self._guard.hold(self.key, size)
        self.size += size

    async def start_computing(self) -> None:
        """Wait until the complete request may compute; a large one waits for its turn instead."""
        if not self._is_computing and not self.is_large:
            await self._guard.start_computing(self)
            self._is_computing = True

    def stop_computing(self) -> None:
        """Let the next request compute: this one waits for a model, or sends its answer."""
        if self._is_computing:
            self._is_computing = False
            self._guard.stop_computing(self)
        if self._end_turn is not None:
            self.end_turn()

    async def take_turn(self) -> None:
        """Wait until this large request may be worked on, unless it is already."""
        if self._end_turn is None:
            self._end_turn = await self._guard.take_turn(self.key)

    def end_turn(self) -> None:
        """Let the next large request have its turn."""
        if self._end_turn is not None:
            self._end_turn()
            self._end_turn = None

    def release(self) -> None:
        """Take all back."""
        self.stop_computing()
        if self.size:
            self._guard.release(self.key, self.size)
            self.size = 0

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Wait until a request of this size may be worked on."""
        if self._guard.is_large(size):
            await self.take_turn()
        try:
            yield
        finally:
            self.end_turn()


def request_load(scope: Scope) -> RequestLoad | None:
    """Return the load of a request; None if the app has no `LoadGuard`."""
    load: RequestLoad | None = scope.get("state", {}).get("load")
    return load


def _key(scope: Scope) -> bytes | str:
    """Return the caller: the name of its token, else its provider key, else its address."""
    caller: Caller = caller_in(scope)
    if caller.name:
        return caller.name
    headers = first_headers(scope)
    for name in _PROVIDER_KEYS:
        if (given := headers.get(name)) is not None:
            return given
    client = scope.get("client")
    return str(client[0]) if client else ""


def _overload(reason: str) -> OverloadError:
    return OverloadError(f"{reason}; retry in a moment", retry_after=_RETRY_SECONDS)
