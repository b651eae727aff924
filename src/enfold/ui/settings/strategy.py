"""The strategy section: choice, comparison, config, and the passes of the smart strategy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.events import SortableEventArguments

from enfold import fields
from enfold.engine import Preview
from enfold.errors import ConfigError
from enfold.messages import Message, Text, text_of
from enfold.settings import Settings
from enfold.strategies import contract
from enfold.strategies.contract import Capabilities, StrategyKind
from enfold.strategies.smart.config import OperationConfig, Operations
from enfold.strategies.smart.passes import Editor, marked
from enfold.tokens import get
from enfold.ui import figures
from enfold.ui.settings.forms import ConfigForm, Holder, Schema, items_of, properties, without_null
from enfold.ui.settings.scope import SOURCES, Scope, choose_scope, session_choices
from enfold.ui.widgets import card, icon_button, labelled
from enfold.ui.window import Window

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


EXPLAINED: Mapping[str, str] = {
    "keep": "Unchanged.",
    "suppress": "Replaced by a marker.",
    "truncate": "Shortened to its start.",
    "summarize": "Summarized by a model or the built-in summarizer.",
}
CONTENT: Mapping[str, str] = {
    "messageText": "Message text",
    "toolParameters": "Tool parameters",
    "toolResults": "Tool results",
}
USUAL = "as usual"
"""The choice of the operation that applies to other messages."""
_STARTS: Mapping[str, Mapping[str, Any]] = {
    "truncate": {"truncate": {"maxChars": 500, "maxLines": 10, "addEllipsis": True}},
    "summarize": {"summarize": {"maxTokens": 150}},
}
"""The first parameters of an operation."""


def operation_editor(
    form: ConfigForm,
    schema: Schema,
    holder: Holder,
    name: str,
    path: str,
    changed: Callable[[], None],
) -> None:
    """Show the operation of one type of content and its parameters."""
    place = f"{path}.{name}"
    title = CONTENT[name]
    inner, may_be_open = without_null(schema)
    choices = {USUAL: "The same as for the other messages."} if may_be_open else {}
    choices |= EXPLAINED
    start = USUAL if may_be_open else "keep"
    with labelled(ui.element("div").classes("st-operation").props("role=group"), title):
        ui.label(title).classes("st-title")
        ui.label(schema.get("description", "")).classes("ef-soft ef-small")
        current = holder.get(name, {}).get("operation", start)
        choice = ui.toggle(list(choices), value=current).props("no-caps dense unelevated")
        labelled(choice.classes("st-toggle"), f"Operation on {title.lower()}")
        explained = ui.label().classes("ef-small ef-soft")
        inside = ui.element("div").classes("st-form")
        with ui.expansion("Example").classes("st-nested").props("dense"):
            shown = labelled(ui.element("pre").classes("st-prompt"), f"Example of {title.lower()}")
            with shown.props("tabindex=0 role=region"):
                example = ui.label()

    def build() -> None:
        operation = holder.get(name, {}).get("operation", start)
        explained.text = choices[operation]
        inside.clear()
        if operation not in _STARTS:
            return
        params = holder[name].setdefault("params", {})
        own = params.setdefault(operation, dict(_STARTS[operation][operation]))
        fields = properties(properties(inner)["params"])[operation]
        with inside:
            form.add_object(fields, own, f"{place}.params.{operation}")

    def show_effect() -> None:
        if not example.is_deleted:
            example.text = effect(holder.get(name, {"operation": "keep"})) or "…"

    def choose() -> None:
        operation = choice.value
        holder[name] = {"operation": operation}
        if operation == USUAL:
            del holder[name]
        elif operation in _STARTS:
            begin = _STARTS[operation][operation]
            holder[name]["params"] = {operation: dict(begin)}
        build()
        show_effect()
        changed()

    choice.on_value_change(choose)
    form.subscribe(show_effect)
    build()
    show_effect()


SELECTIONS: Mapping[str, str] = {
    "preserve_recent": "All but the most recent, by number",
    "preserve_percent": "All but the most recent, by share",
    "custom": "Selected messages",
}
MODES: Mapping[str, str] = {
    "batch": "Batch: one summary of many messages",
    "individual": "Individual: each message is shortened",
}
WHEN: Mapping[str, str] = {
    "always": "Always, until the target is reached",
    "conditional": "Only above a number of tokens",
}
_SELECTED_BY: Mapping[str, Mapping[str, Any]] = {
    "preserve_recent": {"keepRecentCount": 10},
    "preserve_percent": {"keepPercentage": 30},
    "custom": {"roles": ["tool"]},
}
"""The first values of each selection."""
_SHOWN_FOR = {
    "preserve_recent": ("keepRecentCount",),
    "preserve_percent": ("keepPercentage",),
    "custom": ("roles", "indexes"),
}
_KEEP = {"operation": "keep"}


class PassEditor:
    """The form of one pass."""

    def __init__(
        self, form: ConfigForm, schema: Schema, step: Holder, path: str, changed: Callable[[], None]
    ) -> None:
        self._form = form
        self._fields = properties(schema)
        self._pass = step
        self._path = path
        self._changed = changed

    def build(self) -> None:
        """Show all fields of the pass."""
        with ui.element("div").classes("st-form"):
            for name in ("name", "id", "description"):
                self._form.add_field(self._fields[name], self._pass, name, self._path)
        self._selection()
        self._mode()
        self._execution()

    def _part(self, title: str, help_text: str) -> ui.element:
        ui.label(title).classes("st-title")
        ui.label(help_text).classes("ef-soft ef-small")
        return ui.element("div").classes("st-form")

    def _selection(self) -> None:
        holder = self._pass.setdefault("selection", {"type": "preserve_recent"})
        fields = properties(self._fields["selection"])
        path = f"{self._path}.selection"
        part = self._part("Which messages", "The messages that this pass changes.")
        with part:
            choice = ui.select(dict(SELECTIONS), value=holder["type"], label="Selection")
            choice.props("outlined dense").classes("ef-full st-wide")
            inside = ui.element("div").classes("st-form st-wide")

        def build() -> None:
            inside.clear()
            with inside:
                for name in _SHOWN_FOR[holder["type"]]:
                    self._form.add_field(fields[name], holder, name, path)

        def choose() -> None:
            holder.clear()
            holder.update({"type": choice.value, **_SELECTED_BY[choice.value]})
            build()
            self._changed()

        choice.on_value_change(choose)
        build()

    def _mode(self) -> None:
        part = self._part("Operation", "Batch or individual, and its parameters.")
        with part:
            choice = ui.select(dict(MODES), value=self._pass["mode"], label="Mode")
            choice.props("outlined dense").classes("ef-full st-wide")
        inside = ui.element("div").classes("ef-stack")
        builders = {"batch": self._batch, "individual": self._individual}

        def build() -> None:
            inside.clear()
            with inside:
                builders[self._pass["mode"]]()

        def choose() -> None:
            self._pass["mode"] = choice.value
            self._pass.pop("individualConfig" if choice.value == "batch" else "batchConfig", None)
            build()
            self._changed()

        choice.on_value_change(choose)
        build()

    def _batch(self) -> None:
        holder = self._pass.setdefault(
            "batchConfig",
            {"operation": "summarize", "summarizationConfig": {"keepFirst": 1, "keepLast": 3}},
        )
        fields = properties(self._fields["batchConfig"])
        path = f"{self._path}.batchConfig"
        with ui.element("div").classes("st-form"):
            self._form.add_field(fields["operation"], holder, "operation", path)
            own = holder.setdefault("summarizationConfig", {})
            self._form.add_object(fields["summarizationConfig"], own, f"{path}.summarizationConfig")

    def _individual(self) -> None:
        holder = self._pass.setdefault(
            "individualConfig", {"defaults": {name: dict(_KEEP) for name in CONTENT}}
        )
        fields = properties(self._fields["individualConfig"])
        defaults = properties(fields["defaults"])
        path = f"{self._path}.individualConfig.defaults"
        with ui.element("div").classes("st-operations"):
            for name in CONTENT:
                operation_editor(
                    self._form, defaults[name], holder["defaults"], name, path, self._changed
                )
        self._overrides(holder, fields["overrides"])

    def _overrides(self, holder: Holder, schema: Schema) -> None:
        """Show the operations of single messages, by number."""
        items: list[Holder] = holder.setdefault("overrides", [])
        item = properties(without_null(schema)[0]["items"])
        with ui.expansion("Operations for single messages", value=bool(items)).classes("st-nested"):
            inside = ui.element("div").classes("ef-stack")
            add = ui.button("Add message", icon="add").props("flat dense")

        def build() -> None:
            inside.clear()
            with inside:
                for index, each in enumerate(items):
                    self._override(item, each, index, partial(remove, index))

        def remove(index: int) -> None:
            del items[index]
            build()
            self._changed()

        def append() -> None:
            items.append({"messageIndex": 0, "operations": {"toolResults": dict(_KEEP)}})
            build()
            self._changed()

        add.on_click(append)
        build()

    def _override(
        self, fields: Mapping[str, Schema], holder: Holder, index: int, remove: Callable[[], None]
    ) -> None:
        path = f"{self._path}.individualConfig.overrides[{index}]"
        operations = properties(fields["operations"])
        with ui.element("div").classes("st-item ef-stack"):
            with ui.element("div").classes("ef-row"):
                with ui.element("div").classes("ef-grow"):
                    self._form.add_field(fields["messageIndex"], holder, "messageIndex", path)
                label = f"Remove operations of message {index + 1}"
                icon_button("delete", label).on_click(remove)
            with ui.element("div").classes("st-operations"):
                own = holder.setdefault("operations", {})
                for name in CONTENT:
                    place = f"{path}.operations"
                    operation_editor(self._form, operations[name], own, name, place, self._changed)

    def _execution(self) -> None:
        holder = self._pass.setdefault("execution", {"type": "always"})
        part = self._part("Execution", "Passes run in order until the target is reached.")
        with part:
            choice = ui.select(dict(WHEN), value=holder["type"], label="Execution")
            choice.props("outlined dense").classes("ef-full st-wide")
            inside = ui.element("div").classes("st-form st-wide")
        condition = properties(properties(self._fields["execution"])["condition"])

        def build() -> None:
            inside.clear()
            if holder["type"] == "conditional":
                path = f"{self._path}.execution.condition"
                with inside:
                    self._form.add_field(
                        condition["tokenThreshold"], holder["condition"], "tokenThreshold", path
                    )

        def choose() -> None:
            holder.clear()
            holder["type"] = choice.value
            if choice.value == "conditional":
                holder["condition"] = {"tokenThreshold": 40_000}
            build()
            self._changed()

        choice.on_value_change(choose)
        build()


PASSES = "passes"
_NEW: Holder = {
    "name": "New pass",
    "description": "",
    "selection": {"type": "preserve_recent", "keepRecentCount": 10},
    "mode": "individual",
    "individualConfig": {
        "defaults": {
            "messageText": {"operation": "keep"},
            "toolParameters": {"operation": "keep"},
            "toolResults": {
                "operation": "truncate",
                "params": {"truncate": {"maxChars": 500, "maxLines": 10, "addEllipsis": True}},
            },
        }
    },
    "execution": {"type": "always"},
}


class PassList:
    """The list of passes; one at a time is expanded."""

    def __init__(
        self, form: ConfigForm, schema: Schema, config: Holder, changed: Callable[[], None]
    ) -> None:
        self._form = form
        self._item = schema["items"]
        self._config = config
        self._changed = changed
        self._open: int | None = None

    @property
    def _passes(self) -> list[Holder]:
        return items_of(self._config, PASSES)

    def build(self) -> None:
        """Show the passes in order."""
        ui.label("Passes").classes("st-heading").props("role=heading aria-level=3")
        ui.label("Drag a pass by its handle, or move it with the arrows.").classes(
            "ef-soft ef-small"
        )
        self._list = labelled(ui.list().classes("st-passes ef-full"), "Passes")
        self._list.make_sortable(handle=".st-handle", on_end=self._dropped)
        self._empty = ui.label("No pass yet: only lossless changes are made.").classes("ef-soft")
        ui.button("Add pass", icon="add", on_click=self._add).props("outline")
        self._show()

    def _show(self) -> None:
        self._list.clear()
        self._empty.set_visibility(not self._passes)
        with self._list:
            for index, step in enumerate(self._passes):
                self._row(index, step)

    def _row(self, index: int, step: Holder) -> None:
        name = step.get("name") or f"pass {index + 1}"
        with labelled(ui.element("div").classes("st-pass").props("role=listitem"), name):
            with ui.element("div").classes("st-pass-head"):
                ui.icon("drag_indicator").classes("st-handle").props("aria-hidden=true")
                with ui.element("div").classes("ef-grow"):
                    ui.label(f"{index + 1}. {name}").classes("st-title")
                    with ui.element("div").classes("ef-row"):
                        for badge in badges(step):
                            ui.label(badge).classes("st-badge")
                self._buttons(index, name)
            if self._open == index:
                with ui.element("div").classes("st-pass-body"):
                    path = f"{PASSES}[{index}]"
                    PassEditor(self._form, self._item, step, path, self._changed).build()

    def _buttons(self, index: int, name: str) -> None:
        last = len(self._passes) - 1
        with ui.element("div").classes("ef-row-tight"):
            self._button(
                "arrow_upward", f"Move {name} up", lambda: self._move(index, index - 1)
            ).set_enabled(index > 0)
            self._button(
                "arrow_downward", f"Move {name} down", lambda: self._move(index, index + 1)
            ).set_enabled(index < last)
            self._button("content_copy", f"Duplicate {name}", lambda: self._duplicate(index))
            self._button("delete", f"Delete {name}", lambda: self._delete(index))
            is_open = self._open == index
            label = f"Close {name}" if is_open else f"Edit {name}"
            edit = self._button(
                "expand_less" if is_open else "edit", label, lambda: self._toggle(index)
            )
            edit.props(f"aria-expanded={'true' if is_open else 'false'}")

    def _button(self, icon: str, label: str, action: Callable[[], None]) -> ui.button:
        return icon_button(icon, label).on_click(action)

    def _dropped(self, event: SortableEventArguments) -> None:
        self._move(event.old_index, event.new_index)

    def _move(self, start: int, end: int) -> None:
        if not 0 <= end < len(self._passes):
            return
        opened = None if self._open is None else self._passes[self._open]
        self._passes.insert(end, self._passes.pop(start))
        if opened is not None:
            self._open = next(at for at, each in enumerate(self._passes) if each is opened)
        self._again()

    def _add(self) -> None:
        self._passes.append({"id": self._free_id("new_pass"), **deepcopy(_NEW)})
        self._open = len(self._passes) - 1
        self._again()

    def _duplicate(self, index: int) -> None:
        copy = deepcopy(self._passes[index])
        copy["id"] = self._free_id(copy.get("id") or "pass")
        copy["name"] = f"{copy.get('name', '')} (copy)"
        self._passes.insert(index + 1, copy)
        self._open = index + 1
        self._again()

    def _delete(self, index: int) -> None:
        del self._passes[index]
        self._open = None
        self._again()

    def _toggle(self, index: int) -> None:
        self._open = None if self._open == index else index
        self._show()
        self._changed()

    def _again(self) -> None:
        self._show()
        self._changed()

    def _free_id(self, wanted: str) -> str:
        taken = {each.get("id") for each in self._passes}
        return next(
            name for n in range(len(taken) + 2) if (name := _numbered(wanted, n)) not in taken
        )


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
        mark = execution.get("condition", {}).get("tokenThreshold")
        when = f"above {mark:,} tokens" if isinstance(mark, int) else "above ? tokens"
    mode = "batch" if step.get("mode") == "batch" else "individual"
    return [mode, by.get(selection.get("type", ""), "?"), when]


def _numbered(name: str, number: int) -> str:
    return name if not number else f"{name}_{number + 1}"


MEASURED = (
    "Measured on 3,066,126 tokens of real agent sessions with the built-in summarizer, on two "
    "cores (benchmarks/README.md). Results differ between conversations: use the preview below."
)


@dataclass(frozen=True, slots=True)
class StrategyFacts:
    """The properties of a strategy."""

    kept: str
    lost: str
    asks: str
    reduction: str
    speed: str
    best_for: str


CHARACTERS: Mapping[str, StrategyFacts] = {
    "native": StrategyFacts(
        kept="The first and the most recent messages verbatim, one summary of the rest",
        lost="The wording of summarized messages; it stays in the store",
        asks="One call per summary; none with the built-in summarizer",
        reduction="89 %",
        speed="0.2 million tokens per second, or the time of the model",
        best_for="Most conversations (default)",
    ),
    "lossless": StrategyFacts(
        kept="Everything: repeats become references, output is encoded more tightly",
        lost="Nothing",
        asks="No",
        reduction="18 %",
        speed="0.3 million tokens per second",
        best_for="Exact wording, and agents that read the same files repeatedly",
    ),
    "truncation": StrategyFacts(
        kept="Message text, and the start of old tool output and parameters",
        lost="The rest of old tool output; it stays in the store",
        asks="No",
        reduction="54 %",
        speed="1.5 million tokens per second",
        best_for="Speed, and sessions with much tool output",
    ),
    "smart": StrategyFacts(
        kept="By default lossless changes first, then shorter output, then a summary",
        lost="Depends on its passes",
        asks="Depends on its passes",
        reduction="84 % with its default passes",
        speed="0.2 million tokens per second, or the time of the model",
        best_for="Different operations per type of content",
    ),
}
_ROWS: Mapping[str, str] = {
    "kept": "Kept",
    "lost": "Removed from the view",
    "asks": "Calls a model",
    "reduction": "Tokens saved",
    "speed": "Speed",
    "best_for": "When to use it",
}


def comparison_table() -> None:
    """Show the strategies side by side."""
    with (
        ui.element("div").classes("st-scroll"),
        labelled(ui.element("table").classes("st-table st-compare"), "Strategies compared"),
    ):
        with ui.element("tr"):
            for title in ("", *(name.capitalize() for name in CHARACTERS)):
                with ui.element("th").props("scope=col"):
                    ui.label(title)
        for field, title in _ROWS.items():
            with ui.element("tr"):
                with ui.element("th").props("scope=row"):
                    ui.label(title)
                for each in CHARACTERS.values():
                    with ui.element("td"):
                        ui.label(getattr(each, field))
    ui.label(MEASURED).classes("ef-soft ef-small")


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
            field = ui.select(choices, value=start, label="Preview session")
            field.classes("st-scope").props("outlined dense options-dense")
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
            _show(found)

    button.on_click(run)


def _show(found: Preview) -> None:
    with ui.element("div").classes("ef-row"):
        figures.count(found.tokens_before, "tokens")
        ui.icon("arrow_forward").props("aria-label=become")
        figures.estimate(
            found.tokens_after, "tokens", "An estimate: the summary is not written yet."
        ).classes("st-big")
        gone = 1 - found.tokens_after / found.tokens_before if found.tokens_before else 0.0
        ui.label(f"{figures.share_text(gone)} less").classes("ef-good")
    ui.label(
        f"{found.messages:,} messages would be summarized or shortened, "
        f"{found.kept_messages:,} stay unchanged. Summaries by {found.author}."
    ).classes("ef-small")
    with ui.element("div").classes("ef-row ef-small"):
        ui.label("Cost:")
        figures.money(found.cost, is_estimate=bool(found.cost), why="Based on current prices.")
    if found.steps:
        with labelled(ui.element("table").classes("st-table"), "Steps"):
            _line("th", ("Step", "Before", "After", "Less"))
            for step in found.steps:
                figures_of = (f"{step.tokens_before:,}", f"{step.tokens_after:,}")
                _line("td", (step.name, *figures_of, figures.share_text(max(0.0, step.reduction))))
    for warning in found.warnings:
        ui.label(warning).classes("ef-small ef-warm ef-wrap")


def _line(cell: str, texts: tuple[str, ...]) -> None:
    with ui.element("tr"):
        for text in texts:
            with ui.element(cell):
                ui.label(text)


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
        self._config = complete(kind, config)

    async def build(self) -> None:
        """Show the fields, their faults and the buttons."""
        schema = self._kind.schema()
        self._form = ConfigForm(self._check, choices={"apiProfile": self._profiles})
        own_editor = (PASSES,) if self._kind.id == "smart" else ()
        with ui.element("div").classes("st-form"):
            self._form.add_object(schema, self._config, without=own_editor)
        if own_editor:
            PassList(self._form, schema["properties"][PASSES], self._config, self._check).build()
        self._problems = ui.element("div").props("role=status").classes("ef-stack")
        with ui.element("div").classes("ef-row"):
            self._save = ui.button("Save config", icon="save", on_click=self._keep)
            self._save.props("unelevated")
            reset = ui.button("Reset config", icon="undo", on_click=self._reset)
            reset.props("flat")
            for button in (self._save, reset):
                button.set_enabled(self._scope.may_change)
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
        await self._scope.set_config(self._kind.id, self._config)
        ui.notify("Saved. It applies from the next compression on.", type="positive")
        await self._kept()

    async def _reset(self) -> None:
        await self._scope.set_config(self._kind.id, None)
        ui.notify("Reset. The inherited config applies.", type="positive")
        await self._kept()


def complete(kind: StrategyKind[Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with all defaults; an invalid config is returned unchanged."""
    try:
        found: dict[str, Any] = fields.write(kind.read(config))
    except ConfigError:
        return deepcopy(dict(config))
    return deepcopy(found)


