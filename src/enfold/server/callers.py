"""Callers: who a request is from, and which sessions are theirs."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import Scope

from enfold.errors import AccessError


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request."""

    name: str
    """The access token's name; empty for somebody on this machine who has none."""
    namespace: str
    """Where their sessions are. The command line's own is empty."""

    @property
    def is_owner(self) -> bool:
        """True for the first token, and for whoever is on this machine where none is needed."""
        return not self.namespace

    @property
    def has_token(self) -> bool:
        """True if an access token came along."""
        return bool(self.name)


ON_THIS_MACHINE = Caller(name="", namespace="")


def remember(scope: Scope, caller: Caller) -> None:
    """Keep the caller with the request."""
    scope.setdefault("state", {})["caller"] = caller


def caller_in(scope: Scope) -> Caller:
    """Whose request it is that has this scope."""
    caller: Caller = scope["state"]["caller"]
    return caller


def caller_of(connection: HTTPConnection) -> Caller:
    """Whose request it is."""
    caller: Caller = connection.state.caller
    return caller


def require_owner(caller: Caller) -> None:
    """Raise `AccessError` unless the caller may change what holds for everybody."""
    if not caller.is_owner:
        raise AccessError(
            f"the token {caller.name!r} may not change what holds for everybody; "
            "use the server's first token"
        )
