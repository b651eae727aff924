"""Configuring: the config of one strategy as a form, checked while it is changed, then kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from typing import Any

from nicegui import ui

from enfold.errors import ConfigError
from enfold.strategies import configs
from enfold.strategies.contract import Kind
from enfold.ui.settings.forms import Form
from enfold.ui.settings.passes import PassList
from enfold.ui.settings.previewing import preview_card
from enfold.ui.settings.scope import Scope

PASSES = "passes"
"""The field with an editor of its own, where a strategy has it with the smart strategy's form."""


class Configuring:
    """One strategy's config."""

    def __init__(
        self,
        scope: Scope,
        kind: Kind[Any],
        config: Mapping[str, Any],
        profiles: Mapping[str, str],
        kept: Callable[[], Awaitable[None]],
    ) -> None:
        self._scope = scope
        self._kind = kind
        self._profiles = profiles
        self._kept = kept
        self._config = complete(kind, config)

    async def build(self) -> None:
        """The fields, what is wrong with them, and what can be done."""
        schema = self._kind.schema()
        self._form = Form(self._check, choices={"apiProfile": self._profiles})
        own_editor = (PASSES,) if self._kind.id == "smart" else ()
        with ui.element("div").classes("st-form"):
            self._form.object(schema, self._config, without=own_editor)
        if own_editor:
            PassList(self._form, schema["properties"][PASSES], self._config, self._check).build()
        self._problems = ui.element("div").props("role=status").classes("ef-stack")
        with ui.element("div").classes("ef-row"):
            self._save = ui.button("Save this config", icon="save", on_click=self._keep)
            self._save.props("unelevated")
            reset = ui.button("Back to the defaults", icon="undo", on_click=self._reset)
            reset.props("flat")
            for button in (self._save, reset):
                button.set_enabled(self._scope.may_change)
        await preview_card(self._scope, self._kind.id, lambda: self._config)
        self._check()

    def _check(self) -> None:
        """What the engine says of the config as it stands."""
        faults = self._kind.faults(self._config)
        rest = self._form.show(faults)
        self._problems.clear()
        with self._problems:
            for fault in rest:
                ui.label(str(fault)).classes("ef-bad ef-small ef-wrap")
        self._save.set_enabled(not faults and self._scope.may_change)

    async def _keep(self) -> None:
        await self._scope.set_config(self._kind.id, self._config)
        ui.notify("Kept. It applies from the next compression on.", type="positive")
        await self._kept()

    async def _reset(self) -> None:
        await self._scope.set_config(self._kind.id, None)
        ui.notify("The config is inherited again.", type="positive")
        await self._kept()


def complete(kind: Kind[Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with everything that it leaves to the defaults; as it is, if it is broken."""
    try:
        found: dict[str, Any] = configs.write(kind.read(config))
    except ConfigError:
        return deepcopy(dict(config))
    return deepcopy(found)
