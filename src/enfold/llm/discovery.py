"""Models and their limits as providers state them, and model servers on this machine.

Some providers list names only. Compatible servers state the limit in one of several fields; a local
server states the window that it was started with, which may be far smaller than the model's.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import quote

from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    GatewayError,
    InputError,
    UnavailableError,
)
from enfold.jsontext import loads
from enfold.llm.calls import Connection
from enfold.llm.providers import PROVIDERS, ModelList, ModelListFormat
from enfold.wire.replies import as_integer, as_mapping, mappings_in

TIMEOUT = 10.0
"""Seconds without any response."""
_MOST_BYTES = 32_000_000
"""The largest lists have over a megabyte."""
_NO_ENTRY = frozenset({400, 404, 405, 501})
"""The statuses of servers that have no such list, or no such model in it."""
_DENIED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """A model's limits as its provider states them."""

    window: int
    """Input and reply together, in tokens."""
    max_output: int | None = None


async def discover(connection: Connection, *, timeout: float = TIMEOUT) -> ModelLimits | None:  # noqa: ASYNC109 - of each read, not of the whole
    """Return the limits of the connection's model. None: the provider does not state them."""
    row = PROVIDERS.get(connection.provider)
    listing = row.model_list if row is not None else None
    if listing is None:
        return None
    value = await asyncio.to_thread(_ask, listing, connection, timeout)
    if value is None:
        return None
    if listing.format == "list":
        return _read_list(value, connection.model)
    window = _first(as_mapping(value).get(listing.format))
    output = _first(as_mapping(value).get(_SINGLE_MODEL[listing.format]))
    return None if window is None else ModelLimits(window, output)


async def list_models(connection: Connection, *, timeout: float = TIMEOUT) -> tuple[str, ...]:  # noqa: ASYNC109 - of each read, not of the whole
    """Return the names of the models behind a connection; none if the provider lists none."""
    row = PROVIDERS.get(connection.provider)
    listing = row.model_list if row is not None else None
    if listing is None:
        return ()
    names_only = replace(listing, path=listing.names_path)
    value = await asyncio.to_thread(_ask, names_only, connection, timeout)
    names = (each.get("id") or each.get("name") for each in _entries(value))
    return tuple(
        name.removeprefix("models/") for name in names if isinstance(name, str) and name.strip()
    )


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model server that answers on this machine."""

    title: str
    base_url: str
    models: tuple[str, ...]


LOCAL_SERVERS: Mapping[str, str] = {
    "http://127.0.0.1:11434/v1": "Ollama",
    "http://127.0.0.1:8080/v1": "llama.cpp",
    "http://127.0.0.1:1234/v1": "LM Studio",
    "http://127.0.0.1:8000/v1": "vLLM",
}
"""The usual base URLs of local model servers, and their names."""
_LOCAL_SECONDS = 1.0


async def find_local_servers(addresses: Iterable[str]) -> tuple[ModelServer, ...]:
    """Return the servers at these base URLs that list at least one model."""

    async def find_models(address: str) -> ModelServer:
        connection = Connection("compatible", "", base_url=address)
        models: tuple[str, ...] = ()
        with suppress(GatewayError):  # nothing listens there, or another program
            models = await list_models(connection, timeout=_LOCAL_SECONDS)
        return ModelServer(LOCAL_SERVERS.get(address, "Local server"), address, models)

    found = await asyncio.gather(*map(find_models, addresses))
    return tuple(server for server in found if server.models)


def _ask(listing: ModelList, connection: Connection, seconds: float) -> Any:
    """Return the provider's answer as a JSON value; None if it has no such list."""
    base = (connection.base_url or listing.base_url).rstrip("/")
    path = listing.path.format(model=quote(connection.model, safe=""))
    request = urllib.request.Request(f"{base}{path}")  # noqa: S310 - profiles have http and https addresses only
    request.add_header("user-agent", "enfold")
    for name, value in listing.headers:
        request.add_header(name, value)
    if connection.key is not None:
        request.add_header(listing.key_header, f"{listing.key_prefix}{connection.key.reveal()}")
    where = f"the list of models of {connection.provider}"
    try:
        with _OPENER.open(request, timeout=seconds) as answer:
            return loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        status = error.code
    except (OSError, HTTPException):
        # The error's text may hold the address and more.
        raise UnavailableError(f"{where} cannot be reached; check the base URL") from None
    except InputError:
        raise BadReplyError(f"{where} cannot be read; check the base URL") from None
    if status in _DENIED:
        raise AuthenticationError(f"{where} refuses this key; check the key")
    if status in _NO_ENTRY:
        return None
    raise UnavailableError(f"{where} failed with status {status}; try again")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for the address in the profile only."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> None:
        """Make no request."""


_OPENER = urllib.request.build_opener(_NoRedirect)


_SINGLE_MODEL: Mapping[ModelListFormat, str] = {
    "max_input_tokens": "max_tokens",
    "inputTokenLimit": "outputTokenLimit",
}
"""The field with the output limit, by the field with the input limit."""


def _read_list(value: Any, model: str) -> ModelLimits | None:
    """Return the limits from a list of models, which has one of several fields for them."""
    entry = next(
        (each for each in _entries(value) if model in (each.get("id"), each.get("name"))), None
    )
    if entry is None:
        return None
    meta, top = as_mapping(entry.get("meta")), as_mapping(entry.get("top_provider"))
    window = _first(
        entry.get("max_model_len"),  # vLLM
        meta.get("n_ctx"),  # llama.cpp: as it was started
        meta.get("n_ctx_train"),
        top.get("context_length"),  # a router: of the server behind it
        entry.get("context_length"),
        entry.get("context_window"),
        entry.get("max_context_length"),
    )
    output = _first(top.get("max_completion_tokens"), entry.get("max_completion_tokens"))
    return None if window is None else ModelLimits(window, output)


def _entries(value: Any) -> list[dict[str, Any]]:
    listed = as_mapping(value).get("data")
    return mappings_in(as_mapping(value).get("models") if listed is None else listed)


def _first(*numbers: Any) -> int | None:
    """Return the first positive integer; some servers write 0 for unknown."""
    return next((each for each in map(as_integer, numbers) if each is not None and each > 0), None)
