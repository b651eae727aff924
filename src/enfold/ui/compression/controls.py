"""The compression panel of a page: starts compressions of a session and shows their notices.

A compression may be started by this window, another window, the proxy or the API. All of them emit
the same events, and the panel shows those events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
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
from enfold.ui.compression.preview import AS_SET, NoticePreference, RunOptions, ask_for_run
from enfold.ui.widgets import author_text, button_row, expandable, fact, facts, notice
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


@dataclass(frozen=True, slots=True)
class NoticeActions:
    """The functions behind the buttons of a notice."""

    retry: Callable[[], Any]
    go_on: Callable[[], Any]
    undo: Callable[[], Any]
    dismiss: Callable[[], Any]
    mute: Callable[[], Any]
    """Hide notices that are not errors from now on."""


def show_running(event: CompressionStarted, cancel: Callable[[], Any] | None) -> ui.label:
    """Show a running compression; return the label of its current step."""
    with ui.element("section").classes("ef-notice ef-notice-plain").props("role=status"):
        ui.spinner(size="1.4em").classes("ef-notice-icon").props('aria-hidden="true"')
        with ui.element("div").classes("ef-grow ef-stack-tight"):
            ui.label(str(event).replace("...", "…")).classes("ef-notice-title ef-wrap")
            started = "Started automatically: the context is full." if event.automatic else ""
            step = ui.label(started).classes("ef-soft ef-small")
        if cancel is not None:
            ui.button("Cancel", on_click=cancel).props("flat dense")
    return step


def step_words(step: str, messages: int) -> str:
    """Return the description of a step."""
    return _STEPS.get(step, f"{step}: {messages:,} messages")


def show_finished(event: CompressionFinished, changes: str, actions: NoticeActions) -> None:
    """Show the result of a compression; `changes` is the path of the page of its changes."""
    # The author is the strategy itself if there is no summary.
    verb = "Shortened" if event.author == event.strategy else "Summarized"
    with notice("good", f"{verb} {number(event.messages, 'message')}"):
        _result(event)
        if len(event.steps) > 1:
            _steps(event)
        for warning in event.warnings:
            ui.label(f"Note: {warning}").classes("ef-small ef-warm ef-wrap")
        with button_row():
            ui.link("Show changes", changes).classes("ef-link-button")
            ui.button("Undo", on_click=actions.undo).props("flat dense")
            _dismiss(actions)
            quiet = ui.button("Hide these notices", on_click=actions.mute, color=None)
            quiet.props("flat dense").classes("ef-quiet")


def show_unchanged(words: str, actions: NoticeActions) -> None:
    """Show that a compression changed nothing, and the reason."""
    with notice("plain", words), button_row():
        _dismiss(actions)


def show_failed(event: CompressionFailed, actions: NoticeActions) -> None:
    """Show a failed compression. After a failed count, only a retry is possible."""
    if event.code == CANCELLED:
        with notice("plain", "Cancelled. Nothing was changed."), button_row():
            ui.button("Retry", on_click=actions.retry).props("flat dense")
            _dismiss(actions)
        return
    counting = event.code == COUNT_FAILED
    what = "The tokens could not be counted" if counting else "The summary failed"
    with notice("bad", f"{what}. Nothing was changed."):
        ui.label(event.reason).classes("ef-wrap ef-small")
        if not counting:
            ui.label(RISK).classes("ef-soft ef-small")
        with button_row():
            ui.button("Retry", on_click=actions.retry).props("unelevated dense color=primary")
            if not counting:
                ui.button("Continue at own risk", on_click=actions.go_on).props("flat dense")


def show_blocked(reason: str, actions: NoticeActions) -> None:
    """Show that the session is paused; the notice stays until the user decides."""
    with notice("bad", "Paused: the summary failed."):
        ui.label(reason).classes("ef-wrap ef-small")
        ui.label(f"No request is sent until a summary succeeds. {RISK}").classes("ef-soft ef-small")
        with button_row():
            ui.button("Retry", on_click=actions.retry).props("unelevated dense color=primary")
            ui.button("Continue at own risk", on_click=actions.go_on).props("flat dense")


def show_at_risk(reason: str, actions: NoticeActions) -> None:
    """Show that the user continues without the summary that is due."""
    with notice("warm", "Continuing without the summary that is due, at your own risk."):
        ui.label(reason).classes("ef-wrap ef-small")
        with button_row():
            ui.button("Retry summary", on_click=actions.retry).props("flat dense")


def _result(event: CompressionFinished) -> None:
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


def _steps(event: CompressionFinished) -> None:
    def fill() -> None:
        with ui.element("ol").classes("ef-steps"):
            for name, before, after in event.steps:
                with ui.element("li"):
                    ui.label(f"{_title(name)}: {_change(before, after)}").classes("ef-small")

    expandable(f"{len(event.steps)} passes", fill)


def _change(before: int, after: int) -> str:
    if before == after:
        return f"{before:,} tokens, unchanged"
    return f"{before:,} → {after:,} tokens ({figures.share_text(1 - after / before)} less)"


def _title(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _dismiss(actions: NoticeActions) -> None:
    ui.button("Dismiss", on_click=actions.dismiss).props("flat dense")


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
            self._show_running(started)
        following = background_tasks.create(self._follow(), name="follow a session")
        ui.context.client.on_delete(following.cancel)

    async def open_dialog(self) -> None:
        """Preview a compression, and run it if the user confirms."""
        run = await ask_for_run(self._session, self.notices)
        if run is not None:
            self.start(run)

    def start(self, run: RunOptions = AS_SET) -> None:
        """Compress in the background."""
        self._again = partial(self.start, run)
        self._do("compress", partial(self._session.compress, **run.arguments()))

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
            self._notify(partial(show_unchanged, NOT_COMPRESSED[done.outcome]))

    async def _follow(self) -> None:
        events = self._window.engine.events
        async for event in events.stream(self._session.id, namespace=self._window.namespace):
            with self._latest:
                await self._handle(event)

    async def _handle(self, event: Event) -> None:
        match event:
            case CompressionStarted():
                self._show_running(event)
            case CompressionProgress(step=step, messages=messages):
                if self._step is not None:
                    self._step.text = step_words(step, messages)
            case CompressionFinished(snapshot=snapshot):
                changes = path_of(self._session.id, f"changes/{snapshot}")
                self._notify(lambda actions: show_finished(event, changes, actions))
                await self._changed()
            case CompressionFailed():
                self._show_failed(event)
            case SessionBlocked() | SessionUnblocked():
                await self._show_blocked()
                await self._changed()

    def _show_running(self, event: CompressionStarted) -> None:
        ours = self._task is not None and not self._task.done()
        self._step = None
        self._latest.clear()
        if self.notices.wanted:
            with self._latest:
                cancel = self._task.cancel if ours and self._task is not None else None
                self._step = show_running(event, cancel)

    def _show_failed(self, event: CompressionFailed) -> None:
        if event.code in NOT_COMPRESSED:
            words = NOT_COMPRESSED[event.code]
            self._notify(partial(show_unchanged, words))
        elif event.automatic and event.code != COUNT_FAILED:
            self._latest.clear()  # the event that the session is blocked comes next
        else:
            self._notify(partial(show_failed, event), always=True)

    def _notify(self, show: Callable[[NoticeActions], None], *, always: bool = False) -> None:
        """Replace the latest notice; errors are shown even if notices are hidden."""
        self._step = None
        self._latest.clear()
        if always or self.notices.wanted:
            with self._latest:
                show(self._actions(self._again, self._latest.clear))

    async def _show_blocked(self) -> None:
        """Show the notice of a paused session, which stays until the user decides."""
        record = await self._session.record()
        self._permanent.clear()
        if record.blocked:
            actions = self._actions(self._retry, self._acknowledge)
            acknowledged = bool(record.blocked.get("acknowledged"))
            show = show_at_risk if acknowledged else show_blocked
            with self._permanent:
                show(str(record.blocked.get("reason")), actions)

    def _actions(self, retry: Callable[[], Any], go_on: Callable[[], Any]) -> NoticeActions:
        return NoticeActions(
            retry, go_on, undo=self.undo, dismiss=self._latest.clear, mute=self._mute
        )

    def _mute(self) -> None:
        self.notices.choose(wanted=False)
        self._latest.clear()

    def _retry(self) -> None:
        self._do("retry", self._session.retry)

    async def _acknowledge(self) -> None:
        async with self._window.audited("acknowledge", self._session.id):
            await self._session.acknowledge()
