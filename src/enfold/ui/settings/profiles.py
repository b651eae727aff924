"""The profiles section: models, the sources of their keys, tests and a comparison of costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from nicegui import ui

from enfold.engine.profiles import ListedProfile
from enfold.errors import AccessError, ConfigError, EnfoldError
from enfold.fields import DescribedModel, FieldDescription, describe, described, faults
from enfold.llm.calls import Secret
from enfold.llm.costs import Candidate, CostEstimate, Figures, compare, prices, recommend
from enfold.llm.keys import MEMORY, STORED, KeyStorage
from enfold.llm.profiles import Profile, cost_candidates
from enfold.llm.providers import MAJOR_PROVIDERS, provider
from enfold.ui import figures
from enfold.ui.forms import FormDialog
from enfold.ui.widgets import (
    Cell,
    card,
    confirm,
    empty_state,
    labelled,
    named_button,
    show_text,
    table,
)
from enfold.ui.window import Window

Result = TypeVar("Result")

_optional = partial(described, default=None)


class KeyFields(DescribedModel):
    """The source of a profile's key, as the dialog asks for it."""

    source: Literal["usual", "env", "file", "stored", "config", "memory"] = described(
        "Key source",
        "Where the key is found.",
        default="usual",
        choices={
            "usual": "The provider's default variable",
            "env": "Another environment variable",
            "file": "A file on the server",
            "stored": "Stored in enfold, encrypted",
            "config": "A file that only you can read",
            "memory": "Memory, until the server stops",
        },
    )
    env: str | None = _optional(
        "Variable name",
        "The environment variable of the server that has the key.",
        shown_if={"source": ["env"]},
    )
    file: str | None = _optional(
        "File path", "The file on the server that has the key.", shown_if={"source": ["file"]}
    )
    secret: str | None = _optional(
        "Key",
        "It is never shown again. If empty, the key that is in use stays.",
        shown_if={"source": ["stored", "config", "memory"]},
    )
    is_tested: bool = described(
        "Test before saving",
        "Call the model once. A profile that fails is not saved.",
        default=True,
    )


_STORAGES: Mapping[str, KeyStorage] = {"stored": "encrypted", "config": "file", "memory": "memory"}
"""Sources whose key is typed in the dialog -> the storage of the key."""


_MORE = ("condensing_profile", "threshold", "prompt", "prices")
"""Fields that most profiles leave unset."""
_OWN_FORM = ("name", "options", "key", "settings")
"""Fields that the dialog draws in its own way, or leaves as they are."""


