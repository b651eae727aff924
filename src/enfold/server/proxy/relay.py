"""The relay: how an answer gets back to the client, piece by piece as it arrives."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Message, Send

from enfold.server.proxy.upstream import Answer, Header


class Receiver:
    """The client, who waits for an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        """Once it has, nothing else can be answered any more."""

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """The beginning of the answer."""
        self.has_begun = True
        lower = [(name.lower(), value) for name, value in headers]
        message: Message = {"type": "http.response.start", "status": status, "headers": lower}
        await self._send(message)

    async def say(self, chunk: bytes) -> None:
        """A piece of it."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, last: bytes = b"") -> None:
        """The last piece."""
        await self._send({"type": "http.response.body", "body": last})


async def relay(answer: Answer, own: Iterable[Header], to: Receiver) -> None:
    """The answer as it is, with headers of our own."""
    await to.start(answer.status, [*answer.headers, *own])
    async for chunk in answer.chunks():
        await to.say(chunk)
    await to.end()
