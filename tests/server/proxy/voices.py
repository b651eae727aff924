"""Models that say what a test wants, in every form, and clients that speak with their own library.

A reply is a list of parts: a thought, some text, a call. `answer` writes it as a provider does,
streamed or whole. A `Talker` keeps its history the way its library gives it, as clients do.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import anthropic
import openai
from google import genai
from google.genai.types import Content, FunctionDeclaration, GenerateContentConfig, HttpOptions
from google.genai.types import Part as GooglePart
from google.genai.types import Tool as GoogleTool
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.server.proxy.stage import Script


@dataclass(frozen=True)
class Think:
    """Reasoning, signed by the provider."""

    text: str
    signature: str = "sig"


@dataclass(frozen=True)
class Say:
    """Text."""

    text: str


@dataclass(frozen=True)
class Use:
    """A call of a tool."""

    id: str
    name: str
    arguments: Any


Part = Think | Say | Use
Step = Sequence[Part]
INPUT, OUTPUT = 100, 10
"""What every request uses."""


def script(*steps: Step | Callable[[Any], Step]) -> Script:
    """A model that says these things one after the other, and then that all is fine."""
    left = list(steps)

    def answer(request: Any, body: Any) -> Response | None:
        step = left.pop(0) if left else [Say("Fine.")]
        said = step(body) if callable(step) else step
        path = request.url.path
        form = next(form for name, form in _PATHS.items() if name in path)
        is_stream = bool(body.get("stream")) or "streamGenerate" in path
        whole, streamed = written(form, said, body)
        if not is_stream:
            return JSONResponse(whole)
        return StreamingResponse(_in_pieces(streamed), media_type="text/event-stream")

    return answer


def written(form: str, said: Step, body: Any) -> tuple[Any, bytes]:
    """What a provider answers to the body: whole, and as the bytes of a stream."""
    whole, events = _FORMS[form](said, body)
    lines = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            lines.append(f"event: {event['type']}\n")
        data = event if isinstance(event, str) else json.dumps(event)
        lines.append(f"data: {data}\n\n")
    return whole, "".join(lines).encode()


async def _in_pieces(raw: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(raw), 97):
        yield raw[at : at + 97]


def _halves(text: str) -> Iterator[str]:
    yield text[: len(text) // 2]
    yield text[len(text) // 2 :]


def _chat(said: Step, body: Any) -> tuple[Any, list[Any]]:
    uses = [part for part in said if isinstance(part, Use)]
    text = "".join(part.text for part in said if isinstance(part, Say))
    calls = [
        {
            "id": use.id,
            "type": "function",
            "function": {"name": use.name, "arguments": json.dumps(use.arguments)},
        }
        for use in uses
    ]
    message: Any = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    finish = "tool_calls" if calls else "stop"
    usage = {
        "prompt_tokens": INPUT,
        "completion_tokens": OUTPUT,
        "total_tokens": INPUT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": 5},
    }
    about = {"id": f"chat-{len(body['messages'])}", "created": 1, "model": "small"}

    def chunk(delta: Any, reason: str | None = None) -> Any:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**about, "object": "chat.completion.chunk", "choices": [choice]}

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": half}) for half in _halves(text) if half]
    for index, call in enumerate(calls):
        function: Any = call["function"]
        first = {**call, "index": index, "function": {**function, "arguments": ""}}
        events.append(chunk({"tool_calls": [first]}))
        for half in _halves(function["arguments"]):
            piece = {"index": index, "function": {"arguments": half}}
            events.append(chunk({"tool_calls": [piece]}))
    events.append(chunk({}, finish))
    if body.get("stream_options", {}).get("include_usage"):
        events.append({**chunk({}), "choices": [], "usage": usage})
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
    return whole, [*events, "[DONE]"]


def _responses(said: Step, body: Any) -> tuple[Any, list[Any]]:
    number = len(body["input"])
    items = [_item(part, f"{number}-{at}") for at, part in enumerate(said)]
    about = {
        "id": f"resp-{number}",
        "object": "response",
        "created_at": 1,
        "model": "small",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
    }
    usage = {
        "input_tokens": INPUT,
        "input_tokens_details": {"cached_tokens": 5},
        "output_tokens": OUTPUT,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": INPUT + OUTPUT,
    }
    whole = {**about, "status": "completed", "output": items, "usage": usage}
    events: list[Any] = [
        {"type": kind, "response": {**about, "status": "in_progress", "output": []}}
        for kind in ("response.created", "response.in_progress")
    ]
    for index, item in enumerate(items):
        at = {"output_index": index}
        empty: Any = {"message": {"content": []}, "function_call": {"arguments": ""}}
        begun = {**item, **empty.get(item["type"], {})}
        events.append({"type": "response.output_item.added", **at, "item": begun})
        events += ({**event, **at} for event in _item_events(item))
        events.append({"type": "response.output_item.done", **at, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [{**event, "sequence_number": n} for n, event in enumerate(events)]


def _item(part: Part, id: str) -> Any:
    match part:
        case Think(text, signature):
            summary = [{"type": "summary_text", "text": text}]
            return {
                "type": "reasoning",
                "id": f"rs-{id}",
                "summary": summary,
                "encrypted_content": signature,
            }
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            said = {"type": "message", "id": f"msg-{id}", "role": "assistant"}
            return {**said, "status": "completed", "content": content}
        case Use(call, name, arguments):
            given = {"name": name, "arguments": json.dumps(arguments), "status": "completed"}
            return {"type": "function_call", "id": f"fc-{id}", "call_id": call, **given}


def _item_events(item: Any) -> Iterator[Any]:
    about = {"item_id": item["id"]}
    if item["type"] == "message":
        (block,) = item["content"]
        at = {**about, "content_index": 0}
        yield {"type": "response.content_part.added", **at, "part": {**block, "text": ""}}
        for half in _halves(block["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": half, "logprobs": []}
        done = {"text": block["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **at, **done}
        yield {"type": "response.content_part.done", **at, "part": block}
    elif item["type"] == "function_call":
        for half in _halves(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **about, "delta": half}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **about, **done}


def _messages(said: Step, body: Any) -> tuple[Any, list[Any]]:
    blocks: list[Any] = []
    events: list[Any] = []
    for index, part in enumerate(said):
        match part:
            case Think(text, signature):
                block: Any = {"type": "thinking", "thinking": text, "signature": signature}
                empty: Any = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": text},
                    {"type": "signature_delta", "signature": signature},
                ]
            case Say(text):
                block, empty = {"type": "text", "text": text}, {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": half} for half in _halves(text)]
            case Use(id, name, arguments):
                block = {"type": "tool_use", "id": id, "name": name, "input": arguments}
                empty = {**block, "input": {}}
                deltas = [
                    {"type": "input_json_delta", "partial_json": half}
                    for half in _halves(json.dumps(arguments))
                ]
        blocks.append(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        at = {"type": "content_block_delta", "index": index}
        events += ({**at, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    stop = "tool_use" if isinstance(said[-1], Use) else "end_turn"
    usage = {"input_tokens": INPUT - 5, "cache_read_input_tokens": 5, "output_tokens": OUTPUT}
    about = {"type": "message", "role": "assistant", "model": "small", "stop_sequence": None}
    id = f"msg-{len(body['messages'])}"
    begun: Any = {"content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    start = {"type": "message_start", "message": {"id": id, **about, **begun}}
    ended = {"stop_reason": stop, "stop_sequence": None}
    end = {"type": "message_delta", "delta": ended, "usage": {"output_tokens": OUTPUT}}
    whole = {"id": id, **about, "content": blocks, "stop_reason": stop, "usage": usage}
    return whole, [start, {"type": "ping"}, *events, end, {"type": "message_stop"}]


def _gemini(said: Step, _body: Any) -> tuple[Any, list[Any]]:
    parts: list[Any] = []
    for part in said:
        match part:
            case Think(text):
                parts.append({"text": text, "thought": True})
            case Say(text):
                parts += [{"text": half} for half in _halves(text)]
            case Use(_, name, arguments):
                call = {"name": name, "args": arguments}
                parts.append({"functionCall": call, "thoughtSignature": "c2ln"})
    usage = {
        "promptTokenCount": INPUT,
        "candidatesTokenCount": OUTPUT,
        "totalTokenCount": INPUT + OUTPUT,
        "cachedContentTokenCount": 5,
    }

    def piece(parts: list[Any], **ending: Any) -> Any:
        candidate = {"content": {"role": "model", "parts": parts}, **ending}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "small"}

    *first, last = parts
    events = [piece([part]) for part in first]
    return piece(parts, finishReason="STOP"), [*events, piece([last], finishReason="STOP")]


_FORMS = {
    "openai": _chat,
    "openai-responses": _responses,
    "anthropic": _messages,
    "gemini": _gemini,
}
_PATHS = {
    "/chat/completions": "openai",
    "/responses": "openai-responses",
    "/messages": "anthropic",
    "enerateContent": "gemini",
}


@dataclass
class Heard:
    """What a client's library made of a reply."""

    text: str
    calls: list[tuple[str, str, Any]]
    usage: tuple[int, int]
    finish: str
    raw: Any = None


