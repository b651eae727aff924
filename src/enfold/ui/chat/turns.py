"""Turns of a conversation: one at a time, streamed, stopped or retried."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import background_tasks, ui

from enfold.chat import commands
from enfold.chat.controller import ChatController
from enfold.engine import Prepared
from enfold.engine.inspection import PageEntry
from enfold.engine.turns import Answer, Listener, Progress, QuestionStored, unanswered
from enfold.errors import EnfoldError
from enfold.llm.calls import Delta
from enfold.records import StoredMessage
from enfold.ui.markdown import markdown, render
from enfold.ui.window import Window

SECONDS = 0.12
"""Between two updates of a streamed answer."""
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)", re.MULTILINE)


class PendingReply:
    """An answer that is being streamed."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._text = ""
        self._settled = 0
        """Characters in paragraphs that are complete and drawn."""
        self._drawn = 0
        with ui.element("article").classes("ef-message ef-assistant") as self._card:
            self._card.props["aria-label"] = "Model, answering"
            with ui.element("header").classes("ef-row-tight ef-message-head"):
                ui.label("Model").classes("ef-who")
                ui.spinner("dots", size="20px").props("aria-hidden=true")
                self._state = ui.label("waiting").classes("ef-tiny ef-soft")
                button = ui.button("Stop", icon="stop", on_click=stop)
                button.props("flat dense size=sm color=primary aria-label=Stop")
            self._blocks = ui.element("div")
            self._tail = markdown("")
        self._timer = ui.timer(SECONDS, self._draw)

    @property
    def has_begun(self) -> bool:
        """True if some text has arrived."""
        return bool(self._text.strip())

    def set_state(self, state: str) -> None:
        """Show the state of the answer."""
        self._state.set_text(state)

    def add(self, piece: str) -> None:
        """Add a piece of the answer."""
        self._text += piece

    def end(self) -> None:
        """Remove it from the page: the answer is stored, or there is none."""
        self._timer.cancel()
        if not self._card.is_deleted:
            self._card.delete()

    def _draw(self) -> None:
        if len(self._text) == self._drawn:
            return
        self.set_state("answering")
        self._drawn = len(self._text)
        settled = settled_length(self._text)
        if settled > self._settled:
            with self._blocks:
                markdown(self._text[self._settled : settled])
            self._settled = settled
        self._tail.set_content(render(self._text[self._settled :]))


def settled_length(text: str) -> int:
    """Return the length of the complete paragraphs of a text; later text cannot change them."""
    end = text.rfind("\n\n")
    while end > 0 and len(_FENCE.findall(text[:end])) % 2:
        end = text.rfind("\n\n", 0, end)
    return end + 2 if end > 0 else 0


AskModel = Callable[[Listener], Awaitable[Answer]]
Changed = Callable[[], Awaitable[None]]


class TurnRunner:
    """Runs the turns of one chat page."""

    def __init__(self, window: Window, talk: ChatController, changed: Changed) -> None:
        self._window = window
        self._talk = talk
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._reply: PendingReply | None = None

    def place(self, below: ui.element) -> None:
        """Set the element in which answers are shown."""
        self._below = below

    @property
    def is_busy(self) -> bool:
        """True while a turn is running."""
        return self._task is not None and not self._task.done()

    def send(self, text: str) -> None:
        """Send a message and stream the answer, unless a turn is running."""
        self._start(partial(self._talk.ask, text))

    def answer(self, otherwise: Changed | None = None) -> None:
        """Stream an answer to the last message; call `otherwise` if there is none."""
        self._start(self._talk.answer, otherwise)

    def stop(self) -> None:
        """Stop the turn; the text that has arrived is stored."""
        if self._task is not None:
            self._task.cancel()

    def remove_if_stored(self, last: PageEntry | None) -> None:
        """Remove the streamed answer if the last entry is the same answer, now stored."""
        item = last.item if last is not None else None
        is_answer = isinstance(item, StoredMessage) and item.role == "assistant"
        if self._reply is not None and self._reply.has_begun and is_answer:
            self._reply.end()

    def _start(self, ask: AskModel, otherwise: Changed | None = None) -> None:
        if self.is_busy:
            ui.notify("An answer is running. Stop it first.", position="bottom")
            return
        self._below.clear()
        with self._below:
            self._reply = reply = PendingReply(self.stop)
        work = self._run(ask, reply, otherwise)
        self._task = background_tasks.create(work, name="a turn")

    async def _run(self, ask: AskModel, reply: PendingReply, otherwise: Changed | None) -> None:
        failed: EnfoldError | None = None
        cut_off = False
        answered = False
        try:
            async with self._window.audited("ask", self._talk.session.id):
                done = await ask(partial(self._follow, reply))
            answered, cut_off = True, done.ending == "length"
        except EnfoldError as error:
            failed = error
        except asyncio.CancelledError:
            # From the stop button. The text that has arrived is stored, and the task ends here.
            answered = reply.has_begun
        if otherwise is not None and not answered:
            await otherwise()
        if self._below.is_deleted:
            return
        with self._below:
            await self._changed()
            reply.end()
            if cut_off:
                ui.notify(commands.CUT_OFF, type="warning", position="bottom")
            if failed is not None:
                self._show_failure(failed, ask)

    def _follow(self, reply: PendingReply, progress: Progress) -> None:
        match progress:
            case Delta(text):
                reply.add(text)
            case Prepared():
                reply.set_state("waiting")
            case QuestionStored():
                background_tasks.create(self._show_question(), name="show a question")

    async def _show_question(self) -> None:
        """Refresh the page: the question is stored."""
        if not self._below.is_deleted:
            with self._below:
                await self._changed()

    def _show_failure(self, error: EnfoldError, ask: AskModel) -> None:
        with ui.element("section").classes("ef-failure").props("role=alert") as card:
            ui.icon("error_outline").props("aria-hidden=true")
            with ui.element("div").classes("ef-grow"):
                ui.label(str(error)).classes("ef-wrap").props("dir=auto")
                ui.label(commands.advice(error)).classes("ef-small ef-soft ef-wrap")
            again = ui.button("Retry", icon="refresh", on_click=lambda: self._retry(ask))
            again.props("flat color=primary")
            close = ui.button(icon="close", on_click=card.delete).props("flat round dense")
            close.props["aria-label"] = "Dismiss"

    async def _retry(self, ask: AskModel) -> None:
        """Answer the stored message; send it again if it was not stored."""
        is_stored = await unanswered(self._talk.session) is not None
        self._start(self._talk.answer if is_stored else ask)
