"""Models that say what a test wants, in every form, and clients that speak with their own library.

A reply is a list of parts: a thought, some text, a call. `written` writes it as a provider does,
streamed or whole. A talker keeps its history the way its library gives it, as clients do.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
from google import genai
from google.genai.types import Content, FunctionDeclaration, GenerateContentConfig, HttpOptions
from google.genai.types import Part as GooglePart
from google.genai.types import Tool as GoogleTool
from starlette.responses import JSONResponse, Response, StreamingResponse

from enfold.messages import Message, Reasoning, Text, ToolCall
from enfold.testing.provider import INTERFACES
from enfold.testing.provider_replies import ReplyFacts, as_stream
from tests.server.proxy.stage import Script

Part = Reasoning | Text | ToolCall
Step = Sequence[Part]
Say, Use = Text, ToolCall
INPUT, CACHED, OUTPUT = 100, 5, 10
"""The tokens that every request uses."""


def Think(text: str, signature: str = "sig") -> Reasoning:  # noqa: N802 - reads as Say and Use do
    """Return reasoning, signed by the provider."""
    return Reasoning(text, {"signature": signature})


def script(*steps: Step | Callable[[Any], Step]) -> Script:
    """A model that says these things one after the other, and then that all is fine."""
    left = list(steps)

    def answer(request: Any, body: Any) -> Response | None:
        step = left.pop(0) if left else [Say("Fine.")]
        parts = step(body) if callable(step) else step
        path = request.url.path
        form = next(each.name for end, each in INTERFACES.items() if end in path)
        is_stream = bool(body.get("stream")) or "streamGenerate" in path
        whole, streamed = written(form, parts, body)
        if not is_stream:
            return JSONResponse(whole)
        return StreamingResponse(_in_pieces(streamed), media_type="text/event-stream")

    return answer


def written(form: str, parts: Step, body: Any) -> tuple[Any, bytes]:
    """Return a provider's answer to the body: whole, and as the bytes of a stream."""
    interface = next(each for each in INTERFACES.values() if each.name == form)
    streams_usage = bool(body.get("stream_options", {}).get("include_usage"))
    id = f"{len(body[interface.messages])}"
    facts = ReplyFacts(id, "small", INPUT, CACHED, OUTPUT, streams_usage=streams_usage)
    whole, events = interface.write(Message("assistant", tuple(parts)), facts)
    return whole, as_stream(events)


async def _in_pieces(raw: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(raw), 97):
        yield raw[at : at + 97]


@dataclass
class ClientReply:
    """A reply as a client's library reads it."""

    text: str
    calls: list[tuple[str, str, Any]]
    usage: tuple[int, int]
    finish: str
    raw: Any = None


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

    async def hear(self, *, stream: bool, **options: Any) -> ClientReply:
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
        return ClientReply(text, calls, usage, choice.finish_reason, reply)

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

    async def hear(self, *, stream: bool, **options: Any) -> ClientReply:
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
        return ClientReply(reply.output_text, calls, usage, reply.status, reply)

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

    async def hear(self, *, stream: bool, **options: Any) -> ClientReply:
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
        return ClientReply(text, calls, usage, reply.stop_reason, reply)

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

    async def hear(self, *, stream: bool, **options: Any) -> ClientReply:
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
        return ClientReply(text, calls, usage, finish, replies)

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
