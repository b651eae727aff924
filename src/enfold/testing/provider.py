"""A provider on loopback for tests of clients: scripted, and as strict as the real ones.

    with StrictProvider(lambda request: assistant("Hello.")) as provider:
        client = openai.OpenAI(base_url=f"{provider.address}/v1", api_key="any")

It serves Chat Completions, Responses, Messages and generateContent, streamed or whole. A request
that breaks a rule of its interface is refused and recorded as a fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

from enfold.messages import Message, Reasoning, ToolCall, Unknown, text_of
from enfold.testing.provider_replies import (
    ReplyFacts,
    Write,
    arguments_of,
    as_stream,
    write_anthropic,
    write_chat,
    write_gemini,
    write_responses,
)
from enfold.testing.request_rules import (
    Rules,
    check_anthropic,
    check_chat,
    check_gemini,
    check_responses,
    gemini_signature,
    sign,
)

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ProviderInterface:
    """One interface of a provider: its rules, its replies and its errors."""

    name: str
    messages: str
    """The field with the messages."""
    check: Rules
    write: Write
    overflow: str
    """The words with which it refuses a request that is too long."""


INTERFACES: Mapping[str, ProviderInterface] = {
    "/chat/completions": ProviderInterface(
        "openai",
        "messages",
        check_chat,
        write_chat,
        "This model's maximum context length is 9999 tokens. However, your messages resulted in "
        "more tokens. Please reduce the length of the messages.",
    ),
    "/responses": ProviderInterface(
        "openai-responses",
        "input",
        check_responses,
        write_responses,
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
    ),
    "/messages": ProviderInterface(
        "anthropic",
        "messages",
        check_anthropic,
        write_anthropic,
        "prompt is too long: 999999 tokens > 200000 maximum",
    ),
    "enerateContent": ProviderInterface(
        "gemini",
        "contents",
        check_gemini,
        write_gemini,
        "The input token count (9999999) exceeds the maximum number of tokens allowed (1048576).",
    ),
}
"""The end of a path -> its interface."""


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """A conversation request that reached the provider."""

    interface: ProviderInterface
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Mapping[str, Any]
    faults: tuple[str, ...] = ()

    @property
    def messages(self) -> Sequence[Any]:
        """The messages, items or contents."""
        found = self.body.get(self.interface.messages) or ()
        return [found] if isinstance(found, str) else found

    @property
    def model(self) -> str:
        """The model's name, from the body or the path."""
        return str(self.body.get("model") or self.path.rpartition("/")[2].partition(":")[0])


class Overflow(Exception):  # noqa: N818 - a scripted answer, no failure of this program
    """Raised by a script: the provider answers that the request is too long."""


Script: TypeAlias = Callable[[ProviderRequest], Message]
"""Returns the assistant's message, or raises `Overflow`."""


