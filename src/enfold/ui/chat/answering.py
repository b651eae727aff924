"""Answering: which model answers in a session, said and chosen above the composer."""

from __future__ import annotations

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from enfold.errors import ConfigError, NotFoundError
from enfold.talk import Talk
from enfold.talk.talk import Choose
from enfold.ui.chat.composer import Composer
from enfold.ui.window import Window

NOBODY = (
    "No model answers yet: what you say is kept, and can be searched and folded. "
    "Add a profile to have it answered."
)


class Answering:
    """Who answers, if somebody does."""

    def __init__(self, window: Window, talk: Talk, choose: Choose, composer: Composer) -> None:
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
