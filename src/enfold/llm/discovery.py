"""Discovery: what a provider's own list says of a model's limits.

Some say nothing: OpenAI, Azure, Bedrock and Vertex list names alone. Servers with OpenAI's protocol
say it in one of several words, and a local one knows the window that it was started with, which may
be far smaller than what the model was trained for. This is the only place that asks for such lists.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import quote

from enfold.errors import AuthenticationError, BadReplyError, InputError, UnavailableError
from enfold.jsontext import loads
from enfold.llm.calls import Connection

TIMEOUT = 10.0
"""Seconds without a sign of life."""
_MOST_BYTES = 32_000_000
"""OpenRouter's list has over a megabyte."""
_NO_ENTRY = frozenset({400, 404, 405, 501})
"""Statuses with which servers say that they have no such list, or no such model in it."""
_DENIED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Found:
    """A model's limits as its provider says them."""

    window: int
    """Input and reply together."""
    max_output: int | None = None


@dataclass(frozen=True, slots=True)
class _List:
    """How a provider is asked."""

    base_url: str
    path: Callable[[Connection], str]
    key_header: str
    read: Callable[[Any, str], Found | None]
    key_prefix: str = ""
    headers: Mapping[str, str] | None = None


async def discover(connection: Connection, *, timeout: float = TIMEOUT) -> Found | None:  # noqa: ASYNC109 - of each read, not of the whole
    """The limits of the connection's model. None where the provider does not say them."""
    listing = _LISTS.get(connection.provider)
    if listing is None:
        return None
    value = await asyncio.to_thread(_ask, listing, connection, timeout)
    return None if value is None else listing.read(value, connection.model)


def _ask(listing: _List, connection: Connection, seconds: float) -> Any:
    """What the provider answers, read; None where it has no such list."""
    base = (connection.base_url or listing.base_url).rstrip("/")
    request = urllib.request.Request(f"{base}{listing.path(connection)}")  # noqa: S310 - profiles have http and https addresses only
    request.add_header("user-agent", "enfold")
    for name, value in (listing.headers or {}).items():
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
        # Its words may hold the address and more; what to do is the same in any case.
        raise UnavailableError(f"{where} is out of reach; check the base URL") from None
    except InputError:
        raise BadReplyError(f"{where} cannot be read; check the base URL") from None
    if status in _DENIED:
        raise AuthenticationError(f"{where} is not shown for this key; check it")
    if status in _NO_ENTRY:
        return None
    raise UnavailableError(f"{where} failed with status {status}; try again")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: the key is for the address that the profile names."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> None:
        """No request."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def _openai(value: Any, model: str) -> Found | None:
    """One of the words that servers with OpenAI's protocol have for it."""
    entry = next(
        (each for each in _entries(value) if model in (each.get("id"), each.get("name"))), None
    )
    if entry is None:
        return None
    meta, top = _object(entry, "meta"), _object(entry, "top_provider")
    window = _first(
        entry.get("max_model_len"),  # vLLM
        meta.get("n_ctx"),  # llama.cpp: as it was started
        meta.get("n_ctx_train"),
        top.get("context_length"),  # OpenRouter: of the one who serves it
        entry.get("context_length"),
        entry.get("context_window"),
        entry.get("max_context_length"),
    )
    output = _first(top.get("max_completion_tokens"), entry.get("max_completion_tokens"))
    return None if window is None else Found(window, output)


def _anthropic(value: Any, _model: str) -> Found | None:
    window = _first(_field(value, "max_input_tokens"))
    return None if window is None else Found(window, _first(_field(value, "max_tokens")))


def _google(value: Any, _model: str) -> Found | None:
    window = _first(_field(value, "inputTokenLimit"))
    return None if window is None else Found(window, _first(_field(value, "outputTokenLimit")))


def _entries(value: Any) -> Iterator[Mapping[str, Any]]:
    listed = _field(value, "data")
    if isinstance(listed, list):
        yield from (each for each in listed if isinstance(each, Mapping))


def _object(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = entry.get(name)
    return found if isinstance(found, Mapping) else {}


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _first(*numbers: Any) -> int | None:
    """The first that is a number of tokens; 0 is how some say that they do not know."""
    return next(
        (
            each
            for each in numbers
            if isinstance(each, int) and not isinstance(each, bool) and each > 0
        ),
        None,
    )


def _all_models(_connection: Connection) -> str:
    return "/models"


_BEARER = "Bearer "
_LISTS: Mapping[str, _List] = {
    "openai": _List("https://api.openai.com/v1", _all_models, "authorization", _openai, _BEARER),
    "compatible": _List("", _all_models, "authorization", _openai, _BEARER),
    "openrouter": _List(
        "https://openrouter.ai/api/v1", _all_models, "authorization", _openai, _BEARER
    ),
    "anthropic": _List(
        "https://api.anthropic.com",
        lambda connection: f"/v1/models/{quote(connection.model, safe='')}",
        "x-api-key",
        _anthropic,
        headers={"anthropic-version": "2023-06-01"},
    ),
    "google": _List(
        "https://generativelanguage.googleapis.com",
        lambda connection: f"/v1beta/models/{quote(connection.model, safe='')}",
        "x-goog-api-key",
        _google,
    ),
}
"""By provider; those that are not here say nothing of limits."""
