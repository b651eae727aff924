"""The compression panel of a page: starts compressions of a session and shows their notices.

A compression may be started by this window, another window, the proxy or the API. All of them emit
the same events, and the panel shows those events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from nicegui import background_tasks, ui

from enfold.amounts import duration, number
from enfold.chat.commands import NOT_COMPRESSED, advice
from enfold.engine import Engine, Outcome, Session
from enfold.engine.compression import CANCELLED
from enfold.engine.profiles import LOCAL
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
from enfold.ui import figures
from enfold.ui.compression.preview import NoticePreference, ask_for_run
from enfold.ui.widgets import Cell, author_text, expandable, facts, notice
from enfold.ui.window import Window, notify_error, path_of

RISK = (
    "Continue once sends the next request without a summary: it may be too large for the model, "
    "and it costs more."
)
"""The effect of continuing without the summary."""

PAUSED = "Paused: the summary failed."
BUILT_IN = "Use the built-in summarizer"
COUNT_FAILED = "count_failed"

_STEPS: Mapping[str, str] = {
    "summarizing": "Writing the summary.",
    "condensing": "Condensing messages.",
    "recording": "Recording the result.",
}


def _show_result(event: CompressionFinished) -> None:
    """Show the figures of a compression, its passes and its warnings."""
    less = 1 - event.tokens_after / event.tokens_before if event.tokens_before else 0.0
    entries: dict[str, Cell] = {
        "Before": partial(figures.count, event.tokens_before, "tokens"),
        "After": partial(figures.count, event.tokens_after, "tokens"),
        "Saved": partial(figures.share, less),
        "Cost": partial(figures.money, event.cost) if event.cost != 0 else "none",
        "Time": lambda: ui.label(duration(event.seconds)).classes("ef-figure"),
        "Strategy": author_text(event.strategy, event.author),
    }
    facts(entries)
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
            case CompressionProgress(session=session) if session in self._started:
                self._started[session] = (monotonic(), self._started[session][1])
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


@dataclass(eq=False)
class CompressionPanel:
    """Starts the compressions of a session, and shows their notices and every problem.

    It shows one card at a time: a running compression, a result, or a problem.
    """

    window: Window
    session: Session
    changed: Changed
    go_on: Changed
    """Has the model answer the last message if it waits for an answer."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _ways: Mapping[str, Callable[[], Any]] = field(init=False, default_factory=dict)
    """The ways on if the last action fails: button -> action."""
    _step: ui.label | None = field(default=None, init=False)
    _problem: ui.element | None = field(default=None, init=False)

    async def show(self) -> None:
        """Show the current notices and follow the session's events."""
        engine = self.window.engine
        settings = await self.session.settings()
        self.notices = NoticePreference(settings.notifications)
        # A live region: screen readers read what is added to it.
        self._latest = ui.element("div").classes("ef-outcomes").props("aria-live=polite")
        started = running(engine, self.window.namespace).of(self.session.id)
        if started is not None:
            self._notify(partial(self._show_running, started))
        else:
            await self._show_blocked()
        following = background_tasks.create(self._follow(), name="follow a session")
        ui.context.client.on_delete(following.cancel)

    async def open_dialog(self) -> None:
        """Preview a compression, and run it if the user confirms."""
        options = await ask_for_run(self.session, self.notices)
        if options is not None:
            self.start(options)

    def start(self, options: Mapping[str, Any] | None = None) -> None:
        """Compress in the background."""
        given = dict(options or {})
        built_in = partial(self.start, {**given, "summarizer": LOCAL})
        self._ways = {"Retry": partial(self.start, given), BUILT_IN: built_in}
        self._do("compress", partial(self.session.compress, **given))

    def regenerate(self, summarizer: str | None = None) -> None:
        """Write the current summary again, with another summarizer if one is named."""
        given = {} if summarizer is None else {"summarizer": summarizer}
        built_in = partial(self.regenerate, LOCAL)
        self._ways = {"Retry": partial(self.regenerate, summarizer), BUILT_IN: built_in}
        self._do("regenerate", partial(self.session.regenerate, **given))

    async def undo(self) -> None:
        """Undo the compression in use."""
        async with self.window.audited("undo", self.session.id):
            undone = await self.session.undo()
        self._latest.clear()
        await self.changed()
        words = "Nothing to undo." if undone is None else "Compression undone."
        ui.notify(words, position="top")

    def _do(self, action: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        if self._task is not None and not self._task.done():
            ui.notify("A compression is already running.", position="top")
            return
        self.clear_problem()
        self._task = background_tasks.create(
            self._run(action, work), name="compress a session", context=self._latest
        )

    async def _run(self, action: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            async with self.window.audited(action, self.session.id):
                done = await work()
        except BlockedError:
            await self._show_blocked()  # a session that was paused before emits no event
            return
        except (CompressionError, TokenCountError):
            return  # the panel shows the event of this failure
        except EnfoldError as error:
            notify_error(error)
            return
        if not done.compressed and done.outcome != "no_gain":
            self._notify(partial(self._show_plain, NOT_COMPRESSED[done.outcome]))
        if action == "retry":
            await self.go_on()

    async def _follow(self) -> None:
        events = self.window.engine.events
        async for event in events.stream(self.session.id, namespace=self.window.namespace):
            with self._latest:
                await self._handle(event)

    async def _handle(self, event: Event) -> None:
        match event:
            case CompressionStarted():
                self._notify(partial(self._show_running, event))
            case CompressionProgress() if self._step is not None:
                text = _STEPS.get(event.step, f"{event.step}: {event.messages:,} messages")
                if event.progress:
                    text = f"{text.rstrip('.')}{event.progress}."
                self._step.text = text
            case CompressionFinished():
                self._notify(partial(self._show_finished, event))
                await self.changed()
            case CompressionFailed() if event.code in NOT_COMPRESSED:
                self._notify(partial(self._show_plain, NOT_COMPRESSED[event.code]))
            case CompressionFailed() if event.automatic and event.code != COUNT_FAILED:
                self._latest.clear()  # the event that the session is blocked comes next
            case CompressionFailed():
                self._notify(partial(self._show_failed, event), always=True)
            case SessionBlocked():
                await self._show_blocked()
                await self.changed()
            case SessionUnblocked():
                self.clear_problem()
                await self.changed()

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
        changes = path_of(self.session.id, f"changes/{event.snapshot}")
        with notice("good", f"{verb} {number(event.messages, 'message')}"):
            _show_result(event)
            with ui.element("div").classes("ef-row"):
                ui.link("Show changes", changes).classes("ef-link-button")
                ui.button("Undo", on_click=self.undo).props("flat dense")
                ui.button("Dismiss", on_click=self._latest.clear).props("flat dense")
                quiet = ui.button("Hide these notices", on_click=self._mute, color=None)
                quiet.props("flat dense").classes("ef-quiet")

    def _show_plain(self, words: str, *, can_retry: bool = False) -> None:
        """Show that a compression changed nothing, and the reason."""
        with notice("plain", words), ui.element("div").classes("ef-row"):
            if can_retry and "Retry" in self._ways:
                ui.button("Retry", on_click=self._ways["Retry"]).props("flat dense")
            ui.button("Dismiss", on_click=self._latest.clear).props("flat dense")

    def _show_failed(self, event: CompressionFailed) -> None:
        """Show a failed compression. After a failed count, only a retry is possible."""
        if event.code == CANCELLED:
            self._show_plain("Cancelled. Nothing was changed.", can_retry=True)
        elif event.code == COUNT_FAILED:
            title = "The tokens could not be counted. Nothing was changed."
            retry = {name: act for name, act in self._ways.items() if name != BUILT_IN}
            self.show_problem(title, event.reason, retry)
        else:
            title = "The summary failed. Nothing was changed."
            self.show_problem(title, event.reason, self._ways)

    async def show_failed_turn(self, error: EnfoldError, retry: Callable[[], object]) -> None:
        """Show why a turn has no answer; a failed compression has its own ways on."""
        if isinstance(error, BlockedError):
            await self._show_blocked()
        else:
            self.show_problem("No answer.", str(error), {"Retry": retry}, advice(error))

    async def _show_blocked(self) -> None:
        """Show the problem of a paused session, which stays until the user decides."""
        blocked = (await self.session.record()).blocked
        if not blocked or blocked.get("acknowledged"):
            return
        ways: dict[str, Callable[[], object]] = {
            "Retry": partial(self._do, "retry", self.session.retry),
            BUILT_IN: partial(self._do, "retry", partial(self.session.retry, summarizer=LOCAL)),
            "Continue once": self._acknowledge,
        }
        text = f"Your messages are stored. No request is sent until a summary succeeds. {RISK}"
        self.show_problem(PAUSED, str(blocked.get("reason")), ways, text)

    def show_problem(
        self, title: str, reason: str, ways: Mapping[str, Callable[[], Any]], text: str = ""
    ) -> None:
        """Show a problem in place of the latest notice; `ways` are its buttons."""
        self._latest.clear()
        with self._latest, notice("bad", title) as self._problem:
            ui.label(reason).classes("ef-wrap ef-small").props("dir=auto")
            if text:
                ui.label(text).classes("ef-soft ef-small ef-wrap")
            with ui.element("div").classes("ef-row"):
                for at, (name, act) in enumerate(ways.items()):
                    look = "unelevated dense color=primary" if not at else "flat dense"
                    ui.button(name, on_click=act).props(look)
                if title != PAUSED:
                    ui.button("Dismiss", on_click=self.clear_problem).props("flat dense")

    def clear_problem(self) -> None:
        """Remove the card of a problem, if there is one: a new attempt begins."""
        if self._problem is not None and not self._problem.is_deleted:
            self._problem.delete()
        self._problem = None

    def _mute(self) -> None:
        self.notices.choose(wanted=False)
        self._latest.clear()

    async def _acknowledge(self) -> None:
        async with self.window.audited("acknowledge", self.session.id):
            await self.session.acknowledge()
        await self.go_on()
