"""Compressing: the compressions of one session on one page. Asked for here, followed from anywhere.

Whoever starts one, this window, another, the proxy or the API: all of them are told by the same
events, and this is what a page makes of those.
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

from enfold.engine import Engine, Outcome, Session
from enfold.engine.compression import CANCELLED
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
from enfold.report import duration
from enfold.store import sessions
from enfold.ui import figures
from enfold.ui import window as failures
from enfold.ui.compression.preview import AS_SET, NoticePreference, RunOptions, ask_for_run
from enfold.ui.widgets import author_text, buttons, expandable, fact, facts, notice, number_of
from enfold.ui.window import Window, path_of

RISK = (
    "You can go on without it. The conversation then stays as long as it is: a request may be too "
    "large for the model and be refused, and each one costs more."
)
"""What it means to continue at one's own risk."""

NOTHING_DONE: Mapping[str, str] = {
    "kept": "Nothing was folded: it is not due.",
    "no_gain": "Nothing was folded: it would not have become smaller.",
    "nothing_new": "Nothing was folded: there is nothing new since the last summary.",
    "nothing_to_compress": "Nothing was folded: all of it is recent enough to stay.",
}
"""Outcomes that are neither a result nor an error."""

COUNT_FAILED = "count_failed"

_STEPS: Mapping[str, str] = {
    "summarizing": "The summary is being written.",
    "condensing": "The messages are being condensed.",
    "recording": "It is being recorded.",
}


@dataclass(frozen=True, slots=True)
class NoticeActions:
    """What can be done from here; each is what happens when its button is pressed."""

    retry: Callable[[], Any]
    go_on: Callable[[], Any]
    undo: Callable[[], Any]
    dismiss: Callable[[], Any]
    mute: Callable[[], Any]
    """Show no more of what is not an error."""


def show_running(event: CompressionStarted, cancel: Callable[[], Any] | None) -> ui.label:
    """A compression that runs, with its scope; the answer is the line for how far it is."""
    with ui.element("section").classes("ef-notice ef-notice-plain").props("role=status"):
        ui.spinner(size="1.4em").classes("ef-notice-icon").props('aria-hidden="true"')
        with ui.element("div").classes("ef-grow ef-stack-tight"):
            ui.label(str(event).replace("...", "…")).classes("ef-notice-title ef-wrap")
            started = "Started by itself: the context is full." if event.automatic else ""
            step = ui.label(started).classes("ef-soft ef-small")
        if cancel is not None:
            ui.button("Cancel", on_click=cancel).props("flat dense")
    return step


def step_words(step: str, messages: int) -> str:
    """How far it is."""
    return _STEPS.get(step, f"{step}: {messages:,} messages")


def show_finished(event: CompressionFinished, changes: str, ways: NoticeActions) -> None:
    """What a compression did; `changes` is the page that shows it message by message."""
    # Where nobody wrote a summary, the strategy itself is the author.
    verb = "Shortened" if event.author == event.strategy else "Folded"
    with notice("good", f"{verb} {number_of(event.messages, 'message')}"):
        _result(event)
        if len(event.steps) > 1:
            _steps(event)
        for warning in event.warnings:
            ui.label(f"Note: {warning}").classes("ef-small ef-warm ef-wrap")
        with buttons():
            ui.link("What changed", changes).classes("ef-link-button")
            ui.button("Undo", on_click=ways.undo).props("flat dense")
            _dismiss(ways)
            quiet = ui.button("Do not show these", on_click=ways.mute, color=None)
            quiet.props("flat dense").classes("ef-quiet")


def show_nothing_done(words: str, ways: NoticeActions) -> None:
    """That there was nothing to do."""
    with notice("plain", words), buttons():
        _dismiss(ways)


def show_failed(event: CompressionFailed, ways: NoticeActions) -> None:
    """That a compression failed, why, and what can be done: less after a failed count."""
    if event.code == CANCELLED:
        with notice("plain", "Called off. Nothing was changed."), buttons():
            ui.button("Start again", on_click=ways.retry).props("flat dense")
            _dismiss(ways)
        return
    counting = event.code == COUNT_FAILED
    what = "The tokens could not be counted" if counting else "The summary failed"
    with notice("bad", f"{what}. Nothing was changed."):
        ui.label(event.reason).classes("ef-wrap ef-small")
        if not counting:
            ui.label(RISK).classes("ef-soft ef-small")
        with buttons():
            ui.button("Retry", on_click=ways.retry).props("unelevated dense color=primary")
            if not counting:
                ui.button("Continue at own risk", on_click=ways.go_on).props("flat dense")


def show_blocked(reason: str, ways: NoticeActions) -> None:
    """That the session waits. It stays until somebody has decided."""
    with notice("bad", "This conversation waits: a summary that is due has failed."):
        ui.label(reason).classes("ef-wrap ef-small")
        ui.label(f"Nothing more is sent until a summary succeeds. {RISK}").classes(
            "ef-soft ef-small"
        )
        with buttons():
            ui.button("Retry", on_click=ways.retry).props("unelevated dense color=primary")
            ui.button("Continue at own risk", on_click=ways.go_on).props("flat dense")


