"""The form builder: draws any described model and shows every fault at its field.

A field is drawn from its `FieldDescription`. The settings, profiles and model limits are described
by their models; a strategy, which may come from another package, by its JSON schema. A form edits a
JSON value in place and reports every change. The engine validates the value: its faults have paths,
and each is shown at the field with that path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from enfold.fields import Fault, FieldDescription, FieldKind
from enfold.ui.widgets import icon_button

Schema: TypeAlias = Mapping[str, Any]
Holder: TypeAlias = dict[str, Any]
"""A JSON object that a form edits in place."""

_LONG = ("prompt", "text", "template")
"""A text field whose name ends with one of these has several lines."""
_KINDS: Mapping[str, FieldKind] = {
    "boolean": "flag",
    "integer": "integer",
    "number": "number",
    "array": "list",
    "object": "object",
}


def draw_field(
    about: FieldDescription,
    value: Any,
    *,
    choices: Mapping[str, str] | None = None,
    label: bool = True,
) -> Any:
    """Draw the control of a field: a switch, a list of choices, or a text field.

    `choices` are the values of a text that depend on stored data, such as names of profiles.
    """
    title = about.title if label else ""
    if about.kind == "flag":
        return ui.switch(title, value=bool(value))
    listed = dict(choices or about.choices or {})
    field: Any
    if listed and about.kind == "list":
        field = ui.select(listed, value=value or [], label=title, multiple=True).props("use-chips")
    elif listed:
        if value is not None and value not in listed:
            listed[value] = f"{value} (not available)"
        has_default = about.default is not None or not label
        field = ui.select(listed, value=value, label=title or None, clearable=not has_default)
        field.props("options-dense")
    elif about.kind in {"integer", "number"} and label:
        placeholder = "" if about.default is None else str(about.default)
        field = ui.number(title, value=value, placeholder=placeholder, suffix=about.unit or None)
    elif about.kind == "list":
        field = ui.input(title, value=", ".join(map(str, value or ())))
        field.props('hint="Separated by commas"')
    elif about.name.lower().endswith(_LONG):
        field = ui.textarea(title, value=value or "").props("autogrow")
    else:
        field = ui.input(
            title or None, value=value or "", placeholder=about.unset, suffix=about.unit or None
        )
        if about.kind in {"integer", "number"}:
            field.props("inputmode=decimal")
    return field.props("outlined dense").classes("ef-full")


def describe_schema(name: str, schema: Schema) -> FieldDescription:
    """Return the description of a field of a JSON schema."""
    values = schema.get("enum") or schema.get("items", {}).get("enum")
    words = schema.get("title") or re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", name).lower()
    kind = _KINDS.get(schema.get("type", ""), "text")
    return FieldDescription(
        name,
        name,
        words[:1].upper() + words[1:],
        schema.get("description", ""),
        "choice" if schema.get("enum") else kind,
        schema.get("default"),
        choices=schema.get("choices") or ({each: each for each in values} if values else None),
        unit=schema.get("unit", ""),
        unset=schema.get("unset", ""),
    )


def without_null(schema: Schema) -> tuple[Schema, bool]:
    """Return the schema of a value that is not null, and True if it may be null.

    Of several forms of the same value, the object with all its fields is returned.
    """
    variants = schema.get("anyOf")
    if not variants:
        return schema, False
    others = [each for each in variants if each.get("type") != "null"]
    inner = next((each for each in others if "properties" in each or "anyOf" in each), others[0])
    if "anyOf" in inner:
        inner, _ = without_null(inner)
    about = {key: item for key, item in schema.items() if key != "anyOf"}
    return {**inner, **about}, len(others) < len(variants)


def properties(schema: Schema) -> Mapping[str, Schema]:
    """Return the fields of an object by name."""
    found: Mapping[str, Schema] = without_null(schema)[0].get("properties", {})
    return found


def items_of(holder: Holder, name: str) -> list[Holder]:
    """Return the objects of a list in a config."""
    found: list[Holder] = holder.get(name, [])
    return found


class ConfigForm:
    """The fields of one JSON value."""

    def __init__(
        self, changed: Callable[[], None], *, choices: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """`choices` are the values of text fields by field name, such as names of profiles."""
        self._listeners: list[Callable[[], None]] = [changed]
        self._choices = choices or {}
        self._fields: dict[str, Any] = {}

    def add_object(
        self, schema: Schema, holder: Holder, path: str = "", *, without: Collection[str] = ()
    ) -> None:
        """Add all fields of an object."""
        for name, each in properties(schema).items():
            if name not in without:
                self.add_field(each, holder, name, path)

    def add_field(self, schema: Schema, holder: Holder, name: str, path: str = "") -> None:
        """Add one field of an object: a value, an object or a list of objects."""
        place = f"{path}.{name}" if path else name
        inner, is_optional = without_null(schema)
        if "properties" in inner:
            self._add_nested(inner, holder, name, place, is_optional=is_optional)
        elif inner.get("type") == "array" and "properties" in without_null(inner["items"])[0]:
            self._add_objects(inner, holder, name, place)
        else:
            items = inner.get("items", {}).get("type")
            self.add_described(describe_schema(name, inner), holder, place, items=items)

    def add_described(
        self, about: FieldDescription, holder: Holder, path: str = "", *, items: str | None = None
    ) -> Any:
        """Add the field of a description and return its control; `items` is the type of a list."""
        name = about.alias
        value = holder.get(name, about.default)
        with ui.element("div").classes("st-field"):
            field = draw_field(about, value, choices=self._choices.get(about.name))
            ui.label(about.help).classes("ef-soft ef-small st-help")

        def store(event: ValueChangeEventArguments[Any]) -> None:
            new = _parse(about, event.value, items)
            if new in (None, "", []):
                holder.pop(name, None)
            else:
                holder[name] = new
            self._changed()

        field.on_value_change(store)
        if about.kind != "flag":
            self._fields[path or name] = field.without_auto_validation()
        return field

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after every change."""
        self._listeners.append(listener)

    def show_faults(self, faults: Iterable[Fault]) -> list[Fault]:
        """Show every fault at its field and return those without a field."""
        by_path = {fault.path: fault for fault in faults}
        shown: set[str] = set()
        for path, field in self._fields.items():
            if field.is_deleted:
                continue
            fault = by_path.get(path)
            field.error = None if fault is None else fault.reason
            shown |= {path} if fault is not None else set()
        return [fault for path, fault in by_path.items() if path not in shown]

    def _changed(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _add_nested(
        self, schema: Schema, holder: Holder, name: str, path: str, *, is_optional: bool
    ) -> None:
        """Add an object inside an object; an optional one has a switch."""
        about = describe_schema(name, schema)
        with ui.expansion(about.title, caption=about.help).classes("st-nested") as part:
            inside = ui.element("div").classes("st-form")

        def build() -> None:
            inside.clear()
            if name in holder or not is_optional:
                with inside:
                    self.add_object(schema, holder.setdefault(name, {}), path)

        def switch(event: ValueChangeEventArguments[bool | None]) -> None:
            if event.value:
                holder[name] = {}
            else:
                holder.pop(name, None)
            build()
            self._changed()

        if is_optional:
            with part, ui.element("div").classes("st-field"):
                ui.switch(f"Set {about.title.lower()}", value=name in holder, on_change=switch)
            inside.move(part)
        build()

    def _add_objects(self, schema: Schema, holder: Holder, name: str, path: str) -> None:
        """Add a list of objects, with buttons to add and remove one."""
        about = describe_schema(name, schema)
        title = about.title.lower()
        holder.setdefault(name, list(schema.get("default", [])))
        with ui.expansion(about.title, caption=about.help).classes("st-nested"):
            inside = ui.element("div").classes("ef-stack")
            add = ui.button(f"Add to {title}", icon="add").props("flat dense")

        def change(items: list[Holder]) -> None:
            holder[name] = items
            self._changed()
            build()

        def build() -> None:
            inside.clear()
            with inside:
                for index, item in enumerate(holder[name]):
                    with ui.element("div").classes("st-form st-item"):
                        self.add_object(schema["items"], item, f"{path}[{index}]")
                        others = [each for at, each in enumerate(holder[name]) if at != index]
                        label = f"Remove {title} {index + 1}"
                        icon_button("delete", label, partial(change, others))

        add.on_click(lambda: change([*items_of(holder, name), {}]))
        build()


def _parse(about: FieldDescription, value: Any, items: str | None) -> Any:
    """Return the JSON value of a field. Text that should be a number is kept, and refused later."""
    if about.kind == "integer" and value is not None and float(value).is_integer():
        return int(value)
    if about.kind != "list" or isinstance(value, list):
        return value
    parts = [part.strip() for part in (value or "").split(",") if part.strip()]
    return [_number(part) for part in parts] if items in {"integer", "number"} else parts


def _number(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
