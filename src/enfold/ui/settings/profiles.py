"""The profiles section: which models are asked and where their keys are; tried out, compared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from enfold.engine.profiles import Listed
from enfold.errors import AccessError, ConfigError, EnfoldError
from enfold.llm import profiles as profiles_module
from enfold.llm.calls import Secret
from enfold.llm.costs import Candidate, CostEstimate, Figures, compare, recommend
from enfold.llm.keys import STORED
from enfold.llm.prices import NAMES as PRICED
from enfold.llm.prices import prices
from enfold.llm.profiles import Profile
from enfold.llm.providers import PROVIDERS, provider
from enfold.ui import figures
from enfold.ui.settings.scope import require_owner
from enfold.ui.widgets import card, labelled
from enfold.ui.window import Window

USUAL, ENVIRONMENT, FILE = "usual", "env", "file"
SOURCES: Mapping[str, str] = {
    USUAL: "The provider's usual variable",
    ENVIRONMENT: "Another environment variable",
    FILE: "A file on the server's machine",
    STORED: "Stored here, encrypted",
}
_WORDS = {
    "input": "Input",
    "output": "Output",
    "cache_writes": "Cache writes",
    "cache_reads": "Cache reads",
}


class ProfileForm:
    """A dialog; what is wrong is said while it is filled in."""

    def __init__(
        self,
        window: Window,
        profile: Profile | None,
        others: Sequence[str],
        kept: Callable[[], Awaitable[None]],
    ) -> None:
        self._window = window
        self._profile = profile
        self._kept = kept
        self._was: Mapping[str, Any] = profile.as_json() if profile is not None else {}
        title = "Add a profile" if profile is None else f"Edit {profile.name}"
        self._dialog = labelled(ui.dialog().props("persistent"), title)
        with self._dialog, ui.card().classes("ef-card st-dialog"):
            ui.label(title).classes("st-heading ef-wrap")
            self._model()
            self._key()
            self._condensing(others)
            self._wrong = ui.label().classes("ef-bad ef-small ef-wrap").props("role=alert")
            with ui.element("div").classes("ef-row"):
                self._save = ui.button("Save the profile", on_click=self._keep).props("unelevated")
                ui.button("Cancel", on_click=self._dialog.close).props("flat")
        self._follow_provider()

    def open(self) -> None:
        """Show it."""
        self._dialog.open()

    def _input(self, words: str, value: Any = "", **more: Any) -> ui.input:
        field = ui.input(words, value=str(value or ""), on_change=self._check, **more)
        return field.props("outlined dense").classes("ef-full")

    def _model(self) -> None:
        profile = self._profile
        self._name = self._input("Name", profile.name if profile else "")
        self._name.set_enabled(profile is None)
        titles = {each.id: each.title for each in PROVIDERS.values()}
        self._provider = ui.select(
            titles,
            value=profile.provider if profile else "openai",
            label="Provider",
            on_change=self._follow_provider,
        ).props("outlined dense options-dense")
        self._provider.classes("ef-full")
        self._model_name = self._input("Model, as the provider names it", self._was.get("model"))
        self._base_url = self._input(
            "Address, if not the provider's public one", self._was.get("base_url")
        )
        self._options_part = ui.element("div").classes("ef-stack")
        self._options: dict[str, ui.input] = {}

    def _key(self) -> None:
        kind, _, place = str(self._was.get("key", USUAL)).partition(":")
        self._source = ui.select(
            dict(SOURCES), value=kind, label="Where its key is", on_change=self._follow_source
        ).props("outlined dense options-dense")
        self._source.classes("ef-full")
        self._place = self._input("Name of the variable", place if kind == ENVIRONMENT else "")
        self._path = self._input("Path of the file", place if kind == FILE else "")
        label = "Key; leave it empty to keep the stored one" if kind == STORED else "Key"
        self._secret = self._input(label, password=True).props("autocomplete=new-password")

    def _condensing(self, others: Sequence[str]) -> None:
        own = self._profile.name if self._profile else None
        choices = {"": "The provider's cheap model, else its own"}
        choices |= {name: f"Profile {name}" for name in others if name != own}
        if own:
            choices[own] = "This profile itself"
        with ui.expansion("Condensing, threshold, prices").classes("st-advanced ef-full"):
            self._by = ui.select(
                choices,
                value=self._was.get("condensing_profile", ""),
                label="Summaries for it by",
                on_change=self._check,
            ).props("outlined dense options-dense")
            self._by.classes("ef-full")
            self._threshold = self._number(
                "Threshold in percent, 5 to 100; empty inherits", self._was.get("threshold")
            )
            ui.label("Prices in US dollars for a million tokens, where they differ").classes(
                "ef-small"
            )
            own_prices = self._was.get("prices", {})
            with ui.element("div").classes("st-form"):
                self._prices = {
                    name: self._number(f"{_WORDS[name]} price", own_prices.get(name)).props(
                        "stack-label"
                    )
                    for name in PRICED
                }
            self._prompt = ui.textarea(
                "Prompt for summaries", value=self._was.get("prompt", ""), on_change=self._check
            ).props("outlined dense autogrow")
            self._prompt.classes("ef-full")

    def _number(self, words: str, value: float | None) -> ui.number:
        field = ui.number(words, value=value, on_change=self._check)
        return field.props("outlined dense").classes("ef-full")

    def _follow_provider(self) -> None:
        """What the provider asks for beside the model."""
        known = PROVIDERS[self._provider.value]
        given = self._was.get("options", {})
        self._options_part.clear()
        with self._options_part:
            self._options = {
                name: self._input(
                    name.replace("_", " ").capitalize()
                    + ("" if name in known.needs_options else ", if needed"),
                    given.get(name),
                )
                for name in known.options
            }
        usual = " or ".join(known.key_variables) or "none is needed"
        self._source.props(f'hint="Usual: {usual}"')
        self._follow_source()

    def _follow_source(self) -> None:
        source = self._source.value
        self._place.set_visibility(source == ENVIRONMENT)
        self._path.set_visibility(source == FILE)
        self._secret.set_visibility(source == STORED)
        self._check()

    def _fields(self) -> dict[str, Any]:
        """What was filled in; what the form does not show stays as it was."""
        numbers = {name: field.value for name, field in self._prices.items()}
        options = {name: field.value for name, field in self._options.items()}
        filled = {
            "provider": self._provider.value,
            "model": self._model_name.value,
            "base_url": self._base_url.value,
            "options": {name: value for name, value in options.items() if value},
            "key": self._key_source(),
            "prices": {name: value for name, value in numbers.items() if value is not None},
            "threshold": self._threshold.value,
            "prompt": self._prompt.value,
            "condensing_profile": self._by.value,
            "settings": dict(self._was.get("settings", {})),
        }
        return {name: value for name, value in filled.items() if value not in ("", None, {})}

    def _key_source(self) -> str | None:
        return {
            ENVIRONMENT: f"env:{self._place.value}",
            FILE: f"file:{self._path.value}",
            STORED: STORED,
        }.get(self._source.value)

    def _check(self) -> None:
        """What the engine says so far, and the prices that are known."""
        if not hasattr(self, "_save"):
            return  # the form is still being built
        try:
            profile = profiles_module.read(self._name.value or "", self._fields())
            profiles_module.check_threshold(profile)
        except ConfigError as error:
            self._wrong.text = str(error)
            self._save.disable()
            return
        self._wrong.text = ""
        self._save.enable()
        known = prices(profile.provider, profile.model)
        for name, field in self._prices.items():
            price = getattr(known, name) if known else None
            field.props["placeholder"] = "unknown" if price is None else f"{price:g}"

    async def _keep(self) -> None:
        try:
            async with self._window.audited("save profile"):
                await self._store()
        except EnfoldError as error:
            self._wrong.text = str(error)
            return
        self._secret.value = ""
        self._dialog.close()
        await self._kept()

    async def _store(self) -> None:
        require_owner(self._window)
        fields = self._fields()
        if self._source.value == FILE and self._window.visitor.name:
            raise AccessError("key: a file is named on the machine itself, with `enfold profiles`")
        typed = self._secret.value if self._source.value == STORED else ""
        if typed:
            # The key first has to be stored before a profile may say that it is.
            fields = {name: value for name, value in fields.items() if name != "key"}
        engine_profiles = self._window.engine.profiles
        name = (self._name.value or "").strip()
        await engine_profiles.save(name, fields, replace=self._profile is not None)
        if typed:
            await engine_profiles.set_key(name, Secret(typed))


_READ, _WRITTEN = 100_000, 2_000
"""Tokens of a run that stands for many: a long conversation and its summary."""


class CostTable:
    """The profiles side by side, cheapest first, those without a price last."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._listed: Sequence[Listed] = ()

    def build(self) -> None:
        """The table's place on the page."""
        about = (
            "One compression with each profile, and with the cheap model that condenses where a "
            "profile names no other. By price alone: whether a model writes well enough is yours "
            "to say."
        )
        with card("What a compression costs", about):
            with ui.element("div").classes("ef-row"):
                self._read = self._number("Tokens read", _READ)
                self._written = self._number("Tokens written", _WRITTEN)
            self._advice = ui.label().classes("st-title ef-wrap").props("role=status")
            with ui.element("div").classes("st-scroll"):
                self._table = labelled(ui.element("table").classes("st-table"), "Costs compared")

    async def show(self, listed: Sequence[Listed]) -> None:
        """The profiles as they are now."""
        self._listed = listed
        await self._refresh()

    def _number(self, words: str, value: int) -> ui.number:
        field = ui.number(words, value=value, min=0, on_change=self._refresh)
        return field.props("outlined dense debounce=300")

    async def _refresh(self) -> None:
        candidates, models = candidates_of(self._listed)
        settings = await self._window.engine.settings()
        current = settings.summarizer if settings.summarizer in models else None
        run = Figures(int(self._read.value or 0), int(self._written.value or 0))
        self._table.clear()
        try:
            advice = recommend(run, candidates, current) if candidates else None
            offers = compare(run, candidates, current) if candidates else ()
        except ConfigError as error:
            self._advice.text = str(error)
            return
        nothing = "No price is known." if candidates else "There is no profile to compare yet."
        self._advice.text = advice.reason if advice else nothing
        if not candidates:
            return
        with self._table:
            _head("Who writes", "Model", "Cost", "Saves", "")
            for offer in offers:
                is_best = advice is not None and offer.name == advice.name
                self._row(offer, models[offer.name], current=current, is_best=is_best)

    def _row(self, offer: CostEstimate, model: str, *, current: str | None, is_best: bool) -> None:
        with ui.element("tr"):
            with ui.element("td"), ui.element("div").classes("ef-row"):
                ui.label(offer.name).classes("ef-wrap")
                for badge, shown in (("recommended", is_best), ("in use", offer.name == current)):
                    if shown:
                        ui.label(badge).classes("st-badge st-own")
            with ui.element("td").classes("st-optional"):
                ui.label(model).classes("ef-mono ef-wrap")
            with ui.element("td"):
                figures.money(offer.cost.total, is_estimate=True, why="By today's prices.")
            with ui.element("td"):
                if offer.saved is None:
                    figures.unknown("One of the two prices is not known.")
                else:
                    ui.label(f"{figures.share_text(max(0.0, offer.share or 0.0))}")
            with ui.element("td"):
                is_profile = any(each.name == offer.name for each in self._listed)
                if is_profile and offer.name != current:
                    use = ui.button("Use", on_click=partial(self._use, offer.name))
                    labelled(use.props("flat dense"), f"Let {offer.name} write all summaries")
                    use.set_enabled(self._window.visitor.is_owner)

    async def _use(self, name: str) -> None:
        async with self._window.audited("set summarizer"):
            require_owner(self._window)
            await self._window.engine.set("summarizer", name)
        ui.notify(f"{name} writes summaries from now on.", type="positive")
        await self._refresh()


def candidates_of(listed: Sequence[Listed]) -> tuple[list[Candidate], Mapping[str, str]]:
    """Who could write summaries, and the model of each."""
    found: list[Candidate] = []
    models: dict[str, str] = {}
    for each in listed:
        profile = each.profile
        if profile is None:
            continue
        found.append(Candidate.of(profile.name, profile.id, profile.prices))
        models[profile.name] = profile.id
        cheap = provider(profile.provider).cheap_model
        if cheap is not None and cheap != profile.model:
            name = f"{profile.name}, cheap model"
            found.append(Candidate.of(name, f"{profile.provider}:{cheap}"))
            models[name] = f"{profile.provider}:{cheap}"
    return found, models


def _head(*titles: str) -> None:
    with ui.element("tr"):
        for title in titles:
            cell = ui.element("th").props("scope=col")
            with cell.classes("st-optional" if title == "Model" else ""):
                ui.label(title)


async def profiles(window: Window) -> None:
    """The section."""
    await ProfilesSection(window).build()


class ProfilesSection:
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
            async with self._window.audited("test profile"):
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
            async with self._window.audited("ask provider"):
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
            async with self._window.audited("delete profile"):
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
