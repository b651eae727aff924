"""The models section: limits and defaults of every model, with their sources, to edit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from nicegui import ui

from enfold.errors import ConfigError, EnfoldError
from enfold.modelconfig import FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT, SHIPPED, ModelConfig
from enfold.tokens import NAMES
from enfold.ui import figures
from enfold.ui.settings.scope import require_owner
from enfold.ui.widgets import card, icon_button, labelled
from enfold.ui.window import Window

_PAGE_SIZE = 20
_SHIPPED = frozenset(config.id for config in SHIPPED)
_FIELDS = {
    "max_input": "Maximum input tokens",
    "max_output": "Maximum output tokens",
    "threshold": "Threshold (share of the limit)",
    "retention_tokens": "Recent tokens kept",
    "correction": "Correction (model tokens per counted token)",
}


async def models(window: Window) -> None:
    """Build the section."""
    await ModelsSection(window).build()


def source_words(config: ModelConfig) -> str:
    """Return the source of a model's limits."""
    if config.source == "default":
        shipped = config.id in _SHIPPED
        return "shipped with enfold" if shipped else "assumed"
    return {"api": "the provider", "library": "the price list", "manual": "set by hand"}[
        config.source
    ]


class ModelsSection:
    """The list of models in pages, and the dialog to edit one."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._found: tuple[ModelConfig, ...] = ()

    async def build(self) -> None:
        """Build the page, then show the models."""
        about = "Limits of the models. A change applies to the next decision, in every process."
        with card("Models", about):
            with ui.element("div").classes("ef-row"):
                self._query = ui.input(placeholder="Search models", on_change=self._search)
                self._query.props("outlined dense clearable debounce=200 type=search")
                labelled(self._query.classes("ef-grow"), "Search models")
                add = ui.button("Add model", icon="add", on_click=self._add).props("unelevated")
                add.set_enabled(self._window.visitor.is_owner)
            self._list = labelled(ui.element("div").classes("ef-stack"), "Models").props(
                "role=list"
            )
            self._pages = ui.pagination(1, 1, direction_links=True, on_change=self._show)
            labelled(self._pages.props("max-pages=5"), "Model pages")
        await self._refresh()

    async def _refresh(self) -> None:
        self._all = await self._window.engine.models.all()
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
                    ("edit", "Edit", self._edit),
                    ("undo", "Reset", self._reset),
                    ("delete", "Delete", self._delete),
                ):
                    button = icon_button(icon, f"{what} {config.id}")
                    button.on_click(partial(action, config))
                    button.set_enabled(self._window.visitor.is_owner)

    async def _reset(self, config: ModelConfig) -> None:
        async with self._window.audited("reset model"):
            require_owner(self._window)
            await self._window.engine.models.reset(config.id)
        ui.notify(f"{config.id} reset", type="positive")
        await self._refresh()

    async def _delete(self, config: ModelConfig) -> None:
        async with self._window.audited("delete model"):
            require_owner(self._window)
            await self._window.engine.models.delete(config.id)
        await self._refresh()

    def _add(self) -> None:
        new = ModelConfig("provider:model", FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT)
        _Dialog("Add model", new, self._keep, is_new=True).open()

    def _edit(self, config: ModelConfig) -> None:
        _Dialog(f"Edit {config.id}", config, self._keep, is_new=False).open()

    async def _keep(self, id: str, values: dict[str, Any]) -> None:
        async with self._window.audited("edit model"):
            require_owner(self._window)
            await self._window.engine.models.edit(id, **values)
        await self._refresh()


class _Dialog:
    """The dialog of one model."""

    def __init__(
        self,
        title: str,
        config: ModelConfig,
        keep: Callable[[str, dict[str, Any]], Awaitable[None]],
        *,
        is_new: bool,
    ) -> None:
        self._config = config
        self._keep = keep
        self._dialog = labelled(ui.dialog(), title)
        with self._dialog, ui.card().classes("ef-card st-dialog"):
            ui.label(title).classes("st-heading ef-wrap")
            self._id = ui.input("Model (provider:model)", value="" if is_new else config.id)
            self._id.props("outlined dense").classes("ef-full").set_enabled(is_new)
            self._numbers = {name: self._number(name, words) for name, words in _FIELDS.items()}
            if is_new:
                self._numbers["max_input"].props(
                    'hint="Most models accept at least 128,000 tokens"'
                )
            self._tokenizer = ui.select(
                list(NAMES), value=config.tokenizer, label="Tokenizer"
            ).props("outlined dense")
            self._tokenizer.classes("ef-full")
            self._fault = ui.label().classes("ef-bad ef-small ef-wrap").props("role=alert")
            with ui.element("div").classes("ef-row"):
                ui.button("Save model", on_click=self._save).props("unelevated")
                ui.button("Cancel", on_click=self._dialog.close).props("flat")

    def open(self) -> None:
        """Show the dialog."""
        self._dialog.open()

    def _number(self, name: str, words: str) -> ui.number:
        field = ui.number(words, value=getattr(self._config, name), on_change=self._check)
        return field.props("outlined dense").classes("ef-full")

    def _values(self) -> dict[str, Any]:
        found: dict[str, Any] = {"tokenizer": self._tokenizer.value}
        for name, field in self._numbers.items():
            value = field.value
            if value is None:
                raise ConfigError(f"{_FIELDS[name]}: enter a number")
            whole = isinstance(getattr(self._config, name), int)
            found[name] = int(value) if whole else float(value)
        return found

    def _check(self) -> None:
        """Validate the values and show the error."""
        try:
            ModelConfig(self._id.value or "provider:model", **self._values())
        except ConfigError as error:
            self._fault.text = str(error)
        else:
            self._fault.text = ""

    async def _save(self) -> None:
        try:
            await self._keep((self._id.value or "").strip(), self._values())
        except EnfoldError as error:
            self._fault.text = str(error)
            return
        self._dialog.close()
