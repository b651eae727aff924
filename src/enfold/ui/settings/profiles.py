"""The profiles section: models, the sources of their keys, tests and a comparison of costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from enfold.engine.profiles import ListedProfile
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
from enfold.ui.widgets import Cell, card, labelled, table
from enfold.ui.window import Window

USUAL, ENVIRONMENT, FILE = "usual", "env", "file"
SOURCES: Mapping[str, str] = {
    USUAL: "The provider's default variable",
    ENVIRONMENT: "Another environment variable",
    FILE: "A file on the server",
    STORED: "Stored in enfold, encrypted",
}
_WORDS = {
    "input": "Input",
    "output": "Output",
    "cache_writes": "Cache writes",
    "cache_reads": "Cache reads",
}


class ProfileForm:
    """The dialog of a profile; it is validated while it is edited."""

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
        self._stored: Mapping[str, Any] = profile.as_json() if profile is not None else {}
        title = "Add profile" if profile is None else f"Edit {profile.name}"
        self._dialog = labelled(ui.dialog().props("persistent"), title)
        with self._dialog, ui.card().classes("ef-card st-dialog"):
            ui.label(title).classes("st-heading ef-wrap")
            self._model()
            self._key()
            self._condensing(others)
            self._fault = ui.label().classes("ef-bad ef-small ef-wrap").props("role=alert")
            with ui.element("div").classes("ef-row"):
                self._save = ui.button("Save profile", on_click=self._keep).props("unelevated")
                ui.button("Cancel", on_click=self._dialog.close).props("flat")
        self._follow_provider()

    def open(self) -> None:
        """Show the dialog."""
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
        self._model_name = self._input("Model (the provider's name)", self._stored.get("model"))
        self._base_url = self._input(
            "Base URL (empty: the provider's public URL)", self._stored.get("base_url")
        )
        self._options_part = ui.element("div").classes("ef-stack")
        self._options: dict[str, ui.input] = {}

    def _key(self) -> None:
        kind, _, place = str(self._stored.get("key", USUAL)).partition(":")
        self._source = ui.select(
            dict(SOURCES), value=kind, label="Key source", on_change=self._follow_source
        ).props("outlined dense options-dense")
        self._source.classes("ef-full")
        self._place = self._input("Variable name", place if kind == ENVIRONMENT else "")
        self._path = self._input("File path", place if kind == FILE else "")
        label = "Key (empty: keep the stored one)" if kind == STORED else "Key"
        self._secret = self._input(label, password=True).props("autocomplete=new-password")

    def _condensing(self, others: Sequence[str]) -> None:
        own = self._profile.name if self._profile else None
        choices = {"": "The provider's low-cost model, otherwise this profile"}
        choices |= {name: f"Profile {name}" for name in others if name != own}
        if own:
            choices[own] = "This profile"
        with ui.expansion("Summaries, threshold, prices").classes("st-advanced ef-full"):
            self._by = ui.select(
                choices,
                value=self._stored.get("condensing_profile", ""),
                label="Summaries by",
                on_change=self._check,
            ).props("outlined dense options-dense")
            self._by.classes("ef-full")
            self._threshold = self._number(
                "Threshold in percent, 5 to 100 (empty: inherited)", self._stored.get("threshold")
            )
            ui.label("Prices in US dollars per million tokens (empty: list price)").classes(
                "ef-small"
            )
            own_prices = self._stored.get("prices", {})
            with ui.element("div").classes("st-form"):
                self._prices = {
                    name: self._number(f"{_WORDS[name]} price", own_prices.get(name)).props(
                        "stack-label"
                    )
                    for name in PRICED
                }
            self._prompt = ui.textarea(
                "Prompt for summaries", value=self._stored.get("prompt", ""), on_change=self._check
            ).props("outlined dense autogrow")
            self._prompt.classes("ef-full")

    def _number(self, words: str, value: float | None) -> ui.number:
        field = ui.number(words, value=value, on_change=self._check)
        return field.props("outlined dense").classes("ef-full")

    def _follow_provider(self) -> None:
        """Show the options of the chosen provider."""
        provider_facts = PROVIDERS[self._provider.value]
        given = self._stored.get("options", {})
        self._options_part.clear()
        with self._options_part:
            self._options = {
                name: self._input(
                    name.replace("_", " ").capitalize()
                    + ("" if name in provider_facts.needs_options else " (optional)"),
                    given.get(name),
                )
                for name in provider_facts.options
            }
        usual = " or ".join(provider_facts.key_variables) or "no key needed"
        self._source.props(f'hint="Default: {usual}"')
        self._follow_source()

    def _follow_source(self) -> None:
        source = self._source.value
        self._place.set_visibility(source == ENVIRONMENT)
        self._path.set_visibility(source == FILE)
        self._secret.set_visibility(source == STORED)
        self._check()

    def _fields(self) -> dict[str, Any]:
        """Return the values of the form; fields that it does not show are unchanged."""
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
            "settings": dict(self._stored.get("settings", {})),
        }
        return {name: value for name, value in filled.items() if value not in ("", None, {})}

    def _key_source(self) -> str | None:
        return {
            ENVIRONMENT: f"env:{self._place.value}",
            FILE: f"file:{self._path.value}",
            STORED: STORED,
        }.get(self._source.value)

    def _check(self) -> None:
        """Validate the profile and show the list prices."""
        if not hasattr(self, "_save"):
            return  # the form is not complete yet
        try:
            profile = profiles_module.read(self._name.value or "", self._fields())
        except ConfigError as error:
            self._fault.text = str(error)
            self._save.disable()
            return
        self._fault.text = ""
        self._save.enable()
        listed = prices(profile.provider, profile.model)
        for name, field in self._prices.items():
            price = getattr(listed, name) if listed else None
            field.props["placeholder"] = "unknown" if price is None else f"{price:g}"

    async def _keep(self) -> None:
        try:
            async with self._window.audited("save profile"):
                await self._store()
        except EnfoldError as error:
            self._fault.text = str(error)
            return
        self._secret.value = ""
        self._dialog.close()
        await self._kept()

    async def _store(self) -> None:
        require_owner(self._window)
        fields = self._fields()
        if self._source.value == FILE and self._window.visitor.name:
            raise AccessError("key: set a file on the server itself, with `enfold profiles`")
        typed = self._secret.value if self._source.value == STORED else ""
        if typed:
            # A profile may refer to a stored key only after the key is stored.
            fields = {name: value for name, value in fields.items() if name != "key"}
        engine_profiles = self._window.engine.profiles
        name = (self._name.value or "").strip()
        await engine_profiles.save(name, fields, replace=self._profile is not None)
        if typed:
            await engine_profiles.set_key(name, Secret(typed))


_READ, _WRITTEN = 100_000, 2_000
"""Tokens of a typical run: a long conversation and its summary."""


class CostTable:
    """The profiles by cost, cheapest first, those without a price last."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._listed: Sequence[ListedProfile] = ()

    def build(self) -> None:
        """Build the empty table."""
        about = (
            "The cost of one compression with each profile, and with its provider's low-cost "
            "model. "
            "Only prices are compared, not quality."
        )
        with card("Cost of a compression", about):
            with ui.element("div").classes("ef-row"):
                self._read = self._number("Input tokens", _READ)
                self._written = self._number("Output tokens", _WRITTEN)
            self._advice = ui.label().classes("st-title ef-wrap").props("role=status")
            self._table = ui.element("div")

    async def show(self, listed: Sequence[ListedProfile]) -> None:
        """Show the costs of the profiles."""
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
        nothing = "No price is known." if candidates else "No profile to compare."
        self._advice.text = advice.reason if advice else nothing
        if not candidates:
            return
        best = advice.name if advice is not None else None
        rows = [self._row(offer, models[offer.name], current, best) for offer in offers]
        with self._table:
            table("Costs compared", ("Profile", "Model", "Cost", "Saves", "Actions"), rows)

    def _row(
        self, offer: CostEstimate, model: str, current: str | None, best: str | None
    ) -> tuple[Cell, ...]:
        def name() -> None:
            with ui.element("div").classes("ef-row"):
                ui.label(offer.name).classes("ef-wrap")
                for badge, named in (("recommended", best), ("in use", current)):
                    if offer.name == named:
                        ui.label(badge).classes("st-badge st-own")

        def saved() -> None:
            if offer.saved is None:
                figures.unknown("One of the two prices is unknown.")
            else:
                ui.label(figures.share_text(max(0.0, offer.share or 0.0)))

        def use() -> None:
            is_profile = any(each.name == offer.name for each in self._listed)
            if is_profile and offer.name != current:
                button = ui.button("Use", on_click=partial(self._use, offer.name))
                labelled(button.props("flat dense"), f"Use {offer.name} for all summaries")
                button.set_enabled(self._window.visitor.is_owner)

        why = "Based on current prices."
        cost = partial(figures.money, offer.cost.total, is_estimate=True, why=why)
        return name, model, cost, saved, use

    async def _use(self, name: str) -> None:
        async with self._window.audited("set summarizer"):
            require_owner(self._window)
            await self._window.engine.set("summarizer", name)
        ui.notify(f"{name} now writes all summaries.", type="positive")
        await self._refresh()