@dataclass(slots=True)
class StoredItems:
    """The items and responses that the Responses API stores, for requests that refer to them."""

    items: dict[str, Any] = field(default_factory=dict)
    histories: dict[str, list[Any]] = field(default_factory=dict)
    """All items up to a response or in a conversation, by its id."""

    def complete(self, body: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
        """Return a body with everything that it refers to, and its references to nothing."""
        faults: list[str] = []
        given = body.get("input") or []
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        whole: list[Any] = []
        for name in ("previous_response_id", "conversation"):
            if (id := _id_of(body.get(name))) is not None:
                whole += self.histories.get(id, [])
                faults += [] if id in self.histories else [f"{name} with id '{id}' not found."]
        for item in given:
            is_reference = item.get("type") == "item_reference"
            if is_reference and item.get("id") not in self.items:
                faults.append(f"Item with id '{item.get('id')}' not found.")
                continue
            whole.append(self.items[item["id"]] if is_reference else item)
        return {**body, "input": whole, "previous_response_id": None}, faults

    def add(self, whole: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Store the reply to a complete body."""
        if whole.get("store") is False:
            return
        self.items |= {item["id"]: item for item in reply["output"]}
        history = [*whole["input"], *reply["output"]]
        self.histories[reply["id"]] = history
        if (id := _id_of(whole.get("conversation"))) is not None:
            self.histories[id] = history


def _id_of(value: Any) -> str | None:
    """Return the id of a response or conversation: a text, or an object with it."""
    return value.get("id") if isinstance(value, dict) else value


@dataclass(slots=True)
class StrictProvider:
    """A provider on a free port of this machine, between `start` and `stop`."""

    script: Script
    requests: list[ProviderRequest] = field(default_factory=list)
    """Valid requests that were answered with a reply, in order."""
    refused: list[ProviderRequest] = field(default_factory=list)
    """Requests that broke a rule."""
    overflows: int = 0
    """Requests that were answered as too long."""
    others: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of the requests that are no conversations."""
    stored: StoredItems = field(default_factory=StoredItems)
    _issued: dict[str, Any] = field(default_factory=dict)
    _replies: int = 0
    _lock: Lock = field(default_factory=Lock)
    _server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> str:
        """The base address, without a version."""
        if self._server is None:
            raise RuntimeError("the provider is not started")
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> Self:
        """Listen, in a thread."""
        handler = type("Handler", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop to listen."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def new_conversation(self) -> Mapping[str, Any]:
        """Return a conversation object of the Responses API."""
        id = f"conv_{len(self.stored.histories):06}"
        self.stored.histories[id] = []
        return {"id": id, "object": "conversation", "created_at": 1_700_000_000, "metadata": {}}

    def answer(self, request: ProviderRequest) -> tuple[int, Any, list[Any]]:
        """Return the status, the whole answer, and the events of a stream."""
        with self._lock:
            whole_body, missing = request.body, list[str]()
            if request.interface.name == "openai-responses":
                whole_body, missing = self.stored.complete(request.body)
            faults = (*missing, *request.interface.check(whole_body, self._issued))
            if faults:
                self.refused.append(replace(request, faults=faults))
                return _error(request.interface, faults[0])
            last = request.messages[-1] if request.messages else None
            asks_to_compact = isinstance(last, dict) and last.get("type") == "compaction_trigger"
            try:
                reply = COMPACTED if asks_to_compact else self.script(request)
            except Overflow:
                self.overflows += 1
                return _error(request.interface, request.interface.overflow)
            self.requests.append(request)
            self._replies += 1
            self._remember(reply)
            tokens = len(request.raw) // _CHARACTERS_PER_TOKEN
            output = len(text_of(reply.parts)) // _CHARACTERS_PER_TOKEN + 8
            facts = ReplyFacts(f"{self._replies:06}", request.model, tokens, 0, output)
            whole, events = request.interface.write(reply, facts)
            if request.interface.name == "openai-responses":
                self.stored.add(whole_body, whole)
            return HTTPStatus.OK, whole, events

    def _remember(self, reply: Message) -> None:
        """Remember the calls that came with reasoning: they must come back with it."""
        thought = next((part for part in reply.parts if isinstance(part, Reasoning)), None)
        if thought is not None:
            self._issued[sign(thought.text)] = thought
        for part in reply.parts:
            if isinstance(part, ToolCall):
                self._issued[part.id] = thought
                call = {"name": part.name, "args": arguments_of(part)}
                self._issued[gemini_signature(call)] = call


COMPACTED = Message(
    "assistant", (Unknown({"type": "compaction", "encrypted_content": "c3VtbWFyeQ=="}),)
)
"""The answer of the Responses API to a request that ends in a compaction trigger."""


def _error(interface: ProviderInterface, message: str) -> tuple[int, Any, list[Any]]:
    kind = "invalid_request_error"
    if interface.name == "gemini":
        body: Any = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    elif interface.name == "anthropic":
        body = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        is_overflow = message == interface.overflow
        code = "context_length_exceeded" if is_overflow else "invalid_value"
        body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return HTTPStatus.BAD_REQUEST, body, []


class _Handler(BaseHTTPRequestHandler):
    """Reads a request, and writes the provider's answer."""

    protocol_version = "HTTP/1.1"
    provider: StrictProvider

    def do_GET(self) -> None:
        """Answer what is no conversation: models and the like."""
        self.provider.others.append((self.command, self.path))
        if self.headers.get("upgrade"):
            self._send(HTTPStatus.UPGRADE_REQUIRED, b"{}")
        else:
            self._send(HTTPStatus.OK, b'{"object":"list","data":[],"models":[]}')

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def do_POST(self) -> None:
        """Answer a conversation request."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = urlsplit(self.path).path
        interface = next((INTERFACES[end] for end in INTERFACES if end in path), None)
        is_count = path.endswith(("/count_tokens", ":countTokens"))
        if interface is None or is_count or path.endswith("/conversations"):
            self.provider.others.append((self.command, self.path))
            tokens = len(raw) // _CHARACTERS_PER_TOKEN
            about: Mapping[str, Any] = {"input_tokens": tokens, "totalTokens": tokens}
            if path.endswith("/conversations"):
                about = self.provider.new_conversation()
            self._send(HTTPStatus.OK, json.dumps(about).encode())
            return
        body = json.loads(raw or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, whole, events = self.provider.answer(
            ProviderRequest(interface, path, headers, raw, body)
        )
        is_stream = bool(body.get("stream")) or "streamGenerate" in path
        if status != HTTPStatus.OK or not is_stream:
            self._send(status, json.dumps(whole).encode())
            return
        self._send(HTTPStatus.OK, as_stream(events), "text/event-stream")

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""
