"""A proxy between real clients and a provider that we play: it records what reaches it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from enfold.engine import Engine
from enfold.records import UsageTotal
from enfold.server import create_app
from enfold.server.access import ON_THIS_MACHINE
from enfold.server.metrics import Metrics
from enfold.server.proxy.background import BackgroundCompressions
from enfold.server.proxy.client import ProxyNamespaces
from enfold.server.proxy.routes import BODY_LIMIT, Proxy, open_proxy_namespaces
from enfold.server.proxy.upstream import Upstream
from enfold.store import catalog
from enfold.summaries import Summarizer
from enfold.wiring import open_engine
from tests.databases import opened_before
from tests.server.live_server import serving

WINDOW = 10_000
MODELS = ("openai:small", "anthropic:small", "google:small")

Script = Callable[[Request, Any], Response | None]


@dataclass
class ScriptedProvider:
    """Answers every request in the form of its path, unless a script says otherwise."""

    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    script: Script | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def last(self) -> Any:
        """The last body that came, decoded."""
        return json.loads(self.bodies[-1])

    def app(self) -> Starlette:
        """The provider as an application."""
        methods = ["GET", "POST", "DELETE"]
        return Starlette(routes=[Route("/{path:path}", self._answer, methods=methods)])

    async def _answer(self, request: Request) -> Response:
        raw = await request.body()
        self.bodies.append(raw)
        self.headers.append(dict(request.headers))
        self.paths.append(str(request.url.path))
        body = json.loads(raw.decode("utf-8", "replace")) if raw[:1] == b"{" else {}
        scripted = self.script(request, body) if self.script else None
        if scripted is not None:
            return scripted
        if request.url.path.endswith("/messages"):
            return _anthropic(body)
        if "generateContent" in request.url.path:
            return JSONResponse(_GEMINI)
        if request.url.path.endswith("/responses"):
            return JSONResponse(_responses(body))
        if request.url.path.endswith("/chat/completions"):
            return self._chat(body)
        return JSONResponse({"object": "list", "data": []})

    def _chat(self, body: Any) -> Response:
        if body.get("stream"):
            return StreamingResponse(self._stream(), media_type="text/event-stream")
        message = {"role": "assistant", "content": f"answer {len(body['messages'])}"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        whole = {"id": "r", "object": "chat.completion", "created": 1, "model": body["model"]}
        return JSONResponse({**whole, "choices": [choice], "usage": usage})

    async def _stream(self) -> AsyncIterator[bytes]:
        try:
            for text in ("one ", "two ", "three"):
                delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
                piece = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}
                yield f"data: {json.dumps({**piece, 'choices': [delta]})}\n\n".encode()
                await asyncio.sleep(0.01)
            yield b"data: [DONE]\n\n"
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def _anthropic(body: Any) -> Response:
    usage = {"input_tokens": 1, "output_tokens": 1}
    content = [{"type": "text", "text": f"answer {len(body['messages'])}"}]
    return JSONResponse(
        {
            "id": "msg",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
    )


def _responses(body: Any) -> Any:
    text = {"type": "output_text", "text": f"answer {len(body['input'])}", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    return {
        "id": "resp",
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "status": "completed",
        "output": [{**message, "content": [text]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


_GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "answer"}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}


@dataclass(frozen=True)
class Stage:
    """The proxy's address, the provider behind it, and the engine in it."""

    address: str
    provider: ScriptedProvider
    engine: Engine
    namespaces: ProxyNamespaces
    proxy: Proxy

    async def namespace(self, key: str) -> str:
        """Where the conversations of clients with that key are."""
        headers = [(b"authorization", f"Bearer {key}".encode())]
        return await self.namespaces({"headers": headers, "state": {"caller": ON_THIS_MACHINE}})

    async def counted(self, namespace: str, calls: int) -> list[UsageTotal]:
        """Return the usage of the namespace, once this number of calls is counted."""
        async with asyncio.timeout(60):
            while True:
                await self.proxy.idle()
                found = await self.engine.store.read(catalog.usage_of_namespace, namespace)
                if sum(total.calls for total in found) >= calls:
                    return found
                await asyncio.sleep(0.01)


@asynccontextmanager
async def stage(
    database: str,
    *,
    body_limit: int = BODY_LIMIT,
    background: bool = False,
    provider_address: str | None = None,
    compressions: BackgroundCompressions | None = None,
    **summarizers: Summarizer,
) -> AsyncIterator[Stage]:
    """A proxy whose models have a small window, and that compresses when that is due.

    With an address, requests go to the provider there, and not to the one that is played here.
    """
    provider = ScriptedProvider()
    if database.startswith("sqlite:///"):
        opened_before(Path(database.removeprefix("sqlite:///")))
    async with (
        open_engine(database, summarizers=summarizers) as engine,
        serving(provider.app()) as upstream,
    ):
        for model in MODELS:
            await engine.models.edit(model, max_input=WINDOW, max_output=500)
        await engine.set("background", background)

        address = provider_address or upstream
        upstreams = dict.fromkeys(("openai", "anthropic", "gemini"), address)
        metrics = Metrics()
        namespaces = await open_proxy_namespaces(engine)
        proxy = Proxy(
            engine,
            Upstream(upstreams),
            namespaces,
            body_limit=body_limit,
            on_usage=metrics.used,
            background=compressions,
        )
        app = create_app(engine, forwarding=proxy.routes(), metrics=metrics)
        try:
            async with serving(app.asgi) as address:
                yield Stage(address, provider, engine, namespaces, proxy)
        finally:
            await proxy.close()


def question(number: int, words: int = 300) -> str:
    """Return a long question that differs for every number, without any exact items in it."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return f"Question {number}: " + " ".join(
        f"word {letters} or {'abcdefg'[i % 7]}" for i in range(words // 3)
    )
