"""Turns of a conversation: one at a time, streamed, stopped or retried."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from nicegui import background_tasks, ui

from enfold.chat import commands
from enfold.chat.controller import ChatController
from enfold.engine import Prepared
from enfold.engine.inspection import PageEntry
from enfold.engine.turns import Progress, QuestionStored
from enfold.errors import EnfoldError
from enfold.llm.calls import Delta
from enfold.records import StoredMessage
from enfold.ui.markdown import markdown, render
from enfold.ui.window import Window

SECONDS = 0.12
"""Between two updates of a streamed answer."""
BUSY = "An answer is running. Stop it first."
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
                self._state = ui.label("preparing").classes("ef-tiny ef-soft")
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


Changed = Callable[[], Awaitable[None]]

_RUNNING: set[tuple[str, str]] = set()
"""Namespace and id of the sessions in which a turn is running, in any window of this process."""


@dataclass(eq=False)
class TurnRunner:
    """Runs the turns of one chat page."""

    window: Window
    talk: ChatController
    changed: Changed
    show_problem: Callable[[EnfoldError], Awaitable[None]]
    """Shows why there is no answer."""
    show_title: Callable[[str], Awaitable[None]]
    below: ui.element = field(init=False)
    """Where answers are shown."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _reply: PendingReply | None = field(default=None, init=False)

    @property
    def is_busy(self) -> bool:
        """True while a turn is running in this session, here or in another window."""
        return self._key in _RUNNING

    @property
    def _key(self) -> tuple[str, str]:
        return self.talk.session.namespace, self.talk.session.id

    def answer(self, otherwise: Changed | None = None) -> None:
        """Stream an answer to the last message; call `otherwise` if there is none."""
        if self.is_busy:
            ui.notify(BUSY, position="top")
            return
        _RUNNING.add(self._key)
        self.below.clear()
        with self.below:
            self._reply = reply = PendingReply(self.stop)
        self._task = background_tasks.create(self._run(reply, otherwise), name="a turn")

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

    async def _run(self, reply: PendingReply, otherwise: Changed | None) -> None:
        failed: EnfoldError | None = None
        cut_off = False
        answered = False
        try:
            async with self.window.audited("ask", self.talk.session.id):
                done = await self.talk.answer(partial(self._follow, reply))
            answered, cut_off = True, done.ending == "length"
        except EnfoldError as error:
            failed = error
        except asyncio.CancelledError:
            # From the stop button. The text that has arrived is stored, and the task ends here.
            answered = reply.has_begun
        finally:
            _RUNNING.discard(self._key)
        if otherwise is not None and not answered:
            await otherwise()
        if self.below.is_deleted:
            return
        with self.below:
            await self.changed()
            reply.end()
            if cut_off:
                ui.notify(commands.CUT_OFF, type="warning", position="top")
            if failed is not None:
                await self.show_problem(failed)
            elif answered and (title := await self.talk.write_title()) is not None:
                await self.show_title(title)

    def _follow(self, reply: PendingReply, progress: Progress) -> None:
        match progress:
            case Delta(text):
                reply.add(text)
            case Prepared():
                reply.set_state("waiting for the model")
            case QuestionStored():
                pass  # it is shown already
