"""The models section: limits and defaults of every model, with their sources, to edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from nicegui import ui

from enfold.engine.models import ModelChanges
from enfold.fields import describe, faults
from enfold.modelconfig import (
    FALLBACK_MAX_INPUT,
    FALLBACK_MAX_OUTPUT,
    OWN_VALUES,
    SHIPPED,
    ModelConfig,
)
from enfold.ui import figures
from enfold.ui.forms import FormDialog
from enfold.ui.widgets import card, icon_button, labelled
from enfold.ui.window import Window

_PAGE_SIZE = 20
_SHIPPED = frozenset(config.id for config in SHIPPED)


def source_words(config: ModelConfig) -> str:
    """Return the source of a model's limits."""
    if config.source == "default":
        return "shipped with enfold" if config.id in _SHIPPED else "assumed"
    names = {"api": "the provider", "library": "the price list", "manual": "set by hand"}
    return names[config.source]


@dataclass(eq=False)
class ModelsSection:
    """The list of models in pages, and the dialog to edit one."""

    window: Window
    _found: tuple[ModelConfig, ...] = field(default=(), init=False)

    async def build(self) -> None:
        """Build the page, then show the models."""
        about = "Limits of the models. A change applies to the next decision, in every process."
        with card("Models", about):
            with ui.element("div").classes("ef-row"):
                self._query = ui.input(placeholder="Search models", on_change=self._search)
                self._query.props("outlined dense clearable debounce=200 type=search")
                labelled(self._query.classes("ef-grow"), "Search models")
                add = ui.button("Add model", icon="add", on_click=self._open).props("unelevated")
                add.set_enabled(self.window.visitor.is_owner)
            self._list = labelled(ui.element("div").classes("ef-stack"), "Models")
            self._list.props("role=list")
            self._pages = ui.pagination(1, 1, direction_links=True, on_change=self._show)
            labelled(self._pages.props("max-pages=5"), "Model pages")
        await self._refresh()

    async def _refresh(self) -> None:
        self._all = await self.window.engine.models.all()
        self._search()

    def _search(self) -> None:
        words = (self._query.value or "").casefold().split()
        self._found = tuple(
            each for each in self._all if all(word in each.id.casefold() for word in words)
        )
        self._pages.max = max(1, -(-len(self._found) // _PAGE_SIZE))
        self._pages.value = min(self._pages.value or 1, self._pages.max)
        self._show()

    def _show(self) -> None:
        start = ((self._pages.value or 1) - 1) * _PAGE_SIZE
        self._list.clear()
        with self._list:
            for config in self._found[start : start + _PAGE_SIZE]:
                self._row(config)
            if not self._found:
                ui.label("No matching model. You can add it.").classes("ef-soft")

    def _row(self, config: ModelConfig) -> None:
        with labelled(ui.element("div").classes("st-model").props("role=listitem"), config.id):
            with ui.element("div").classes("ef-grow"):
                ui.label(config.id).classes("st-title ef-wrap")
                with ui.element("div").classes("ef-row ef-small"):
                    if config.source == "default" and config.id not in _SHIPPED:
                        why = "The limits of this model are unknown; a common value is assumed."
                        figures.estimate(config.max_input, "tokens in", why)
                    else:
                        figures.count(config.max_input, "tokens in")
                    figures.count(config.max_output, "tokens out")
                    ui.label(f"threshold {figures.share_text(config.threshold)}")
                    ui.label(f"keeps {config.retention_tokens:,} tokens")
                    ui.label(config.tokenizer).classes("ef-mono")
                    ui.label(f"from: {source_words(config)}").classes("st-source")
            with ui.element("div").classes("ef-row-tight"):
                for icon, what, action in (
                    ("edit", "Edit", partial(self._open, config)),
                    ("undo", "Reset", partial(self._reset, config.id)),
                    ("delete", "Delete", partial(self._delete, config.id)),
                ):
                    button = icon_button(icon, f"{what} {config.id}", action)
                    button.set_enabled(self.window.visitor.is_owner)

    async def _reset(self, id: str) -> None:
        async with self.window.owner_action("reset model"):
            await self.window.engine.models.reset(id)
        ui.notify(f"{id} reset", type="positive")
        await self._refresh()

    async def _delete(self, id: str) -> None:
        async with self.window.owner_action("delete model"):
            await self.window.engine.models.delete(id)
        await self._refresh()

    def _open(self, config: ModelConfig | None = None) -> None:
        """Open the dialog that edits a model, or adds one."""
        shown = config or ModelConfig("a:b", FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT)
        values = {name: getattr(shown, name) for name in describe(ModelChanges)}

        async def save() -> None:
            # A threshold or retention that stays the same does not become the model's own.
            given = {
                each: value
                for each, value in values.items()
                if each not in OWN_VALUES or value != getattr(shown, each)
            }
            async with self.window.owner_action("edit model"):
                await self.window.engine.models.edit((name.value or "").strip(), **given)
            await self._refresh()

        dialog = FormDialog(lambda: faults(ModelChanges, values), save)
        with dialog.opened(f"Edit {config.id}" if config else "Add model", "Save model"):
            name = ui.input("Model (provider:model)", value=config.id if config else "")
            name.props("outlined dense").classes("ef-full").set_enabled(config is None)
            dialog.form.add_object(ModelChanges, values)
