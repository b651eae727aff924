"""Configs: what can be set of a strategy, read from JSON, described as JSON schema, written again.

A config is a frozen dataclass whose fields are annotated with an `Option`. That gives the reader,
which names what is wrong with its path (`passes[1].selection.type`), and the schema, from which a
form can be built. On the wire fields are in camel case; snake case is read as well. A field
that nobody knows is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from enfold.errors import ConfigError

Config = TypeVar("Config")

_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string"}
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


@dataclass(frozen=True, slots=True)
class Option:
    """What a field of a config does, and its bounds: `keep: Annotated[int, Option("…")] = 3`."""

    help: str
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a config, and where."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class Checked:
    """A config with rules between its fields."""

    SHORTHAND: ClassVar[str] = ""
    """The field that a bare text stands for, if any: `"keep"` for `{"operation": "keep"}`."""

    __slots__ = ()

    def contradictions(self) -> Iterator[Fault]:
        """What does not fit together; paths are seen from this config."""
        return iter(())


def read(kind: type[Config], value: Any) -> Config:
    """The config that a JSON value says; `ConfigError` names every field that is wrong."""
    config, faults = _read(kind, {} if value is None else value)
    if config is None:
        raise ConfigError("; ".join(map(str, faults)))
    return config


def faults(kind: type[Any], value: Any) -> tuple[Fault, ...]:
    """All that is wrong with a JSON value as such a config; nothing if it can be used."""
    return _read(kind, {} if value is None else value)[1]


def write(config: Any) -> Any:
    """The config as a JSON value, with the names of the wire; what is unset is left out."""
    if is_dataclass(config):
        values = ((wire_name(each.name), getattr(config, each.name)) for each in fields(config))
        return {name: write(value) for name, value in values if value is not None}
    return [write(item) for item in config] if isinstance(config, tuple) else config


def schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON schema of a config."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_schema(kind)}


def wire_name(name: str) -> str:
    """A field's name on the wire: `keep_first` is `keepFirst`."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _read(kind: type[Config], value: Any) -> tuple[Config | None, tuple[Fault, ...]]:
    found: list[Fault] = []
    config = _read_object(kind, value, "", found)
    return (None if found else config), tuple(found)


def _read_object(kind: type[Any], value: Any, path: str, found: list[Fault]) -> Any:
    """A config; faults are added to `found`, and then the answer means nothing."""
    shorthand = getattr(kind, "SHORTHAND", "")
    if shorthand and isinstance(value, str):
        value = {shorthand: value}
    if not isinstance(value, Mapping):
        found.append(Fault(path, f"expected an object, found {value!r:.60}"))
        return None
    before = len(found)
    known = _fields(kind)
    given: dict[str, Any] = {}
    for name, item in value.items():
        each = known.get(name)
        if each is None:
            allowed = ", ".join(dict.fromkeys(wire_name(one.name) for one in known.values()))
            found.append(Fault(_join(path, str(name)), f"unknown field; there are {allowed}"))
        elif each.name in given:
            found.append(Fault(_join(path, str(name)), "given twice"))
        else:
            hint, option = _hints(kind)[each.name]
            place = _join(path, wire_name(each.name))
            given[each.name] = _read_value(hint, item, place, found)
            _check_bounds(option, given[each.name], place, found)
    found.extend(
        Fault(_join(path, wire_name(each.name)), "is missing")
        for each in fields(kind)
        if each.default is MISSING and each.name not in given
    )
    if len(found) > before:
        return None
    config = kind(**given)
    if isinstance(config, Checked):
        found.extend(Fault(_join(path, f.path), f.reason) for f in config.contradictions())
    return config


def _read_value(hint: Any, value: Any, path: str, found: list[Fault]) -> Any:
    optional, hint = _without_none(hint)
    if value is None and optional:
        return None
    if isinstance(hint, type) and is_dataclass(hint):
        return _read_object(hint, value, path, found)
    if get_origin(hint) is tuple:
        return _read_items(get_args(hint)[0], value, path, found)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            choices = ", ".join(map(str, get_args(hint)))
            found.append(Fault(path, f"{value!r:.60} is not one of {choices}"))
        return value
    return _read_scalar(hint, value, path, found)


def _read_items(hint: Any, value: Any, path: str, found: list[Fault]) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        found.append(Fault(path, f"expected an array, found {value!r:.60}"))
        return ()
    return tuple(
        _read_value(hint, item, f"{path}[{index}]", found) for index, item in enumerate(value)
    )


def _read_scalar(kind: Any, value: Any, path: str, found: list[Fault]) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        found.append(Fault(path, f"expected {_WORDS[kind]}, found {value!r:.60}"))
    return value


def _check_bounds(option: Option, value: Any, path: str, found: list[Fault]) -> None:
    least, most = option.least, option.most
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if (least is not None and value < least) or (most is not None and value > most):
        allowed = f"{least:g} or more" if most is None else f"{least:g} to {most:g}"
        found.append(Fault(path, f"expected {allowed}, found {value:g}"))


def _schema(hint: Any) -> dict[str, Any]:
    optional, hint = _without_none(hint)
    is_object = isinstance(hint, type) and is_dataclass(hint)
    found = _schema_of_object(hint) if is_object else _schema_of_value(hint)
    return {"anyOf": [found, {"type": "null"}]} if optional else found


def _schema_of_value(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    return {"type": _KINDS[hint]}


def _schema_of_object(kind: type[Any]) -> dict[str, Any]:
    properties = {wire_name(each.name): _schema_of_field(kind, each) for each in fields(kind)}
    required = [wire_name(each.name) for each in fields(kind) if each.default is MISSING]
    found: dict[str, Any] = {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    shorthand = getattr(kind, "SHORTHAND", "")
    if not shorthand:
        return found
    bare = {key: value for key, value in properties[shorthand].items() if key in ("type", "enum")}
    return {"anyOf": [bare, found]}


def _schema_of_field(kind: type[Any], each: Field[Any]) -> dict[str, Any]:
    hint, option = _hints(kind)[each.name]
    found = {**_schema(hint), "description": option.help}
    if each.default is not MISSING and each.default is not None:
        found["default"] = write(each.default)
    bounds = {"minimum": option.least, "maximum": option.most}
    target = found["anyOf"][0] if "anyOf" in found and "type" in found["anyOf"][0] else found
    target.update({name: value for name, value in bounds.items() if value is not None})
    return found


def _fields(kind: type[Any]) -> Mapping[str, Field[Any]]:
    """A config's fields by both of their names."""
    return {name: each for each in fields(kind) for name in (wire_name(each.name), each.name)}


def _hints(kind: type[Any]) -> Mapping[str, tuple[Any, Option]]:
    """Every field's type and option."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: _hint(hints[each.name]) for each in fields(kind)}


def _hint(hint: Any) -> tuple[Any, Option]:
    if get_origin(hint) is not Annotated:
        return hint, Option("")
    return hint.__origin__, next(each for each in hint.__metadata__ if isinstance(each, Option))


def _without_none(hint: Any) -> tuple[bool, Any]:
    """Whether a type may be None, and what it is otherwise."""
    if get_origin(hint) not in (Union, UnionType):
        return False, hint
    others = [each for each in get_args(hint) if each is not NoneType]
    return len(others) < len(get_args(hint)), others[0]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name