def show_at_risk(reason: str, ways: NoticeActions) -> None:
    """That somebody decided to go on without the summary that is due."""
    with notice("warm", "You continue at your own risk, without the summary that is due."):
        ui.label(reason).classes("ef-wrap ef-small")
        with buttons():
            ui.button("Retry the summary", on_click=ways.retry).props("flat dense")


def _result(event: CompressionFinished) -> None:
    less = 1 - event.tokens_after / event.tokens_before if event.tokens_before else 0.0
    with facts():
        with fact("Before"):
            figures.count(event.tokens_before, "tokens")
        with fact("After"):
            figures.count(event.tokens_after, "tokens")
        with fact("Less"):
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
                    ui.label(f"{_spoken(name)}: {_change(before, after)}").classes("ef-small")

    expandable(f"{len(event.steps)} passes", fill)


def _change(before: int, after: int) -> str:
    if before == after:
        return f"{before:,} tokens, unchanged"
    return f"{before:,} → {after:,} tokens ({figures.share_text(1 - after / before)} less)"


def _spoken(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _dismiss(ways: NoticeActions) -> None:
    ui.button("Dismiss", on_click=ways.dismiss).props("flat dense")


LONGEST = 600.0
"""Seconds after which nobody believes any more that it runs: its process may have died."""


class RunningCompressions:
    """The compressions of a namespace, from when the first window asks on."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self._started: dict[str, tuple[float, CompressionStarted]] = {}
        engine.events.subscribe(self._hear, namespace=namespace)

    def of(self, session: str) -> CompressionStarted | None:
        """What runs in a session. None if nothing does."""
        since, event = self._started.get(session, (0.0, None))
        return event if event is not None and monotonic() - since < LONGEST else None

    def _hear(self, event: Event) -> None:
        match event:
            case CompressionStarted(session=session):
                self._started[session] = (monotonic(), event)
            case CompressionFinished(session=session) | CompressionFailed(session=session):
                self._started.pop(session, None)


_KNOWN: WeakKeyDictionary[Engine, dict[str, RunningCompressions]] = WeakKeyDictionary()


def running(engine: Engine, namespace: str) -> RunningCompressions:
    """What runs in a namespace of an engine."""
    known = _KNOWN.setdefault(engine, {})
    if namespace not in known:
        known[namespace] = RunningCompressions(engine, namespace)
    return known[namespace]


Changed = Callable[[], Awaitable[None]]
"""What a page does when a session's view has become another."""


class CompressionPanel:
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
        settings = await engine.store.read(
            read_session_settings, self._session.key, engine.static_settings
        )
        self.notices = NoticePreference(settings.notifications)
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

    def start(self, run: RunOptions = AS_SET) -> None:
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

    def _do(self, action: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        if self._task is not None and not self._task.done():
            ui.notify("A compression runs already.", position="bottom")
            return
        self._task = background_tasks.create(
            self._run(action, work), name="compress a session", context=self._latest
        )

    async def _run(self, action: str, work: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            async with self._window.doing(action, self._session.id):
                done = await work()
        except (BlockedError, CompressionError, TokenCountError):
            return  # an event has told it
        except EnfoldError as error:
            failures.show(error)
            return
        if not done.compressed and done.outcome != "no_gain":
            self._say(partial(show_nothing_done, NOTHING_DONE[done.outcome]))

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
                    self._step.text = step_words(step, messages)
            case CompressionFinished(snapshot=snapshot):
                changes = path_of(self._session.id, f"changes/{snapshot}")
                self._say(lambda ways: show_finished(event, changes, ways))
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
                self._step = show_running(event, cancel)

    def _show_failed(self, event: CompressionFailed) -> None:
        if event.code in NOTHING_DONE:
            words = NOTHING_DONE[event.code]
            self._say(partial(show_nothing_done, words))
        elif event.automatic and event.code != COUNT_FAILED:
            self._latest.clear()  # the session is blocked, which is told next
        else:
            self._say(partial(show_failed, event), always=True)

    def _say(self, show: Callable[[NoticeActions], None], *, always: bool = False) -> None:
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
            show = show_at_risk if acknowledged else show_blocked
            with self._standing:
                show(str(record.blocked.get("reason")), ways)

    def _ways(self, retry: Callable[[], Any], go_on: Callable[[], Any]) -> NoticeActions:
        return NoticeActions(
            retry, go_on, undo=self.undo, dismiss=self._latest.clear, mute=self._mute
        )

    def _mute(self) -> None:
        self.notices.choose(wanted=False)
        self._latest.clear()

    def _retry(self) -> None:
        self._do("retry", self._session.retry)

    async def _acknowledge(self) -> None:
        async with self._window.doing("acknowledge", self._session.id):
            await self._session.acknowledge()
