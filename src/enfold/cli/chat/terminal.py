"""The talk on a terminal. Its modules load Textual with themselves, so they are loaded late."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import monotonic
from typing import Literal, TypeAlias

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Markdown, Static, TextArea
from textual.worker import Worker

from enfold.amounts import number
from enfold.chat import commands
from enfold.chat import commands as words
from enfold.chat.commands import ScreenAction, complete_command
from enfold.chat.controller import ChatController
from enfold.chat.meter import FREE, SIGNS, Level, Meter
from enfold.cli.screen import harmless
from enfold.engine import Prepared
from enfold.engine.state import message_of
from enfold.engine.turns import Progress, QuestionStored, is_interrupted, unanswered
from enfold.errors import EnfoldError
from enfold.events import CompressionFinished, CompressionStarted, Event
from enfold.llm.calls import Delta

_NEW_LINE = frozenset({"ctrl+j", "shift+enter", "alt+enter"})
"""Terminals differ in which of these they can tell from Enter; Ctrl-J they all can."""


class PromptInput(TextArea):
    """A text of one or more lines."""

    BINDINGS = [  # noqa: RUF012 - Textual's own way; it copies the list
        Binding(",".join(sorted(_NEW_LINE)), "new_line", "New line", show=False),
        Binding("tab", "complete", "Complete", show=False),
    ]

    class Sent(Message):
        """Somebody pressed Enter; `take` has the text."""

    def __init__(self) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Say something, or / for commands",
        )
        self.border_subtitle = "Enter sends · Ctrl-J new line · Ctrl-C stops, leaves"
        self._said: list[str] = []
        self._recalled = 0
        """How many steps back in what was said the text comes from."""

    def give_back(self, text: str) -> None:
        """Put back what was not sent; what was typed meanwhile stays, after it."""
        meanwhile = self.text
        self.text = f"{text}\n{meanwhile}" if meanwhile else text
        self.move_cursor(self.document.end)

    def update_suggestion(self) -> None:
        """Show how a command that was begun goes on."""
        self.suggestion = complete_command(self.text)

    async def _on_key(self, event: events.Key) -> None:
        """Enter hands the text over, if there is any.

        A binding would not do: it may overtake letters that were typed before it.
        """
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Sent())

    def take(self) -> str:
        """The text, which is gone from here then; Up brings it back."""
        text = self.text
        self._said.append(text)
        self._recalled = 0
        self.text = ""
        return text

    def action_new_line(self) -> None:
        """Begin another line."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Take the suggestion."""
        if self.suggestion:
            self.insert(f"{self.suggestion} ")

    def action_cursor_up(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - Textual's
        """Up; from the first line, to what was said before."""
        if self.cursor_location[0] == 0 and not select and self._may_recall():
            self._recall(self._recalled + 1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - Textual's
        """Down; from the last line, back to what was said after."""
        if self.cursor_at_last_line and not select and self._recalled:
            self._recall(self._recalled - 1)
        else:
            super().action_cursor_down(select)

    def _may_recall(self) -> bool:
        """What was typed anew is not replaced."""
        return not self.text or (bool(self._recalled) and self.text == self._said[-self._recalled])

    def _recall(self, steps: int) -> None:
        if steps <= len(self._said):
            self._recalled = steps
            self.text = self._said[-steps] if steps else ""
            self.move_cursor(self.document.end)


Kind: TypeAlias = Literal["note", "figures", "warning", "error"]

_COLOURS: dict[Level, str] = {"calm": "$success", "warm": "$warning", "full": "$error"}
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_A_SECOND = 8


class UserMessage(Static):
    """What the user said."""

    def __init__(self, text: str) -> None:
        super().__init__(harmless(text), markup=False, classes="said")


class Notice(Static):
    """What enfold says: a result, a warning or an error."""

    def __init__(self, text: str, kind: Kind = "note") -> None:
        super().__init__(harmless(text), markup=False, classes=f"notice {kind}")


class ReplyView(Markdown):
    """What a model says, as it comes."""

    def __init__(self, text: str = "") -> None:
        super().__init__(harmless(text), classes="reply", open_links=False)
        self._waiting: list[str] = []

    def hear(self, text: str) -> None:
        """Another piece; it is shown with the next ones when there is time."""
        self._waiting.append(harmless(text))
        if len(self._waiting) == 1:
            self.call_after_refresh(self.catch_up)

    async def catch_up(self) -> None:
        """Show all that came."""
        text, self._waiting = "".join(self._waiting), []
        if text:
            await self.append(text)

    def mark(self, words: str) -> None:
        """Say that this is not all."""
        self.add_class("broken")
        self.border_subtitle = words


class ActivityLine(Static):
    """What is being done right now, and for how long."""

    what = reactive("", layout=True)

    def __init__(self) -> None:
        super().__init__(markup=False, id="working")
        self._since = 0.0

    def on_mount(self) -> None:
        """Move, so that nobody thinks it hangs."""
        self.set_interval(1 / _FRAMES_A_SECOND, self._move)

    def watch_what(self, what: str) -> None:
        """Another thing is done from now on; nothing, if there are no words for it."""
        self._since = monotonic()
        self.display = bool(what)
        self._move()

    def _move(self) -> None:
        if self.what:
            passed = monotonic() - self._since
            frame = _FRAMES[int(passed * _FRAMES_A_SECOND) % len(_FRAMES)]
            self.update(f"{frame} {self.what} {passed:.0f} s")


class TokenBar(Static):
    """How much of the context is in use, and by what."""

    meter: reactive[Meter | None] = reactive(None)

    def __init__(self) -> None:
        super().__init__(id="tokens")

    def watch_meter(self) -> None:
        """Other figures are shown at once."""
        self.refresh()

    def render(self) -> Content:
        """The bar with its percentage, and the figures below it."""
        meter = self.meter
        width = self.content_size.width
        if meter is None or width <= 0:
            return Content("")
        colour = _COLOURS[meter.level]
        label = f" {'' if meter.is_exact else '≈ '}{meter.share:.0%}"
        room = max(1, width - len(label))
        cells = meter.cells(room)
        drawn = "".join(SIGNS[name] * count for name, count in cells.items())
        return Content.assemble(
            (drawn, colour),
            (FREE * (room - len(drawn)), "$foreground 40%"),
            (label, f"bold {colour}"),
            "\n",
            (meter.words(width), "$foreground 70%"),
        )


_SHOWN = 30
"""Messages of before that are shown when a talk is opened."""
_ANSWERING = "is answering…"


class ChatApp(App[None]):
    """A talk on a terminal."""

    CSS_PATH = "chat.tcss"
    TITLE = "enfold"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [  # noqa: RUF012 - Textual's own way; it copies the list
        Binding("ctrl+c", "interrupt", "Stop, leave", priority=True, show=False),
        Binding("pageup", "scroll_log(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_log(1)", show=False, priority=True),
    ]

    def __init__(self, talk: ChatController, *, light: bool = False) -> None:
        super().__init__()
        self.theme = "textual-light" if light else "textual-dark"
        self.talk = talk
        self._job: Worker[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False

    def compose(self) -> ComposeResult:
        """Title, log, what is being done, tokens, prompt."""
        yield Static(id="title", markup=False)
        yield VerticalScroll(id="log", can_focus=False)
        yield ActivityLine()
        yield TokenBar()
        yield PromptInput()

    async def on_mount(self) -> None:
        """Show what was said before."""
        self.query_one(PromptInput).focus()
        self.query_one("#log").anchor()
        self._unsubscribe = self.talk.engine.events.subscribe(self._hear_event)
        await self._show_history()
        if self.talk.answerer is None:
            await self._notice(self.talk.why_nobody, "warning")
        if (blocked := (await self.talk.status()).blocked) is not None:
            await self._notice(words.describe_block(blocked), "error")
        await self._refresh_figures()

    def on_unmount(self) -> None:
        """Nobody listens any more."""
        self._unsubscribe()

    async def settled(self) -> None:
        """Wait until what was interrupted has been stored."""
        await self._idle.wait()

    @on(PromptInput.Sent)
    def _send(self) -> None:
        if self._is_busy:
            self.notify("One moment: something is still running. Ctrl-C stops it.", timeout=3)
            return
        text = self.query_one(PromptInput).take()
        is_command = commands.is_command(text)
        self._start(self._command(text) if is_command else self._ask(text.strip()))

    def action_interrupt(self) -> None:
        """Stop what runs; leave, if nothing does or it was asked for twice."""
        if self._job is not None and self._is_busy and not self._stopping:
            self._stopping = True
            self._job.cancel()
        else:
            self.exit()

    def action_scroll_log(self, direction: int) -> None:
        """A page up or down in what was said."""
        log = self.query_one("#log")
        log.scroll_page_up() if direction < 0 else log.scroll_page_down()

    @property
    def _is_busy(self) -> bool:
        return not self._idle.is_set()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._idle.clear()
        self._stopping = False
        self._job = self.run_worker(self._guarded(work), exit_on_error=True)

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        """Do it; say what failed, and be ready for the next."""
        try:
            await work
        except EnfoldError as error:
            await self._notice(words.describe_error(error), "error")
        finally:
            self._idle.set()
            if self.is_running:
                self.query_one(ActivityLine).what = ""
                await self._refresh_figures()

    async def _command(self, text: str) -> None:
        await self._add(UserMessage(text))
        outcome = await commands.run_command(self.talk, text)
        if outcome is ScreenAction.LEAVE:
            self.exit()
        elif outcome is ScreenAction.ANSWER:
            await self._answer(None)
        elif isinstance(outcome, str):
            await self._notice(outcome, "figures")

    async def _ask(self, text: str) -> None:
        said = UserMessage(text)
        await self._add(said)
        await self._answer(text, said)

    async def _answer(self, text: str | None, said: UserMessage | None = None) -> None:
        """Be answered: to the text, or without one to what was said last.

        A text that could not be said goes back to where it was typed.
        """
        reply = ReplyView()
        await self._add(reply)
        stored = text is None

        def listen(progress: Progress) -> None:
            nonlocal stored
            stored = stored or isinstance(progress, QuestionStored)
            self._hear(progress, reply)

        try:
            talk = self.talk
            done = await (talk.answer(listen) if text is None else talk.ask(text, listen))
            await reply.catch_up()
            if done.ending == "length":
                await self._notice(words.CUT_OFF, "warning")
        except asyncio.CancelledError:
            if self.is_running:
                await self._interrupted(reply)
            raise
        except EnfoldError:
            await self._failed(reply)
            raise
        finally:
            if not stored and text is not None and said is not None and self.is_running:
                self.query_one(PromptInput).give_back(text)
                await said.remove()

    async def _interrupted(self, reply: ReplyView) -> None:
        """What came stays, and is stored; without a word nothing is."""
        await reply.catch_up()
        if reply.source.strip():
            reply.mark(words.INTERRUPTED)
        else:
            await reply.remove()
            await self._notice("Stopped. Ctrl-C again leaves.", "note")

    async def _failed(self, reply: ReplyView) -> None:
        """What came can be read, and is not a part of the session."""
        await reply.catch_up()
        if reply.source.strip():
            reply.mark(words.NOT_KEPT)
        else:
            await reply.remove()

    def _hear(self, progress: Progress, reply: ReplyView) -> None:
        """What a turn tells while it runs."""
        match progress:
            case Delta(text):
                reply.hear(text)
            case QuestionStored():
                self.query_one(ActivityLine).what = f"{self._model_name} {_ANSWERING}"
            case Prepared():
                self._show_preparation(progress, before=reply)

    def _show_preparation(self, prepared: Prepared, before: ReplyView) -> None:
        log = self.query_one("#log")
        if prepared.compression is not None:
            log.mount(Notice(words.describe_compression(prepared.compression)), before=before)
        elif prepared.warnings:
            log.mount(Notice("\n".join(prepared.warnings), "warning"), before=before)

    def _hear_event(self, event: Event) -> None:
        """What happens to the session, perhaps because of another process of ours."""
        if event.session != self.talk.session.id or not self._is_busy:
            return
        working = self.query_one(ActivityLine)
        match event:
            case CompressionStarted():
                working.what = str(event)
            case CompressionFinished():
                working.what = ""

    async def _show_history(self) -> None:
        rows = await self.talk.session.history(limit=_SHOWN)
        if rows and rows[0].depth > 1:
            earlier = number(rows[0].depth - 1, "earlier message")
            await self._notice(f"{earlier}: /history shows them, /search finds in them.")
        for row in rows:
            message = message_of(row)
            if row.role == "user":
                await self._add(UserMessage(words.message_text(message)))
            elif row.role == "assistant":
                reply = ReplyView(words.message_body(message))
                await self._add(reply)
                if is_interrupted(message):
                    reply.mark(words.INTERRUPTED)
            else:
                await self._notice(f"{row.role}: {words.shorten(words.message_text(message))}")
        if await unanswered(self.talk.session) is not None:
            await self._notice(words.UNANSWERED, "warning")

    async def _refresh_figures(self) -> None:
        """The title and the token bar, as things are now."""
        try:
            status = await self.talk.status()
        except EnfoldError as error:  # the talk goes on; a count that failed is said, not guessed
            await self._notice(words.describe_error(error), "error")
            return
        self.query_one(TokenBar).meter = Meter.of(status, self.talk.window)
        profile = self.talk.answerer.profile if self.talk.answerer is not None else None
        shown = (self.talk.session.id, self._model_name or status.model, profile)
        self.query_one("#title", Static).update(harmless(" · ".join(filter(None, shown))))

    @property
    def _model_name(self) -> str:
        answerer = self.talk.answerer
        return answerer.connection.name if answerer is not None else ""

    async def _notice(self, text: str, kind: Kind = "note") -> None:
        await self._add(Notice(text, kind))

    async def _add(self, widget: Widget) -> None:
        await self.query_one("#log").mount(widget)
