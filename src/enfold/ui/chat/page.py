"""The room: a session on a page, with all that can be done in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from textwrap import shorten

from nicegui import ui
from nicegui.events import GenericEventArguments, KeyEventArguments, ValueChangeEventArguments

from enfold.chat import commands
from enfold.chat.commands import COMMANDS, ScreenAction
from enfold.chat.controller import ChatController, ChooseAnswerer, profile_chooser
from enfold.engine import Session
from enfold.engine.state import message_of
from enfold.engine.transcript_pages import read_standing, tip_below
from enfold.errors import ConfigError, EnfoldError, NotFoundError
from enfold.messages import Message, Text, text_of
from enfold.records import ROOT, Edit, Snapshot, StoredMessage
from enfold.store import sessions
from enfold.ui import window as failures
from enfold.ui.chat.messages import MessageActions, ask_for_text
from enfold.ui.chat.transcript import TranscriptList
from enfold.ui.chat.turns import TurnRunner
from enfold.ui.compression.controls import CompressionPanel
from enfold.ui.compression.summary_card import summary_card
from enfold.ui.context_bar import ContextBar
from enfold.ui.frame import Frame
from enfold.ui.session_list import NEW_TITLE
from enfold.ui.window import Window

Say = Callable[[str], Awaitable[None]]

_SEND = """(event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault(); emit(event.target.value);
  }
}"""
"""Enter sends, with Ctrl or Cmd too; with Shift it begins a new line, as it does in a browser."""
_CHOOSE = """(event) => {
  if (/^\\/\\w*$/.test(event.target.value)) { event.preventDefault(); emit(event.key); }
}"""
"""These keys choose among the commands while one is being typed, and do what they do otherwise."""
_LISTED = 6


class Composer:
    """The text field, the list of commands above it, and the button beside it."""

    def __init__(self, say: Say, stop: Callable[[], object]) -> None:
        self._say = say
        self._stop = stop
        self._found: list[str] = []
        self._at = 0

    def place(self) -> None:
        """Put it on the page."""
        with ui.element("form").classes("ef-composer") as form:
            form.on("submit.prevent", self._send, args=[])
            self._list = ui.element("div").classes("ef-commands").props("role=listbox")
            self._list.props["aria-label"] = "Commands"
            self._list.set_visibility(False)
            self.hint = ui.element("div").classes("ef-hint")
            with ui.element("div").classes("ef-composer-row"):
                self._field = ui.textarea(placeholder="Say something, or / for commands")
                self._field.props("autogrow borderless dense dir=auto rows=1 input-class=ef-say")
                self._field.props["aria-label"] = "Message"
                self._field.classes("ef-grow")
                self._button = ui.button(icon="arrow_upward").props("round unelevated type=submit")
                self._button.props("color=primary aria-label=Send")
        self._field.on("keydown", self._entered, js_handler=_SEND)
        for key in ("tab", "up", "down", "esc"):
            self._field.on(f"keydown.{key}", self._chosen, js_handler=_CHOOSE)
        self._field.on("keydown.esc", self._escaped, args=[])
        self._field.on_value_change(self._complete)

    def name_button(self, name: str) -> None:
        """Say what the button does."""
        self._button.props["aria-label"] = self._button.props["title"] = name

    def focus(self) -> None:
        """Go there."""
        self._field.run_method("focus")

    async def _entered(self, event: GenericEventArguments) -> None:
        if self._found and self._field.value != f"/{self._found[self._at]}":
            self._take(self._found[self._at])
            return
        self._field.value = event.args
        await self._send()

    async def _send(self) -> None:
        text = self._field.value or ""
        if text.strip():
            self._field.value = ""
            await self._say(text)

    def _escaped(self) -> None:
        """What is being chosen comes first; then what is being answered is stopped."""
        if not self._found:
            self._stop()

    def _chosen(self, event: GenericEventArguments) -> None:
        key = event.args
        if not self._found:
            return
        if key == "Tab":
            self._take(self._found[self._at])
        elif key == "Escape":
            self._show([])
        else:
            step = 1 if key == "ArrowDown" else -1
            self._at = (self._at + step) % len(self._found)
            self._draw()

    def _complete(self) -> None:
        text = self._field.value or ""
        begun = text[1:].lower()
        is_begun = text.startswith("/") and (begun.isalpha() or not begun)
        self._show([name for name in COMMANDS if name.startswith(begun)] if is_begun else [])

    def _show(self, found: list[str]) -> None:
        if found != self._found:
            self._found, self._at = found, 0
            self._draw()

    def _take(self, name: str) -> None:
        self._field.value = f"/{name} " if COMMANDS[name].argument else f"/{name}"
        self._show([])
        self.focus()

    def _draw(self) -> None:
        self._list.clear()
        self._list.set_visibility(bool(self._found))
        first = max(0, min(self._at - _LISTED // 2, len(self._found) - _LISTED))
        with self._list:
            for place, name in enumerate(self._found[first : first + _LISTED], first):
                self._option(name, is_chosen=place == self._at)

    def _option(self, name: str, *, is_chosen: bool) -> None:
        command = COMMANDS[name]
        with ui.element("div").classes("ef-command").props("role=option") as option:
            ui.label(f"/{name} {command.argument}".rstrip()).classes("ef-mono")
            ui.label(command.help).classes("ef-soft ef-small ef-ellipsis")
        option.props["aria-selected"] = "true" if is_chosen else "false"
        option.on("mousedown.prevent", lambda: self._take(name), args=[])


NOBODY = (
    "No model answers yet: what you say is kept, and can be searched and folded. "
    "Add a profile to have it answered."
)


class AnswererChoice:
    """Who answers, if somebody does."""

    def __init__(
        self, window: Window, talk: ChatController, choose: ChooseAnswerer, composer: Composer
    ) -> None:
        self._window = window
        self._talk = talk
        self._choose = choose
        self._composer = composer

    async def somebody(self) -> bool:
        """Whether somebody can be asked; from here on the session is kept for their window.

        Only whoever says something decides that: to look at a session changes nothing of it.
        """
        if self._talk.answerer is None:
            await self._talk.begin(None, None)
        return self._talk.answerer is not None

    async def show(self) -> None:
        """Say who answers, and offer the others."""
        listed = await self._window.engine.profiles.all()
        names = [each.profile.name for each in listed if each.profile is not None]
        hint = self._composer.hint
        hint.clear()
        with hint:
            if not names:
                self._composer.name_button("Add message")
                with ui.element("p"):
                    ui.label(NOBODY).classes("ef-inline")
                    ui.link("Profiles", "/settings").classes("ef-inline")
                return
            self._composer.name_button("Send")
            await self._draw_choice(names)

    async def _draw_choice(self, names: list[str]) -> None:
        answerer, why = self._talk.answerer, ""
        try:
            answerer = answerer or await self._choose(None, None)
        except (ConfigError, NotFoundError) as error:
            why = str(error)
        chosen = answerer.profile if answerer is not None else None
        select = ui.select(names, value=chosen if chosen in names else None)
        select.on_value_change(self._use).props("dense options-dense borderless")
        select.props["aria-label"] = "Profile that answers"
        said = answerer.connection.name if answerer is not None else why
        ui.label(said).classes("ef-small ef-soft ef-ellipsis").props["title"] = said

    async def _use(self, event: ValueChangeEventArguments[str]) -> None:
        async with self._window.doing("choose profile", self._talk.session.id):
            await self._talk.use(event.value)
        await self.show()


_LONGEST_TITLE = 60
FOLLOW_SECONDS = 1.0
"""How often it is looked whether somebody else said something: another window, or a program."""


class ChatPage:
    """One session in one window."""

    def __init__(self, window: Window, session: Session, framed: Frame) -> None:
        self._window = window
        self._session = session
        self._framed = framed
        choose = profile_chooser(window.engine, session)
        self._talk = ChatController(window.engine, session, choose)
        self._asking = TurnRunner(window, self._talk, self.refresh)
        hands = MessageActions(
            edit=self._edit,
            regenerate=self._regenerate,
            switch=self._switch,
            said=self._as_said,
        )
        self._transcript = TranscriptList(window, session, hands, self._draw_summary)
        self._composer = Composer(self._said, self._asking.stop)
        self._answering = AnswererChoice(window, self._talk, choose, self._composer)
        self._compressing = CompressionPanel(window, session, self.refresh)
        self._bar = ContextBar(window, session)
        self._seen: tuple[int, str | None, str | None] | None = None

    async def place(self) -> None:
        """Put it on the page, and follow the session from now on."""
        self._bar.place(self.summarize)
        self._transcript.place()
        self._asking.place(self._transcript.below)
        with ui.element("div").classes("ef-notices"):
            await self._compressing.show()
        self._composer.place()
        page = await self._transcript.show()
        self._seen = page.standing
        await self._answering.show()
        # Counting a long history takes longer than drawing its end, and is not waited for.
        ui.timer(0.01, self._bar.show, once=True)
        ui.timer(FOLLOW_SECONDS, self._follow)
        ui.keyboard(self._shortcut, repeating=False)

    async def refresh(self) -> None:
        """Show what has become of the session."""
        page = await self._transcript.show()
        self._asking.drawn(page.entries[-1] if page.entries else None)
        self._seen = page.standing
        await self._bar.show()

    async def summarize(self) -> None:
        """Show what folding would do, and do it if that is wanted."""
        await self._compressing.ask()

    async def _follow(self) -> None:
        """Look whether somebody else has changed the session."""
        engine = self._window.engine
        try:
            found = await engine.store.read(
                read_standing, self._session.key, engine.static_settings
            )
        except NotFoundError:
            ui.navigate.to("/")
            return
        if found != self._seen:
            await self.refresh()

    async def _said(self, text: str) -> None:
        if commands.is_command(text):
            await self._command(text)
            return
        await self._name(text)
        if await self._answering.somebody():
            self._asking.say(text.strip())
        else:
            async with self._window.doing("append", self._session.id):
                await self._session.append(text.strip())
            await self.refresh()

    async def _name(self, text: str) -> None:
        """A conversation that nobody has named is called after what is said in it first."""
        record = await self._window.engine.store.read(sessions.get, self._session.key)
        if record.depth or record.title not in {"", NEW_TITLE}:
            return
        title = shorten(text, _LONGEST_TITLE, placeholder=" …")
        await self._session.configure(title=title)
        self._framed.title.set_text(title)
        await self._framed.sessions.refresh()

    async def _command(self, text: str) -> None:
        if text.split(maxsplit=1)[0].lower() == "/summarize":
            self._compressing.start()
            return
        await self._answering.somebody()
        try:
            async with self._doing(text):
                outcome = await commands.run_command(self._talk, text)
        except EnfoldError as error:
            failures.show(error)
            return
        if outcome is ScreenAction.LEAVE:
            ui.navigate.to("/")
        elif outcome is ScreenAction.ANSWER:
            self._asking.answer()
        elif isinstance(outcome, str):
            self._tell(outcome)
        await self._answering.show()
        await self.refresh()

    def _doing(self, text: str) -> AbstractAsyncContextManager[None]:
        """For a command: those that change something are written down."""
        name = commands.changing_command(text)
        return nullcontext() if name is None else self._window.doing(name, self._session.id)

    def _tell(self, text: str) -> None:
        """What a command says, below the conversation, of which it is no part."""
        with self._transcript.below, ui.element("aside").classes("ef-told") as card:
            card.props["aria-label"] = "Answer of enfold"
            with ui.element("pre").classes("ef-printed"):
                ui.label(text)
            close = ui.button(icon="close", on_click=card.delete).props("flat round dense size=sm")
            close.props["aria-label"] = "Dismiss"

    async def _edit(self, row: StoredMessage) -> None:
        text = await ask_for_text(text_of(message_of(row).parts), row.role)
        if text is None:
            return
        said = Message("user" if row.role == "user" else "assistant", (Text(text),))
        after = ROOT if row.parent is None else row.parent
        async with self._window.doing("edit message", self._session.id):
            await self._session.append(said, after=after)
        await self.refresh()
        if row.role == "user" and await self._answering.somebody():
            self._asking.answer()

    async def _regenerate(self, row: StoredMessage) -> None:
        if self._asking.is_busy or not await self._answering.somebody():
            failures.tell("Nobody can answer just now; the settings have the profiles.")
            return
        before = await self._window.engine.store.read(sessions.get, self._session.key)

        async def go_back() -> None:
            await self._session.switch(before.tip)

        await self._session.switch(row.parent)
        await self.refresh()
        self._asking.answer(otherwise=go_back)

    async def _as_said(self, edit: Edit) -> Message:
        return message_of(await self._session.message(edit.message))

    async def _switch(self, id: str) -> None:
        tip = await self._window.engine.store.read(tip_below, self._session.key, id)
        async with self._window.doing("switch branch", self._session.id):
            await self._session.switch(tip)
        await self.refresh()

    def _shortcut(self, event: KeyEventArguments) -> None:
        if not event.action.keydown:
            return
        if event.key == "/":
            self._composer.focus()
        elif event.key == "Escape":
            self._asking.stop()

    def _draw_summary(self, snapshot: Snapshot) -> None:
        summary_card(self._window, self._session, snapshot, self._compressing, self.refresh)