def candidates_of(listed: Sequence[ListedProfile]) -> tuple[list[Candidate], Mapping[str, str]]:
    """Return the profiles that could write summaries, and the model of each."""
    found: list[Candidate] = []
    models: dict[str, str] = {}
    for each in listed:
        profile = each.profile
        if profile is None:
            continue
        found.append(Candidate.of(profile.name, profile.id, profile.own_prices))
        models[profile.name] = profile.id
        cheap = provider(profile.provider).cheap_model
        if cheap is not None and cheap != profile.model:
            name = f"{profile.name}, cheap model"
            found.append(Candidate.of(name, f"{profile.provider}:{cheap}"))
            models[name] = f"{profile.provider}:{cheap}"
    return found, models


class ProfilesSection:
    """The list of profiles and their actions."""

    def __init__(self, window: Window) -> None:
        self._window = window

    async def build(self) -> None:
        """Build the page, then show the profiles."""
        about = "A profile has a model, its URL and the source of its key. Keys are never shown."
        with card("Profiles", about):
            self._list = labelled(ui.element("div").classes("ef-stack"), "Profiles")
            add = ui.button("Add profile", icon="add", on_click=self._add).props("unelevated")
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
                _no_profiles()
        await self._costs.show(self._listed)

    def _card(self, listed: ListedProfile) -> None:
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
                    self._button("Read limits", listed, partial(self._ask, listed, outcome))
                    self._button("Edit", listed, partial(self._edit, listed.profile))
                self._button("Delete", listed, partial(self._delete, listed.name, outcome))
            outcome.move(target_index=-1)

    def _button(self, what: str, listed: ListedProfile, action: Callable[[], Any]) -> None:
        button = ui.button(what, on_click=action).props("flat dense")
        labelled(button, f"{what} {listed.name}").set_enabled(self._window.visitor.is_owner)

    async def _test(self, name: str, outcome: ui.element) -> None:
        require_owner(self._window)
        _show_outcome(outcome, "Calling the provider…", "ef-soft")
        try:
            async with self._window.audited("test profile"):
                tried = await self._window.engine.profiles.test(name)
        except EnfoldError as error:
            _show_outcome(outcome, f"Test failed: {error}", "ef-bad")
            return
        _show_outcome(
            outcome, f"Test passed: {tried.model} answered in {tried.seconds:.1f} s.", "ef-good"
        )
        with outcome, ui.element("div").classes("ef-row"):
            ui.label("Cost of the test:")
            figures.money(tried.cost)

    async def _ask(self, listed: ListedProfile, outcome: ui.element) -> None:
        require_owner(self._window)
        _show_outcome(outcome, "Calling the provider…", "ef-soft")
        try:
            async with self._window.audited("ask provider"):
                found = await self._window.engine.profiles.discover(listed.name)
        except EnfoldError as error:
            _show_outcome(outcome, f"The limits could not be read: {error}", "ef-bad")
            return
        limits = f"{found.max_input:,} input tokens and {found.max_output:,} output tokens"
        source = "the provider" if found.source == "api" else "the list of known models"
        _show_outcome(outcome, f"{found.id}: {limits}, from {source}.", "ef-good")

    async def _delete(self, name: str, outcome: ui.element) -> None:
        require_owner(self._window)
        try:
            async with self._window.audited("delete profile"):
                await self._window.engine.profiles.remove(name)
        except EnfoldError as error:
            _show_outcome(outcome, str(error), "ef-bad")
            return
        await self._refresh()

    def _names(self) -> list[str]:
        return [each.name for each in self._listed]

    def _add(self) -> None:
        ProfileForm(self._window, None, self._names(), self._refresh).open()

    def _edit(self, profile: Profile) -> None:
        ProfileForm(self._window, profile, self._names(), self._refresh).open()


