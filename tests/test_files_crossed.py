"""How many files of the package one request runs through, counted while it runs."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import enfold
from enfold.server.proxy.routes import Proxy
from enfold.server.proxy.upstream import BufferedResponse, Upstream, UpstreamResponse
from enfold.testing import assistant, user
from tests.source import PACKAGE

MODEL = "test:small"
KEPT = 20
"""The most files that `prepare` may cross if nothing is compressed."""
COMPRESSING = 55
"""The most files that `prepare` may cross if it compresses."""
PROXY_KEPT = 30
"""The most files that a proxied request may cross if nothing is compressed."""
PROXY_COMPRESSED = 75
"""The most files that a proxied request may cross if it is compressed."""


@contextmanager
def crossed_files() -> Iterator[set[str]]:
    """Collect the files of the package whose functions run inside the block.

    Threads that were started before the block are not observed: open engines inside it, and
    clear the set before the call that is measured.
    """
    root, background = str(PACKAGE), (str(PACKAGE / "queue"), str(PACKAGE / "store/sqlite.py"))
    files: set[str] = set()

    def observe(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        # The queue works in the background whenever it has time, not for this request. A thread
        # of the store connects when it starts.
        if code.co_filename.startswith(background):
            return
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(root):
            files.add(str(Path(code.co_filename).relative_to(root)))

    threading.setprofile(observe)
    sys.setprofile(observe)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def test_a_prepared_turn_crosses_few_files(tmp_path: Path) -> None:
    with crossed_files() as files:
        async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
            await engine.models.edit(MODEL, max_input=4_000, max_output=20_000)
            session = await engine.session("chat", model=MODEL)
            await session.append(user("Where is the log?"), assistant("In /var/log/app.log."))
            kept = sorted(PACKAGE.rglob("*.py"))
            for number in range(3):
                # Work that an append leaves behind may still run during the first of them.
                files.clear()
                prepared = await session.prepare(f"And error {number}?")
                assert prepared.compression is None
                kept = min(kept, sorted(map(Path, files)), key=len)
            for turn in range(20):
                await session.append(
                    user(f"Question {turn}: " + "why did the deployment fail? " * 20),
                    assistant(
                        f"Answer {turn}: " + f"see /var/log/app-{turn}.log for E-40{turn}. " * 9
                    ),
                )
            await engine.queue.stop()  # its work is not this request's
            files.clear()
            prepared = await session.prepare("And now?")
            compressing = sorted(files)
            assert prepared.compression is not None
            assert prepared.compression.compressed
    assert len(kept) <= KEPT, "\n".join(map(str, kept))
    assert len(compressing) <= COMPRESSING, "\n".join(compressing)


class Provider(Upstream):
    """Answers every call with the same reply, without a network."""

    def call(self, *_: object) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Return the reply."""
        return _reply()


@asynccontextmanager
async def _reply() -> AsyncIterator[UpstreamResponse]:
    message = {"role": "assistant", "content": "It is E-4031."}
    body = {"id": "r", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    headers = [(b"content-type", b"application/json")]
    yield cast("UpstreamResponse", BufferedResponse(200, headers, json.dumps(body).encode()))


async def _send(proxy: Proxy, messages: list[Any]) -> str:
    """Send a conversation through the proxy; return its decision."""
    body = json.dumps({"model": "small", "messages": messages}).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [(b"content-type", b"application/json")],
    }
    received = asyncio.Event()
    sent: list[Any] = []

    async def receive() -> Any:
        if received.is_set():
            await asyncio.Event().wait()
        received.set()
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    await proxy(scope, receive, send)
    decision: bytes = dict(sent[0]["headers"])[b"x-enfold-decision"]
    return decision.decode()


async def _namespace(_scope: object) -> str:
    return ""


async def test_a_proxied_request_crosses_few_files(tmp_path: Path) -> None:
    talk = [
        {"role": role, "content": f"{role} {turn}: " + f"see /var/log/app-{turn}.log " * 40}
        for turn in range(20)
        for role in ("user", "assistant")
    ]
    with crossed_files() as files:
        async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
            await engine.models.edit("openai:small", max_input=10_000, max_output=500)
            proxy = Proxy(engine, Provider({"openai": "http://provider"}), _namespace)
            await _send(proxy, talk[:5])
            await proxy.idle()
            kept = sorted(map(str, PACKAGE.rglob("*.py")))
            for _ in range(3):
                # Work in the background may still run during one of them.
                files.clear()
                assert await _send(proxy, talk[:5]) == "keep"
                kept = min(kept, sorted(files), key=len)
            await proxy.idle()
            await engine.queue.stop()
            files.clear()
            assert await _send(proxy, [*talk, talk[0]]) == "compressed"
            compressed = sorted(files)
            await proxy.close()
    assert len(kept) <= PROXY_KEPT, "\n".join(kept)
    assert len(compressed) <= PROXY_COMPRESSED, "\n".join(compressed)
