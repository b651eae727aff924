"""Bodies: too large, too slow and too tightly packed are errors that say so."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.engine import Engine
from enfold.errors import InputError, TooLargeError, TooSlowError
from enfold.server import create_app
from enfold.server.bodies import Bodies, unpacked
from enfold.settings import Serving
from tests.server.conftest import Client, client_of

LIMIT = 2_000
JSON = {"content-type": "application/json"}


@pytest.fixture
async def small(engine: Engine) -> AsyncIterator[Client]:
    async with client_of(create_app(engine, serving=Serving(body_limit=LIMIT))) as made:
        yield made


async def test_a_large_body_is_refused_whether_it_is_announced_or_not(small: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 500

    for content in (b"x" * (LIMIT + 1), pieces()):
        answer = await small.post("/api/sessions", content=content, headers=JSON)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


async def test_a_body_may_be_packed(client: Client) -> None:
    packed = gzip.compress(b'{"id": "chat"}')
    headers = {**JSON, "content-encoding": "gzip"}
    answer = await client.post("/api/sessions", content=packed, headers=headers)
    assert (answer.status_code, answer.json()["id"]) == (201, "chat")


async def test_a_body_that_unpacks_to_too_much_is_refused(small: Client) -> None:
    bomb = gzip.compress(b" " * (LIMIT + 1))
    headers = {**JSON, "content-encoding": "gzip"}
    answer = await small.post("/api/sessions", content=bomb, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@given(st.binary(max_size=5_000), st.sampled_from(["gzip", "deflate", "identity", ""]))
def test_unpacking_gives_back_what_was_packed(body: bytes, encoding: str) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
    packed = packers.get(encoding, bytes)(body)
    assert unpacked(packed, encoding, 5_000) == body
    if body and encoding in packers:
        with pytest.raises(TooLargeError):
            unpacked(packed, encoding, len(body) - 1)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"plain", "gzip"),
        (gzip.compress(b"cut off")[:-9], "gzip"),
        (b"plain", "br"),
        (b"plain", "gzip, gzip"),
    ],
    ids=["not packed", "cut off", "unknown", "twice"],  # packed bytes have the time in them
)
def test_what_cannot_be_unpacked_is_said(body: bytes, encoding: str) -> None:
    with pytest.raises(InputError, match="content-encoding"):
        unpacked(body, encoding, 1_000)


async def test_a_body_that_does_not_come_is_given_up() -> None:
    async def waiting() -> dict[str, object]:
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")

    async def read(scope: object, receive: object, send: object) -> None:
        await receive()  # type: ignore[operator] # an ASGI callable

    app = Bodies(read, LIMIT, seconds=0.05)
    with pytest.raises(TooSlowError, match="in time"):
        await app({"type": "http", "headers": []}, waiting, waiting)  # type: ignore[arg-type]
