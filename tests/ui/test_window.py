"""A window: its actions are logged, failed ones too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import enfold
from enfold.engine import Engine
from enfold.errors import AccessError, NotFoundError
from enfold.store import access
from enfold.ui.window import Window


@dataclass(frozen=True)
class Ann:
    """A caller with a token."""

    name: str = "ann"
    namespace: str = "hers"
    is_owner: bool = False


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as opened:
        yield opened


async def _logged(engine: Engine) -> list[tuple[str, str, int, str | None]]:
    found = await engine.store.read(access.logged, "hers")
    return [(each.actor, each.action, each.status, each.session) for each in found]


async def test_the_window_logs_its_actions(engine: Engine) -> None:
    async with Window(engine, Ann()).audited("undo", "chat"):
        pass
    assert await _logged(engine) == [("ann", "UI undo", 200, "chat")]


@pytest.mark.parametrize(
    ("error", "status"), [(AccessError("no"), 403), (NotFoundError("none"), 404), (OSError(), 0)]
)
async def test_so_is_what_fails(engine: Engine, error: Exception, status: int) -> None:
    with pytest.raises(type(error)):
        async with Window(engine, Ann()).audited("set style"):
            raise error
    assert await _logged(engine) == [("ann", "UI set style", status, None)]


async def test_so_is_what_is_stopped(engine: Engine) -> None:
    begun = asyncio.Event()

    async def ask() -> None:
        async with Window(engine, Ann()).audited("ask", "chat"):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(ask())
    await begun.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert await _logged(engine) == [("ann", "UI ask", 0, "chat")]
