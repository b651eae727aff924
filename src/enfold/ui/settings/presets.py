"""The sections for presets and prompts.

Presets are applied, saved, imported and exported: each is a strategy with its config. The prompt
for summaries is shown with a preview on a real excerpt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nicegui import ui
from nicegui.events import UploadEventArguments

from enfold.engine.state import message_of
from enfold.errors import ConfigError, EnfoldError
from enfold.jsontext import dump_text, loads
from enfold.messages import Message
from enfold.strategies import presets as built_in
from enfold.strategies.presets import Preset
from enfold.summaries import SummaryRequest
from enfold.summaries.prompts import CONVERSATION, build, validate
from enfold.ui.settings.scope import SOURCES, ScopedSection, session_choices, session_field
from enfold.ui.widgets import card, file_button, labelled, named_button, show_text, text_block

_LARGEST_FILE = 1_000_000
"""Bytes; a preset has a few thousand."""


class PresetsSection(ScopedSection):
    """The list of presets and their actions."""

    async def _build(self) -> None:
        about = "A preset sets the strategy and its config. Both can be changed later."
        with card("Presets", about):
            self._list = labelled(ui.element("div").classes("st-choices"), "Presets")
        self._save_card()
        with card("Import preset", "A file written by Export. Unknown fields are refused."):
            limit = _LARGEST_FILE
            self._upload = ui.upload(auto_upload=True, max_file_size=limit, on_upload=self._import)
            self._upload.props("accept=.json")
            choose = file_button(self._upload, "Choose a file")
            choose.set_enabled(self._window.visitor.is_owner)
            self._imported = ui.element("div").props("role=status")

    async def _refresh(self) -> None:
        found = await self._window.engine.presets.all()
        settings = await self._scope.settings()
        self._list.clear()
        with self._list:
            for preset in found:
                config = settings.strategy_config.get(preset.strategy, {})
                in_use = settings.strategy == preset.strategy and config == dict(preset.config)
                self._card(preset, in_use=in_use)

    def _card(self, preset: Preset, *, in_use: bool) -> None:
        with labelled(ui.element("article").classes("st-choice"), preset.name):
            with ui.element("div").classes("ef-row"):
                ui.label(preset.name).classes("st-title")
                ui.label("built in" if preset.is_built_in else "yours").classes("st-badge")
                if in_use:
                    ui.label("in use").classes("st-badge st-own")
            ui.label(preset.description).classes("ef-small ef-wrap")
            if preset.fault:
                ui.label(f"Invalid preset: {preset.fault}").classes("ef-bad ef-small ef-wrap")
            else:
                ui.label(f"Strategy: {preset.strategy}").classes("ef-soft ef-small")
            with ui.element("div").classes("ef-row"):
                self._actions(preset)

    def _actions(self, preset: Preset) -> None:
        if not preset.fault:
            act: Callable[[], object] = partial(self._apply, preset.name)
            apply = named_button("Apply", f"Apply {preset.name}", act, "outline dense")
            apply.set_enabled(self._scope.may_change)
            data, name = dump_text(preset.as_json()), f"{preset.name}.json"
            download = partial(ui.download.content, data, name, "application/json")
            named_button("Export", f"Export {preset.name}", download)
        if not preset.is_built_in:
            act = partial(self._delete, preset.name)
            delete = named_button("Delete", f"Delete {preset.name}", act)
            delete.props("color=negative").set_enabled(self._window.visitor.is_owner)

    async def _apply(self, name: str) -> None:
        session, window = self._scope.session, self._window
        action = "apply preset"
        change = window.audited(action, session.id) if session else window.owner_action(action)
        async with change:
            await window.engine.presets.apply(name, session)
        ui.notify(f"{name} applies from the next compression on.", type="positive")
        await self._refresh()

    async def _delete(self, name: str) -> None:
        async with self._window.owner_action("delete preset"):
            await self._window.engine.presets.delete(name)
        await self._refresh()

    def _save_card(self) -> None:
        about = "Saves the current strategy and its config under a name."
        with card("Save current settings", about):
            with ui.element("div").classes("st-form"):
                name = ui.input("Preset name").props("outlined dense")
                description = ui.input("Description").props("outlined dense")
            replace = ui.switch("Replace a preset with this name")
            button = ui.button("Save preset", icon="save").props("unelevated")
            button.set_enabled(self._window.visitor.is_owner)
            fault = ui.label().classes("ef-bad ef-small ef-wrap").props("role=status")

        async def save() -> None:
            settings = await self._scope.settings()
            config = settings.strategy_config.get(settings.strategy, {})
            about, strategy = description.value or "", settings.strategy
            made = Preset((name.value or "").strip(), about, strategy, config)
            fault.text = ""
            try:
                async with self._window.owner_action("save preset"):
                    await self._window.engine.presets.save(made, replace=bool(replace.value))
            except EnfoldError as error:
                fault.text = str(error)
                return
            name.value = description.value = ""
            await self._refresh()

        button.on_click(save)

    async def _import(self, event: UploadEventArguments) -> None:
        self._upload.reset()
        try:
            preset = built_in.read(loads(await event.file.read()))
            async with self._window.owner_action("import preset"):
                await self._window.engine.presets.save(preset)
        except EnfoldError as error:
            show_text(self._imported, f"{event.file.name}: {error}", "ef-small ef-bad")
            return
        show_text(self._imported, f"{preset.name} imported.", "ef-small")
        await self._refresh()


_EXCERPT = 6
"""Messages of the excerpt in the preview."""


class PromptsSection(ScopedSection):
    """The prompt, validated while it is edited, and its preview."""

    async def _build(self) -> None:
        about = (
            f"Replaces the instructions of the style. {{{CONVERSATION}}} marks the place of the "
            "conversation; without it, the conversation comes last. A profile may have its own "
            "prompt. The built-in summarizer does not use prompts."
        )
        with card("Summary prompt", about):
            self._source = ui.label().classes("st-source")
            unset = "Not set: the prompt of the style"
            self._text = ui.textarea("Your prompt", placeholder=unset, validation=_fault)
            self._text.props("outlined autogrow debounce=250").classes("ef-full")
            self._text.on_value_change(self._changed)
            with ui.element("div").classes("ef-row"):
                self._save = ui.button("Save prompt", icon="save", on_click=self._store)
                self._save.props("unelevated")
                self._reset = ui.button("Reset prompt", icon="undo", on_click=self._unset)
                self._reset.props("flat")
            self._note = ui.label().classes("ef-small ef-warm ef-wrap")
        await self._preview_card()

    async def _preview_card(self) -> None:
        choices = await session_choices(self._window)
        about = "The text that the model receives, with the latest messages of a session."
        with card("Preview", about):
            if not choices:
                ui.label("No session yet for an example.").classes("ef-soft")
            listed = {"": "Without a conversation", **choices}
            start = next(iter(choices), "")
            self._example = session_field(listed, start, "Example from", self._preview)
            self._preview_text = ui.element("div").classes("ef-stack").props("aria-live=polite")

    async def _refresh(self) -> None:
        self._settings = await self._scope.settings()
        source = self._settings.sources["prompt"]
        self._source.text = f"from: {SOURCES[source]}"
        self._text.value = self._settings.prompt or ""
        self._text.set_enabled(self._scope.may_change)
        self._reset.set_visibility(source == self._scope.level and self._scope.may_change)
        native = self._settings.strategy_config.get("native", {})
        self._note.text = (
            "The config of the native strategy has its own prompt, which overrides this one."
            if native.get("prompt")
            else ""
        )
        await self._preview()

    async def _changed(self) -> None:
        is_valid = _fault(self._text.value) is None
        self._save.set_enabled(is_valid and self._scope.may_change)
        if is_valid:
            await self._preview()

    async def _store(self) -> None:
        await self._scope.set("prompt", self._text.value or None)
        ui.notify("Saved. It applies from the next summary on.", type="positive")
        await self._refresh()

    async def _unset(self) -> None:
        await self._scope.set("prompt", None)
        await self._refresh()

    async def _preview(self) -> None:
        messages: tuple[Message, ...] = ()
        if self._example.value:
            session = await self._window.session(self._example.value)
            messages = tuple(map(message_of, await session.history(limit=_EXCERPT)))
        style, prompt = self._settings.style, self._text.value or None
        built = build(SummaryRequest(messages, style=style, prompt=prompt))
        self._preview_text.clear()
        with self._preview_text:
            for title, text in (("System", built.system), ("User", built.user)):
                ui.label(title).classes("st-title")
                text_block(f"{title} text").set_text(text)


def _fault(text: str | None) -> str | None:
    """Return the error in a prompt; None if it is valid or empty."""
    if not text:
        return None
    try:
        validate(text)
    except ConfigError as error:
        return str(error)
    return None
