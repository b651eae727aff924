"""Operations: what becomes of one type of content, chosen and adjusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nicegui import ui

from enfold.ui.settings.effects import effect
from enfold.ui.settings.forms import Form, Holder, Schema, plain, properties
from enfold.ui.settings.labels import labelled

EXPLAINED: Mapping[str, str] = {
    "keep": "It stays as it is.",
    "suppress": "It is taken out of view, a marker stays in its place.",
    "truncate": "Its beginning stays.",
    "summarize": "It is written shorter, by a model or by the built-in summarizer.",
}
CONTENT: Mapping[str, str] = {
    "messageText": "Message text",
    "toolParameters": "Tool parameters",
    "toolResults": "Tool results",
}
USUAL = "as usual"
"""Where an operation may be left open: that of the other messages."""
_STARTS: Mapping[str, Mapping[str, Any]] = {
    "truncate": {"truncate": {"maxChars": 500, "maxLines": 10, "addEllipsis": True}},
    "summarize": {"summarize": {"maxTokens": 150}},
}
"""What an operation begins with where nothing was said of it."""


def operation_editor(
    form: Form, schema: Schema, holder: Holder, name: str, path: str, changed: Callable[[], None]
) -> None:
    """The operation of one type of content: which one, and how. A holder without it is as usual."""
    place = f"{path}.{name}"
    title = CONTENT[name]
    inner, may_be_open = plain(schema)
    known = {USUAL: "It is treated like that of the other messages."} if may_be_open else {}
    known |= EXPLAINED
    start = USUAL if may_be_open else "keep"
    with labelled(ui.element("div").classes("st-operation").props("role=group"), title):
        ui.label(title).classes("st-title")
        ui.label(schema.get("description", "")).classes("ef-soft ef-small")
        current = holder.get(name, {}).get("operation", start)
        choice = ui.toggle(list(known), value=current).props("no-caps dense unelevated")
        labelled(choice.classes("st-toggle"), f"What becomes of {title.lower()}")
        explained = ui.label().classes("ef-small ef-soft")
        inside = ui.element("div").classes("st-form")
        with ui.expansion("Example").classes("st-nested").props("dense"):
            shown = labelled(ui.element("pre").classes("st-prompt"), f"Example of {title.lower()}")
            with shown.props("tabindex=0 role=region"):
                example = ui.label()

    def build() -> None:
        operation = holder.get(name, {}).get("operation", start)
        explained.text = known[operation]
        inside.clear()
        if operation not in _STARTS:
            return
        params = holder[name].setdefault("params", {})
        own = params.setdefault(operation, dict(_STARTS[operation][operation]))
        fields = properties(properties(inner)["params"])[operation]
        with inside:
            form.object(fields, own, f"{place}.params.{operation}")

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
    form.tell(show_effect)
    build()
    show_effect()
