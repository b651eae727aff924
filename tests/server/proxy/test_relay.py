"""How an answer gets back to the client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from enfold.errors import UnavailableError
from enfold.server.proxy.client import ClientResponse
from enfold.server.proxy.recorder import RecordedResponse, ResponseRecorder
from enfold.server.proxy.routes import relay_response
from enfold.server.proxy.upstream import UpstreamResponse
from enfold.wire import WIRES
from enfold.wire.replies import Reply


class Arriving:
    """An answer in pieces, which may break off."""

    def __init__(self, *pieces: bytes, breaks: bool = False, length: int | None = None) -> None:
        self.status = 200
        self.length = length
        self.headers = [(b"Content-Type", b"application/json")]
        self._pieces = pieces
        self._breaks = breaks

    def whole_body(self) -> None:
        return None

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._breaks:
            raise UnavailableError("it broke off")


class Client:
    """Hears what is sent to it."""

    def __init__(self) -> None:
        self.received: list[Any] = []

    async def send(self, message: Any) -> None:
        self.received.append(message)


async def test_pieces_go_on_as_they_come() -> None:
    client = Client()
    answer = cast("UpstreamResponse", Arriving(b"one", b"two"))
    await relay_response(answer, [(b"X-Enfold-Decision", b"keep")], ClientResponse(client.send))
    start, *body = client.received
    assert start["headers"] == [
        (b"content-type", b"application/json"),
        (b"x-enfold-decision", b"keep"),
    ]
    assert [(each["body"], each.get("more_body", False)) for each in body] == [
        (b"one", True),
        (b"two", True),
        (b"", False),
    ]


async def test_a_relayed_response_keeps_its_known_length_and_marks_its_last_piece() -> None:
    client = Client()
    await relay_response(
        cast("UpstreamResponse", Arriving(b"one", b"two", length=6)),
        (),
        ClientResponse(client.send),
    )
    start, *body = client.received
    assert (b"content-length", b"6") in start["headers"]
    assert [(each["body"], each.get("more_body", False)) for each in body] == [
        (b"one", True),
        (b"two", False),
    ]


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_that_never_has_a_body_has_no_length(status: int) -> None:
    client = Client()
    answer = Arriving(length=0)
    answer.status = status
    await relay_response(cast("UpstreamResponse", answer), (), ClientResponse(client.send))
    assert [name for name, _ in client.received[0]["headers"]] == [b"content-type"]


async def test_a_response_is_sent_after_it_was_stored() -> None:
    client = Client()
    before: list[int] = []

    async def keep(_reply: Reply) -> None:
        before.append(len(client.received))

    answer = cast("UpstreamResponse", Arriving(b'{"id":', b'"r"}'))
    recorder = ResponseRecorder(
        RecordedResponse(WIRES["openai-responses"], answer.headers), lambda _: None, keep
    )
    await relay_response(answer, (), ClientResponse(client.send), recorder)
    assert before == [1]
    assert [each["body"] for each in client.received[1:]] == [b'{"id":"r"}']


async def test_an_interrupted_answer_is_not_ended_but_recorded() -> None:
    client, response = Client(), RecordedResponse(WIRES["openai"], ())
    closed: list[RecordedResponse] = []
    answer = cast("UpstreamResponse", Arriving(b"one", breaks=True))
    to = ClientResponse(client.send)
    with pytest.raises(UnavailableError):
        await relay_response(answer, (), to, ResponseRecorder(response, closed.append, None))
    assert to.has_started
    assert client.received[-1]["more_body"] is True
    assert closed == [response]
