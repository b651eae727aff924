"""The chat page: composer, choice of the answering profile, and everything in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from nicegui import ui
from nicegui.events import GenericEventArguments, KeyEventArguments, ValueChangeEventArguments

from enfold.chat import commands
from enfold.chat.commands import COMMANDS, ScreenAction
from enfold.chat.controller import ChatController
from enfold.engine import Session
from enfold.engine.inspection import find_tip, read_version
from enfold.engine.state import message_of
from enfold.engine.turns import unanswered
from enfold.errors import ConfigError, EnfoldError, NotFoundError
from enfold.messages import Message, Text, text_of
from enfold.records import ROOT, Edit, Snapshot, StoredMessage
from enfold.sample import SESSIONS
from enfold.text.sentences import shorten_title
from enfold.ui.chat.details import TITLE as DETAILS_TITLE
from enfold.ui.chat.details import SessionDetails
from enfold.ui.chat.messages import MessageActions, TranscriptList, prompt_for_edit
from enfold.ui.chat.turns import BUSY, TurnRunner
from enfold.ui.compression.controls import CompressionPanel
from enfold.ui.compression.summary_card import SummaryCard
from enfold.ui.context_bar import ContextBar
from enfold.ui.frame import Frame, frame
from enfold.ui.pins import Pins
from enfold.ui.session_list import NEW_TITLE, client_of
from enfold.ui.setup import setup
from enfold.ui.widgets import empty_state, icon_button, labelled
from enfold.ui.window import Window, notify_error, notify_failure, path_of

Submit = Callable[[str], Awaitable[bool]]
"""Sends a text; False if it was not stored and must stay in the composer."""

_SEND = """(event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault(); emit(event.target.value);
  }
}"""
"""Enter sends, also with Ctrl or Cmd; Shift+Enter starts a new line."""
_CHOOSE = """(event) => {
  if (/^\\/\\w*$/.test(event.target.value)) { event.preventDefault(); emit(event.key); }
}"""
"""While a command is typed, these keys select one; otherwise they keep their function."""
_LISTED = 6


class Composer:
    """The text field, the list of commands above it, and the send button."""

    def __init__(self, submit: Submit, stop: Callable[[], object]) -> None:
        self._submit = submit
        self._stop = stop
        self._found: list[str] = []
        self._at = 0

    def place(self) -> None:
        """Add it to the page."""
        with ui.element("form").classes("ef-composer") as form:
            form.on("submit.prevent", self._send, args=[])
            self._list = ui.element("div").classes("ef-commands").props("role=listbox")
            labelled(self._list, "Commands")
            self._list.set_visibility(False)
            self.hint = ui.element("div").classes("ef-hint")
            with ui.element("div").classes("ef-composer-row"):
                self._field = ui.textarea(placeholder="Write a message, or / for commands")
                self._field.props("autogrow borderless dense dir=auto rows=1 input-class=ef-input")
                labelled(self._field.classes("ef-grow"), "Message")
                self._button = ui.button(icon="arrow_upward").props("round unelevated type=submit")
                self._button.props("color=primary aria-label=Send")
        self._field.on("keydown", self._entered, js_handler=_SEND)
        for key in ("tab", "up", "down", "esc"):
            self._field.on(f"keydown.{key}", self._chosen, js_handler=_CHOOSE)
        self._field.on("keydown.esc", self._escaped, args=[])
        self._field.on_value_change(self._complete)

    def name_button(self, name: str) -> None:
        """Set the name of the send button."""
        self._button.props["aria-label"] = self._button.props["title"] = name

    def focus(self) -> None:
        """Focus the text field."""
        self._field.run_method("focus")

    async def _entered(self, event: GenericEventArguments) -> None:
        if self._found and self._field.value != f"/{self._found[self._at]}":
            self._take(self._found[self._at])
            return
        self._field.value = event.args
        await self._send()

    async def _send(self) -> None:
        text = self._field.value or ""
        if not text.strip():
            return
        self._field.value = ""
        is_stored = False
        try:
            is_stored = await self._submit(text)
        finally:
            if not is_stored:
                self._field.value = "\n".join(filter(None, (text, self._field.value)))

    def _escaped(self) -> None:
        """Stop the answer, unless the key closes the list of commands."""
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
                command = COMMANDS[name]
                with ui.element("div").classes("ef-command").props("role=option") as option:
                    ui.label(f"/{name} {command.argument}".rstrip()).classes("ef-mono")
                    ui.label(command.help).classes("ef-soft ef-small ef-ellipsis")
                option.props["aria-selected"] = "true" if place == self._at else "false"
                option.on("mousedown.prevent", partial(self._take, name), args=[])


NO_PROFILE = "No model answers yet. Messages are stored and can be searched and summarized."


@dataclass(eq=False)
class AnswererChoice:
    """The choice of the profile that answers."""

    window: Window
    talk: ChatController
    composer: Composer
    changed: Callable[[], Awaitable[None]]
    """Called after another profile was chosen."""
    model: str | None = None
    """The model that answers next. None if there is none."""

    async def is_available(self) -> bool:
        """Return True if a model can answer; the session uses that model from now on.

        Called only when a message is sent: opening a page must not change the session.
        """
        if self.talk.answerer is None:
            await self.talk.begin(None, None)
        return self.talk.answerer is not None

    async def has_profiles(self) -> bool:
        """Return True if a profile is stored."""
        return bool(await self.window.engine.profiles.all())

    async def show(self) -> None:
        """Show the profile that answers, and the others."""
        listed = await self.window.engine.profiles.all()
        names = [each.profile.name for each in listed if each.profile is not None]
        hint = self.composer.hint
        hint.clear()
        with hint:
            if not names:
                self.composer.name_button("Add message")
                with ui.element("p"):
                    ui.label(NO_PROFILE).classes("ef-inline")
                    ui.link("Set up a model", "/setup").classes("ef-inline")
                return
            self.composer.name_button("Send")
            await self._draw_choice(names)

    async def _draw_choice(self, names: list[str]) -> None:
        answerer, why = self.talk.answerer, ""
        try:
            answerer = answerer or await self.talk.choose(None, None)
        except (ConfigError, NotFoundError) as error:
            why = str(error)
        chosen = answerer.profile if answerer is not None else None
        self.model = answerer.connection.name if answerer is not None else None
        select = ui.select(names, value=chosen if chosen in names else None)
        select.on_value_change(self._use).props("dense options-dense borderless")
        labelled(select, "Profile that answers")
        name = answerer.connection.name if answerer is not None else why
        ui.label(name).classes("ef-small ef-soft ef-ellipsis").props["title"] = name
        if answerer is None:
            return
        config = await self.window.engine.models.get(name)
        if config.source == "default":
            assumed = f"{config.max_input + config.max_output:,} tokens are assumed"
            ui.label(f"Context window unknown; {assumed}.").classes("ef-small ef-warm")
            ui.link("Set it", "/settings/models").classes("ef-small")

    async def _use(self, event: ValueChangeEventArguments[str]) -> None:
        async with self.window.audited("choose profile", self.talk.session.id):
            await self.talk.use(event.value)
        await self.show()
        await self.changed()


FOLLOW_SECONDS = 1.0
"""Between two checks for changes by other windows and programs."""


class ChatPage:
    """One session in one window."""

    def __init__(self, window: Window, session: Session, framed: Frame, client: str | None) -> None:
        """`client` is the program that writes the session; None if people write it here."""
        self._client = client
        self._window = window
        self._session = session
        self._framed = framed
        self._talk = ChatController(window.engine, session)
        self._compression = CompressionPanel(window, session, self.refresh, self._answer_waiting)
        self._turns = TurnRunner(
            window, self._talk, self.refresh, self._show_failed_turn, self._show_title
        )
        self.pins = Pins(window, session, self._load_bar)
        actions = MessageActions(
            edit=self._edit,
            regenerate=self._regenerate,
            switch=self._switch,
            read_original=self._read_original,
            pins=self.pins,
            is_read_only=client is not None,
        )
        self._transcript = TranscriptList(window, session, actions, self._draw_summary)
        self._composer = Composer(self._submit, self._turns.stop)
        self._answering = AnswererChoice(window, self._talk, self._composer, self._load_bar)
        self._bar = ContextBar(
            window,
            session,
            self.pins,
            self.summarize,
            lambda: self._answering.model,
            is_client=client is not None,
        )
        self.details = SessionDetails(window, session, self.pins, self._compression.undo)
        self._used: Snapshot | None = None
        self._limits: tuple[object, ...] = ()
        self._shown_version: tuple[int, str | None, str | None] | None = None

    async def place(self) -> None:
        """Build the page and follow changes of the session."""
        self._bar.place()
        with ui.element("div").classes("ef-abreast"):
            with ui.element("div").classes("ef-conversation"):
                self._transcript.place()
                self._turns.below = self._transcript.below
                with ui.element("div").classes("ef-notices"):
                    await self._compression.show()
                if self._client is None:
                    self._composer.place()
                else:
                    ui.label(
                        f"{self._client} writes this conversation. Its messages are shown here "
                        "at once; summaries, pins and undo apply to its next request."
                    ).classes("ef-following ef-small ef-soft")
            self.details.place(is_open=self._client is not None)
        page = await self._transcript.show()
        self._shown_version, self._used = page.version, page.snapshot
        if self._client is None:
            await self._answering.show()
            await self._show_unanswered()
        # Counting a long history takes longer than drawing its end, so the bar comes later.
        ui.timer(0.01, self._load_bar, once=True)
        ui.timer(FOLLOW_SECONDS, self._follow)
        ui.keyboard(self._shortcut, repeating=False)

    async def refresh(self) -> None:
        """Show the current state of the session."""
        page = await self._transcript.show()
        self._turns.remove_if_stored(page.entries[-1] if page.entries else None)
        self._shown_version, self._used = page.version, page.snapshot
        await self._load_bar()

    async def _load_bar(self) -> None:
        """Show what is counted: the context, the messages that stay, the details."""
        await self._bar.show(self._used)
        await self.pins.load()
        await self.details.show(self._used)

    async def summarize(self) -> None:
        """Open the dialog for a summary."""
        await self._compression.open_dialog()

    async def _follow(self) -> None:
        """Refresh the page if another window or program changed the session."""
        engine = self._window.engine
        try:
            found = await read_version(engine, self._session)
        except NotFoundError:
            ui.navigate.to("/")
            return
        limits = await self._bar.read_limits()
        if found != self._shown_version:
            await self.refresh()
        elif self._limits not in ((), limits):
            await self._load_bar()
        elif await self.details.follow():
            await self._bar.show(self._used)
        self._limits = limits

    async def _submit(self, text: str) -> bool:
        """Store a message, show it, then have it answered; or run a command."""
        if commands.is_command(text):
            return await self._command(text)
        if self._turns.is_busy:
            ui.notify(BUSY, position="top")
            return False
        async with self._window.audited("append", self._session.id):
            await self._session.append(text.strip())
        self._compression.clear_problem()
        await self.refresh()
        record = await self._session.record()
        if record.depth == 1 and record.title in {"", NEW_TITLE}:
            title = shorten_title(text)
            await self._session.configure(title=title)
            await self._show_title(title)
        await self._answer()
        return True

    async def _answer(self) -> None:
        """Have the last message answered, if a model can; else show why not."""
        if await self._answering.is_available():
            self._compression.clear_problem()
            self._turns.answer()
        elif await self._answering.has_profiles():
            await self._show_failed_turn(ConfigError(self._talk.no_answerer_reason))

    async def _show_failed_turn(self, error: EnfoldError) -> None:
        await self._compression.show_failed_turn(error, self._answer)

    async def _answer_waiting(self) -> None:
        """Have the last message answered if it waits for an answer."""
        if not self._turns.is_busy and await unanswered(self._session) is not None:
            await self._answer()

    async def _show_unanswered(self) -> None:
        """Offer an answer to a message that a failed or closed turn has left without one."""
        blocked = (await self._session.record()).blocked
        if blocked or self._turns.is_busy or await unanswered(self._session) is None:
            return
        if await self._answering.has_profiles():
            text = "Your last message is stored and has no answer yet."
            self._compression.show_problem("No answer.", text, {"Retry": self._answer})

    async def _show_title(self, title: str) -> None:
        self._framed.title.set_text(title)
        await self._framed.sessions.refresh()

    async def _command(self, text: str) -> bool:
        """Run a command; return False if it failed, so that its text can be corrected."""
        if text.split(maxsplit=1)[0].lower() == "/summarize":
            self._compression.start()
            return True
        await self._answering.is_available()
        try:
            changing = commands.changing_command(text)
            audit = self._window.audited(changing, self._session.id) if changing else nullcontext()
            async with audit:
                outcome = await commands.run_command(self._talk, text)
        except EnfoldError as error:
            notify_error(error)
            return False
        if outcome.text:
            with self._transcript.below, ui.element("aside").classes("ef-output") as card:
                labelled(card, "Command output")
                with ui.element("pre").classes("ef-printed"):
                    ui.label(outcome.text)
                icon_button("close", "Dismiss", card.delete)
        if outcome.action is ScreenAction.LEAVE:
            ui.navigate.to("/")
            return True
        await self._answering.show()
        await self.refresh()
        if outcome.action is ScreenAction.ANSWER:
            await self._answer()
        return True

    async def _edit(self, row: StoredMessage) -> None:
        text = await prompt_for_edit(text_of(message_of(row).parts), row.role)
        if text is None:
            return
        edited = Message("user" if row.role == "user" else "assistant", (Text(text),))
        after = ROOT if row.parent is None else row.parent
        async with self._window.audited("edit message", self._session.id):
            await self._session.append(edited, after=after)
        await self.refresh()
        if row.role == "user":
            await self._answer()

    async def _regenerate(self, row: StoredMessage) -> None:
        if self._turns.is_busy or not await self._answering.is_available():
            notify_failure(
                "No model can answer now. Wait for the current answer, or add a profile."
            )
            return
        before = await self._session.record()

        await self._session.switch(row.parent)
        await self.refresh()
        self._turns.answer(otherwise=lambda: self._session.switch(before.tip))

    async def _read_original(self, edit: Edit) -> Message:
        return message_of(await self._session.message(edit.message))

    async def _switch(self, id: str) -> None:
        tip = await find_tip(self._window.engine, self._session, id)
        async with self._window.audited("switch branch", self._session.id):
            await self._session.switch(tip)
        await self.refresh()

    def _shortcut(self, event: KeyEventArguments) -> None:
        if not event.action.keydown:
            return
        if event.key == "/" and self._client is None:
            self._composer.focus()
        elif event.key == "Escape":
            self._turns.stop()

    def _draw_summary(self, snapshot: Snapshot) -> None:
        panel = self._compression
        SummaryCard(self._window, self._session, snapshot, panel, self.refresh).show()


SUMMARIZE = "summarize"
"""`/s/…?do=summarize` opens the dialog for a summary at once."""


async def chat(window: Window, session: str | None = None) -> None:
    """Build the page of a session; without one, of the most recent session.

    On the first run, the page without a session asks for a model.
    """
    if session is None and await _is_first_run(window):
        await setup(window)
        return
    if session is None:
        record = next(iter(await window.sessions(1)), None)
    else:
        record = await (await window.session(session)).record()
    title = "Chat" if record is None else record.title or record.id
    shown = None if record is None else record.id
    async with frame(window, title, session=shown, narrow=False) as framed:
        if record is None:
            empty_state(
                "chat_bubble_outline",
                "No conversation yet.",
                "Start one, or drop a transcript on the list of sessions.",
            )
            return
        found = await window.session(record.id)
        page = ChatPage(window, found, framed, client_of(record))
        with framed.actions:
            page.pins.add_list_button()
            history = path_of(record.id, "history")
            for icon, name, act in (
                ("history", "Full history", lambda: ui.navigate.to(history)),
                ("info", DETAILS_TITLE, page.details.toggle),
            ):
                icon_button(icon, name, act).props("color=primary size=md")
            with ui.button(icon="compress", on_click=page.summarize) as button:
                ui.label("Summarize").classes("gt-xs q-ml-xs")  # on a phone only the icon
            button.props("flat color=primary no-wrap")
            button.props["aria-label"] = button.props["title"] = "Summarize conversation history"
        await page.place()
        if ui.context.client.request.query_params.get("do") == SUMMARIZE:
            ui.timer(0.1, page.summarize, once=True)


async def _is_first_run(window: Window) -> bool:
    """Return True if there is no profile and no conversation but the samples."""
    if "skip" in ui.context.client.request.query_params or not window.visitor.is_owner:
        return False
    if await window.engine.profiles.all():
        return False
    newest = await window.sessions(len(SESSIONS) + 1)
    return all(each.id in SESSIONS for each in newest)
