"""The strategy section: choice, comparison, config, and the passes of the smart strategy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from nicegui import ui

from enfold import fields
from enfold.errors import ConfigError
from enfold.messages import Message, Text, text_of
from enfold.settings import Settings
from enfold.strategies import contract
from enfold.strategies.contract import Capabilities, StrategyKind
from enfold.strategies.smart.config import OperationConfig, Operations, Pass
from enfold.strategies.smart.passes import Editor, marked
from enfold.summaries.local import LOCAL
from enfold.tokens import get
from enfold.ui.compression.preview import show_preview
from enfold.ui.forms import ConfigForm, Holder
from enfold.ui.settings.scope import SOURCES, Scope, ScopedSection, session_choices, session_field
from enfold.ui.widgets import card, labelled, named_button, table, text_block

EXAMPLE = "\n".join(
    f"{line:>3}  step {line}: {line * 37 % 91} records read in {line * 53 % 57} ms"
    for line in range(1, 41)
)
"""Forty lines of tool output."""


def effect(operation: Mapping[str, Any]) -> str | None:
    """Return the example after an operation; None if the operation is invalid."""
    if fields.faults(OperationConfig, operation):
        return None
    config = fields.read(OperationConfig, operation)
    if config.operation == "summarize":
        return marked(f"… at most {config.summarize.max_tokens:,} tokens …")
    message = Message("assistant", (Text(EXAMPLE),))
    edited = Editor(get(), {}).edit(message, Operations(message_text=config))
    return text_of(edited.parts)


def _show_effect(operation: Holder) -> Callable[[], None]:
    """Show the example after an operation; return the function that updates it."""
    with ui.expansion("Example").classes("st-nested").props("dense"):
        example = text_block("Example of the operation")

    def update() -> None:
        if not example.is_deleted:
            example.text = effect(operation) or "…"

    update()
    return update


def badges(step: Holder) -> list[str]:
    """Return short descriptions of a pass."""
    selection, execution = step.get("selection", {}), step.get("execution", {})
    by = {
        "preserve_recent": f"all but the last {selection.get('keepRecentCount', '?')}",
        "preserve_percent": f"all but the last {selection.get('keepPercentage', '?')} %",
        "custom": "selected messages",
    }
    when = "always"
    if execution.get("type") == "conditional":
        condition = execution.get("condition", {})
        tokens, share = condition.get("tokenThreshold"), condition.get("targetShare")
        marks = [f"{tokens:,} tokens"] if isinstance(tokens, int) else []
        if isinstance(share, int | float):
            marks.append("the target" if share == 1 else f"{share * 100:g} % of the target")
        when = f"above {' and '.join(marks) or '? tokens'}"
    mode = "batch" if step.get("mode") == "batch" else "individual"
    return [mode, by.get(selection.get("type", ""), "?"), when]


MEASURED = (
    "Measured on 3,066,126 tokens of real agent sessions with the built-in summarizer, on two "
    "cores (benchmarks/README.md). Results differ between conversations: use the preview below."
)
BEST_FOR: Mapping[str, str] = {
    "native": "Best for most conversations; the default",
    "lossless": "Best for agents that read the same files repeatedly, and for exact wording",
    "truncation": "Best for sessions with much tool output, and for speed",
    "smart": "Best for long agent sessions with different types of content",
}
_COMPARED: Mapping[str, tuple[str, ...]] = {
    "Kept": (
        "The first and the most recent messages verbatim, one summary of the rest",
        "Everything: repeats become references, output is encoded more tightly",
        "Message text, and the start of old tool output and parameters",
        "By default lossless changes first, then shorter output, then a summary",
    ),
    "Removed from the view": (
        "The wording of summarized messages; it stays in the store",
        "Nothing",
        "The rest of old tool output; it stays in the store",
        "Depends on its passes",
    ),
    "Calls a model": (
        "One call per summary; none with the built-in summarizer",
        "No",
        "No",
        "Depends on its passes",
    ),
    "Tokens saved": ("89 %", "18 %", "54 %", "84 % with its default passes"),
    "Speed": (
        "0.2 million tokens per second, or the time of the model",
        "0.3 million tokens per second",
        "1.5 million tokens per second",
        "0.2 million tokens per second, or the time of the model",
    ),
    "When to use it": tuple(BEST_FOR.values()),
}
"""The properties of the strategies, in the order of `BEST_FOR`."""


def traits(able: Capabilities) -> list[str]:
    """Return the capabilities of a strategy in words."""
    found = {
        "lossless": able.lossless,
        "one summary of many messages": able.batch,
        "individual messages": able.individual,
        "several passes": able.multi_pass,
        "may call a model": able.summaries,
    }
    return [*(words for words, holds in found.items() if holds), f"{able.speed}"]


async def preview_card(
    scope: Scope, strategy: str, config: Callable[[], Mapping[str, Any]]
) -> None:
    """Show a card that previews the config on a chosen session."""
    choices = await session_choices(scope.window)
    part = labelled(ui.element("section").classes("st-preview ef-stack"), "Preview on a session")
    with part:
        ui.label("Preview on a session").classes("st-title")
        ui.label(
            "Applies the config above without calling a model and without changing anything. The "
            "expected cost of a model is shown below."
        ).classes("ef-soft ef-small")
        if not choices:
            ui.label("No session yet for a preview.").classes("ef-soft")
            return
        start = scope.session.id if scope.session is not None else next(iter(choices))
        with ui.element("div").classes("ef-row"):
            field = session_field(choices, start, "Preview session")
            button = ui.button("Preview", icon="visibility").props("outline")
        outcome = ui.element("div").props("aria-live=polite").classes("ef-stack")

    async def run() -> None:
        button.disable()
        try:
            session = await scope.window.session(field.value)
            found = await session.preview(strategy=strategy, strategy_config={strategy: config()})
        finally:
            button.enable()
        outcome.clear()
        with outcome:
            show_preview(found)

    button.on_click(run)


class StrategyForm:
    """The form of one strategy's config."""

    def __init__(
        self,
        scope: Scope,
        kind: StrategyKind[Any],
        config: Mapping[str, Any],
        profiles: Mapping[str, str],
        kept: Callable[[], Awaitable[None]],
    ) -> None:
        self._scope = scope
        self._kind = kind
        self._profiles = profiles
        self._kept = kept
        try:
            self._config: Holder = fields.write(kind.read(config))
        except ConfigError:
            # An invalid config is shown as it is, with its faults.
            self._config = deepcopy(dict(config))

    async def build(self) -> None:
        """Show the fields, their faults and the buttons."""
        self._form = ConfigForm(
            self._check,
            choices={"api_profile": self._profiles},
            badges={Pass: badges},
            extras={OperationConfig: _show_effect},
        )
        self._form.add_object(self._kind.config, self._config)
        self._problems = ui.element("div").props("role=status").classes("ef-stack")
        with ui.element("div").classes("ef-row"):
            self._save = ui.button("Save config", icon="save", on_click=self._keep)
            self._save.props("unelevated")
            reset = ui.button("Reset config", icon="undo", on_click=self._reset).props("flat")
            reset.set_enabled(self._scope.may_change)
        await preview_card(self._scope, self._kind.id, lambda: self._config)
        self._check()

    def _check(self) -> None:
        """Validate the config and show its faults."""
        faults = self._kind.faults(self._config)
        rest = self._form.show_faults(faults)
        self._problems.clear()
        with self._problems:
            for fault in rest:
                ui.label(str(fault)).classes("ef-bad ef-small ef-wrap")
        self._save.set_enabled(not faults and self._scope.may_change)

    async def _keep(self) -> None:
        await self._set(self._config, "Saved. It applies from the next compression on.")

    async def _reset(self) -> None:
        await self._set(None, "Reset. The inherited config applies.")

    async def _set(self, config: Holder | None, done: str) -> None:
        await self._scope.set_config(self._kind.id, config)
        ui.notify(done, type="positive")
        await self._kept()


