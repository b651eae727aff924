"""A standard output of another encoding."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Held(io.TextIOWrapper):
    """Text that can be looked at as bytes."""

    buffer: io.BytesIO


@contextmanager
def captured(encoding: str) -> Iterator[Held]:
    """Standard output while this lasts."""
    before, stream = sys.stdout, Held(io.BytesIO(), encoding)
    sys.stdout = stream
    try:
        yield stream
        stream.flush()
    finally:
        sys.stdout = before
