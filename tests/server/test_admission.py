"""Serving: access is settled before anything listens."""

from __future__ import annotations

import pytest

from enfold.engine import Engine
from enfold.errors import ConfigError
from enfold.server.serve import admit
from enfold.settings import ServerSettings
from enfold.store import access


async def test_loopback_addresses_need_no_token(engine: Engine) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        assert not await admit(engine, host, ServerSettings())


async def test_a_token_that_is_set_is_required_everywhere(engine: Engine) -> None:
    assert await admit(engine, "127.0.0.1", ServerSettings(token="secret"))
    assert await engine.store.read(access.find, "secret") is not None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
async def test_elsewhere_there_must_be_one(engine: Engine, host: str) -> None:
    with pytest.raises(ConfigError, match="ENFOLD_TOKEN"):
        await admit(engine, host, ServerSettings())
    await engine.store.write(access.add, "ann", access.new_token())
    assert await admit(engine, host, ServerSettings())
