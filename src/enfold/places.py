"""Places: where inside a JSON value a text stands, and the value with another text there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a value inside another."""


def texts_within(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text inside a value, with its path, in order."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_within(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts_within(item, (*path, index))


def text_at(value: Any, path: Path) -> str | None:
    """The text at the path; None if there is none."""
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        return None
    return value if isinstance(value, str) else None


def with_text_at(value: Any, path: Path, text: str) -> Any:
    """The value with another text at the path; what is around it is copied, not changed."""
    if not path:
        return text
    step, *rest = path
    copied: Any = dict(value) if isinstance(value, Mapping) else list(value)
    copied[step] = with_text_at(value[step], tuple(rest), text)
    return copied
