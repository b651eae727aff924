"""The editor of one pass: which messages, together or one by one, what is done, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nicegui import ui

from enfold.ui.settings.forms import Form, Holder, Schema, plain, properties
from enfold.ui.settings.labels import icon_button
from enfold.ui.settings.operations import CONTENT, operation_editor

SELECTIONS: Mapping[str, str] = {
    "preserve_recent": "All but the newest, by number",
    "preserve_percent": "All but the newest, by share",
    "custom": "Messages that are named",
}
MODES: Mapping[str, str] = {
    "batch": "Together: many messages become one summary",
    "individual": "One by one: each message is made smaller",
}
WHEN: Mapping[str, str] = {
    "always": "Always, until the target is reached",
    "conditional": "Only if more than so many tokens are left",
}
_SELECTED_BY: Mapping[str, Mapping[str, Any]] = {
    "preserve_recent": {"keepRecentCount": 10},
    "preserve_percent": {"keepPercentage": 30},
    "custom": {"roles": ["tool"]},
}
"""What each selection asks for, and what it begins with."""
_SHOWN_FOR = {
    "preserve_recent": ("keepRecentCount",),
    "preserve_percent": ("keepPercentage",),
    "custom": ("roles", "indexes"),
}
_KEEP = {"operation": "keep"}


class PassEditor:
    """The fields of one pass."""

    def __init__(
        self, form: Form, schema: Schema, step: Holder, path: str, changed: Callable[[], None]
    ) -> None:
        self._form = form
        self._fields = properties(schema)
        self._pass = step
        self._path = path
        self._changed = changed

    def build(self) -> None:
        """Everything that can be set of the pass."""
        with ui.element("div").classes("st-form"):
            for name in ("name", "id", "description"):
                self._form.field(self._fields[name], self._pass, name, self._path)
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
        part = self._part("Which messages", "What this pass looks at.")
        with part:
            choice = ui.select(dict(SELECTIONS), value=holder["type"], label="Selection")
            choice.props("outlined dense").classes("ef-full st-wide")
            inside = ui.element("div").classes("st-form st-wide")

        def build() -> None:
            inside.clear()
            with inside:
                for name in _SHOWN_FOR[holder["type"]]:
                    self._form.field(fields[name], holder, name, path)

        def choose() -> None:
            holder.clear()
            holder.update({"type": choice.value, **_SELECTED_BY[choice.value]})
            build()
            self._changed()

        choice.on_value_change(choose)
        build()

    def _mode(self) -> None:
        part = self._part("What is done", "Together or one by one, and how.")
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
            self._form.field(fields["operation"], holder, "operation", path)
            own = holder.setdefault("summarizationConfig", {})
            self._form.object(fields["summarizationConfig"], own, f"{path}.summarizationConfig")

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
        """Other operations for some messages, by their number."""
        items: list[Holder] = holder.setdefault("overrides", [])
        item = properties(plain(schema)[0]["items"])
        with ui.expansion("Other operations for some messages", value=bool(items)).classes(
            "st-nested"
        ):
            inside = ui.element("div").classes("ef-stack")
            add = ui.button("Add a message", icon="add").props("flat dense")

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
                    self._form.field(fields["messageIndex"], holder, "messageIndex", path)
                label = f"Remove the {index + 1}. message with other operations"
                icon_button("delete", label).on_click(remove)
            with ui.element("div").classes("st-operations"):
                own = holder.setdefault("operations", {})
                for name in CONTENT:
                    place = f"{path}.operations"
                    operation_editor(self._form, operations[name], own, name, place, self._changed)

    def _execution(self) -> None:
        holder = self._pass.setdefault("execution", {"type": "always"})
        part = self._part("When it runs", "Passes run in their order, until the target is reached.")
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
                    self._form.field(
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
