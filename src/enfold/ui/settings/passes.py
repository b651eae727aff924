"""The passes of the smart strategy: their order, by mouse or by keyboard, and each one's editor."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from nicegui import ui
from nicegui.events import SortableEventArguments

from enfold.ui.settings.forms import Form, Holder, Schema, items_of
from enfold.ui.settings.labels import icon_button, labelled
from enfold.ui.settings.pass_editor import PassEditor

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
    """The list. One pass at a time is open."""

    def __init__(
        self, form: Form, schema: Schema, config: Holder, changed: Callable[[], None]
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
        """The passes in their order."""
        ui.label("Passes, in this order").classes("st-heading").props("role=heading aria-level=3")
        ui.label("Drag a pass by its handle, or move it with the arrows.").classes(
            "ef-soft ef-small"
        )
        self._list = labelled(ui.list().classes("st-passes ef-full"), "Passes")
        self._list.make_sortable(handle=".st-handle", on_end=self._dropped)
        self._empty = ui.label("No pass yet: only what is lossless is done.").classes("ef-soft")
        ui.button("Add a pass", icon="add", on_click=self._add).props("outline")
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
    """What a pass does, in a few words."""
    selection, execution = step.get("selection", {}), step.get("execution", {})
    by = {
        "preserve_recent": f"all but the newest {selection.get('keepRecentCount', '?')}",
        "preserve_percent": f"all but the newest {selection.get('keepPercentage', '?')} %",
        "custom": "named messages",
    }
    when = "always"
    if execution.get("type") == "conditional":
        mark = execution.get("condition", {}).get("tokenThreshold")
        when = f"above {mark:,} tokens" if isinstance(mark, int) else "above ? tokens"
    mode = "together" if step.get("mode") == "batch" else "one by one"
    return [mode, by.get(selection.get("type", ""), "?"), when]


def _numbered(name: str, number: int) -> str:
    return name if not number else f"{name}_{number + 1}"
