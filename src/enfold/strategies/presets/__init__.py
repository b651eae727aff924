"""Presets: a strategy with its config under a name, built in or your own, as JSON in and out.

The built-in ones are the files beside this one. A file has `version`, `name`, `description`,
`strategy` and `config`, as in the strategy's schema; an unknown field is refused
with its path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from pydantic.alias_generators import to_camel

from enfold.errors import ConfigError, NotFoundError
from enfold.jsontext import loads
from enfold.strategies import contract

VERSION = 1
"""Of the file format."""
BUILT_IN = ("speed", "quality", "cost", "balanced", "agent")
AGENT = "agent"
"""The default of the proxy for requests with tools."""

_FIELDS = ("version", "name", "description", "strategy", "config")
_NAME = re.compile(r"[\w][\w .-]{0,63}")


@dataclass(frozen=True, slots=True)
class Preset:
    """A strategy with its config, under a name."""

    # The flag has two names: the first is the API's, the second the command line's.
    JSON_FIELDS: ClassVar = (
        "version",
        "name",
        "description",
        "strategy",
        "config",
        "built_in=is_built_in",
        "builtIn=is_built_in",
        "fault",
        "notes",
    )
    name: str
    """The preset's name."""
    description: str
    """The preset's purpose."""
    strategy: str
    """The strategy's name."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The strategy's config."""
    fault: str = ""
    """Why one that was saved can no longer be used. Empty if it can."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What became of fields that this call gave by another system's names."""

    @property
    def version(self) -> int:
        """The version of the file format."""
        return VERSION

    @property
    def is_built_in(self) -> bool:
        """True if it comes with enfold."""
        return self.name in BUILT_IN

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "version": VERSION,
            "name": self.name,
            "description": self.description,
            "strategy": self.strategy,
            "config": dict(self.config),
        }


def migrated(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a preset with our names for `provider` and `smartConfig` of another system."""
    fields = dict(value)
    if isinstance(strategy := fields.get("provider"), str) and "strategy" not in fields:
        fields["strategy"] = fields.pop("provider")
        fields.setdefault("version", VERSION)
        fields.setdefault("name", strategy)
    for name in contract.names():
        config = fields.pop(f"{name}Config", None)
        if config is not None and name == fields.get("strategy"):
            fields.setdefault("config", config)
    return fields


def renaming_notes(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what became of each field of a preset that has another system's name."""
    strategy = value.get("strategy", value.get("provider"))
    became = {
        f"{name}Config": "config" if name == strategy else f"nothing: the strategy is {strategy}"
        for name in contract.names()
    }
    if "strategy" not in value:
        became["provider"] = "strategy"
    return tuple(f"{name} became {became[name]}" for name in value if name in became)


def read(value: Any) -> Preset:
    """The preset that a JSON value says; `ConfigError` names the field that is wrong."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"a preset is an object, found {value!r:.60}")
    notes, value = renaming_notes(value), migrated(value)
    for name in value:
        if name not in _FIELDS:
            raise ConfigError(f"{name}: unknown field; available: {', '.join(_FIELDS)}")
    if value.get("version") != VERSION:
        raise ConfigError(f"version: expected {VERSION}, found {value.get('version')!r}")
    config = value.get("config", {})
    preset = Preset(
        _text(value, "name"),
        _text(value, "description", ""),
        _text(value, "strategy"),
        config,
        notes=notes,
    )
    check(preset)
    return preset


def check(preset: Preset) -> None:
    """Raise `ConfigError`, with the field, if a preset cannot be used."""
    if not _NAME.fullmatch(preset.name):
        raise ConfigError(
            f"name: {preset.name!r:.80} is not up to 64 letters, digits, spaces, dots, dashes and "
            "underscores"
        )
    if not isinstance(preset.config, Mapping):
        raise ConfigError(f"config: expected an object, found {preset.config!r:.60}")
    try:
        kind = contract.get(preset.strategy)
    except ConfigError as error:
        raise ConfigError(f"strategy: {error}") from None
    faults = kind.faults(preset.config)
    if faults:
        raise ConfigError("; ".join(f"config.{fault}" for fault in faults))


def choose(
    preset: str | Mapping[str, Any] | Preset | None,
    strategy: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> tuple[str, Mapping[str, Any]]:
    """The strategy and the config that are meant: the preset's, with what is given laid over it.

    A preset is a built-in one's name, or what its file says. Without anything it is native.
    """
    if preset is None:
        return "native" if strategy is None else strategy, config or {}
    if not isinstance(preset, Preset):
        preset = get(preset) if isinstance(preset, str) else read(preset)
    if strategy is not None and strategy != preset.strategy:
        raise ConfigError(
            f"the preset {preset.name!r} is for the strategy {preset.strategy}, not {strategy}"
        )
    over = {to_camel(name): value for name, value in (config or {}).items()}
    return preset.strategy, {**preset.config, **over}


def get(name: str) -> Preset:
    """The built-in preset of that name."""
    if name in BUILT_IN:
        return _built_in(name)
    raise NotFoundError(f"no preset {name!r}; built in are {', '.join(BUILT_IN)}")


def _text(value: Mapping[str, Any], name: str, default: str | None = None) -> str:
    found = value.get(name, default)
    if isinstance(found, str):
        return found
    raise ConfigError(f"{name}: expected a text, found {found!r:.60}")


@cache
def _built_in(name: str) -> Preset:
    return read(loads(files(__name__).joinpath(f"{name}.json").read_bytes()))
