"""Namespaces of requests: by token, by the provider's key, or this machine's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enfold.server.access import ON_THIS_MACHINE, Caller
from enfold.server.proxy.routes import open_proxy_namespaces
from enfold.wiring import open_engine

KEY = b"Bearer sk-very-secret"


def _scope(caller: Caller = ON_THIS_MACHINE, **headers: bytes) -> Any:
    named = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    return {"headers": named, "state": {"caller": caller}}


async def test_keys_tell_people_apart_and_are_nowhere_to_be_found(tmp_path: Path) -> None:
    file = tmp_path / "chats.db"
    async with open_engine(f"sqlite:///{file}") as engine:
        of = await open_proxy_namespaces(engine)
        again = await open_proxy_namespaces(engine)
        mine, other = await of(_scope(authorization=KEY)), await of(_scope(x_api_key=b"other"))
        assert len({mine, other, ""}) == 3
        assert await again(_scope(authorization=KEY)) == mine
        assert b"secret" not in mine.encode()
    async with open_engine(f"sqlite:///{tmp_path / 'another.db'}") as engine:
        assert await (await open_proxy_namespaces(engine))(_scope(authorization=KEY)) != mine


async def test_a_token_comes_before_the_key_and_nothing_is_this_machines_own(
    tmp_path: Path,
) -> None:
    async with open_engine(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        of = await open_proxy_namespaces(engine)
        assert await of(_scope(Caller("ann", "ns-ann"), authorization=KEY)) == "ns-ann"
        assert await of(_scope()) == ""