class Talker(Protocol):
    """A client with its own library."""

    history: list[Any]

    def ask(self, text: str) -> None: ...
    def tell(self, call: tuple[str, str, Any], result: str) -> None: ...
    async def hear(self, *, stream: bool, **options: Any) -> Heard: ...
    async def close(self) -> None: ...


SCHEMA: Any = {"type": "object", "properties": {"what": {"type": "string"}}}


@dataclass
class ChatTalker:
    """Chat Completions with OpenAI's library."""

    address: str
    key: str = "k"
    history: list[Any] = field(default_factory=list)
    tools: Any = field(
        default_factory=lambda: [
            {"type": "function", "function": {"name": "lookup", "parameters": SCHEMA}}
        ]
    )

    def __post_init__(self) -> None:
        self.client = openai.AsyncOpenAI(
            base_url=f"{self.address}/v1", api_key=self.key, max_retries=0
        )

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answered(self, text: str) -> None:
        self.history.append({"role": "assistant", "content": text})

    def tell(self, call: tuple[str, str, Any], result: str) -> None:
        self.history.append({"role": "tool", "tool_call_id": call[0], "content": result})

    async def hear(self, *, stream: bool, **options: Any) -> Heard:
        given: Any = {"model": "small", "messages": self.history, "tools": self.tools, **options}
        if stream:
            given["stream_options"] = {"include_usage": True}
            async with self.client.chat.completions.stream(**given) as events:
                async for _ in events:
                    pass
                reply: Any = await events.get_final_completion()
        else:
            reply = await self.client.chat.completions.create(**given)
        (choice,) = reply.choices
        message = choice.message.to_dict()
        message.pop("parsed", None)
        for call in message.get("tool_calls") or []:
            call["function"].pop("parsed_arguments", None)
        self.history.append({k: v for k, v in message.items() if v is not None})
        calls = [
            (call.id, call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or []
        ]
        usage = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
        text = choice.message.content or ""
        return Heard(text, calls, usage, choice.finish_reason, reply)

    async def close(self) -> None:
        await self.client.close()


@dataclass
class ResponsesTalker:
    """Responses with OpenAI's library."""

    address: str
    key: str = "k"
    history: list[Any] = field(default_factory=list)
    tools: Any = field(
        default_factory=lambda: [
            {"type": "function", "name": "lookup", "parameters": SCHEMA, "strict": False}
        ]
    )

    def __post_init__(self) -> None:
        self.client = openai.AsyncOpenAI(
            base_url=f"{self.address}/v1", api_key=self.key, max_retries=0
        )

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answered(self, text: str) -> None:
        self.history.append({"role": "assistant", "content": text})

    def tell(self, call: tuple[str, str, Any], result: str) -> None:
        self.history.append({"type": "function_call_output", "call_id": call[0], "output": result})

    async def hear(self, *, stream: bool, **options: Any) -> Heard:
        given: Any = {"model": "small", "input": self.history, "tools": self.tools, **options}
        if stream:
            async with self.client.responses.stream(**given) as events:
                numbers = [event.sequence_number async for event in events]
                reply: Any = await events.get_final_response()
            assert numbers == sorted(set(numbers))
        else:
            reply = await self.client.responses.create(**given)
        for item in reply.output:
            raw = item.to_dict()
            raw.pop("parsed_arguments", None)
            for block in raw.get("content") or []:
                block.pop("parsed", None)
            self.history.append(raw)
        calls = [
            (item.call_id, item.name, json.loads(item.arguments))
            for item in reply.output
            if item.type == "function_call"
        ]
        usage = (reply.usage.input_tokens, reply.usage.output_tokens)
        return Heard(reply.output_text, calls, usage, reply.status, reply)

    async def close(self) -> None:
        await self.client.close()


@dataclass
class MessagesTalker:
    """Messages with Anthropic's library."""

    address: str
    key: str = "k"
    history: list[Any] = field(default_factory=list)
    tools: Any = field(default_factory=lambda: [{"name": "lookup", "input_schema": SCHEMA}])

    def __post_init__(self) -> None:
        self.client = anthropic.AsyncAnthropic(
            base_url=self.address, api_key=self.key, max_retries=0
        )

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answered(self, text: str) -> None:
        self.history.append({"role": "assistant", "content": text})

    def tell(self, call: tuple[str, str, Any], result: str) -> None:
        block = {"type": "tool_result", "tool_use_id": call[0], "content": result}
        self.history.append({"role": "user", "content": [block]})

    async def hear(self, *, stream: bool, **options: Any) -> Heard:
        given: Any = {
            "model": "small",
            "max_tokens": 100,
            "messages": self.history,
            "tools": self.tools,
            **options,
        }
        if stream:
            async with self.client.messages.stream(**given) as events:
                async for _ in events:
                    pass
                reply: Any = await events.get_final_message()
        else:
            reply = await self.client.messages.create(**given)
        content = [block.to_dict() for block in reply.content]
        for block in content:
            block.pop("parsed_output", None)
        self.history.append({"role": "assistant", "content": content})
        text = "".join(block.text for block in reply.content if block.type == "text")
        calls = [
            (block.id, block.name, block.input)
            for block in reply.content
            if block.type == "tool_use"
        ]
        used = reply.usage
        usage = (used.input_tokens + (used.cache_read_input_tokens or 0), used.output_tokens)
        return Heard(text, calls, usage, reply.stop_reason, reply)

    async def close(self) -> None:
        await self.client.close()


@dataclass
class GeminiTalker:
    """Gemini with Google's library."""

    address: str
    key: str = "k"
    history: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = genai.Client(
            api_key=self.key, http_options=HttpOptions(base_url=self.address)
        )
        lookup = FunctionDeclaration(name="lookup", parameters_json_schema=SCHEMA)
        self.tools: Any = [GoogleTool(function_declarations=[lookup])]

    def ask(self, text: str) -> None:
        self.history.append(Content(role="user", parts=[GooglePart(text=text)]))

    def answered(self, text: str) -> None:
        self.history.append(Content(role="model", parts=[GooglePart(text=text)]))

    def tell(self, call: tuple[str, str, Any], result: str) -> None:
        part = GooglePart.from_function_response(name=call[1], response={"result": result})
        self.history.append(Content(role="user", parts=[part]))

    async def hear(self, *, stream: bool, **options: Any) -> Heard:
        off: Any = {"disable": True}
        config: Any = GenerateContentConfig(
            tools=self.tools, automatic_function_calling=off, **options
        )
        given: Any = {"model": "small", "contents": self.history, "config": config}
        models: Any = self.client.aio.models
        if stream:
            replies = [each async for each in await models.generate_content_stream(**given)]
        else:
            replies = [await models.generate_content(**given)]
        parts = [part for each in replies for part in each.candidates[0].content.parts]
        self.history.append(Content(role="model", parts=parts))
        text = "".join(part.text or "" for part in parts if not part.thought)
        calls = [
            ("", part.function_call.name, dict(part.function_call.args))
            for part in parts
            if part.function_call
        ]
        used = replies[-1].usage_metadata
        usage = (used.prompt_token_count, used.candidates_token_count)
        finish = replies[-1].candidates[0].finish_reason.value
        return Heard(text, calls, usage, finish, replies)

    async def close(self) -> None:
        await self.client.aio.aclose()


TALKERS: dict[str, Any] = {
    "openai": ChatTalker,
    "openai-responses": ResponsesTalker,
    "anthropic": MessagesTalker,
    "gemini": GeminiTalker,
}


def long_history(talker: Any, turns: int = 26, first: str = "") -> None:
    """Enough said that the next request is compressed."""
    for number in range(turns):
        talker.ask(first if first and number == 0 else identifiers(number))
        talker.answered(f"answer {number}")


def identifiers(number: int) -> str:
    """Return a long question of identifiers, which outweigh plain words in a summary."""
    return f"Question {number}: " + " ".join(f"word{number}x{i % 7}" for i in range(100))
