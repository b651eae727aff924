"""Client keys: the way to a client's own model, with the key that the client sends to it.

A key is taken out of a request for as long as that request is answered, and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from enfold.engine.requests import OwnModel
from enfold.llm.calls import Connection, Secret
from enfold.llm.gateway import ModelGateway
from enfold.server.proxy.calls import Call

_HEADERS = (b"x-api-key", b"x-goog-api-key", b"api-key", b"authorization")
_BEARER = "bearer "
_UNDER: Mapping[str, str] = {"openai": "/v1"}
"""What client libraries want at the end of a provider's address."""


def connection_of(call: Call, model: str, address: str) -> Connection | None:
    """How the model is reached that a call is for; None where the call has no key."""
    key = _key(call)
    if call.form is None or key is None:
        return None
    base_url = f"{address}{_UNDER.get(call.form.provider, '')}"
    return Connection(call.form.provider, model, Secret(key), base_url)


@asynccontextmanager
async def own_model(connection: Connection | None) -> AsyncIterator[OwnModel | None]:
    """The client's model for one compression, if there is a way to it; nothing of it stays open."""
    if connection is None:
        yield None
        return
    async with ModelGateway() as gateway:
        yield OwnModel(gateway, connection)


def _key(call: Call) -> str | None:
    found = next((value for name in _HEADERS if (value := call.header(name))), None)
    if found is None:
        query = parse_qs(urlsplit(call.path).query)
        return query.get("key", [""])[0] or None
    return found[len(_BEARER) :] if found.lower().startswith(_BEARER) else found
