"""The compression panel of a page: starts compressions of a session and shows their notices.

A compression may be started by this window, another window, the proxy or the API. All of them emit
the same events, and the panel shows those events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from nicegui import background_tasks, ui

from enfold.amounts import number
from enfold.chat.commands import NOT_COMPRESSED
from enfold.engine import Engine, Outcome, Session
from enfold.engine.compression import CANCELLED
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
from enfold.report import duration
from enfold.ui import figures
from enfold.ui.compression.preview import NoticePreference, ask_for_run
from enfold.ui.widgets import Tone, author_text, button_row, expandable, fact, facts, notice
from enfold.ui.window import Window, notify_error, path_of

RISK = (
    "You can continue without it. Then the conversation stays at its full length: a request may be "
    "too large for the model and fail, and every request costs more."
)
"""The effect of continuing without the summary."""

COUNT_FAILED = "count_failed"

_STEPS: Mapping[str, str] = {
    "summarizing": "Writing the summary.",
    "condensing": "Condensing messages.",
    "recording": "Recording the result.",
}


def _show_result(event: CompressionFinished) -> None:
    """Show the figures of a compression, its passes and its warnings."""
    less = 1 - event.tokens_after / event.tokens_before if event.tokens_before else 0.0
    with facts():
        with fact("Before"):
            figures.count(event.tokens_before, "tokens")
        with fact("After"):
            figures.count(event.tokens_after, "tokens")
        with fact("Saved"):
            figures.share(less)
        with fact("Cost"):
            figures.money(event.cost) if event.cost != 0 else ui.label("none")
        with fact("Time"):
            ui.label(duration(event.seconds)).classes("ef-figure")
        with fact("By"):
            ui.label(author_text(event.strategy, event.author)).classes("ef-wrap")

    if len(event.steps) > 1:
        expandable(f"{len(event.steps)} passes", partial(_show_steps, event))
    for warning in event.warnings:
        ui.label(f"Note: {warning}").classes("ef-small ef-warm ef-wrap")


def _show_steps(event: CompressionFinished) -> None:
    with ui.element("ol").classes("ef-steps"):
        for name, before, after in event.steps:
            words = name.replace("_", " ").strip()
            change = f"{before:,} tokens, unchanged"
            if before != after:
                less = figures.share_text(1 - after / before)
                change = f"{before:,} → {after:,} tokens ({less} less)"
            with ui.element("li"):
                ui.label(f"{words[:1].upper()}{words[1:]}: {change}").classes("ef-small")


LONGEST = 600.0
"""Seconds after which a compression no longer counts as running: its process may have died."""


class RunningCompressions:
    """The running compressions of a namespace, recorded from its first window on."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self._started: dict[str, tuple[float, CompressionStarted]] = {}
        engine.events.subscribe(self._record, namespace=namespace)

    def of(self, session: str) -> CompressionStarted | None:
        """Return the running compression of a session; None if there is none."""
        since, event = self._started.get(session, (0.0, None))
        return event if event is not None and monotonic() - since < LONGEST else None

    def _record(self, event: Event) -> None:
        match event:
            case CompressionStarted(session=session):
                self._started[session] = (monotonic(), event)
            case CompressionFinished(session=session) | CompressionFailed(session=session):
                self._started.pop(session, None)


_BY_ENGINE: WeakKeyDictionary[Engine, dict[str, RunningCompressions]] = WeakKeyDictionary()


def running(engine: Engine, namespace: str) -> RunningCompressions:
    """Return the running compressions of a namespace of an engine."""
    by_namespace = _BY_ENGINE.setdefault(engine, {})
    if namespace not in by_namespace:
        by_namespace[namespace] = RunningCompressions(engine, namespace)
    return by_namespace[namespace]


Changed = Callable[[], Awaitable[None]]
"""Called after the view of a session has changed."""


