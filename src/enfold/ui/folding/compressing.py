"""Compressing: the compressions of one session on one page. Asked for here, followed from anywhere.

Whoever starts one, this window, another, the proxy or the API: all of them are told by the same
events, and this is what a page makes of those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from nicegui import background_tasks, ui

from enfold.engine import Compression, Session
from enfold.engine.state import read_session_settings
from enfold.errors import BlockedError, CompressionError, EnfoldError, TokenCountError
from enfold.events import (
    CompressionFailed,
    CompressionFinished,
    CompressionProgress,
    CompressionStarted,
    Event,
    SessionBlocked,
    SessionUnblocked,
)
from enfold.store import sessions
from enfold.ui import failures
from enfold.ui.folding import outcomes
from enfold.ui.folding.notices import Notices
from enfold.ui.folding.outcomes import Ways
from enfold.ui.folding.previewing import ask_for_run
from enfold.ui.folding.running import running
from enfold.ui.folding.runs import AS_SET, Run
from enfold.ui.window import Window, path_of

Changed = Callable[[], Awaitable[None]]
"""What a page does when a session's view has become another."""


class Compressing:
    """Shows what happens to a session's context, and does what is asked."""

    def __init__(self, window: Window, session: Session, changed: Changed) -> None:
        self._window = window
        self._session = session
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._again: Callable[[], Any] = self.start
        """What a retry does."""
        self._step: ui.label | None = None

    async def show(self) -> None:
        """Put on the page what there is to say, and follow the session from now on."""
        engine = self._window.engine
        settings = await engine.store.read(read_session_settings, self._session.key, engine.outside)
        self.notices = Notices(settings.notifications)
        with ui.element("div").classes("ef-outcomes"):
            self._standing = ui.element("div")
            self._latest = ui.element("div")
        await self._show_standing()
        started = running(engine, self._window.namespace).of(self._session.id)
        if started is not None:
            self._show_running(started)
        following = background_tasks.create(self._follow(), name="follow a session")
        ui.context.client.on_delete(following.cancel)

    async def ask(self) -> None:
        """Show what a compression would do; do it if that is confirmed."""
        run = await ask_for_run(self._session, self.notices)
        if run is not None:
            self.start(run)

    def start(self, run: Run = AS_SET) -> None:
        """Compress now; the page goes on meanwhile."""
        self._again = partial(self.start, run)
        self._do("compress", partial(self._session.compress, **run.arguments()))

    def regenerate(self) -> None:
        """Write the summary in use anew."""
        self._again = self.regenerate
        self._do("regenerate", self._session.regenerate)

    async def undo(self) -> None:
        """Take back the compression in use."""
        async with self._window.doing("undo", self._session.id):
            undone = await self._session.undo()
        self._latest.clear()
        await self._changed()
        words = "There is nothing to undo." if undone is None else "Undone: all is shown again."
        ui.notify(words, position="bottom")

    def _do(self, action: str, work: Callable[[], Awaitable[Compression]]) -> None:
        if self._task is not None and not self._task.done():
            ui.notify("A compression runs already.", position="bottom")
            return
        self._task = background_tasks.create(
            self._run(action, work), name="compress a session", context=self._latest
        )

    async def _run(self, action: str, work: Callable[[], Awaitable[Compression]]) -> None:
        try:
            async with self._window.doing(action, self._session.id):
                done = await work()
        except (BlockedError, CompressionError, TokenCountError):
            return  # an event has told it
        except EnfoldError as error:
            failures.show(error)
            return
        if not done.compressed and done.outcome != "no_gain":
            self._say(partial(outcomes.show_nothing_done, outcomes.NOTHING_DONE[done.outcome]))

    async def _follow(self) -> None:
        events = self._window.engine.events
        async for event in events.stream(self._session.id, namespace=self._window.namespace):
            with self._latest:
                await self._hear(event)

    async def _hear(self, event: Event) -> None:
        match event:
            case CompressionStarted():
                self._show_running(event)
            case CompressionProgress(step=step, messages=messages):
                if self._step is not None:
                    self._step.text = outcomes.step_words(step, messages)
            case CompressionFinished(snapshot=snapshot):
                changes = path_of(self._session.id, f"changes/{snapshot}")
                self._say(lambda ways: outcomes.show_finished(event, changes, ways))
                await self._changed()
            case CompressionFailed():
                self._show_failed(event)
            case SessionBlocked() | SessionUnblocked():
                await self._show_standing()
                await self._changed()

    def _show_running(self, event: CompressionStarted) -> None:
        ours = self._task is not None and not self._task.done()
        self._step = None
        self._latest.clear()
        if self.notices.wanted:
            with self._latest:
                cancel = self._task.cancel if ours and self._task is not None else None
                self._step = outcomes.show_running(event, cancel)

    def _show_failed(self, event: CompressionFailed) -> None:
        if event.code in outcomes.NOTHING_DONE:
            words = outcomes.NOTHING_DONE[event.code]
            self._say(partial(outcomes.show_nothing_done, words))
        elif event.automatic and event.code != outcomes.COUNT_FAILED:
            self._latest.clear()  # the session is blocked, which is told next
        else:
            self._say(partial(outcomes.show_failed, event), always=True)

    def _say(self, show: Callable[[Ways], None], *, always: bool = False) -> None:
        """The latest there is to say; what is not an error only to those who want to know."""
        self._step = None
        self._latest.clear()
        if always or self.notices.wanted:
            with self._latest:
                show(self._ways(self._again, self._latest.clear))

    async def _show_standing(self) -> None:
        """What holds until somebody decides."""
        record = await self._window.engine.store.read(sessions.get, self._session.key)
        self._standing.clear()
        if record.blocked:
            ways = self._ways(self._retry, self._acknowledge)
            acknowledged = bool(record.blocked.get("acknowledged"))
            show = outcomes.show_at_risk if acknowledged else outcomes.show_blocked
            with self._standing:
                show(str(record.blocked.get("reason")), ways)

    def _ways(self, retry: Callable[[], Any], go_on: Callable[[], Any]) -> Ways:
        return Ways(retry, go_on, undo=self.undo, dismiss=self._latest.clear, mute=self._mute)

    def _mute(self) -> None:
        self.notices.choose(wanted=False)
        self._latest.clear()

    def _retry(self) -> None:
        self._do("retry", self._session.retry)

    async def _acknowledge(self) -> None:
        async with self._window.doing("acknowledge", self._session.id):
            await self._session.acknowledge()
