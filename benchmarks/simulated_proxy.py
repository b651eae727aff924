"""A proxy in this process, in front of a provider that answers at once; for simulations."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from enfold.server.access import ON_THIS_MACHINE
from enfold.server.proxy.routes import Proxy
from enfold.server.proxy.upstream import Upstream
from enfold.testing import assistant
from enfold.testing.provider import ProviderRequest, StrictProvider
from enfold.testing.provider_replies import ReplyFacts

PATH = "/v1/messages"
SUMMARY_REQUEST = b"<summary_request>"
_LINES, _WORDS = 120, 12
"""A summary has this many lines at most, with this many words of a message each."""


class Provider(StrictProvider):
    """Answers every request at once, whatever it holds, and keeps what reached it."""

    def __init__(self) -> None:
        super().__init__(lambda _: assistant("Done."))
        self.arrived: list[ProviderRequest] = []
        """All requests that were not looked at yet, in the order in which they came."""

    def answer(self, request: ProviderRequest) -> tuple[int, Any, list[Any]]:
        """Return the answer: a summary where one is asked for."""
        self.arrived.append(request)
        facts = ReplyFacts("1", request.model, 1, 0, 1)
        message = assistant(summary_of(request) if is_summary(request) else "Done.")
        return HTTPStatus.OK, *request.interface.write(message, facts)

    def upstream(self) -> Upstream:
        """Return the way to it."""
        return Upstream({"anthropic": self.address})


def summary_of(request: ProviderRequest) -> str:
    """Return the first words of the model's messages, as a model would write a summary of them."""
    messages = [each for each in request.messages if each["role"] == "assistant"]
    lines = [
        text
        for message in messages or request.messages
        for text in _texts(message["content"])
        for text in (text.splitlines() if not messages else [text])
    ]
    words = [line.split()[:_WORDS] for line in dict.fromkeys(lines)]
    chosen = [" ".join(each) for each in words if len(each) > _WORDS // 2]
    return "\n".join(f"- {line}." for line in chosen[-_LINES:])


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def is_summary(request: ProviderRequest) -> bool:
    """Return True for a request that asks for a summary."""
    return is_transcript(request) or SUMMARY_REQUEST in request.raw[-8_000:]


def is_transcript(request: ProviderRequest) -> bool:
    """Return True for a summary request that does not continue the conversation."""
    return bool(request.body.get("stream"))


async def send(proxy: Proxy, body: bytes, session: str) -> dict[str, str]:
    """Send a request through the proxy; return the headers of the response."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "headers": [
            (b"content-type", b"application/json"),
            (b"x-api-key", b"key"),
            (b"x-claude-code-session-id", session.encode()),
        ],
        "state": {"caller": ON_THIS_MACHINE},
    }
    waiting = [{"type": "http.request", "body": body}]
    sent: list[Any] = []

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        return await asyncio.Future()

    async def take(message: Any) -> None:
        sent.append(message)

    await proxy(scope, receive, take)
    if sent[0]["status"] != 200:
        raise RuntimeError(f"status {sent[0]['status']}: {sent[1]['body'][:500]!r}")
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}
