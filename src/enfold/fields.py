"""Described fields: pydantic models whose fields carry everything a reader or a form needs.

Settings, profiles and strategy configs are `DescribedModel`s. A field states its type, default,
bounds, title and help once. This module turns that into a list of descriptions (for forms, command
line and documentation), a JSON schema, and one clear line per field that is wrong.

This module loads pydantic, which takes about 0.1 s of CPU time, so `import enfold` does not load
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from enfold.errors import ConfigError
from enfold.text.words import is_storable

FieldKind: TypeAlias = Literal["flag", "integer", "number", "text", "choice", "object", "list"]
Model = TypeVar("Model", bound=BaseModel)
ModelType: TypeAlias = type[BaseModel]

_KINDS: Mapping[Any, FieldKind] = {bool: "flag", int: "integer", float: "number", str: "text"}
_EXPECTED: Mapping[FieldKind, str] = {
    "flag": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "text": "a text",
    "object": "an object",
    "list": "an array",
}


class DescribedModel(BaseModel):
    """A frozen model that refuses unknown fields and converts no types."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        field_title_generator=lambda name, _: name.replace("_", " ").capitalize(),
    )

    @field_validator("*", mode="before")
    @classmethod
    def _whole_numbers(cls, value: Any) -> Any:
        """Read 3.0 as 3: JSON does not tell them apart. A field for fractions takes both."""
        if isinstance(value, list):
            return [cls._whole_numbers(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @field_validator("*", mode="before")
    @classmethod
    def _storable_texts(cls, value: Any) -> Any:
        """Refuse texts that a database cannot store and a model cannot be sent."""
        if isinstance(value, str) and not is_storable(value):
            raise ValueError("U+0000 and half surrogate pairs cannot be stored")
        return value


class CamelModel(DescribedModel):
    """A described model that is written in camel case; snake case is read too."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """Everything that is known about one field."""

    name: str
    alias: str
    """Its name in JSON."""
    title: str
    help: str
    kind: FieldKind
    default: Any
    """None if the field is unset or required."""
    least: float | None = None
    most: float | None = None
    choices: Mapping[str, str] | None = None
    """The values of a choice, each with its label; empty if they depend on stored data."""
    unit: str = ""
    group: str = ""
    unset: str = ""
    """The value that applies while the field is unset. Empty if it always has a value."""
    is_advanced: bool = False
    expected: str = ""
    """Replaces the description of valid values that type and bounds give."""
    hint: str = ""
    """Added to the description of valid values."""
    is_optional: bool = False
    """True if the value may be None."""
    example: Any = None
    """The value with which a form starts a new object."""
    shown_if: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """JSON names of other fields and the values for which this field counts. Empty: always.

    The other fields are in the same object, or in one around it. A form hides the field otherwise.
    """
    model: ModelType | None = None
    """The model of an object, or of the objects in a list."""
    items: FieldKind | None = None
    """The kind of a list's items."""

    @property
    def allowed(self) -> str:
        """The valid values, in words: `a whole number, 1 or more`."""
        if self.expected:
            words = self.expected
        elif self.kind == "choice":
            words = f"one of {', '.join(self.choices or ())}"
        else:
            words = _EXPECTED[self.kind]
            if bounds := _bounds(self.least, self.most):
                words = f"{words}, {bounds}" if self.kind == "integer" else bounds
        return f"{words}; {self.hint}" if self.hint else words

    def matches(self, query: str) -> bool:
        """Return True if every word of a search query occurs in the name, title or help."""
        text = f"{self.name} {self.name.replace('_', ' ')} {self.title} {self.help}".casefold()
        return all(word in text for word in query.casefold().split())


@dataclass(frozen=True, slots=True)
class Fault:
    """An invalid value: the path of its field and the reason."""

    path: str
    """Such as `passes[1].selection.type`; empty for the whole value."""
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class ContradictionError(ValueError):
    """Fields that do not fit together; raised by validators, with a path for each fault."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


def described(
    title: str,
    text: str,
    *,
    default: Any = ...,
    ge: float | None = None,
    le: float | None = None,
    strict: bool | None = None,
    examples: list[Any] | None = None,
    **about: Any,
) -> Any:
    """Return a pydantic field with its title and help; without a default it is required.

    `about` are further attributes of its `FieldDescription`.
    """
    return Field(
        default=default,
        title=title,
        description=text,
        ge=ge,
        le=le,
        strict=strict,
        examples=examples,
        json_schema_extra=about,
    )


@cache
def describe(model: type[BaseModel]) -> Mapping[str, FieldDescription]:
    """Return the descriptions of a model's fields by name; excluded fields are left out."""
    return {
        name: _describe(name, info) for name, info in model.model_fields.items() if not info.exclude
    }


def read(model: type[Model], value: Any) -> Model:
    """Return the model for a JSON value, None for the defaults.

    Raises `ConfigError` that names every field that is wrong.
    """
    try:
        return model.model_validate({} if value is None else value)
    except ValidationError as error:
        raise config_error(model, error) from None


def faults(model: type[BaseModel], value: Any) -> tuple[Fault, ...]:
    """Return everything that is wrong with a JSON value; nothing if it is valid."""
    try:
        model.model_validate({} if value is None else value)
    except ValidationError as error:
        return tuple(faults_of(model, error))
    return ()


def write(config: BaseModel) -> dict[str, Any]:
    """Return the model as a JSON object; unset fields are left out."""
    return config.model_dump(mode="json", by_alias=True, exclude_none=True)


def schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a model, without references."""
    found = model.model_json_schema(by_alias=True)
    definitions = found.pop("$defs", {})
    inlined: dict[str, Any] = _inline(found, definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **inlined}


def config_error(model: type[BaseModel], error: ValidationError) -> ConfigError:
    """Return pydantic's error as one line that names every field."""
    return ConfigError("; ".join(map(str, faults_of(model, error))))


def faults_of(model: type[BaseModel], error: ValidationError) -> Iterator[Fault]:
    """Yield the faults that pydantic found, in our words."""
    for each in error.errors(include_url=False):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"])
        path = "".join(steps).removeprefix(".")
        raised = each.get("ctx", {}).get("error")
        if isinstance(raised, ContradictionError):
            for fault in raised.faults:
                inner = f"{path}.{fault.path}" if path and fault.path else path or fault.path
                yield Fault(inner, fault.reason)
        else:
            yield Fault(path, _reason(model, dict(each)))


def _reason(model: type[BaseModel], error: Mapping[str, Any]) -> str:
    *outer, last = error["loc"] or ("",)
    owner = _model_at(model, outer)
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return _unknown(owner, str(last))
        case "value_error":
            return str(error["ctx"]["error"])
    found = f"found {error['input']!r:.60}"
    if not error["loc"]:
        return f"expected an object, {found}"
    # A number in the path is an item of the array that the last named field holds.
    is_item = isinstance(last, int)
    while isinstance(last, int):
        *outer, last = outer
    owner = _model_at(model, outer)
    field = _field(owner, str(last)) if owner is not None else None
    if field is None:
        return f"{error['msg']}, {found}"
    if is_item:
        inner = get_args(_without_none(field[1].annotation))[0]
        field = ("item", FieldInfo(annotation=inner))
    return f"expected {_describe(*field).allowed}, {found}"


def _unknown(owner: type[BaseModel] | None, name: str) -> str:
    if owner is None:
        return "unknown field"
    if _field(owner, name) is not None:  # both spellings of one field
        return "given twice"
    names = [each.alias for each in describe(owner).values()]
    close = get_close_matches(name, names, 1)
    guess = f"did you mean {close[0]}? " if close else ""
    return f"unknown field; {guess}available: {', '.join(names)}"


def _field(owner: type[BaseModel], name: str) -> tuple[str, FieldInfo] | None:
    fields = owner.model_fields.items()
    return next(((own, info) for own, info in fields if name in (own, info.alias)), None)


def _model_at(model: type[BaseModel], place: tuple[Any, ...] | list[Any]) -> type[BaseModel] | None:
    """Return the model that holds the value at a path; None if it is no model."""
    found: type[BaseModel] | None = model
    for step in place:
        if isinstance(step, int) or found is None:
            continue
        field = _field(found, step)
        found = None if field is None else _model_in(field[1].annotation)
    return found


def _model_in(hint: Any) -> type[BaseModel] | None:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint
    return next(filter(None, map(_model_in, get_args(hint))), None)


def _describe(name: str, info: FieldInfo) -> FieldDescription:
    given = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    about: dict[str, Any] = dict(given)
    hint = _without_none(info.annotation)
    kind = about.pop("kind", None) or _kind(hint)
    item = _without_none(get_args(hint)[0]) if kind == "list" else hint
    if kind == "choice" or _kind(item) == "choice":
        values = get_args(item)
        about["choices"] = about.get("choices") or {str(each): str(each) for each in values}
    default = None
    if not info.is_required():
        default = info.get_default(call_default_factory=True, validated_data={})
    bounds = {type(each).__name__: each for each in info.metadata}
    return FieldDescription(
        name,
        info.alias or name,
        info.title or name.replace("_", " ").strip().capitalize(),
        info.description or "",
        kind,
        default,
        least=getattr(bounds.get("Ge"), "ge", None),
        most=getattr(bounds.get("Le"), "le", None),
        is_optional=NoneType in get_args(info.annotation),
        example=info.examples[0] if info.examples else None,
        model=_model_in(item),
        items=_kind(item) if kind == "list" else None,
        **about,
    )


def _kind(hint: Any) -> FieldKind:
    if get_origin(hint) is Literal:
        return "choice"
    if get_origin(hint) is tuple:
        return "list"
    return _KINDS.get(hint, "object")


def _without_none(hint: Any) -> Any:
    """Return a type without `None` and without annotations."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not NoneType)
    return _without_none(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


def _bounds(least: float | None, most: float | None) -> str:
    if most is None:
        return "" if least is None else f"{least:g} or more"
    return f"at most {most:g}" if least is None else f"{least:g} to {most:g}"


def _inline(value: Any, definitions: Mapping[str, Any]) -> Any:
    """Replace references by their targets, and leave out defaults that are null."""
    if isinstance(value, list):
        return [_inline(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        target = definitions[value["$ref"].rpartition("/")[2]]
        rest = {key: item for key, item in value.items() if key != "$ref"}
        return _inline({**target, **rest}, definitions)
    return {
        key: _inline(item, definitions)
        for key, item in value.items()
        if not (key == "default" and item is None)
    }