class ProfileDialog:
    """The dialog of a profile; it is validated while it is edited."""

    def __init__(
        self,
        window: Window,
        profile: Profile | None,
        others: Sequence[str],
        saved: Callable[[], Awaitable[None]],
    ) -> None:
        self.window = window
        self._is_new = profile is None
        self._saved = saved
        self._values: dict[str, Any] = {"provider": MAJOR_PROVIDERS[0], "options": {}}
        if profile is not None:
            self._values |= {"name": profile.name, **profile.as_json()}
        kind, _, place = str(self._values.get("key", "usual")).partition(":")
        self._key: dict[str, Any] = {"source": kind, kind: place}
        profiles = {name: f"Profile {name}" for name in others}
        if profile is not None:
            profiles[profile.name] = "This profile"
        choices = {"condensing_profile": profiles}
        self._dialog = FormDialog(
            lambda: faults(Profile, self._fields()), self._save, choices=choices
        )

    def open(self) -> None:
        """Show the dialog."""
        name = self._values.get("name")
        form, fields = self._dialog.form, describe(Profile)
        with self._dialog.opened(f"Edit {name}" if name else "Add profile", "Save profile"):
            form.add_field(fields["name"], self._values).set_enabled(self._is_new)
            form.add_object(Profile, self._values, without=(*_MORE, *_OWN_FORM))
            self._options = ui.element("div").classes("st-form")
            form.add_object(KeyFields, self._key)
            self._facts = ui.label().classes("ef-small ef-soft ef-wrap")
            more = ui.expansion("Summaries, threshold, prices").classes("st-nested")
            with more, ui.element("div").classes("st-form"):
                for each in _MORE:
                    form.add_field(fields[each], self._values)
        self._shown_provider = ""
        self._follow_provider()
        form.subscribe(self._follow_provider)

    def _follow_provider(self) -> None:
        """Show the options of the chosen provider, its key variable and the list prices."""
        id, model = self._values.get("provider", ""), self._values.get("model", "")
        facts = provider(id)
        words = f"Default variable: {' or '.join(facts.key_variables) or 'no key needed'}."
        if model:
            listed = prices(id, model)
            found = (listed.input, listed.output) if listed else (None, None)
            shown = ["unknown" if price is None else f"${price:g}" for price in found]
            words += f" List price per million tokens: {shown[0]} input, {shown[1]} output."
        self._facts.text = words
        if id == self._shown_provider:
            return
        self._shown_provider = id
        given = self._values["options"]
        for name in set(given) - set(facts.options):
            del given[name]
        self._options.clear()
        with self._options:
            for name in facts.options:
                title = name.replace("_", " ").capitalize()
                needed = "Required." if name in facts.needs_options else "Optional."
                about = FieldDescription(name, name, title, needed, "text", None)
                self._dialog.form.add_field(about, given, "options")

    def _fields(self) -> dict[str, Any]:
        """Return the fields of the profile, with the source of its key."""
        source = self._key["source"]
        if source == "config":
            key = self._values.get("key")  # a key that is typed replaces it
        elif source in {"usual", STORED, MEMORY}:
            key = None if source == "usual" else source
        else:
            key = f"{source}:{self._key.get(source, '')}"
        return {**self._values, "key": key}

    async def _save(self) -> None:
        fields, source = self._fields(), self._key["source"]
        typed = self._key.get("secret") if source in _STORAGES else None
        async with self.window.owner_action("save profile"):
            if source == "file" and self.window.visitor.name:
                raise AccessError("key: set a file on the server itself, with `enfold profiles`")
            if source in _STORAGES and self._is_new and not typed:
                raise ConfigError("key: enter the key")
            if typed:
                # A profile may refer to a key only after the key is stored.
                del fields["key"]
            profiles = self.window.engine.profiles
            name = str(fields.pop("name", "")).strip()
            key = Secret(typed) if typed else None
            if self._key.get("is_tested", True):
                await profiles.try_out(name, fields, key)
            await profiles.save(name, fields, replace=not self._is_new)
            if key is not None:
                await profiles.set_key(name, key, _STORAGES[source])
        await self._saved()


_READ, _WRITTEN = 100_000, 2_000
"""Tokens of a typical run: a long conversation and its summary."""


