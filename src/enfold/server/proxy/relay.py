"""The relay: how an answer gets back to the client, piece by piece as it arrives."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from starlette.types import Message, Send

from enfold.server.headers import Header
from enfold.server.proxy.hearing import Ear
from enfold.server.proxy.upstream import Arriving

_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Receiver:
    """The client, who waits for an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        """Once it has, nothing else can be answered any more."""

    async def start(
        self, status: int, headers: Iterable[Header], length: int | None = None
    ) -> None:
        """The beginning of the answer, which has so many bytes if that is known."""
        self.has_begun = True
        lower = [(name.lower(), value) for name, value in headers]
        if length is not None and status not in _WITHOUT_BODY:
            lower.append((b"content-length", b"%d" % length))
        message: Message = {"type": "http.response.start", "status": status, "headers": lower}
        await self._send(message)

    async def say(self, chunk: bytes) -> None:
        """A piece of it."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, last: bytes = b"") -> None:
        """The last piece."""
        await self._send({"type": "http.response.body", "body": last})


async def relay(
    answer: Arriving, own: Iterable[Header], to: Receiver, ear: Ear | None = None
) -> None:
    """The answer as it is, with headers of our own; `ear` listens to it."""
    await to.start(answer.status, [*answer.headers, *own], answer.length)
    waiting: list[bytes] = []
    left = answer.length
    try:
        async for chunk in answer.chunks():
            left = None if left is None else left - len(chunk)
            # The last piece goes out with word that it is the last: a short answer in one go.
            if (ear is not None and ear.hear(chunk)) or left == 0:
                waiting.append(chunk)
            else:
                await to.say(chunk)
        if ear is not None:
            await ear.ended()
    finally:
        if ear is not None:
            ear.close()
    await to.end(b"".join(waiting))
