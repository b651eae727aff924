"""Headers to the provider and back."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from enfold.errors import UnavailableError
from enfold.server.proxy.upstream import Upstream, is_forwarded, response_headers
from tests.server.live_server import serving


def test_connection_headers_are_not_forwarded() -> None:
    headers = [
        (b"Host", b"enfold"),
        (b"Connection", b"close"),
        (b"Content-Length", b"7"),
        (b"X-Enfold-Session", b"s"),
        (b"Authorization", b"Bearer k"),
        (b"accept-encoding", b"gzip"),
    ]
    assert [each for each in headers if is_forwarded(each[0])] == [
        (b"Authorization", b"Bearer k"),
        (b"accept-encoding", b"gzip"),
    ]


async def test_a_packed_answer_stays_packed() -> None:
    packed = gzip.compress(b"answer" * 100)

    async def answer(request: Request) -> Response:
        assert request.headers["accept-encoding"] == "gzip"
        return Response(packed, headers={"content-encoding": "gzip"})

    app = Starlette(routes=[Route("/v1/x", answer, methods=["POST"])])
    async with serving(app) as address:
        upstream = Upstream({"openai": address})
        headers = [(b"accept-encoding", b"gzip")]
        async with upstream.call("openai", "POST", "/v1/x", headers, b"{}") as reply:
            assert dict(reply.headers)[b"content-encoding"] == b"gzip"
            assert await reply.read() == packed
        await upstream.close()


async def test_a_provider_that_is_not_there_is_unavailable() -> None:
    upstream = Upstream({"openai": "http://127.0.0.1:9"})
    with pytest.raises(UnavailableError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        async with upstream.call("openai", "GET", "/v1/models?key=secret", [], None):
            pass
    await upstream.close()


def test_cookies_and_rights_of_the_providers_site_are_not_passed_on() -> None:
    given = [
        (b"Set-Cookie", b"__cf_bm=x"),
        (b"access-control-allow-origin", b"*"),
        (b"Clear-Site-Data", b'"*"'),
        (b"Refresh", b"0; url=/"),
        (b"Reporting-Endpoints", b"a"),
        (b"Cross-Origin-Resource-Policy", b"cross-origin"),
        (b"Date", b"Tue, 17 Nov 2026 18:00:00 GMT"),
        (b"content-type", b"application/json"),
    ]
    assert response_headers(given) == [(b"content-type", b"application/json")]


def _reset(writing: asyncio.StreamWriter) -> None:
    """Close a connection so that the other side meets a reset."""
    linger = struct.pack("ii", 1, 0)
    writing.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writing.close()


async def test_an_idle_connection_that_the_provider_closed_costs_no_request() -> None:
    connections, left = 0, asyncio.Event()

    async def answer(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with suppress(asyncio.IncompleteReadError):
            await answer_all(connections, reading, writing)
        if connections == 2:
            writing.close()
            left.set()

    async def answer_all(
        number: int, reading: asyncio.StreamReader, writing: asyncio.StreamWriter
    ) -> None:
        while head := await reading.readuntil(b"\r\n\r\n"):
            if number == 1 and b"/second" in head:
                # The open request is reset: its body cannot be written.
                _reset(writing)
                return
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            assert length is not None
            await reading.readexactly(int(length[1]))
            writing.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    upstream = Upstream({"openai": address})
    body = b"x" * 20_000_000
    for path, size in (("/first", 10), ("/second", len(body))):
        async with upstream.call("openai", "POST", path, [], body[:size]) as response:
            assert await response.read() == b"ok"
    assert connections == 2
    await upstream.close()
    await left.wait()
    server.close()


async def test_a_request_that_the_provider_worked_on_is_not_sent_twice() -> None:
    requests = 0

    async def answer(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        await reading.readuntil(b"\r\n\r\n")
        await reading.readexactly(10)
        await asyncio.sleep(1.2)
        _reset(writing)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    upstream = Upstream({"openai": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
    with pytest.raises(UnavailableError):
        async with upstream.call("openai", "POST", "/v1/responses", [], b"x" * 10):
            pass
    assert requests == 1
    await upstream.close()
    server.close()


@asynccontextmanager
async def _provider(
    response: bytes,
    *,
    is_open: bool = False,
    reads: bool = True,
    certificate: Path | None = None,
) -> AsyncIterator[tuple[Upstream, list[bytes]]]:
    """Yield an upstream whose server sends these bytes, and the heads of the requests it gets."""
    heads: list[bytes] = []
    connections: list[asyncio.StreamWriter] = []

    async def answer(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        connections.append(writing)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                heads.append(await reading.readuntil(b"\r\n\r\n"))
                length = re.search(rb"content-length: (\d+)", heads[-1])
                if reads and length is not None:
                    await reading.readexactly(int(length[1]))
                writing.write(response)
                await writing.drain()
                if not is_open:
                    break
        writing.close()

    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    host = "http://127.0.0.1" if context is None else "https://localhost"
    upstream = Upstream({"openai": f"{host}:{server.sockets[0].getsockname()[1]}/base"})
    async with server:
        yield upstream, heads
        await upstream.close()
        for each in connections:
            with suppress(ConnectionError):
                await each.wait_closed()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (OK + b"content-length: 2\r\n\r\nok", b"ok"),
        (OK + b"transfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", b"ok"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK + b"content-length: 0\r\n\r\n", b""),
        (OK + b"content-length: 2000000\r\n\r\n" + b"x" * 2_000_000, b"x" * 2_000_000),
    ],
    ids=["length", "chunks", "interim", "long"],
)
async def test_a_connection_is_used_again(response: bytes, body: bytes) -> None:
    async with _provider(response, is_open=True) as (upstream, heads):
        for _ in range(3):
            async with upstream.call("openai", "POST", "/v1/x?a=%20b", [], b"{}") as reply:
                assert (reply.status, await reply.read()) == (200, body)
                assert b"link" not in dict(reply.headers)
        assert len(heads) == 3
        assert heads[0].startswith(b"POST /base/v1/x?a=%20b HTTP/1.1\r\nhost: 127.0.0.1:")


async def test_a_connection_is_not_used_after_it_was_idle_for_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("enfold.server.proxy.upstream._IDLE_SECONDS", 0.05)
    async with _provider(OK + b"content-length: 2\r\n\r\nok", is_open=True) as (upstream, _):
        async with upstream.call("openai", "POST", "/v1/x", [], b"{}") as reply:
            await reply.read()
            first = reply._connection
        await asyncio.wait_for(first.lost.wait(), 10)
        async with upstream.call("openai", "POST", "/v1/x", [], b"{}") as reply:
            assert await reply.read() == b"ok"
            assert reply._connection is not first


async def test_silence_between_two_requests_is_no_error() -> None:
    async with _provider(OK + b"content-length: 2\r\n\r\nok", is_open=True) as (upstream, heads):
        upstream._servers["openai"]._read_timeout = 0.2
        async with upstream.call("openai", "POST", "/v1/x", [], b"{}") as reply:
            await reply.read()
        await asyncio.sleep(0.3)
        async with upstream.call("openai", "POST", "/v1/x", [], b"{}") as reply:
            assert await reply.read() == b"ok"
        assert len(heads) == 2


async def test_the_response_to_a_head_request_has_no_body() -> None:
    async with _provider(OK + b"content-length: 2\r\n\r\n", is_open=True) as (upstream, heads):
        for _ in range(2):
            async with upstream.call("openai", "HEAD", "/v1/x", [], None) as reply:
                assert (reply.length, await reply.read()) == (2, b"")
    assert b"content-length" not in heads[0]


async def test_the_end_of_the_connection_may_end_a_body() -> None:
    async with (
        _provider(OK + b"\r\nok") as (upstream, _),
        upstream.call("openai", "GET", "/v1/x", [], None) as reply,
    ):
        assert reply.ends_with_connection
        assert await reply.read() == b"ok"


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (b"no HTTP\r\n\r\n", "sent an invalid response"),
        (OK + b"x: " + b"x" * 70_000, "sent an invalid response: its headers are larger"),
        (OK + b"content-length: 9\r\n\r\nok", "broke off its response"),
        (OK + b"transfer-encoding: chunked\r\n\r\n9\r\nok", "broke off its response"),
        (b"", "cannot be reached: the server closed the connection"),
    ],
    ids=["no-http", "long-headers", "short", "chunk", "nothing"],
)
async def test_a_wrong_response_is_an_error(response: bytes, error: str) -> None:
    async with _provider(response) as (upstream, heads):
        with pytest.raises(UnavailableError, match=error):
            async with upstream.call("openai", "POST", "/v1/x", [], b"{}") as reply:
                await reply.read()
        assert len(heads) == 1


async def test_a_provider_may_refuse_a_body_before_its_end() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig"
    async with (
        _provider(refusal, is_open=True, reads=False) as (upstream, _),
        upstream.call("openai", "POST", "/v1/x", [], b"x" * 50_000_000) as reply,
    ):
        assert (reply.status, await reply.read()) == (413, b"big")


def _write_certificate(file: Path, host: str) -> Path:
    """Write a certificate for a host that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "provider")])
    now, day = datetime.now(UTC), timedelta(days=1)
    names = x509.SubjectAlternativeName([x509.DNSName(host)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = serialization.Encoding.PEM
    private = serialization.PrivateFormat.PKCS8
    file.write_bytes(
        key.private_bytes(pem, private, serialization.NoEncryption())
        + builder.sign(key, hashes.SHA256()).public_bytes(pem)
    )
    return file


async def test_requests_are_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = _write_certificate(tmp_path / "provider.pem", "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    response, sent = OK + b"content-length: 3000000\r\n\r\n" + b"y" * 3_000_000, b"x" * 3_000_000
    async with _provider(response, is_open=True, certificate=certificate) as (upstream, heads):
        for _ in range(2):
            async with upstream.call("openai", "POST", "/v1/x", [], sent) as reply:
                assert (reply.status, len(await reply.read())) == (200, 3_000_000)
        assert len(heads) == 2


async def test_a_certificate_of_another_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = _write_certificate(tmp_path / "provider.pem", "elsewhere.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with _provider(OK, certificate=certificate) as (upstream, heads):
        with pytest.raises(UnavailableError, match="certificate is not valid for 'localhost'"):
            async with upstream.call("openai", "POST", "/v1/x", [], b"{}"):
                pass
        assert heads == []
