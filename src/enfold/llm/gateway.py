"""The gateway: the only place that calls models.

A call that fails with 429 or 5xx is repeated after a growing pause, but never after a reply has
begun. Errors of client libraries become a `GatewayError`, without the library's message.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from enfold.llm.calls import Call, Connection, Delta, Ending, ModelReply
from enfold.llm.clients import (
    Clients,
    check_connection,
    from_library,
    takes_temperature,
    text_in,
    to_library,
    tools_of,
    usage_of,
)
from enfold.llm.failures import BROKEN_OFF, DECLINED, EMPTY, USED_UP, CallFailure, failure_of
from enfold.messages import Text, ToolCall

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class _Question:
    """A call, ready for the client library."""

    connection: Connection
    model: Model[Any]
    messages: list[ModelMessage]
    options: Mapping[str, Any]
    """The other arguments of the library's functions."""


_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_TURNS_TO_SETTLE = 5
"""Turns of the event loop after which a reader that has just been given something waits again."""


class ModelGateway:
    """Real models behind the `Gateway` port. One belongs to one event loop; close it when done."""

    def __init__(
        self, *, first_pause: float = _FIRST_PAUSE, longest_pause: float = _LONGEST_PAUSE
    ) -> None:
        """Pauses between repeated calls grow from the first, in seconds, up to the longest.

        A provider that asks for a longer one is not waited for.
        """
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._clients = Clients()

    async def complete(self, connection: Connection, call: Call) -> ModelReply:
        """Return the complete reply."""
        question = await self._question(connection, call)
        attempt = 0
        while isinstance(response := await _answer(question), CallFailure):
            await self._pause(response, connection, attempt)
            attempt += 1
        return _reply(response, connection)

    async def stream(
        self, connection: Connection, call: Call
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        """Yield the reply in pieces; the last item is the complete `ModelReply`."""
        question = await self._question(connection, call)
        attempt = 0
        while True:
            async with aclosing(_writing(question)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Delta):
                        yield piece
                    else:
                        ended = piece
            if not isinstance(ended, CallFailure):
                break
            await self._pause(ended, connection, attempt)
            attempt += 1
        yield _reply(ended, connection)

    async def aclose(self) -> None:
        """Close the connections to all providers."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def _question(self, connection: Connection, call: Call) -> _Question:
        provider = check_connection(connection)
        model = await self._clients.model(connection)
        messages = to_library(
            call,
            inline_system=provider.has_inline_system,
            image_urls=provider.fetches_images,
        )
        settings: ModelSettings = {}
        if "timeout" not in model.unsupported_settings:
            settings["timeout"] = connection.timeout
        if call.max_tokens is not None:
            settings["max_tokens"] = call.max_tokens
        if call.temperature is not None and takes_temperature(model):
            settings["temperature"] = call.temperature
        options = {
            "model_settings": settings,
            "model_request_parameters": tools_of(call),
            "instrument": False,
        }
        return _Question(connection, model, messages, options)

    async def _pause(self, failure: CallFailure, connection: Connection, attempt: int) -> None:
        """Wait before the call is repeated, or raise its error if it must not be repeated."""
        requested = failure.pause or 0.0
        if (
            not failure.repeatable
            or attempt >= connection.retries
            or requested > self._longest_pause
        ):
            raise failure.error
        # Random, so that calls that failed together are not repeated together.
        growing = self._first_pause * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311  no secret
        await asyncio.sleep(min(max(requested, growing), self._longest_pause))


async def _answer(question: _Question) -> ModelResponse | CallFailure:
    """The library's answer. A failure is handed back, not raised: its cause holds their words."""
    from pydantic_ai.direct import model_request

    try:
        return await model_request(question.model, question.messages, **question.options)
    except Exception as error:  # noqa: BLE001  foreign code, on whatever a provider sends
        return failure_of(error, question.connection)


_Piece: TypeAlias = "Delta | ModelResponse | CallFailure"


async def _writing(question: _Question) -> AsyncGenerator[_Piece, None]:
    """The library's answer as it is written; the last item is all of it, or why there is none.

    It is read in a task of its own, which is always waiting for the provider: to leave early is to
    cancel it, and every library hangs up when a read is cancelled; not every one does otherwise.
    """
    pieces: asyncio.Queue[_Piece | None] = asyncio.Queue()
    reading = asyncio.create_task(_read(question, pieces))
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        await reading
    finally:
        for _ in range(_TURNS_TO_SETTLE):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])


async def _read(question: _Question, pieces: asyncio.Queue[_Piece | None]) -> None:
    """Put the answer's pieces into the queue, and None after the last."""
    from pydantic_ai.direct import model_request_stream

    begun = False
    try:
        request = model_request_stream(question.model, question.messages, **question.options)
        async with request as stream:
            async for event in stream:
                begun = True
                text = text_in(event)
                if text:
                    pieces.put_nowait(Delta(text))
        pieces.put_nowait(stream.get())
    except Exception as error:  # noqa: BLE001  as in _answer
        pieces.put_nowait(failure_of(error, question.connection, begun=begun))
    finally:
        pieces.put_nowait(None)


def _reply(response: ModelResponse, connection: Connection) -> ModelReply:
    """Return the reply, or raise an error if it is unusable."""
    if response.finish_reason == "content_filter":
        raise DECLINED.at(connection)
    message = from_library(response)
    if not any(isinstance(part, Text | ToolCall) for part in message.parts):
        raise (USED_UP if response.finish_reason == "length" else EMPTY).at(connection)
    ending: Ending = "stop"
    if response.finish_reason in (None, "error"):
        raise BROKEN_OFF.at(connection)
    if response.finish_reason == "length":
        ending = "length"
    elif any(isinstance(part, ToolCall) for part in message.parts):
        ending = "tool_call"
    return ModelReply(
        message, usage_of(response.usage), ending, response.model_name or connection.model
    )
