"""The setup page: a first model from a local server, an environment key, or a key that is typed.

A model is called once before it is saved, so that the page ends in a chat that answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from enfold.errors import ConfigError, EnfoldError, GatewayError
from enfold.llm.calls import Secret
from enfold.llm.keys import KeyStorage
from enfold.llm.providers import PROVIDERS, provider
from enfold.ui.frame import frame
from enfold.ui.session_list import start_session
from enfold.ui.widgets import card, labelled, named_button, show_text, titled_dialog
from enfold.ui.window import Window

TITLE = "Set up a model"
OWN_SERVER = "compatible"
OFFERED = (*(id for id, row in PROVIDERS.items() if row.default_model), OWN_SERVER)
"""The providers of the form. Settings, Profiles has all of them."""
SMALLEST, LARGEST = 1_000, 10**9
"""The smallest and largest context window that can be entered, in tokens."""
STORAGES: Mapping[KeyStorage, str] = {
    "encrypted": "Store it encrypted in enfold's database",
    "file": "Store it in a file that only you can read, in your config folder",
    "memory": "Keep it in memory until the server stops",
}


async def setup(window: Window) -> None:
    """Build the page."""
    async with frame(window, TITLE):
        await show_setup(window)


async def show_setup(window: Window) -> None:
    """Show the ways to a first model; each ends in a new chat."""
    ui.label(
        "Choose the model that answers. enfold calls it once, then opens a chat. Summaries also "
        "work without a model."
    ).classes("ef-wrap")
    page = SetupPage(window, ui.element("div").classes("ef-small").props("role=status"))
    with card("Found on this machine", "Local model servers, and keys in the environment."):
        found = ui.element("div").classes("ef-stack")
        with found:
            ui.spinner("dots").props("aria-hidden=true")
    await KeyForm(window, page).build()
    ui.link("Continue without a model", "/?skip=setup").classes("ef-small")

    async def look() -> None:
        servers = await window.engine.profiles.local_servers()
        variables = window.engine.profiles.providers_with_key()
        found.clear()
        with found:
            for server in servers:
                fields = {"provider": OWN_SERVER, "base_url": server.base_url}
                name = server.title.lower().replace(" ", "-")
                page.add_offer(f"{server.title}, {server.base_url}", name, fields, server.models)
            for id, variable in variables.items():
                models = await known_models(window, id)
                title = f"{provider(id).title}, key in {variable}"
                page.add_offer(title, id, {"provider": id}, models)
            if not servers and not variables:
                ui.label(
                    "No model server answers on the usual ports, and no provider's key is set in "
                    "the environment of this server."
                ).classes("ef-soft ef-small ef-wrap")

    ui.timer(0.05, look, once=True)


async def known_models(window: Window, id: str) -> tuple[str, ...]:
    """Return the known models of a provider, its default model first."""
    default = provider(id).default_model
    found = [each.model for each in await window.engine.models.all() if each.provider == id]
    return tuple(dict.fromkeys([default, *sorted(found)] if default else sorted(found)))


def model_field(models: Sequence[str]) -> ui.select:
    """Show a picker of models with the first as its value; another name can be typed."""
    first = models[0] if models else None
    field = ui.select(list(models), value=first, label="Model", new_value_mode="add-unique")
    return field.props("outlined dense options-dense").classes("ef-model-field")


@dataclass(eq=False)
class SetupPage:
    """Tests offers, and saves the one that works as the default profile."""

    window: Window
    outcome: ui.element
    """Shows how a test ended."""

    def add_offer(
        self, title: str, name: str, fields: Mapping[str, Any], models: Sequence[str]
    ) -> None:
        """Show a model that needs no key to be typed."""
        with labelled(ui.element("article").classes("ef-row"), title):
            ui.label(title).classes("ef-grow ef-wrap")
            field = labelled(model_field(models), f"Model of {title}")

            async def use() -> None:
                await self.start(name, {**fields, "model": field.value or ""})

            button = named_button("Use", f"Use {title}", use, "unelevated")
            button.set_enabled(self.window.visitor.is_owner)

    async def start(
        self,
        name: str,
        fields: Mapping[str, Any],
        key: Secret | None = None,
        storage: KeyStorage = "memory",
    ) -> None:
        """Test a profile, save it as the default one, and open a chat.

        A name that is taken gets a number. `key` is a key that was typed.
        """
        show_text(self.outcome, f"Calling {fields.get('model') or 'the model'}…", "ef-soft")
        profiles = self.window.engine.profiles
        try:
            async with self.window.owner_action("set up profile"):
                taken = {each.name for each in await profiles.all()}
                numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
                name = next(each for each in (name, *numbered) if each not in taken)
                await profiles.try_out(name, fields, key)
                await profiles.save(name, fields)
                if key is not None:
                    try:
                        await profiles.set_key(name, key, storage)
                    except ConfigError:
                        await profiles.remove(name, force=True)
                        raise
                await self.window.engine.set("default_profile", name)
        except EnfoldError as error:
            show_text(self.outcome, f"The test failed, and nothing was saved: {error}", "ef-bad")
            return
        show_text(self.outcome, f"The model answered. It is saved as profile {name}.", "ef-good")
        await self._ask_for_limits(name)
        await start_session(self.window)

    async def _ask_for_limits(self, name: str) -> None:
        """Read the model's limits; ask for them if neither the provider nor a list knows them."""
        profiles = self.window.engine.profiles
        try:
            config = await profiles.discover(name)
        except GatewayError:
            config = await self.window.engine.models.get((await profiles.get(name)).id)
        if config.source != "default":
            return
        window = await ask_for_window(config.model, config.max_input + config.max_output)
        if window is not None:
            await self.window.engine.models.learn(config.id, window)


