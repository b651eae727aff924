"""The presets section: apply, save, import and export a strategy with its config."""

from __future__ import annotations

from functools import partial

from nicegui import ui
from nicegui.events import UploadEventArguments

from enfold.errors import EnfoldError
from enfold.jsontext import dump_text, loads
from enfold.strategies import presets as built_in
from enfold.strategies.presets import Preset
from enfold.ui.settings.scope import ScopedSection
from enfold.ui.widgets import card, labelled

_LARGEST_FILE = 1_000_000
"""Bytes; a preset has a few thousand."""


class PresetsSection(ScopedSection):
    """The list of presets and their actions."""

    async def _build(self) -> None:
        with card(
            "Presets",
            "A preset sets the strategy and its config. Both can be changed later.",
        ):
            self._list = labelled(ui.element("div").classes("st-choices"), "Presets")
        self._save_card()
        self._import_card()

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
            apply = ui.button("Apply", on_click=partial(self._apply, preset.name))
            labelled(apply.props("outline dense"), f"Apply {preset.name}")
            apply.set_enabled(self._scope.may_change)
            export = ui.button("Export", on_click=partial(_download, preset))
            labelled(export.props("flat dense"), f"Export {preset.name}")
        if not preset.is_built_in:
            delete = ui.button("Delete", on_click=partial(self._delete, preset.name))
            labelled(delete.props("flat dense color=negative"), f"Delete {preset.name}")
            delete.set_enabled(self._window.visitor.is_owner)

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
            made = Preset(
                (name.value or "").strip(), description.value or "", settings.strategy, config
            )
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

    def _import_card(self) -> None:
        with card(
            "Import preset",
            "A file written by Export. Unknown fields are refused.",
        ):
            self._upload = ui.upload(
                label="Choose or drop a file",
                auto_upload=True,
                max_file_size=_LARGEST_FILE,
                on_upload=self._import,
            )
            labelled(self._upload.props("accept=.json flat bordered").classes("ef-full"), "Import")
            self._upload.set_enabled(self._window.visitor.is_owner)
            self._imported = ui.label().classes("ef-small ef-wrap").props("role=status")

    async def _import(self, event: UploadEventArguments) -> None:
        self._upload.reset()
        try:
            preset = built_in.read(loads(await event.file.read()))
            async with self._window.owner_action("import preset"):
                await self._window.engine.presets.save(preset)
        except EnfoldError as error:
            self._imported.text = f"{event.file.name}: {error}"
            self._imported.classes(add="ef-bad")
            return
        self._imported.text = f"{preset.name} imported."
        self._imported.classes(remove="ef-bad")
        await self._refresh()


def _download(preset: Preset) -> None:
    ui.download.content(dump_text(preset.as_json()), f"{preset.name}.json", "application/json")
