"""The chat on a terminal. Loading this module loads Textual, so it is imported late."""

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
from enfold.chat.commands import ScreenAction, complete_command
from enfold.chat.controller import ChatController
from enfold.chat.meter import FREE, SIGNS, Level, Meter
from enfold.cli.screen import harmless
from enfold.engine import Prepared
from enfold.engine.state import message_of
from enfold.engine.turns import Progress, QuestionStored, is_interrupted, unanswered
from enfold.errors import EnfoldError
from enfold.events import (
    CompressionFailed,
    CompressionFinished,
    CompressionProgress,
    CompressionStarted,
    Event,
)
from enfold.llm.calls import Delta

_NEW_LINE = frozenset({"ctrl+j", "shift+enter", "alt+enter"})
"""Terminals differ in which of these they report; Ctrl-J works in all of them."""


class PromptInput(TextArea):
    """The input box: a text of one or more lines."""

    BINDINGS = [  # noqa: RUF012 - Textual's own way; it copies the list
        Binding(",".join(sorted(_NEW_LINE)), "new_line", "New line", show=False),
        Binding("tab", "complete", "Complete", show=False),
    ]

    class Sent(Message):
        """Enter was pressed; `take` returns the text."""

    def __init__(self) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Message, or / for commands",
        )
        self.border_subtitle = "Enter sends · Ctrl-J new line · Ctrl-C stops or quits"
        self._sent: list[str] = []
        self._recalled = 0
        """Position of the text in the sent messages, newest first; 0 if it was typed."""

    def update_suggestion(self) -> None:
        """Show the rest of the command that is being typed."""
        self.suggestion = complete_command(self.text)

    async def _on_key(self, event: events.Key) -> None:
        """Send the text on Enter."""
        # A binding would not do: it may overtake letters that were typed before it.
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Sent())

    def take(self) -> str:
        """Return the text and clear the box. Up brings the text back."""
        text = self.text
        self._sent.append(text)
        self._recalled = 0
        self.text = ""
        return text

    def action_new_line(self) -> None:
        """Insert a line break."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Insert the suggestion."""
        if self.suggestion:
            self.insert(f"{self.suggestion} ")

    def action_cursor_up(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - Textual's
        """Move up; from the first line, to the message sent before."""
        if self.cursor_location[0] == 0 and not select and self._may_recall():
            self._recall(self._recalled + 1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - Textual's
        """Move down; from the last line, to the message sent after."""
        if self.cursor_at_last_line and not select and self._recalled:
            self._recall(self._recalled - 1)
        else:
            super().action_cursor_down(select)

    def _may_recall(self) -> bool:
        """True if the box is empty or shows a sent message: new text is not replaced."""
        return not self.text or (bool(self._recalled) and self.text == self._sent[-self._recalled])

    def _recall(self, steps: int) -> None:
        if steps <= len(self._sent):
            self._recalled = steps
            self.text = self._sent[-steps] if steps else ""
            self.move_cursor(self.document.end)


Kind: TypeAlias = Literal["note", "figures", "warning", "error"]

_COLOURS: dict[Level, str] = {"calm": "$success", "warm": "$warning", "full": "$error"}
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_A_SECOND = 8


class UserMessage(Static):
    """A message of the user."""

    def __init__(self, text: str) -> None:
        super().__init__(harmless(text), markup=False, classes="user-message")
        self.text = text

    def mark_waiting(self) -> None:
        """Show that the message is not sent yet."""
        self.add_class("waiting")
        self.border_subtitle = commands.WAITS


class Notice(Static):
    """A result, a warning or an error of enfold."""

    def __init__(self, text: str, kind: Kind = "note") -> None:
        super().__init__(harmless(text), markup=False, classes=f"notice {kind}")


class ReplyView(Markdown):
    """A model's answer while it streams."""

    def __init__(self, text: str = "") -> None:
        super().__init__(harmless(text), classes="reply", open_links=False)
        self._pending: list[str] = []

    def add_text(self, text: str) -> None:
        """Add a piece of text; pieces are drawn together after the next refresh."""
        self._pending.append(harmless(text))
        if len(self._pending) == 1:
            self.call_after_refresh(self.draw_pending)

    async def draw_pending(self) -> None:
        """Draw all pieces received so far."""
        text, self._pending = "".join(self._pending), []
        if text:
            await self.append(text)

    def mark_incomplete(self, label: str) -> None:
        """Show that the answer is not complete."""
        self.add_class("broken")
        self.border_subtitle = label


class ActivityLine(Static):
    """The activity in progress and its duration."""

    what = reactive("", layout=True)

    def __init__(self) -> None:
        super().__init__(markup=False, id="working")
        self._since = 0.0

    def on_mount(self) -> None:
        """Start the animation."""
        self.set_interval(1 / _FRAMES_A_SECOND, self._move)

    def watch_what(self, what: str) -> None:
        """Show another activity; an empty text hides the line."""
        self._since = monotonic()
        self.display = bool(what)
        self._move()

    def _move(self) -> None:
        if self.what:
            passed = monotonic() - self._since
            frame = _FRAMES[int(passed * _FRAMES_A_SECOND) % len(_FRAMES)]
            self.update(f"{frame} {self.what} {passed:.0f} s")


class TokenBar(Static):
    """The context in use, by part."""

    meter: reactive[Meter | None] = reactive(None)

    def render(self) -> Content:
        """Draw the bar with its percentage, and the figures below it."""
        meter = self.meter
        width = self.content_size.width
        if meter is None or width <= 0:
            return Content("")
        colour = _COLOURS[meter.level]
        label = f" {'' if meter.is_exact else '≈ '}{meter.share:.0%}"
        bar_width = max(1, width - len(label))
        cells = meter.cells(bar_width)
        drawn = "".join(SIGNS[name] * count for name, count in cells.items())
        return Content.assemble(
            (drawn, colour),
            (FREE * (bar_width - len(drawn)), "$foreground 40%"),
            (label, f"bold {colour}"),
            "\n",
            (meter.words(width), "$foreground 70%"),
        )


_SHOWN = 30
"""Earlier messages shown when a chat is opened."""
_ANSWERING = "is answering…"


class ChatApp(App[None]):
    """The chat on a terminal."""

    CSS_PATH = "chat.tcss"
    TITLE = "enfold"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [  # noqa: RUF012 - Textual's own way; it copies the list
        Binding("ctrl+c", "interrupt", "Stop or quit", priority=True, show=False),
        Binding("pageup", "scroll_log(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_log(1)", show=False, priority=True),
    ]

    def __init__(self, controller: ChatController, *, light: bool = False) -> None:
        super().__init__()
        self.theme = "textual-light" if light else "textual-dark"
        self.controller = controller
        self._job: Worker[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self._waiting: list[UserMessage] = []
        """Messages that are not stored yet; each is sent after the next answer."""
        self._was_answered = False

    def compose(self) -> ComposeResult:
        """Title, log, activity, token bar and prompt."""
        yield Static(id="title", markup=False)
        yield VerticalScroll(id="log", can_focus=False)
        yield ActivityLine()
        yield TokenBar(id="tokens")
        yield PromptInput()

    async def on_mount(self) -> None:
        """Show the earlier messages and the state of the session."""
        self.query_one(PromptInput).focus()
        self.query_one("#log").anchor()
        self._unsubscribe = self.controller.engine.events.subscribe(self._on_event)
        await self._show_history()
        if self.controller.answerer is None:
            await self._notice(self.controller.no_answerer_reason, "warning")
        if (blocked := (await self.controller.status()).blocked) is not None:
            await self._notice(commands.describe_block(blocked), "error")
        await self._refresh_figures()

    def on_unmount(self) -> None:
        """Stop listening to the engine's events."""
        self._unsubscribe()

    async def settled(self) -> None:
        """Wait until no turn or command is running and its result is stored."""
        await self._idle.wait()

    async def store_waiting(self) -> None:
        """Store the messages that still wait to be sent."""
        for shown in self._waiting:
            await self.controller.session.append(shown.text)

    @on(PromptInput.Sent)
    async def _send(self) -> None:
        prompt = self.query_one(PromptInput)
        if commands.is_command(prompt.text):
            if self._is_busy:
                self.notify("Still busy. Ctrl-C stops it.", timeout=3)
            else:
                self._start(self._command(prompt.take()))
            return
        shown = UserMessage(prompt.take().strip())
        self._waiting.append(shown)
        shown.mark_waiting()
        await self._add(shown)
        self._send_next()

    def _send_next(self) -> None:
        """Send the message that waits longest, unless something is running."""
        if self._waiting and not self._is_busy:
            self._start(self._ask(self._waiting.pop(0)))

    def action_interrupt(self) -> None:
        """Stop the running work; quit if there is none, or on the second Ctrl-C."""
        if self._job is not None and self._is_busy and not self._stopping:
            self._stopping = True
            self._job.cancel()
        else:
            self.exit()

    def action_scroll_log(self, direction: int) -> None:
        """Scroll the log one page up or down."""
        log = self.query_one("#log")
        log.scroll_page_up() if direction < 0 else log.scroll_page_down()

    @property
    def _is_busy(self) -> bool:
        return not self._idle.is_set()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._idle.clear()
        self._stopping = self._was_answered = False
        self._job = self.run_worker(self._guarded(work), exit_on_error=True)

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        """Await the work and show its error."""
        try:
            await work
        except EnfoldError as error:
            if self.is_running:
                self.query_one(ActivityLine).what = ""
            await self._notice(commands.describe_error(error), "error")
        finally:
            self._idle.set()
            if self.is_running:
                self.query_one(ActivityLine).what = ""
                await self._refresh_figures()
                if self._was_answered:
                    self._send_next()

    async def _command(self, text: str) -> None:
        await self._add(UserMessage(text))
        outcome = await commands.run_command(self.controller, text)
        if outcome.text:
            await self._notice(outcome.text, "figures")
        if outcome.action is ScreenAction.LEAVE:
            self.exit()
        elif outcome.action is ScreenAction.ANSWER:
            await self._answer()

    async def _ask(self, shown: UserMessage) -> None:
        shown.remove_class("waiting")
        shown.border_subtitle = None
        log = self.query_one("#log")
        if log.children[-1] is not shown:
            log.move_child(shown, after=log.children[-1])
        await self._answer(shown)

    async def _answer(self, shown: UserMessage | None = None) -> None:
        """Have the model answer the message, or without one the last user message.

        A message that could not be stored waits.
        """
        reply = ReplyView()
        await self._add(reply)
        stored = shown is None

        def listen(progress: Progress) -> None:
            nonlocal stored
            stored = stored or isinstance(progress, QuestionStored)
            self._on_progress(progress, reply)

        try:
            controller = self.controller
            done = await (
                controller.answer(listen) if shown is None else controller.ask(shown.text, listen)
            )
            self._was_answered = True
            await reply.draw_pending()
            if done.ending == "length":
                await self._notice(commands.CUT_OFF, "warning")
            self.run_worker(controller.write_title(), exit_on_error=False)
        except asyncio.CancelledError:
            if self.is_running:
                self._was_answered = await self._keep(reply, commands.INTERRUPTED)
                if not self._was_answered:
                    await self._notice("Stopped. Ctrl-C again quits.")
            raise
        except EnfoldError:
            await self._keep(reply, commands.NOT_KEPT)
            raise
        finally:
            if not stored and shown is not None:
                self._waiting.insert(0, shown)
                shown.mark_waiting()

    async def _keep(self, reply: ReplyView, label: str) -> bool:
        """Mark a partial answer and return True; remove an empty one and return False."""
        await reply.draw_pending()
        has_text = bool(reply.source.strip())
        if has_text:
            reply.mark_incomplete(label)
        else:
            await reply.remove()
        return has_text

    def _on_progress(self, progress: Progress, reply: ReplyView) -> None:
        """Show the progress of a turn."""
        match progress:
            case Delta(text):
                reply.add_text(text)
            case QuestionStored():
                pass  # it is shown already
            case Prepared():
                self.query_one(ActivityLine).what = f"{self._model_name} {_ANSWERING}"
                log = self.query_one("#log")
                if progress.compression is not None:
                    words = commands.describe_compression(progress.compression)
                    log.mount(Notice(words), before=reply)
                elif progress.warnings:
                    log.mount(Notice("\n".join(progress.warnings), "warning"), before=reply)

    def _on_event(self, event: Event) -> None:
        """Show compressions of this session, also those that another process runs."""
        if event.session != self.controller.session.id or not self._is_busy:
            return
        working = self.query_one(ActivityLine)
        match event:
            case CompressionStarted():
                working.what = str(event)
            case CompressionProgress() if event.progress:
                working.what = f"{event.step.capitalize()}{event.progress}…"
            case CompressionFinished() | CompressionFailed():
                working.what = ""

    async def _show_history(self) -> None:
        rows = await self.controller.session.history(limit=_SHOWN)
        if rows and rows[0].depth > 1:
            earlier = number(rows[0].depth - 1, "earlier message")
            await self._notice(f"{earlier}: /history shows them, /search searches them.")
        for row in rows:
            message = message_of(row)
            if row.role == "user":
                await self._add(UserMessage(commands.message_text(message)))
            elif row.role == "assistant":
                reply = ReplyView(commands.message_body(message))
                await self._add(reply)
                if is_interrupted(message):
                    reply.mark_incomplete(commands.INTERRUPTED)
            else:
                await self._notice(
                    f"{row.role}: {commands.shorten(commands.message_text(message))}"
                )
        if await unanswered(self.controller.session) is not None:
            await self._notice(commands.UNANSWERED, "warning")

    async def _refresh_figures(self) -> None:
        """Update the title and the token bar."""
        try:
            status = await self.controller.status()
        except EnfoldError as error:  # the chat continues; a failed count is shown, not guessed
            await self._notice(commands.describe_error(error), "error")
            return
        self.query_one(TokenBar).meter = Meter.of(status, self.controller.window)
        profile = self.controller.answerer.profile if self.controller.answerer is not None else None
        shown = (self.controller.session.id, self._model_name or status.model, profile)
        self.query_one("#title", Static).update(harmless(" · ".join(filter(None, shown))))

    @property
    def _model_name(self) -> str:
        answerer = self.controller.answerer
        return answerer.connection.name if answerer is not None else ""

    async def _notice(self, text: str, kind: Kind = "note") -> None:
        await self._add(Notice(text, kind))

    async def _add(self, widget: Widget) -> None:
        await self.query_one("#log").mount(widget)
