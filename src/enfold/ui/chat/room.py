"""The room: a session on a page, with all that can be done in it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from textwrap import shorten

from nicegui import ui
from nicegui.events import KeyEventArguments

from enfold.engine import Session
from enfold.engine.viewing import message_of
from enfold.errors import EnfoldError, NotFoundError
from enfold.messages import Message, Text, text_of
from enfold.store import sessions, tree
from enfold.store.records import Edit, Snapshot, StoredMessage
from enfold.talk import Talk, chooser, commands
from enfold.talk.commands import Effect
from enfold.ui import failures
from enfold.ui.chat.answering import Answering
from enfold.ui.chat.asking import Asking
from enfold.ui.chat.composer import Composer
from enfold.ui.chat.editing import ask_for_text
from enfold.ui.chat.messages import Hands
from enfold.ui.chat.shelf import read_standing, tip_below
from enfold.ui.chat.transcript import Transcript
from enfold.ui.contextbar import ContextBar
from enfold.ui.folding import Compressing, summary_card
from enfold.ui.frame import Frame
from enfold.ui.sessions import NEW_TITLE
from enfold.ui.window import Window

_LONGEST_TITLE = 60
FOLLOW_SECONDS = 1.0
"""How often it is looked whether somebody else said something: another window, or a program."""


class Room:
    """One session in one window."""

    def __init__(self, window: Window, session: Session, framed: Frame) -> None:
        self._window = window
        self._session = session
        self._framed = framed
        choose = chooser(window.engine, session)
        self._talk = Talk(window.engine, session, choose)
        self._asking = Asking(window, self._talk, self.refresh)
        hands = Hands(
            edit=self._edit,
            regenerate=self._regenerate,
            switch=self._switch,
            said=self._as_said,
        )
        self._transcript = Transcript(window, session, hands, self._draw_summary)
        self._composer = Composer(self._said, self._asking.stop)
        self._answering = Answering(window, self._talk, choose, self._composer)
        self._compressing = Compressing(window, session, self.refresh)
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
            found = await engine.store.read(read_standing, self._session.key, engine.outside)
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
                outcome = await commands.run(self._talk, text)
        except EnfoldError as error:
            failures.show(error)
            return
        if outcome is Effect.LEAVE:
            ui.navigate.to("/")
        elif outcome is Effect.ANSWER:
            self._asking.answer()
        elif isinstance(outcome, str):
            self._tell(outcome)
        await self._answering.show()
        await self.refresh()

    def _doing(self, text: str) -> AbstractAsyncContextManager[None]:
        """For a command: those that change something are written down."""
        name = commands.changing(text)
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
        after = tree.ROOT if row.parent is None else row.parent
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