def key_words(profile: Profile) -> str:
    """Return the source of a profile's key, never the key."""
    if profile.key is None:
        usual = " or ".join(provider(profile.provider).key_variables)
        return f"the variable {usual}" if usual else "not needed"
    kind, _, place = profile.key.partition(":")
    return {"env": f"the variable {place}", "file": f"the file {place}"}.get(
        kind, "stored, encrypted"
    )


def _about(profile: Profile) -> None:
    prices_found = profile.known_prices()
    with ui.element("div").classes("ef-row ef-small"):
        ui.label(f"{provider(profile.provider).title}, {profile.model}").classes("ef-wrap")
        ui.label(f"Key: {key_words(profile)}").classes("ef-soft ef-wrap")
        if profile.base_url:
            ui.label(profile.base_url).classes("ef-mono ef-wrap")
    with ui.element("div").classes("ef-row ef-small"):
        ui.label("Per million tokens: input")
        figures.money(prices_found.input if prices_found else None)
        ui.label("output")
        figures.money(prices_found.output if prices_found else None)
    condensing = profile.condensing_profile or provider(profile.provider).cheap_model
    words = f"Summaries by {condensing}." if condensing else "Summaries by this profile."
    if profile.threshold not in (None, -1):
        words += f" Threshold {profile.threshold:g} %."
    ui.label(words).classes("ef-soft ef-small ef-wrap")


def _no_profiles() -> None:
    with ui.element("div").classes("ef-empty"):
        ui.icon("key").classes("ef-empty-icon").props("aria-hidden=true")
        ui.label(
            "No profile yet. The built-in summarizer writes the summaries. Add a profile to let a "
            "model answer and summarize."
        )


def _show_outcome(outcome: ui.element, words: str, classes: str) -> None:
    outcome.clear()
    with outcome:
        ui.label(words).classes(f"{classes} ef-wrap")
