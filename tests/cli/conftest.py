"""The command line as a test calls it, with a database of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from enfold import wire
from enfold.cli import run
from enfold.jsontext import dumps
from enfold.messages import Conversation
from enfold.sample import sample_messages
from tests.cli.outcomes import Outcome
from tests.databases import opened_before

Enfold: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def enfold(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Enfold:
    """Run one command in this process: its words, and perhaps what comes in."""

    def call(*arguments: str | Path, stdin: bytes | None = b"") -> Outcome:
        stream = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
        monkeypatch.setattr(sys, "stdin", stream)
        capsysbinary.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capsysbinary.readouterr())

    return call


@pytest.fixture
def stored(enfold: Enfold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Enfold:
    """The same, over an empty database."""
    monkeypatch.setenv("ENFOLD_DB", opened_before(tmp_path / "chats.db"))
    return enfold


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A file with a long conversation."""
    file = tmp_path / "sample.json"
    file.write_bytes(dumps(wire.render(Conversation(sample_messages(1)))))
    return file


@pytest.fixture
def festival(stored: Enfold, sample: Path) -> Enfold:
    """The command line over a database with the long conversation as session `festival`."""
    assert stored("import", sample, "--session", "festival").code == 0
    return stored