class StrategySection(ScopedSection):
    """The list of strategies and the form of one of them."""

    _edited: str | None = None
    """The strategy whose form is shown. None: the strategy in use."""

    async def _build(self) -> None:
        with card("Strategy", "How the view is condensed when a compression is due."):
            self._source = ui.element("div").classes("ef-row")
            self._choices = labelled(ui.element("div").classes("st-choices"), "Strategies")
            with ui.expansion("Compare strategies", icon="table_chart").classes("st-advanced"):
                titles = ("", *map(str.capitalize, BEST_FOR))
                rows = [(title, *cells) for title, cells in _COMPARED.items()]
                table("Strategies compared", titles, rows, classes="st-compare")
                ui.label(MEASURED).classes("ef-soft ef-small")
        with card("Config", "The options of the strategy chosen above."):
            self._form = ui.element("div").classes("ef-stack")

    async def _follow(self, scope: Scope) -> None:
        self._edited = None
        await super()._follow(scope)

    async def _refresh(self) -> None:
        settings = await self._scope.settings()
        self._edited = self._edited or settings.strategy
        self._choices.clear()
        with self._choices:
            for name in contract.names():
                self._choice(name, settings)
        self._source.clear()
        source = settings.sources["strategy"]
        with self._source:
            ui.label(f"In use: {settings.strategy}").classes("st-title")
            ui.label(f"from: {SOURCES[source]}").classes("st-source")
            if settings.preset is not None:
                ui.label(f"preset {settings.preset}").classes("st-badge")
                if settings.sources["preset"] == self._scope.level and self._scope.may_change:
                    drop = ui.button("Remove preset", icon="undo", on_click=self._drop_preset)
                    drop.props("flat dense")
            if source == self._scope.level and self._scope.may_change:
                reset = named_button("Reset", "Reset strategy", partial(self._use, None))
                reset.set_icon("undo")
        await self._show_form(settings)

    def _choice(self, name: str, settings: Settings) -> None:
        in_use, edited = settings.strategy == name, self._edited == name
        classes = "st-choice" + (" st-chosen" if edited else "")
        kind: StrategyKind[Any] | None = None
        try:
            kind = contract.get(name)
            title, about = kind.name, kind.description
        except ConfigError as error:
            title, about = name, str(error)
        with labelled(ui.element("article").classes(classes), title):
            with ui.element("div").classes("ef-row"):
                ui.label(title).classes("st-title")
                if in_use:
                    ui.label("in use").classes("st-badge st-own")
            ui.label(about).classes("ef-small ef-wrap")
            if kind is None:
                return
            words = BEST_FOR.get(name) or ", ".join(traits(kind.capabilities))
            ui.label(words).classes("ef-soft ef-small ef-wrap")
            with ui.element("div").classes("ef-row"):
                if not in_use:
                    act = partial(self._use, name)
                    use = named_button("Use", f"Use {kind.name}", act, "outline dense")
                    use.set_enabled(self._scope.may_change)
                named_button("Configure", f"Configure {kind.name}", partial(self._edit, name))

    async def _use(self, name: str | None) -> None:
        await self._scope.set("strategy", name)
        await self._edit(name)

    async def _drop_preset(self) -> None:
        await self._scope.set("preset", None)
        await self._edit(None)

    async def _edit(self, name: str | None) -> None:
        self._edited = name
        await self._refresh()

    async def _show_form(self, settings: Settings) -> None:
        name = self._edited or settings.strategy
        self._form.clear()
        listed = await self._window.engine.profiles.all()
        profiles = {
            LOCAL: "Built in, without a model",
            contract.CHEAPEST: "Cheapest model of the conversation's provider",
            **{each.name: each.name for each in listed},
        }
        with self._form:
            try:
                kind = contract.get(name)
            except ConfigError as error:
                ui.label(str(error)).classes("ef-bad ef-wrap")
                return
            is_set_here = name in (await self._scope.set_values()).get("strategy_config", {})
            config = settings.strategy_config.get(name, {})
            origin = "another level" if config else "default"
            if is_set_here:
                origin = SOURCES[self._scope.level]
            with ui.element("div").classes("ef-row"):
                ui.label(kind.name).classes("st-title")
                ui.label(f"from: {origin}").classes("st-source")
            await StrategyForm(self._scope, kind, config, profiles, self._refresh).build()
