"""Asking: turns of a talk on a page. One at a time, shown while it runs, stopped or tried again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import background_tasks, ui

from enfold.chat import commands
from enfold.chat.controller import ChatController
from enfold.engine import Prepared
from enfold.engine.transcript_pages import PageEntry
from enfold.engine.turns import Answer, Listener, Progress, QuestionStored, unanswered
from enfold.errors import EnfoldError
from enfold.llm.calls import Delta
from enfold.records import StoredMessage
from enfold.ui.markdown import markdown, render
from enfold.ui.window import Window

SECONDS = 0.12
"""Between two drawings; what comes faster is drawn together."""
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)", re.MULTILINE)


class PendingReply:
    """An answer that is under way."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._text = ""
        self._settled = 0
        """So many characters are drawn for good."""
        self._drawn = 0
        with ui.element("article").classes("ef-message ef-assistant") as self._card:
            self._card.props["aria-label"] = "Model, answering"
            with ui.element("header").classes("ef-row-tight ef-message-head"):
                ui.label("Model").classes("ef-who")
                ui.spinner("dots", size="20px").props("aria-hidden=true")
                self._says = ui.label("is asked").classes("ef-tiny ef-soft")
                button = ui.button("Stop", icon="stop", on_click=stop)
                button.props("flat dense size=sm color=primary aria-label=Stop")
            self._blocks = ui.element("div")
            self._tail = markdown("")
        self._timer = ui.timer(SECONDS, self._draw)

    @property
    def has_begun(self) -> bool:
        """True once something was answered."""
        return bool(self._text.strip())

    def say(self, what: str) -> None:
        """What happens at the moment."""
        self._says.set_text(what)

    def take(self, piece: str) -> None:
        """A piece of the answer."""
        self._text += piece

    def end(self) -> None:
        """Take it off the page: the answer is stored, or there is none."""
        self._timer.cancel()
        if not self._card.is_deleted:
            self._card.delete()

    def _draw(self) -> None:
        if len(self._text) == self._drawn:
            return
        self.say("answers")
        self._drawn = len(self._text)
        settled = settled_length(self._text)
        if settled > self._settled:
            with self._blocks:
                markdown(self._text[self._settled : settled])
            self._settled = settled
        self._tail.set_content(render(self._text[self._settled :]))


def settled_length(text: str) -> int:
    """How much of a text is whole paragraphs, which nothing that follows can change."""
    end = text.rfind("\n\n")
    while end > 0 and len(_FENCE.findall(text[:end])) % 2:
        end = text.rfind("\n\n", 0, end)
    return end + 2 if end > 0 else 0


Ask = Callable[[Listener], Awaitable[Answer]]
Changed = Callable[[], Awaitable[None]]


class TurnRunner:
    """The turn that is under way, if one is."""

    def __init__(self, window: Window, talk: ChatController, changed: Changed) -> None:
        self._window = window
        self._talk = talk
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._reply: PendingReply | None = None

    def place(self, below: ui.element) -> None:
        """Where it is drawn."""
        self._below = below

    @property
    def is_busy(self) -> bool:
        """True while a turn runs."""
        return self._task is not None and not self._task.done()

    def say(self, text: str) -> None:
        """Say something, and have it answered; while a turn runs, nothing is said."""
        self._start(partial(self._talk.ask, text))

    def answer(self, otherwise: Changed | None = None) -> None:
        """Have answered what was said last; `otherwise` is done if no answer comes of it."""
        self._start(self._talk.answer, otherwise)

    def stop(self) -> None:
        """End it; what has come is kept."""
        if self._task is not None:
            self._task.cancel()

    def drawn(self, last: PageEntry | None) -> None:
        """Take off the page what is drawn as stored: nobody should see an answer twice."""
        item = last.item if last is not None else None
        is_answer = isinstance(item, StoredMessage) and item.role == "assistant"
        if self._reply is not None and self._reply.has_begun and is_answer:
            self._reply.end()

    def _start(self, ask: Ask, otherwise: Changed | None = None) -> None:
        if self.is_busy:
            ui.notify("An answer is on its way; stop it first.", position="bottom")
            return
        self._below.clear()
        with self._below:
            self._reply = reply = PendingReply(self.stop)
        work = self._run(ask, reply, otherwise)
        self._task = background_tasks.create(work, name="a turn")

    async def _run(self, ask: Ask, reply: PendingReply, otherwise: Changed | None) -> None:
        failed: EnfoldError | None = None
        cut_off = False
        answered = False
        try:
            async with self._window.doing("ask", self._talk.session.id):
                done = await ask(partial(self._hear, reply))
            answered, cut_off = True, done.ending == "length"
        except EnfoldError as error:
            failed = error
        except asyncio.CancelledError:
            # The stop button's. Whatever had come is stored, and the task ends here.
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

    def _hear(self, reply: PendingReply, progress: Progress) -> None:
        match progress:
            case Delta(text):
                reply.take(text)
            case Prepared():
                reply.say("is asked")
            case QuestionStored():
                background_tasks.create(self._show_question(), name="show a question")

    async def _show_question(self) -> None:
        """What was said is stored by now."""
        if not self._below.is_deleted:
            with self._below:
                await self._changed()

    def _show_failure(self, error: EnfoldError, ask: Ask) -> None:
        with ui.element("section").classes("ef-failure").props("role=alert") as card:
            ui.icon("error_outline").props("aria-hidden=true")
            with ui.element("div").classes("ef-grow"):
                ui.label(str(error)).classes("ef-wrap").props("dir=auto")
                ui.label(commands.advice(error)).classes("ef-small ef-soft ef-wrap")
            again = ui.button("Retry", icon="refresh", on_click=lambda: self._retry(ask))
            again.props("flat color=primary")
            close = ui.button(icon="close", on_click=card.delete).props("flat round dense")
            close.props["aria-label"] = "Dismiss"

    async def _retry(self, ask: Ask) -> None:
        """Ask for the answer to what is stored by now; what is not yet is said again."""
        is_stored = await unanswered(self._talk.session) is not None
        self._start(self._talk.answer if is_stored else ask)
