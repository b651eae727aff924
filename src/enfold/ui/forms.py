"""The form builder: draws any described model and shows every fault at its field.

Settings, profiles, model limits and strategy configs are described models, also a strategy's config
that comes from another package. A form edits a JSON value in place and reports every change. The
engine validates the value: its faults have paths, and each is shown at the field with that path.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, TypeAlias

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from enfold.errors import EnfoldError
from enfold.fields import Fault, FieldDescription, ModelType, describe, write
from enfold.ui.widgets import icon_button, labelled, shown_dialog

Holder: TypeAlias = dict[str, Any]
"""A JSON object that a form edits in place."""

_LONG = ("prompt", "text", "template")
"""A text field whose name ends with one of these has several lines."""
_HIDDEN = ("secret",)
"""A text field with one of these names hides its value."""


def help_text(about: FieldDescription) -> str:
    """Return the help of a field with quotation marks in place of Markdown's backticks."""
    return re.sub(r"`([^`]*)`", r"“\1”", about.help)


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
    if choices is not None or listed:
        field = _draw_choice(about, title, value, listed)
    elif about.kind in {"integer", "number"} and label:
        placeholder = about.unset if about.default is None else str(about.default)
        field = ui.number(title, value=value, placeholder=placeholder, suffix=about.unit or None)
    else:
        field = _draw_text(about, title, value)
    if about.unset and label:
        field.props("stack-label")  # otherwise the label covers the placeholder
    return field.props("outlined dense").classes("ef-full")


def _draw_choice(about: FieldDescription, title: str, value: Any, listed: dict[str, str]) -> Any:
    if about.kind == "list":
        field = ui.select(listed, value=value or [], label=title, multiple=True)
        return field.props("use-chips")
    if value is not None and value not in listed:
        listed[value] = f"{value} (not available)"
    # A field without a title is a setting: its list has an entry for "not set".
    is_clearable = bool(title) and about.is_optional
    field = ui.select(listed, value=value, label=title or None, clearable=is_clearable)
    return field.props("options-dense")


def _draw_text(about: FieldDescription, title: str, value: Any) -> Any:
    if about.kind == "list":
        field = ui.input(title, value=", ".join(map(str, value or ())))
        return field.props('hint="Separated by commas"')
    if about.name.endswith(_LONG):
        area = ui.textarea(title, value=value or "", placeholder=about.unset)
        return area.props("autogrow debounce=300 dir=auto")
    suffix = about.unit or None
    field = ui.input(title or None, value=value or "", placeholder=about.unset, suffix=suffix)
    if about.kind in {"integer", "number"}:
        field.props("inputmode=decimal")
    if about.name in _HIDDEN:
        field.props("type=password autocomplete=new-password")
    return field


def _decided_by(about: FieldDescription) -> frozenset[str]:
    """Return the names of other fields that decide if a field, or a part of it, is shown."""
    names = set(about.shown_if)
    if about.model is not None and about.kind == "object":
        inner = describe(about.model).values()
        names |= {name for each in inner for name in _decided_by(each)}
        names -= {each.alias for each in inner}
    return frozenset(names)


def _is_shown(about: FieldDescription, values: Mapping[str, Any]) -> bool:
    return all(values.get(name) in allowed for name, allowed in about.shown_if.items())


def new_object(model: ModelType, around: tuple[Holder, ...] = ()) -> Holder:
    """Return a new object: the examples of its fields; the others have their defaults."""
    made: Holder = {}
    for about in describe(model).values():
        if not _is_shown(about, ChainMap(made, *around)):
            continue
        value = about.example
        if value is None and about.kind == "choice":
            value = about.default
        elif value is None and about.kind == "object" and about.model is not None:
            if about.default is not None:
                value = write(about.default)
            elif about.shown_if or not about.is_optional:
                value = new_object(about.model, (made, *around))
        if value is not None:
            made[about.alias] = deepcopy(value)
    return made


