"""WebSockets towards providers: refused in one step, so that clients use HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.proxy.stage import Stage, stage

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses?model=gpt-5-codex"])
async def test_a_websocket_is_answered_with_upgrade_required(on: Stage, path: str) -> None:
    address = urlsplit(on.address)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(HANDSHAKE.format(path=path).encode())
    status = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert status.split()[1] == b"426"
    assert on.provider.paths == []
