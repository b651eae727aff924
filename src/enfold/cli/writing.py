"""Writing: results into files, each whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from enfold.cli.screen import put_bytes
from enfold.errors import ConfigError, InputError
from enfold.jsontext import dumps


def put_value(value: object, out: Path | None) -> None:
    """A line of JSON, into the file or on standard output."""
    put_data(dumps(value) + b"\n", out)


def put_data(data: bytes, out: Path | None) -> None:
    """These bytes, into the file or on standard output."""
    if out is None:
        put_bytes(data)
    else:
        save((out, data))


def save(*files: tuple[Path, bytes]) -> None:
    """Write the files; if one cannot be written, none is changed.

    Each is written beside its place and moved there when all are complete.
    """
    staged: dict[Path, Path] = {}
    try:
        for place, data in files:
            with _named(place):
                target = place.resolve()
                if target in staged.values():
                    raise ConfigError(f"{place}: two results cannot go into one file")
                _write(target, data, staged)
        for temporary, target in staged.items():
            with _named(target):
                temporary.replace(target)
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)


def _write(target: Path, data: bytes, staged: dict[Path, Path]) -> None:
    if target.exists() and not target.is_file():
        # A device or a pipe is written to; a file in its place would be another thing. A folder
        # is the error that it should be.
        target.write_bytes(data)
        return
    temporary = target.with_name(f".enfold-{token_hex(8)}")
    staged[temporary] = target
    temporary.write_bytes(data)
    if target.exists():
        shutil.copymode(target, temporary)


@contextmanager
def _named(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be written: {reason}", place=str(place)) from None
