"""The registry: strategies by name, the built-in ones and those of other packages.

Nothing is imported before it is asked for. Other packages offer theirs through entry points of the
group `enfold.strategies`; a name that is built in cannot be taken. `contract` says what to offer.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

from enfold.errors import ConfigError
from enfold.strategies.contract import Kind

GROUP = "enfold.strategies"
"""The group of entry points."""

AnyKind: TypeAlias = Kind[Any]

BUILT_IN = ("native", "lossless", "truncation", "smart")
"""Each is a module beside this one with a `KIND`, in the order in which they are shown."""


def names() -> tuple[str, ...]:
    """Every strategy that can be chosen; those of other packages come last."""
    return (*BUILT_IN, *(name for name in _offered() if name not in BUILT_IN))


def get(name: str) -> AnyKind:
    """The strategy of that name; `ConfigError` if there is none, or it does not load."""
    if name in BUILT_IN:
        return _built_in(name)
    if name in _offered():
        return _load(_offered()[name])
    raise ConfigError(f"no strategy {name!r}; there are {', '.join(names())}")


@cache
def _built_in(name: str) -> AnyKind:
    kind: AnyKind = import_module(f"enfold.strategies.{name}").KIND
    return kind


@cache
def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _load(point: EntryPoint) -> AnyKind:
    try:
        kind = point.load()
    except Exception as error:
        raise ConfigError(
            f"the strategy {point.name!r} ({point.value}) does not load: {error!r}"
        ) from error
    if not isinstance(kind, Kind) or kind.id != point.name:
        raise ConfigError(f"{point.value} is no Kind with the id {point.name!r}")
    return kind
