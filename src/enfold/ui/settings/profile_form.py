"""The form of one profile. A key that is typed is stored encrypted, and never comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import ui

from enfold.errors import AccessError, ConfigError, EnfoldError
from enfold.llm import profiles
from enfold.llm.calls import Secret
from enfold.llm.keys import STORED
from enfold.llm.prices import NAMES as PRICED
from enfold.llm.prices import prices
from enfold.llm.profiles import Profile
from enfold.llm.providers import PROVIDERS
from enfold.ui.settings.labels import labelled
from enfold.ui.settings.scope import require_owner
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
            profile = profiles.read(self._name.value or "", self._fields())
            profiles.check_threshold(profile)
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
            async with self._window.doing("save profile"):
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
