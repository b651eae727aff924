"""Forms: fields for a config, made from its JSON schema, whoever wrote the strategy.

A form works on a JSON value in place and tells of every change. What is wrong is the engine's word:
it comes back as faults with paths, and each is shown at its field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.events import ValueChangeEventArguments

from enfold.fields import Fault
from enfold.ui.settings.scope import icon_button

Schema: TypeAlias = Mapping[str, Any]
Holder: TypeAlias = dict[str, Any]

_LONG = ("prompt", "text", "template")
"""A text whose name ends so is written on several lines."""


def title_of(name: str) -> str:
    """A field's name for people: `keepFirst` is `Keep first`."""
    words = re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", name).replace("_", " ").lower()
    return words[:1].upper() + words[1:]


def plain(schema: Schema) -> tuple[Schema, bool]:
    """What a value may be beside null and beside a shorthand, and whether it may be absent."""
    variants = schema.get("anyOf")
    if not variants:
        return schema, False
    others = [each for each in variants if each.get("type") != "null"]
    inner = next((each for each in others if "properties" in each or "anyOf" in each), others[0])
    if "anyOf" in inner:
        inner, _ = plain(inner)
    about = {key: schema[key] for key in ("description", "default") if key in schema}
    return {**inner, **about}, len(others) < len(variants)


def properties(schema: Schema) -> Mapping[str, Schema]:
    """The fields of an object."""
    found: Mapping[str, Schema] = plain(schema)[0].get("properties", {})
    return found