async def strategy(window: Window) -> None:
    """Build the section."""
    await StrategySection(window).build()


class StrategySection:
    """The list of strategies and the form of one of them."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._scope = Scope(window)
        self._edited: str | None = None

    async def build(self) -> None:
        """Build the page, then show the strategies."""
        chooser = ui.element("div")
        with card("Strategy", "How the view is condensed when a compression is due."):
            self._source = ui.element("div").classes("ef-row")
            self._choices = labelled(ui.element("div").classes("st-choices"), "Strategies")
            with ui.expansion("Compare strategies", icon="table_chart").classes("st-advanced"):
                comparison_table()
        self._config = card("Config", "The options of the strategy chosen above.")
        with self._config:
            self._form = ui.element("div").classes("ef-stack")
        with chooser:
            await choose_scope(self._window, self._follow)

    async def _follow(self, scope: Scope) -> None:
        self._scope = scope
        self._edited = None
        await self._refresh()

    async def _refresh(self) -> None:
        settings = await self._scope.settings()
        self._edited = self._edited or settings.strategy
        self._choices.clear()
        with self._choices:
            for name in contract.names():
                self._choice(name, settings)
        self._show_source(settings)
        await self._show_form(settings)

    def _show_source(self, settings: Settings) -> None:
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
                reset = ui.button("Reset", icon="undo", on_click=lambda: self._use(None))
                labelled(reset.props("flat dense"), "Reset strategy")

    def _choice(self, name: str, settings: Settings) -> None:
        in_use, edited = settings.strategy == name, self._edited == name
        classes = "st-choice" + (" st-chosen" if edited else "")
        try:
            kind: StrategyKind[Any] | None = contract.get(name)
            about = kind.description if kind is not None else ""
        except ConfigError as error:
            kind, about = None, str(error)
        with labelled(ui.element("article").classes(classes), kind.name if kind else name):
            with ui.element("div").classes("ef-row"):
                ui.label(kind.name if kind else name).classes("st-title")
                if in_use:
                    ui.label("in use").classes("st-badge st-own")
            ui.label(about).classes("ef-small ef-wrap")
            if kind is None:
                return
            facts = CHARACTERS.get(name)
            words = facts.best_for if facts else ", ".join(traits(kind.capabilities))
            ui.label(words).classes("ef-soft ef-small ef-wrap")
            with ui.element("div").classes("ef-row"):
                if not in_use:
                    use = ui.button("Use", on_click=lambda: self._use(name)).props("outline dense")
                    labelled(use, f"Use {kind.name}").set_enabled(self._scope.may_change)
                edit = ui.button("Configure", on_click=lambda: self._edit(name)).props("flat dense")
                labelled(edit, f"Configure {kind.name}")

    async def _use(self, name: str | None) -> None:
        await self._scope.set("strategy", name)
        self._edited = name
        await self._refresh()

    async def _drop_preset(self) -> None:
        await self._scope.set("preset", None)
        self._edited = None
        await self._refresh()

    async def _edit(self, name: str) -> None:
        self._edited = name
        await self._refresh()

    async def _show_form(self, settings: Settings) -> None:
        name = self._edited or settings.strategy
        self._form.clear()
        listed = await self._window.engine.profiles.all()
        profiles = {each.name: each.name for each in listed}
        with self._form:
            try:
                kind = contract.get(name)
            except ConfigError as error:
                ui.label(str(error)).classes("ef-bad ef-wrap")
                return
            own = (await self._scope.set_values()).get("strategy_config", {})
            config = settings.strategy_config.get(name, {})
            with ui.element("div").classes("ef-row"):
                ui.label(kind.name).classes("st-title")
                ui.label(_origin(name, own, config, self._scope)).classes("st-source")
            await StrategyForm(self._scope, kind, config, profiles, self._refresh).build()


def _origin(name: str, own: dict[str, Any], config: Any, scope: Scope) -> str:
    """Return the level of a strategy's config."""
    if name in own:
        return f"from: {SOURCES[scope.level]}"
    return "from: another level" if config else "from: default"
