"""Rates: how often somebody may come. A bucket each, filled evenly, emptied by requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.errors import TooManyError
from enfold.server.callers import Caller

_REMEMBERED = 10_000
"""So many callers at most are told apart; who has not come for longest is forgotten."""


class Buckets:
    """A bucket for each caller."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_minute / 60
        self._size = float(max(1, per_minute // 6))
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> None:
        """One request of theirs; `TooManyError` if their bucket is empty."""
        level = self._level(who)
        if level < 1:
            wait = (1 - level) / self._per_second
            raise TooManyError(f"too many requests; come back in {wait:.1f} s", retry_after=wait)
        self._levels[who] = (level - 1, self._clock())
        self._levels.move_to_end(who)
        if len(self._levels) > _REMEMBERED:
            self._levels.popitem(last=False)

    def _level(self, who: str) -> float:
        level, then = self._levels.get(who, (self._size, self._clock()))
        return min(self._size, level + (self._clock() - then) * self._per_second)


class Rates:
    """Lets each caller through as often as is allowed."""

    def __init__(self, app: ASGIApp, per_minute: int) -> None:
        self._app = app
        self._buckets = Buckets(per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and not _is_part_of_a_page(scope):
            caller: Caller = scope["state"]["caller"]
            self._buckets.take(f"token {caller.name}" if caller.has_token else address_of(scope))
        await self._app(scope, receive, send)


def _is_part_of_a_page(scope: Scope) -> bool:
    """The pieces of the web UI's pages: dozens a page, the same for all, and kept by browsers."""
    return bool(scope["method"] == "GET" and scope["path"].startswith("/_nicegui/"))


def address_of(scope: Scope) -> str:
    """Where a request came from."""
    client = scope.get("client")
    return f"address {client[0]}" if client else "address unknown"
