"""Background engines: one for each database, with an event loop in a thread of its own.

For frameworks whose objects are called from code with and without an event loop, and are copied and
pickled: such an object holds the database's address alone and comes here for the engine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack, contextmanager
from threading import Lock, Thread
from typing import Any, TypeVar

from enfold.engine import Engine
from enfold.errors import ConfigError
from enfold.wiring import open_engine

Result = TypeVar("Result")

_open: dict[tuple[int, str | None], BackgroundEngine] = {}
"""By process and address: a thread does not live on in a process that was forked."""
_opening = Lock()


def engine_at(url: str | None) -> BackgroundEngine:
    """The engine over that database, opened if it is not; the settings' own for None."""
    with _opening:
        key = (os.getpid(), url)
        if key not in _open:
            _open[key] = BackgroundEngine(url)
        return _open[key]


def close(url: str | None) -> None:
    """Close the engine over that database, if it is open; the next use opens it again."""
    with _opening:
        engine = _open.pop((os.getpid(), url), None)
    if engine is not None:
        engine.close()


class BackgroundEngine:
    """An engine in a daemon thread. Everything that was confirmed is stored."""

    def __init__(self, url: str | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="enfold", daemon=True)
        self._thread.start()
        self._opened = AsyncExitStack()
        with ExitStack() as if_it_fails:
            if_it_fails.callback(self._end)
            opening = self._opened.enter_async_context(open_engine(url))
            self._engine: Engine = self._submit(opening).result()
            if_it_fails.pop_all()

    def run(self, work: Callable[[Engine], Coroutine[Any, Any, Result]]) -> Result:
        """Run the work and wait for its result."""
        return self._submit(work(self._engine)).result()

    def run_async(self, work: Callable[[Engine], Coroutine[Any, Any, Result]]) -> Awaitable[Result]:
        """Return an awaitable of the result, for callers in another event loop."""
        return asyncio.wrap_future(self._submit(work(self._engine)))

    def close(self) -> None:
        """Close the engine and end the thread."""
        self._submit(self._opened.aclose()).result()
        self._end()

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def of_extra(name: str) -> Iterator[None]:
    """Around the imports that an extra of enfold brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not installed; it comes with: pip install 'enfold[{name}]'"
        ) from None