class ConfigForm:
    """The fields of one config."""

    def __init__(
        self, changed: Callable[[], None], *, choices: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """`choices` are for texts of that name that can only be some things, such as profiles."""
        self._told: list[Callable[[], None]] = [changed]
        self._choices = choices or {}
        self._fields: dict[str, ValidationElement[Any]] = {}

    def object(
        self, schema: Schema, holder: Holder, path: str = "", *, without: Collection[str] = ()
    ) -> None:
        """All fields of an object."""
        for name, each in properties(schema).items():
            if name not in without:
                self.field(each, holder, name, path)

    def field(
        self, schema: Schema, holder: Holder, name: str, path: str = "", *, title: str = ""
    ) -> None:
        """One field of an object, whatever it holds."""
        place = f"{path}.{name}" if path else name
        inner, optional = plain(schema)
        title = title or title_of(name)
        if "properties" in inner:
            self._nested(inner, holder, name, place, optional=optional)
        elif inner.get("type") == "array" and "properties" in plain(inner["items"])[0]:
            self._objects(inner, holder, name, place)
        else:
            with ui.element("div").classes("st-field"):
                self._leaf(inner, holder, name, place, title)

    def tell(self, listener: Callable[[], None]) -> None:
        """Let somebody else know of every change too."""
        self._told.append(listener)

    def _changed(self) -> None:
        for listener in tuple(self._told):
            listener()

    def show(self, faults: Iterable[Fault]) -> list[Fault]:
        """Every fault at its field; those that have none are given back."""
        by_path = {fault.path: fault for fault in faults}
        shown: set[str] = set()
        for path, field in self._fields.items():
            if field.is_deleted:
                continue
            fault = by_path.get(path)
            field.error = None if fault is None else fault.reason
            shown |= {path} if fault is not None else set()
        return [fault for path, fault in by_path.items() if path not in shown]

    def _keep(self, holder: Holder, name: str, value: Any) -> None:
        if value in (None, ""):
            holder.pop(name, None)
        else:
            holder[name] = value
        self._changed()

    def _leaf(self, schema: Schema, holder: Holder, name: str, path: str, title: str) -> None:
        kind, words = schema.get("type"), schema.get("description", "")
        value = holder.get(name, schema.get("default"))
        if kind == "boolean":
            ui.switch(
                title, value=bool(value), on_change=lambda e: self._keep(holder, name, e.value)
            )
            ui.label(words).classes("ef-soft ef-small st-help")
            return
        field = self._control(schema, holder, name, title, value)
        field.props("outlined dense").classes("ef-full").without_auto_validation()
        self._fields[path] = field
        ui.label(words).classes("ef-soft ef-small st-help")

    def _control(
        self, schema: Schema, holder: Holder, name: str, title: str, value: Any
    ) -> ValidationElement[Any]:
        kind = schema.get("type")
        known: Mapping[str, str] | list[str] | None = schema.get("enum") or self._choices.get(name)
        if known:
            choices = dict(known) if isinstance(known, Mapping) else {each: each for each in known}
            if value is not None and value not in choices:
                choices[value] = f"{value} (not there)"
            select = ui.select(choices, value=value, label=title, clearable="default" not in schema)
            return select.on_value_change(lambda e: self._keep(holder, name, e.value))
        if kind in {"integer", "number"}:
            number = ui.number(title, value=value, placeholder=str(schema.get("default", "")))
            return number.on_value_change(
                lambda e: self._keep(holder, name, _number(e.value, kind))
            )
        if kind == "array":
            return self._items(schema, holder, name, title, value)
        if name.lower().endswith(_LONG):
            area = ui.textarea(title, value=value or "").props("autogrow")
            return area.on_value_change(lambda e: self._keep(holder, name, e.value))
        text = ui.input(title, value=value or "")
        return text.on_value_change(lambda e: self._keep(holder, name, e.value))

    def _items(
        self, schema: Schema, holder: Holder, name: str, title: str, value: Any
    ) -> ValidationElement[Any]:
        """Several values in one field: chosen from a list, or with commas between."""
        items = schema["items"]
        if items.get("enum"):
            chosen = ui.select(items["enum"], value=value or [], label=title, multiple=True)
            chosen.props("use-chips")
            return chosen.on_value_change(lambda e: self._keep(holder, name, e.value or None))
        text = ui.input(title, value=", ".join(map(str, value or ())))
        text.props('hint="With commas between"')
        return text.on_value_change(
            lambda e: self._keep(holder, name, _several(e.value, items.get("type")))
        )

    def _nested(
        self, schema: Schema, holder: Holder, name: str, path: str, *, optional: bool
    ) -> None:
        """An object within; one that may be absent has a switch."""
        about = schema.get("description", "")
        with ui.expansion(title_of(name), caption=about).classes("st-nested") as part:
            inside = ui.element("div").classes("st-form")

        def build() -> None:
            inside.clear()
            if name not in holder and optional:
                return
            with inside:
                self.object(schema, holder.setdefault(name, {}), path)

        def switch(event: ValueChangeEventArguments[bool | None]) -> None:
            if event.value:
                holder[name] = {}
            else:
                holder.pop(name, None)
            build()
            self._changed()

        if optional:
            with part, ui.element("div").classes("st-field"):
                ui.switch(
                    f"Set {title_of(name).lower()}",
                    value=name in holder,
                    on_change=switch,
                )
            inside.move(part)
        build()

    def _objects(self, schema: Schema, holder: Holder, name: str, path: str) -> None:
        """A list of objects, each in its own part, with a way to add one and to take one out."""
        items: list[Holder] = holder.setdefault(name, list(schema.get("default", [])))
        with ui.expansion(title_of(name), caption=schema.get("description", "")).classes(
            "st-nested"
        ):
            inside = ui.element("div").classes("ef-stack")
            add = ui.button(f"Add to {title_of(name).lower()}", icon="add").props("flat dense")

        def change(items_now: list[Holder]) -> None:
            holder[name] = items_now
            self._changed()
            build()

        def build() -> None:
            inside.clear()
            with inside:
                for index, item in enumerate(holder[name]):
                    with ui.element("div").classes("st-form st-item"):
                        self.object(schema["items"], item, f"{path}[{index}]")
                        others = [each for at, each in enumerate(holder[name]) if at != index]
                        label = f"Remove {title_of(name).lower()} {index + 1}"
                        icon_button("delete", label).on_click(partial(change, others))

        add.on_click(lambda: change([*items_of(holder, name), {}]))
        holder[name] = items
        build()


def items_of(holder: Holder, name: str) -> list[Holder]:
    """The objects of a list in a config."""
    found: list[Holder] = holder.get(name, [])
    return found


def _number(value: float | None, kind: str | None) -> float | None:
    if value is None or kind == "number" or not float(value).is_integer():
        return value
    return int(value)


def _several(text: str | None, kind: str | None) -> list[Any] | None:
    """What was typed with commas between; what is no number stays as it is, to be told so."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if kind not in {"integer", "number"}:
        return parts or None
    return [_parsed(part) for part in parts] or None


def _parsed(part: str) -> Any:
    try:
        number = float(part)
    except ValueError:
        return part
    return int(number) if number.is_integer() else number
