"""Connections: a time limit for request headers, and fewer writes.

A connection whose request headers do not arrive in time is closed. Head and body of a short answer
are written together. Both extend uvicorn's protocol class, which a test pins to tested versions.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 20.0
_AT_ONCE = 64 * 1024
"""The most bytes that wait for the end of the step."""


_WHOLE = "is_whole"


def is_whole(scope: Scope) -> bool:
    """True if the whole request had arrived before it was answered."""
    return _WHOLE in scope.get("state", ())


class Joined:
    """A transport that joins the writes of one step of the event loop."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write at the end of the step, or now if much waits, so that flow control works."""
        if not self._waiting:
            self._loop.call_soon(self._write_all)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _AT_ONCE:
            self._write_all()

    def close(self) -> None:
        """Write the waiting bytes and close."""
        self._write_all()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _write_all(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # one of two classes
    """The web server's protocol with a time limit for request headers."""

    head_seconds = HEAD_SECONDS
    _deadline: asyncio.TimerHandle | None = None
    _is_upgraded = False

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of a new connection."""
        super().connection_made(Joined(transport, self.loop))
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Stop the time limit when the headers are complete."""
        super().data_received(data)
        if self._is_upgraded or (self.cycle is not None and not self.cycle.response_complete):
            self._stop_waiting()
        elif self._deadline is None and self.timeout_keep_alive_task is None:
            self._wait_for_head()

    def on_message_complete(self) -> None:
        """Mark the request as whole; a short one is whole before it is answered."""
        super().on_message_complete()
        self.scope["state"][_WHOLE] = True

    def handle_websocket_upgrade(self, *event: Any) -> None:
        """Hand the connection over to the WebSocket protocol."""
        self._is_upgraded = True
        super().handle_websocket_upgrade(*event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
