"""Callers: the sender of a request and the namespace of its sessions."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope

from enfold.errors import AccessError


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    name: str
    """The access token's name; empty for a caller on this machine without a token."""
    namespace: str
    """The namespace of the caller's sessions; empty for the owner, as on the command line."""

    @property
    def is_owner(self) -> bool:
        """True for the first token, and for this machine if no token is required."""
        return not self.namespace

    @property
    def has_token(self) -> bool:
        """True if the request had an access token."""
        return bool(self.name)


ON_THIS_MACHINE = Caller(name="", namespace="")


def remember(scope: Scope, caller: Caller) -> None:
    """Store the caller in the request's scope."""
    scope.setdefault("state", {})["caller"] = caller


def caller_in(scope: Scope) -> Caller:
    """Return the caller that was stored in the request's scope."""
    caller: Caller = scope["state"]["caller"]
    return caller


def require_owner(caller: Caller) -> None:
    """Raise `AccessError` unless the caller is the owner."""
    if not caller.is_owner:
        raise AccessError(
            f"the token {caller.name!r} may not read or change what concerns all callers; "
            "use the server's first token"
        )
