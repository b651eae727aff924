"""Namespaces: whose conversations a request to the proxy may be one of.

An access token is a namespace of its own. Without one, people are told apart by the key that they
send to their provider; only a keyed hash of it is ever kept, and the key of that hash is the
store's.
"""

from __future__ import annotations

from hashlib import blake2b

from starlette.types import Scope

from enfold.server.callers import caller_in
from enfold.server.headers import find
from enfold.store import Store, access

_KEYS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
"""Where clients put the key for their provider."""


_BY_KEY = "key-"


def is_by_key(namespace: str) -> bool:
    """Whether its people are known by their provider's key, and have no access token."""
    return namespace.startswith(_BY_KEY)


class Namespaces:
    """Gives every request its namespace."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    async def __call__(self, scope: Scope) -> str:
        """The access token's, else that of the provider's key, else this machine's own."""
        caller = caller_in(scope)
        if caller.has_token or caller.namespace:
            return caller.namespace
        for name in _KEYS:
            given = find(scope["headers"], name)
            if given is not None:
                return f"{_BY_KEY}{blake2b(given, key=self._key, digest_size=16).hexdigest()}"
        return caller.namespace


async def open_namespaces(store: Store) -> Namespaces:
    """The namespaces of a store, the same in every process that serves it."""
    return Namespaces(await store.write(access.namespace_secret))
