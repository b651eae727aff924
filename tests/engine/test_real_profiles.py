"""A profile of a real model: its server says its window, and answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfold
from tests.realmodel import SLOT_WINDOW

pytestmark = pytest.mark.model


async def test_a_real_server_says_its_window_and_answers(model_url: str, tmp_path: Path) -> None:
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        where = {"provider": "compatible", "model": "smollm2", "base_url": model_url}
        await engine.profiles.save("mine", where)
        config = await engine.profiles.discover("mine")
        assert (config.max_input + config.max_output, config.source) == (SLOT_WINDOW, "api")
        tried = await engine.profiles.test("mine")
    assert tried.usage.input_tokens
    assert tried.cost is None