class CompressionPanel:
    """Starts the compressions of a session and shows their notices."""

    def __init__(self, window: Window, session: Session, changed: Changed) -> None:
        self._window = window
        self._session = session
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._again: Callable[[], Any] = self.start
        """Repeats the last action."""
        self._step: ui.label | None = None

    async def show(self) -> None:
        """Show the current notices and follow the session's events."""
        engine = self._window.engine
        settings = await self._session.settings()
        self.notices = NoticePreference(settings.notifications)
        with ui.element("div").classes("ef-outcomes"):
            self._permanent = ui.element("div")
            self._latest = ui.element("div")
        await self._show_blocked()
        started = running(engine, self._window.namespace).of(self._session.id)
        if started is not None:
            self._notify(partial(self._show_running, started))
        following = background_tasks.create(self._follow(), name="follow a session")
        ui.context.client.on_delete(following.cancel)

    async def open_dialog(self) -> None:
        """Preview a compression, and run it if the user confirms."""
        options = await ask_for_run(self._session, self.notices)
        if options is not None:
            self.start(options)

    def start(self, options: Mapping[str, Any] | None = None) -> None:
        """Compress in the background."""
        self._again = partial(self.start, options)
        self._do("compress", partial(self._session.compress, **(options or {})))

    def regenerate(self) -> None:
        """Write the current summary again."""
        self._again = self.regenerate
        self._do("regenerate", self._session.regenerate)

    async def undo(self) -> None:
        """Undo the compression in use."""
        async with self._window.audited("undo", self._session.id):
            undone = await self._session.undo()
        self._latest.clear()
        await self._changed()
        words = "Nothing to undo." if undone is None else "Compression undone."
        ui.notify(words, position="bottom")

    def _do(self, action: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        if self._task is not None and not self._task.done():
            ui.notify("A compression is already running.", position="bottom")
            return
        self._task = background_tasks.create(
            self._run(action, work), name="compress a session", context=self._latest
        )

    async def _run(self, action: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            async with self._window.audited(action, self._session.id):
                done = await work()
        except (BlockedError, CompressionError, TokenCountError):
            return  # the panel shows the event of this failure
        except EnfoldError as error:
            notify_error(error)
            return
        if not done.compressed and done.outcome != "no_gain":
            self._notify(partial(self._show_plain, NOT_COMPRESSED[done.outcome]))

    async def _follow(self) -> None:
        events = self._window.engine.events
        async for event in events.stream(self._session.id, namespace=self._window.namespace):
            with self._latest:
                await self._handle(event)

    async def _handle(self, event: Event) -> None:
        match event:
            case CompressionStarted():
                self._notify(partial(self._show_running, event))
            case CompressionProgress(step=step, messages=messages):
                if self._step is not None:
                    self._step.text = _STEPS.get(step, f"{step}: {messages:,} messages")
            case CompressionFinished():
                self._notify(partial(self._show_finished, event))
                await self._changed()
            case CompressionFailed(code=code) if code in NOT_COMPRESSED:
                self._notify(partial(self._show_plain, NOT_COMPRESSED[code]))
            case CompressionFailed(code=code) if event.automatic and code != COUNT_FAILED:
                self._latest.clear()  # the event that the session is blocked comes next
            case CompressionFailed():
                self._notify(partial(self._show_failed, event), always=True)
            case SessionBlocked() | SessionUnblocked():
                await self._show_blocked()
                await self._changed()

    def _notify(self, show: Callable[[], None], *, always: bool = False) -> None:
        """Replace the latest notice; errors are shown even if notices are hidden."""
        self._step = None
        self._latest.clear()
        if always or self.notices.wanted:
            with self._latest:
                show()

    def _show_running(self, event: CompressionStarted) -> None:
        with ui.element("section").classes("ef-notice ef-notice-plain").props("role=status"):
            ui.spinner(size="1.4em").classes("ef-notice-icon").props('aria-hidden="true"')
            with ui.element("div").classes("ef-grow ef-stack-tight"):
                ui.label(str(event).replace("...", "…")).classes("ef-notice-title ef-wrap")
                started = "Started automatically: the context is full." if event.automatic else ""
                self._step = ui.label(started).classes("ef-soft ef-small")
            # Another window or program may have started it; then it cannot be cancelled here.
            if self._task is not None and not self._task.done():
                ui.button("Cancel", on_click=self._task.cancel).props("flat dense")

    def _show_finished(self, event: CompressionFinished) -> None:
        # The author is the strategy itself if there is no summary.
        verb = "Shortened" if event.author == event.strategy else "Summarized"
        changes = path_of(self._session.id, f"changes/{event.snapshot}")
        with notice("good", f"{verb} {number(event.messages, 'message')}"):
            _show_result(event)
            with button_row():
                ui.link("Show changes", changes).classes("ef-link-button")
                ui.button("Undo", on_click=self.undo).props("flat dense")
                ui.button("Dismiss", on_click=self._latest.clear).props("flat dense")
                quiet = ui.button("Hide these notices", on_click=self._mute, color=None)
                quiet.props("flat dense").classes("ef-quiet")

    def _show_plain(self, words: str, *, can_retry: bool = False) -> None:
        """Show that a compression changed nothing, and the reason."""
        with notice("plain", words), button_row():
            if can_retry:
                ui.button("Retry", on_click=self._again).props("flat dense")
            ui.button("Dismiss", on_click=self._latest.clear).props("flat dense")

    def _show_failed(self, event: CompressionFailed) -> None:
        """Show a failed compression. After a failed count, only a retry is possible."""
        if event.code == CANCELLED:
            self._show_plain("Cancelled. Nothing was changed.", can_retry=True)
        elif event.code == COUNT_FAILED:
            title = "The tokens could not be counted. Nothing was changed."
            self._show_problem("bad", title, event.reason, self._again)
        else:
            title = "The summary failed. Nothing was changed."
            go_on = self._latest.clear
            self._show_problem("bad", title, event.reason, self._again, RISK, go_on)

    async def _show_blocked(self) -> None:
        """Show the notice of a paused session, which stays until the user decides."""
        blocked = (await self._session.record()).blocked
        self._permanent.clear()
        if not blocked:
            return
        reason = str(blocked.get("reason"))
        with self._permanent:
            if blocked.get("acknowledged"):
                title = "Continuing without the summary that is due, at your own risk."
                self._show_problem("warm", title, reason, self._retry)
            else:
                text = f"No request is sent until a summary succeeds. {RISK}"
                title = "Paused: the summary failed."
                self._show_problem("bad", title, reason, self._retry, text, self._acknowledge)

    def _show_problem(
        self,
        tone: Tone,
        title: str,
        reason: str,
        retry: Callable[[], Any],
        text: str = "",
        go_on: Callable[[], Any] | None = None,
    ) -> None:
        """Show a problem and the ways on: a retry and, if `go_on` is given, no summary."""
        with notice(tone, title):
            ui.label(reason).classes("ef-wrap ef-small")
            if text:
                ui.label(text).classes("ef-soft ef-small")
            with button_row():
                ui.button("Retry", on_click=retry).props("unelevated dense color=primary")
                if go_on is not None:
                    ui.button("Continue at own risk", on_click=go_on).props("flat dense")

    def _mute(self) -> None:
        self.notices.choose(wanted=False)
        self._latest.clear()

    def _retry(self) -> None:
        self._do("retry", self._session.retry)

    async def _acknowledge(self) -> None:
        async with self._window.audited("acknowledge", self._session.id):
            await self._session.acknowledge()
