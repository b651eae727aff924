"""Bodies: too large, too slow and too tightly packed are errors that say so."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from enfold.engine import Engine
from enfold.errors import InputError, TooLargeError, TooSlowError
from enfold.server import bodies, create_app
from enfold.server.bodies import Bodies, unpacked
from enfold.settings import ServerSettings
from tests.server.conftest import Client, client_of

LIMIT = 2_000
JSON = {"content-type": "application/json"}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}
if find_spec("brotli") is not None:  # an extra
    PACKERS["br"] = partial(import_module("brotli").compress, quality=5)
MANY = ["gzip", "zstd"]
"""What may have several parts, each packed by itself."""


@pytest.fixture
async def small(engine: Engine) -> AsyncIterator[Client]:
    async with client_of(create_app(engine, serving=ServerSettings(body_limit=LIMIT))) as made:
        yield made


async def test_a_large_body_is_refused_whether_it_is_announced_or_not(small: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 500

    for content in (b"x" * (LIMIT + 1), pieces()):
        answer = await small.post("/api/sessions", content=content, headers=JSON)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize("encoding", PACKERS)
async def test_a_body_may_be_packed(client: Client, encoding: str) -> None:
    packed = PACKERS[encoding](b'{"id": "chat"}')
    headers = {**JSON, "content-encoding": encoding}
    answer = await client.post("/api/sessions", content=packed, headers=headers)
    assert (answer.status_code, answer.json()["id"]) == (201, "chat")


@pytest.mark.parametrize("encoding", PACKERS)
async def test_a_body_that_unpacks_to_too_much_is_refused(small: Client, encoding: str) -> None:
    bomb = PACKERS[encoding](b" " * (LIMIT + 1))
    headers = {**JSON, "content-encoding": encoding}
    answer = await small.post("/api/sessions", content=bomb, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@given(st.binary(max_size=5_000), st.sampled_from([*PACKERS, "identity", ""]))
def test_unpacking_gives_back_what_was_packed(body: bytes, encoding: str) -> None:
    packed = PACKERS.get(encoding, bytes)(body)
    assert unpacked(packed, encoding, 5_000) == body
    if body and encoding in PACKERS:
        with pytest.raises(TooLargeError):
            unpacked(packed, encoding, len(body) - 1)


@given(st.lists(st.binary(max_size=3_000), min_size=1, max_size=5), st.sampled_from(MANY))
def test_parts_that_follow_each_other_are_one_body(parts: list[bytes], encoding: str) -> None:
    packed, body = b"".join(map(PACKERS[encoding], parts)), b"".join(parts)
    assert unpacked(packed, encoding, 15_000) == body
    if body:
        with pytest.raises(TooLargeError):
            unpacked(packed, encoding, len(body) - 1)


@pytest.mark.parametrize("where", ["first", "last"])
def test_skippable_frames_are_skipped(where: str) -> None:
    frame, skipped = zstandard.compress(b"words"), b"\x50\x2a\x4d\x18\x04\0\0\0note"
    packed = skipped + frame if where == "first" else frame + skipped
    assert unpacked(packed, "zstd", 1_000) == b"words"


@pytest.mark.parametrize("encoding", MANY)
def test_countless_parts_are_refused(encoding: str) -> None:
    with pytest.raises(InputError, match="10,000"):
        unpacked(PACKERS[encoding](b"") * 10_001, encoding, 1_000)


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_bomb_is_noticed_before_it_goes_off(encoding: str) -> None:
    bomb = PACKERS[encoding](b"\0" * 200_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            unpacked(bomb, encoding, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_a_body_that_wants_a_huge_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(b"words") + packer.flush()
    with pytest.raises(InputError, match="not zstd"):
        unpacked(packed, "zstd", 1_000)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"plain", "gzip"),
        (b"plain", "zstd"),
        (gzip.compress(b"cut off")[:-9], "gzip"),
        (zstandard.compress(b"cut off")[:-3], "zstd"),
        (gzip.compress(b"whole") + b"junk", "gzip"),
        (zstandard.compress(b"whole") + b"junk", "zstd"),
        (zlib.compress(b"whole") + zlib.compress(b"more"), "deflate"),
        (zstandard.compress(b"whole") + zstandard.compress(b"cut off")[:-3], "zstd"),
        (b"plain", "br"),
        (b"plain", "lzma"),
        (b"plain", "gzip, gzip"),
    ],
    # Packed bytes have the time in them, and are no names.
    ids=[
        "no gzip",
        "no zstd",
        "gzip cut",
        "zstd cut",
        "gzip and junk",
        "zstd and junk",
        "deflate twice",
        "second cut",
        "no brotli",
        "unknown",
        "twice",
    ],
)
def test_errors_name_the_content_encoding(body: bytes, encoding: str) -> None:
    with pytest.raises(InputError, match="content-encoding"):
        unpacked(body, encoding, 1_000)


async def test_without_brotli_the_server_says_what_to_install(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bodies, "find_spec", lambda _: None)
    bodies._has_brotli.cache_clear()
    headers = {**JSON, "content-encoding": "br"}
    for _ in range(2):
        answer = await client.post("/api/sessions", content=b"packed", headers=headers)
        assert answer.status_code == 400
        assert "enfold[brotli]" in answer.json()["error"]["message"]
    assert caplog.text.count("enfold[brotli]") == 1
    bodies._has_brotli.cache_clear()


async def test_a_body_that_does_not_come_is_given_up() -> None:
    async def waiting() -> dict[str, object]:
        await asyncio.sleep(60)
        raise AssertionError("the wait is too long")

    async def read(scope: object, receive: object, send: object) -> None:
        await receive()  # type: ignore[operator] # an ASGI callable

    app = Bodies(read, LIMIT, seconds=0.05)
    with pytest.raises(TooSlowError, match="in time"):
        await app({"type": "http", "headers": []}, waiting, waiting)  # type: ignore[arg-type]


async def test_a_slow_reader_gets_the_whole_body() -> None:
    pieces = iter([b"one", b"two", b""])

    async def arriving() -> dict[str, object]:
        piece = next(pieces)
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    read: list[bytes] = []

    async def slow(scope: object, receive: object, send: object) -> None:
        for _ in range(3):
            await asyncio.sleep(0.06)
            read.append((await receive())["body"])  # type: ignore[operator] # an ASGI callable

    app = Bodies(slow, LIMIT, seconds=0.1)
    await app({"type": "http", "headers": []}, arriving, arriving)  # type: ignore[arg-type]
    assert read == [b"one", b"two", b""]