class CostTable:
    """The profiles by cost, cheapest first, those without a price last."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._listed: Sequence[ListedProfile] = ()
        about = (
            "The cost of one compression with each profile, and with its provider's low-cost "
            "model. Only prices are compared, not quality."
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
        settings = await self.window.engine.settings()
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
                title, act = f"Use {offer.name} for all summaries", partial(self._use, offer.name)
                button = named_button("Use", title, act)
                button.set_enabled(self.window.visitor.is_owner)

        why = "Based on current prices."
        cost = partial(figures.money, offer.cost.total, is_estimate=True, why=why)
        return name, model, cost, saved, use

    async def _use(self, name: str) -> None:
        async with self.window.owner_action("set summarizer"):
            await self.window.engine.set("summarizer", name)
        ui.notify(f"{name} now writes all summaries.", type="positive")
        await self._refresh()


def candidates_of(listed: Sequence[ListedProfile]) -> tuple[list[Candidate], Mapping[str, str]]:
    """Return the profiles that could write summaries, and the model of each."""
    return cost_candidates([each.profile for each in listed if each.profile is not None])


_FALL_BACK = (
    "Sessions then use the default profile, else the first one. Summaries are then written by the "
    "session's own profile, else by the built-in summarizer."
)


@dataclass(eq=False)
class ProfilesSection:
    """The list of profiles and their actions."""

    window: Window

    async def build(self) -> None:
        """Build the page, then show the profiles."""
        about = "A profile has a model, its URL and the source of its key. Keys are never shown."
        with card("Profiles", about):
            self._list = labelled(ui.element("div").classes("ef-stack"), "Profiles")
            add = ui.button("Add profile", icon="add", on_click=self._open).props("unelevated")
            add.set_enabled(self.window.visitor.is_owner)
        self._costs = CostTable(self.window)
        await self._refresh()

    async def _refresh(self) -> None:
        self._listed = await self.window.engine.profiles.all()
        self._list.clear()
        with self._list:
            for each in self._listed:
                self._card(each)
            if not self._listed:
                empty_state(
                    "key",
                    "No profile yet. The built-in summarizer writes the summaries. Add a profile "
                    "to let a model answer and summarize.",
                )
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
                actions: dict[str, Callable[[], object]] = {}
                if listed.profile is not None:
                    actions["Test"] = partial(self._test, listed.name, outcome)
                    actions["Read limits"] = partial(self._read_limits, listed.name, outcome)
                    actions["Edit"] = partial(self._open, listed.profile)
                actions["Delete"] = partial(self._delete, listed.name, outcome)
                for what, act in actions.items():
                    button = named_button(what, f"{what} {listed.name}", act)
                    button.set_enabled(self.window.visitor.is_owner)
            outcome.move(target_index=-1)

    async def _test(self, name: str, outcome: ui.element) -> None:
        test = partial(self.window.engine.profiles.test, name)
        tried = await self._call("test profile", test, outcome, "Test failed: ")
        if tried is None:
            return
        words = f"Test passed: {tried.model} answered in {tried.seconds:.1f} s."
        show_text(outcome, words, "ef-good")
        with outcome, ui.element("div").classes("ef-row"):
            ui.label("Cost of the test:")
            figures.money(tried.cost)

    async def _read_limits(self, name: str, outcome: ui.element) -> None:
        discovery = partial(self.window.engine.profiles.discover, name)
        failed = "The limits could not be read: "
        found = await self._call("ask provider", discovery, outcome, failed)
        if found is None:
            return
        limits = f"{found.max_input:,} input tokens and {found.max_output:,} output tokens"
        source = "the provider" if found.source == "api" else "the list of known models"
        show_text(outcome, f"{found.id}: {limits}, from {source}.", "ef-good")

    async def _call(
        self, action: str, call: Callable[[], Awaitable[Result]], outcome: ui.element, failed: str
    ) -> Result | None:
        """Return the result of a call to the provider; None if it failed, which is shown."""
        show_text(outcome, "Calling the provider…", "ef-soft")
        try:
            async with self.window.owner_action(action):
                return await call()
        except EnfoldError as error:
            show_text(outcome, f"{failed}{error}", "ef-bad")
            return None

    async def _delete(self, name: str, outcome: ui.element) -> None:
        profiles = self.window.engine.profiles
        try:
            uses = str(await profiles.uses(name))
            used = f"It {uses}. " if uses else ""
            text = f"{used}{_FALL_BACK if uses else 'Nothing uses it.'}"
            if not await confirm(f"Delete profile {name}?", text, "Delete"):
                return
            async with self.window.owner_action("delete profile"):
                await profiles.remove(name, force=True)
        except EnfoldError as error:
            show_text(outcome, str(error), "ef-bad")
        else:
            await self._refresh()

    def _open(self, profile: Profile | None = None) -> None:
        names = [each.name for each in self._listed]
        ProfileDialog(self.window, profile, names, self._refresh).open()


def key_words(profile: Profile) -> str:
    """Return the source of a profile's key, never the key."""
    if profile.key is None:
        usual = " or ".join(provider(profile.provider).key_variables)
        return f"the variable {usual}" if usual else "not needed"
    kind, _, place = profile.key.partition(":")
    memory = "in memory, until the server stops"
    words = {"env": f"the variable {place}", "file": f"the file {place}", MEMORY: memory}
    return words.get(kind, "stored, encrypted")


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
    condensing = profile.condensing_profile or profile.cheap_model
    words = f"Summaries by {condensing}." if condensing else "Summaries by this profile."
    if profile.threshold not in (None, -1):
        words += f" Threshold {profile.threshold:g} %."
    ui.label(words).classes("ef-soft ef-small ef-wrap")