async def ask_for_window(model: str, assumed: int) -> int | None:
    """Return the context window that the user enters; None if the user does not know it."""
    with titled_dialog("Context window") as dialog:
        ui.label(
            f"The server does not state the context window of {model}. How many tokens does it "
            "take, input and answer together?"
        ).classes("ef-wrap")
        field = ui.number("Tokens", value=None, min=SMALLEST, max=LARGEST, step=SMALLEST)
        field.props("outlined autofocus").classes("ef-full")
        with ui.element("div").classes("ef-row ef-end"):
            unknown = ui.button(f"Assume {assumed:,}", on_click=lambda: dialog.submit(None))
            unknown.props("flat")
            save = ui.button("Save", on_click=lambda: dialog.submit(field.value))
            save.props("unelevated color=primary")
            save.bind_enabled_from(field, "value", lambda value: bool(value and value >= SMALLEST))
    value: float | None = await dialog
    dialog.delete()
    return None if value is None else int(value)


@dataclass(eq=False)
class KeyForm:
    """The form for a key, or for a server of one's own."""

    window: Window
    page: SetupPage

    async def build(self) -> None:
        """Show the form."""
        titles = {id: PROVIDERS[id].title for id in OFFERED}
        titles[OWN_SERVER] = "Another server with OpenAI's protocol"
        storages = await self.window.engine.profiles.key_storages()
        with card("Use a key", "The key is sent to its provider only, and never shown again."):
            self._provider = ui.select(titles, value=OFFERED[0], label="Provider")
            self._provider.on_value_change(self._show_provider)
            self._address = ui.input("Base URL", placeholder="http://127.0.0.1:8080/v1")
            self._key = ui.input("Key", password=True)
            for field in (self._provider, self._address, self._key):
                field.props("outlined dense").classes("ef-full")
            self._key.props("autocomplete=off")
            for field in (self._address, self._key):
                field.on("blur", self._list_models, args=[])
            self._models = ui.element("div").classes("ef-full")
            self._note = ui.label().classes("ef-small ef-bad ef-wrap").props("role=status")
            with labelled(ui.element("fieldset").classes("ef-plain-group"), "Key storage"):
                options = {each: STORAGES[each] for each in storages}
                self._storage = ui.radio(options, value=storages[0]).props("dense")
            start = ui.button("Test and start", on_click=self._start).props("unelevated")
            start.set_enabled(self.window.visitor.is_owner)
        await self._show_provider()

    @property
    def _fields(self) -> dict[str, Any]:
        address = str(self._address.value or "").strip()
        is_own = self._provider.value == OWN_SERVER
        return {"provider": self._provider.value, **({"base_url": address} if is_own else {})}

    @property
    def _typed_key(self) -> Secret | None:
        typed = str(self._key.value or "").strip()
        return Secret(typed) if typed else None

    async def _show_provider(self) -> None:
        is_own = self._provider.value == OWN_SERVER
        self._address.set_visibility(is_own)
        self._key.props["label"] = "Key, if the server needs one" if is_own else "Key"
        self._key.update()
        self._note.text = ""
        self._show_models(await known_models(self.window, self._provider.value))

    def _show_models(self, models: Sequence[str]) -> None:
        self._models.clear()
        with self._models:
            self._model = model_field(models).classes("ef-full")

    async def _list_models(self) -> None:
        """Offer the models that the provider lists for this key."""
        if self._typed_key is None and not self._fields.get("base_url"):
            return
        try:
            found = await self.window.engine.profiles.list_models(self._fields, self._typed_key)
        except EnfoldError as error:
            self._note.text = str(error)
            return
        self._note.text = ""
        default = provider(self._provider.value).default_model
        if found:
            self._show_models(sorted(found, key=lambda name: (name != default, name)))

    async def _start(self) -> None:
        fields = {**self._fields, "model": self._model.value or ""}
        name = "own-server" if self._provider.value == OWN_SERVER else self._provider.value
        await self.page.start(name, fields, self._typed_key, self._storage.value)
