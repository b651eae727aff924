"""The profiles section: which models are asked and where their keys are; tried out, compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from enfold.engine.profiles import Listed
from enfold.errors import EnfoldError
from enfold.llm.profiles import Profile
from enfold.llm.providers import provider
from enfold.ui import figures
from enfold.ui.settings.labels import card, labelled
from enfold.ui.settings.pricing import CostTable
from enfold.ui.settings.profile_form import ProfileForm
from enfold.ui.settings.scope import require_owner
from enfold.ui.window import Window


async def profiles(window: Window) -> None:
    """The section."""
    await Profiles(window).build()


class Profiles:
    """The list of profiles, and what is done with each."""

    def __init__(self, window: Window) -> None:
        self._window = window

    async def build(self) -> None:
        """Put everything on the page, then fill it."""
        about = "A profile says which model is asked, where, and where its key is found. No key is "
        with card("Profiles", f"{about}ever shown."):
            self._list = labelled(ui.element("div").classes("ef-stack"), "Profiles")
            add = ui.button("Add a profile", icon="add", on_click=self._add).props("unelevated")
            add.set_enabled(self._window.visitor.is_owner)
        self._costs = CostTable(self._window)
        self._costs.build()
        await self._refresh()

    async def _refresh(self) -> None:
        self._listed = await self._window.engine.profiles.all()
        self._list.clear()
        with self._list:
            for each in self._listed:
                self._card(each)
            if not self._listed:
                _nothing_yet()
        await self._costs.show(self._listed)

    def _card(self, listed: Listed) -> None:
        with labelled(ui.element("article").classes("st-item ef-stack"), listed.name):
            ui.label(listed.name).classes("st-title ef-wrap")
            if listed.profile is None:
                ui.label(listed.fault).classes("ef-bad ef-small ef-wrap")
            else:
                _about(listed.profile)
            with ui.element("div").classes("ef-row"):
                outcome = ui.element("div").classes("ef-full ef-small").props("role=status")
                if listed.profile is not None:
                    self._button("Test", listed, partial(self._test, listed.name, outcome))
                    self._button("Ask for limits", listed, partial(self._ask, listed, outcome))
                    self._button("Edit", listed, partial(self._edit, listed.profile))
                self._button("Delete", listed, partial(self._delete, listed.name, outcome))
            outcome.move(target_index=-1)

    def _button(self, what: str, listed: Listed, action: Callable[[], Any]) -> None:
        button = ui.button(what, on_click=action).props("flat dense")
        labelled(button, f"{what} {listed.name}").set_enabled(self._window.visitor.is_owner)

    async def _test(self, name: str, outcome: ui.element) -> None:
        require_owner(self._window)
        _say(outcome, "Asking …", "ef-soft")
        try:
            async with self._window.doing("test profile"):
                tried = await self._window.engine.profiles.test(name)
        except EnfoldError as error:
            _say(outcome, f"It does not work: {error}", "ef-bad")
            return
        _say(outcome, f"It works: {tried.model} answered in {tried.seconds:.1f} s.", "ef-good")
        with outcome, ui.element("div").classes("ef-row"):
            ui.label("Cost of the test:")
            figures.money(tried.cost)

    async def _ask(self, listed: Listed, outcome: ui.element) -> None:
        require_owner(self._window)
        _say(outcome, "Asking …", "ef-soft")
        try:
            async with self._window.doing("ask provider"):
                found = await self._window.engine.profiles.discover(listed.name)
        except EnfoldError as error:
            _say(outcome, f"The provider could not be asked: {error}", "ef-bad")
            return
        words = f"{found.id} takes {found.max_input:,} tokens and answers with {found.max_output:,}"
        said = "as the provider says" if found.source == "api" else "as known; it says nothing"
        _say(outcome, f"{words}, {said}.", "ef-good")

    async def _delete(self, name: str, outcome: ui.element) -> None:
        require_owner(self._window)
        try:
            async with self._window.doing("delete profile"):
                await self._window.engine.profiles.remove(name)
        except EnfoldError as error:
            _say(outcome, str(error), "ef-bad")
            return
        await self._refresh()

    def _names(self) -> list[str]:
        return [each.name for each in self._listed]

    def _add(self) -> None:
        ProfileForm(self._window, None, self._names(), self._refresh).open()

    def _edit(self, profile: Profile) -> None:
        ProfileForm(self._window, profile, self._names(), self._refresh).open()


def key_words(profile: Profile) -> str:
    """Where a profile's key is, never the key."""
    if profile.key is None:
        usual = " or ".join(provider(profile.provider).key_variables)
        return f"the variable {usual}" if usual else "none is needed"
    kind, _, place = profile.key.partition(":")
    return {"env": f"the variable {place}", "file": f"the file {place}"}.get(
        kind, "stored, encrypted"
    )


def _about(profile: Profile) -> None:
    known = profile.known_prices()
    with ui.element("div").classes("ef-row ef-small"):
        ui.label(f"{provider(profile.provider).title}, {profile.model}").classes("ef-wrap")
        ui.label(f"Key: {key_words(profile)}").classes("ef-soft ef-wrap")
        if profile.base_url:
            ui.label(profile.base_url).classes("ef-mono ef-wrap")
    with ui.element("div").classes("ef-row ef-small"):
        ui.label("A million tokens in:")
        figures.money(known.input if known else None)
        ui.label("out:")
        figures.money(known.output if known else None)
    condensing = profile.condensing_profile or provider(profile.provider).cheap_model
    words = f"Summaries for it by {condensing}." if condensing else "It summarizes for itself."
    if profile.threshold not in (None, -1):
        words += f" Compressed at {profile.threshold:g} %."
    ui.label(words).classes("ef-soft ef-small ef-wrap")


def _nothing_yet() -> None:
    with ui.element("div").classes("ef-empty"):
        ui.icon("key").classes("ef-empty-icon").props("aria-hidden=true")
        ui.label(
            "No profile yet. Without one, conversations are condensed by the built-in summarizer; "
            "with one, models answer and summarize."
        )


def _say(outcome: ui.element, words: str, classes: str) -> None:
    outcome.clear()
    with outcome:
        ui.label(words).classes(f"{classes} ef-wrap")
