"""Extras: what to say where a framework is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from enfold.errors import ConfigError


@contextmanager
def of_extra(name: str) -> Iterator[None]:
    """Around the imports that an extra of enfold brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not installed; it comes with: pip install 'enfold[{name}]'"
        ) from None
