"""Connections: one that does not finish its request's head in time is closed.

And what is answered at once goes out at once: head and body of a short answer in one piece.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 20.0
_AT_ONCE = 64 * 1024
"""Bytes that wait for more at most."""


_WHOLE = "is_whole"


def is_whole(scope: Scope) -> bool:
    """Whether all of the request was here when its answering began."""
    return _WHOLE in scope.get("state", ())


class Joined:
    """A transport that writes together what it is given in one step of the event loop."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write soon; much is written now, so that whoever sends it hears when to pause."""
        if not self._waiting:
            self._loop.call_soon(self._write_all)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _AT_ONCE:
            self._write_all()

    def close(self) -> None:
        """Write what waits, and close."""
        self._write_all()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _write_all(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # one of two classes
    """The web server's protocol, which would otherwise wait for a head for ever."""

    head_seconds = HEAD_SECONDS
    _deadline: asyncio.TimerHandle | None = None
    _is_upgraded = False

    def connection_made(self, transport: Any) -> None:
        """Somebody has connected, and should say what they want."""
        super().connection_made(Joined(transport, self.loop))
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Something came: a whole head, or a part of one."""
        super().data_received(data)
        if self._is_upgraded or (self.cycle is not None and not self.cycle.response_complete):
            self._stop_waiting()
        elif self._deadline is None and self.timeout_keep_alive_task is None:
            self._wait_for_head()

    def on_message_complete(self) -> None:
        """All of a request is here; a short one is before anybody has begun to answer it."""
        super().on_message_complete()
        self.scope["state"][_WHOLE] = True

    def handle_websocket_upgrade(self, *event: Any) -> None:
        """From here on it is another protocol's."""
        self._is_upgraded = True
        super().handle_websocket_upgrade(*event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
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