class ConfigForm:
    """The fields of one JSON value."""

    def __init__(
        self,
        changed: Callable[[], None],
        *,
        choices: Mapping[str, Mapping[str, str]] | None = None,
        badges: Mapping[ModelType, Callable[[Holder], list[str]]] | None = None,
        extras: Mapping[ModelType, Callable[[Holder], Callable[[], None]]] | None = None,
    ) -> None:
        """Describe what the form needs beyond the models.

        `choices` are the values of text fields by field name, such as names of profiles. `badges`
        describe an item of a list in a few words. `extras` draw something below the fields of an
        object and return a function that is called after every change.
        """
        self._listeners: list[Callable[[], None]] = [changed]
        self._choices = choices or {}
        self._extras = extras or {}
        self._fields: dict[str, Any] = {}
        self.badges = badges or {}

    def add_object(
        self,
        model: ModelType,
        holder: Holder,
        path: str = "",
        *,
        around: tuple[Holder, ...] = (),
        without: Collection[str] = (),
    ) -> None:
        """Add all fields of an object; `around` are the objects that contain it."""
        dependent: list[tuple[frozenset[str], Callable[..., None]]] = []

        def decide(name: str) -> None:
            for decided_by, fill in dependent:
                if name in decided_by:
                    fill(is_new=True)

        with ui.element("div").classes("st-form"):
            for name, about in describe(model).items():
                if name in without:
                    continue
                if about.kind == "choice" and about.default is not None:
                    holder.setdefault(about.alias, about.default)
                add = partial(self.add_field, about, holder, path, around=around)
                if decided_by := _decided_by(about):
                    place = ui.element("div").classes("ef-contents")
                    fill = partial(_fill_dependent, place, about, holder, around, add)
                    dependent.append((decided_by, fill))
                    fill()
                else:
                    add(decide=partial(decide, about.alias))
            if model in self._extras:
                self.subscribe(self._extras[model](holder))

    def add_field(
        self,
        about: FieldDescription,
        holder: Holder,
        path: str = "",
        *,
        around: tuple[Holder, ...] = (),
        decide: Callable[[], None] | None = None,
    ) -> Any:
        """Add one field of an object and return its control.

        The field is a value, an object or a list of objects. `decide` is called after a change,
        before the other listeners.
        """
        place = f"{path}.{about.alias}" if path else about.alias
        if about.model is not None and about.kind == "list":
            return ObjectList(self, about, about.model, holder, place)
        if about.model is not None:
            return self._add_nested(about, about.model, holder, place, around)
        with ui.element("div").classes("st-field"):
            value = holder.get(about.alias, about.default)
            field = draw_field(about, value, choices=self._choices.get(about.name))
            is_choice = about.choices or about.name in self._choices
            # A list of choices has no place for the value that applies while it is unset.
            unset = f" If empty: {about.unset}." if about.unset and is_choice else ""
            ui.label(f"{help_text(about)}{unset}").classes("ef-soft ef-small st-help")

        def store(event: ValueChangeEventArguments[Any]) -> None:
            new = _parse(about, event.value)
            if new in (None, "", []):
                holder.pop(about.alias, None)
            else:
                holder[about.alias] = new
            if decide is not None:
                decide()
            self.changed()

        field.on_value_change(store)
        if about.kind != "flag":
            self._fields[place] = field.without_auto_validation()
        return field

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after every change."""
        self._listeners.append(listener)

    def changed(self) -> None:
        """Report a change."""
        for listener in tuple(self._listeners):
            listener()

    def show_faults(self, faults: Iterable[Fault]) -> list[Fault]:
        """Show every fault at its field and return those without a field."""
        by_path = {fault.path: fault for fault in faults}
        for path, field in self._fields.items():
            if not field.is_deleted:
                fault = by_path.pop(path, None)
                field.error = None if fault is None else fault.reason
        return list(by_path.values())

    def _add_nested(
        self,
        about: FieldDescription,
        model: ModelType,
        holder: Holder,
        path: str,
        around: tuple[Holder, ...],
    ) -> None:
        """Add an object inside an object; an optional one has a switch.

        It is collapsed, except inside an item of a list, which is collapsed itself. An object that
        depends on another field is a part of the object around it.
        """
        name = about.alias
        has_switch = about.is_optional and not about.shown_if
        if about.shown_if:
            part = ui.element("div").classes("st-wide")
        elif "[" in path:
            part = labelled(ui.element("div").classes("st-group").props("role=group"), about.title)
            with part:
                ui.label(about.title).classes("st-title")
                ui.label(help_text(about)).classes("ef-soft ef-small")
        else:
            part = ui.expansion(about.title, caption=help_text(about)).classes("st-nested")

        def build() -> None:
            inside.clear()
            if name in holder or not has_switch:
                made = holder.setdefault(name, new_object(model, (holder, *around)))
                with inside:
                    self.add_object(model, made, path, around=(holder, *around))

        def switch(event: ValueChangeEventArguments[bool | None]) -> None:
            if event.value:
                holder[name] = new_object(model, (holder, *around))
            else:
                holder.pop(name, None)
            build()
            self.changed()

        with part:
            if has_switch:
                ui.switch(f"Set {about.title.lower()}", value=name in holder, on_change=switch)
            inside = ui.element("div")
        build()


def _fill_dependent(
    place: ui.element,
    about: FieldDescription,
    holder: Holder,
    around: tuple[Holder, ...],
    add: Callable[[], Any],
    *,
    is_new: bool = False,
) -> None:
    """Draw a field that depends on others; if it is hidden, remove its value."""
    place.clear()
    if not _is_shown(about, ChainMap(holder, *around)):
        holder.pop(about.alias, None)
        return
    if is_new and about.shown_if and about.model is not None:
        holder[about.alias] = new_object(about.model, (holder, *around))
    elif is_new and about.example is not None:
        holder.setdefault(about.alias, deepcopy(about.example))
    with place:
        add()


class ObjectList:
    """A list of objects: add, move, duplicate and delete; one at a time is expanded."""

    def __init__(
        self, form: ConfigForm, about: FieldDescription, model: ModelType, holder: Holder, path: str
    ) -> None:
        self._form = form
        self._model = model
        self._path = path
        self._open: int | None = None
        self._items: list[Holder] = holder.setdefault(about.alias, [])
        # The name of the model is the word for one item: "Add pass".
        self._word = re.sub(r"(?<!^)(?=[A-Z])", " ", model.__name__).lower()
        what = help_text(about).rstrip(".")
        with ui.element("div").classes("ef-stack st-wide"):
            ui.label(about.title).classes("st-heading").props("role=heading aria-level=3")
            how = f"{what}. Drag an item by its handle, or use the arrows."
            ui.label(how).classes("ef-soft ef-small")
            self._list = labelled(ui.list().classes("st-passes ef-full"), about.title)
            self._list.make_sortable(
                handle=".st-handle", on_end=lambda drop: self._move(drop.old_index, drop.new_index)
            )
            ui.button(f"Add {self._word}", icon="add", on_click=self._add).props("outline")
        self._show()

    def _show(self) -> None:
        self._list.clear()
        with self._list:
            for index, item in enumerate(self._items):
                self._row(index, item)

    def _row(self, index: int, item: Holder) -> None:
        name = item.get("name") or f"{self._word} {index + 1}"
        is_open = self._open == index
        with labelled(ui.element("div").classes("st-pass").props("role=listitem"), name):
            with ui.element("div").classes("st-pass-head"):
                ui.icon("drag_indicator").classes("st-handle").props("aria-hidden=true")
                with ui.element("div").classes("ef-grow"):
                    ui.label(f"{index + 1}. {name}").classes("st-title")
                    with ui.element("div").classes("ef-row"):
                        if describe_item := self._form.badges.get(self._model):
                            for badge in describe_item(item):
                                ui.label(badge).classes("st-badge")
                with ui.element("div").classes("ef-row-tight"):
                    up = icon_button("arrow_upward", f"Move {name} up")
                    up.on_click(partial(self._move, index, index - 1)).set_enabled(index > 0)
                    down = icon_button("arrow_downward", f"Move {name} down")
                    down.on_click(partial(self._move, index, index + 1))
                    down.set_enabled(index < len(self._items) - 1)
                    copy = partial(self._duplicate, index)
                    icon_button("content_copy", f"Duplicate {name}", copy)
                    icon_button("delete", f"Delete {name}", partial(self._delete, index))
                    icon, verb = ("expand_less", "Close") if is_open else ("edit", "Edit")
                    edit = icon_button(icon, f"{verb} {name}", partial(self._toggle, index))
                    edit.props(f"aria-expanded={'true' if is_open else 'false'}")
            if is_open:
                with ui.element("div").classes("st-pass-body"):
                    self._form.add_object(self._model, item, f"{self._path}[{index}]")

    def _move(self, start: int, end: int) -> None:
        opened = None if self._open is None else self._items[self._open]
        self._items.insert(end, self._items.pop(start))
        if opened is not None:
            self._open = next(at for at, each in enumerate(self._items) if each is opened)
        self._changed()

    def _add(self) -> None:
        self._insert(len(self._items), new_object(self._model))

    def _duplicate(self, index: int) -> None:
        copy = deepcopy(self._items[index])
        if "name" in copy:
            copy["name"] = f"{copy['name']} (copy)"
        self._insert(index + 1, copy)

    def _insert(self, index: int, item: Holder) -> None:
        """Insert an item and expand it; an id that is taken gets a number."""
        if "id" in item:
            taken = {each.get("id") for each in self._items}
            numbered = (f"{item['id']}_{number}" for number in range(2, len(taken) + 3))
            item["id"] = next(id for id in (item["id"], *numbered) if id not in taken)
        self._items.insert(index, item)
        self._open = index
        self._changed()

    def _delete(self, index: int) -> None:
        del self._items[index]
        self._open = None
        self._changed()

    def _toggle(self, index: int) -> None:
        self._open = None if self._open == index else index
        self._changed()

    def _changed(self) -> None:
        self._show()
        self._form.changed()


class FormDialog:
    """A dialog with a form. It is validated while it is edited, and closes when it is saved."""

    def __init__(
        self,
        faults: Callable[[], Sequence[Fault]],
        save: Callable[[], Awaitable[None]],
        *,
        choices: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._faults = faults
        self._save = save
        self.form = ConfigForm(self._check, choices=choices)

    @contextmanager
    def opened(self, title: str, action: str) -> Iterator[None]:
        """Open the dialog, to be filled with fields; `action` is the text of its button."""
        with shown_dialog(title) as self._dialog:
            self._dialog.props("persistent")
            yield
            self._fault = ui.label().classes("ef-bad ef-small ef-wrap").props("role=alert")
            with ui.element("div").classes("ef-row ef-end"):
                ui.button("Cancel", on_click=self._dialog.close).props("flat")
                self._button = ui.button(action, on_click=self._keep).props("unelevated")

    def _check(self) -> None:
        faults = self._faults()
        self._fault.text = "; ".join(map(str, self.form.show_faults(faults)))
        self._button.set_enabled(not faults)

    async def _keep(self) -> None:
        try:
            await self._save()
        except EnfoldError as error:
            self._fault.text = str(error)
        else:
            self._dialog.close()


def _parse(about: FieldDescription, value: Any) -> Any:
    """Return the JSON value of a field. Text that should be a number is kept, and refused later."""
    if about.kind == "integer" and value is not None and float(value).is_integer():
        return int(value)
    if about.kind != "list" or isinstance(value, list):
        return value
    parts = [part.strip() for part in (value or "").split(",") if part.strip()]
    return [_number(part) for part in parts] if about.items in {"integer", "number"} else parts


def _number(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
