"""A session of a model with a small window, for adapters to work over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import enfold
from enfold.engine import Engine

MODEL = "test:small"
WINDOW = 4_000
"""Of the small model; 3,610 tokens are what a history may fill."""


@pytest.fixture
def database(tmp_path: Path) -> str:
    """The address of a database that is not there yet."""
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture
async def engine(database: str) -> AsyncIterator[Engine]:
    async with enfold.open(database) as engine:
        await add_small_model(engine)
        yield engine


async def add_small_model(engine: Engine) -> None:
    """The model with the small window."""
    await engine.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
