"""The gateway against servers that speak each provider's protocol, well and badly."""

from __future__ import annotations

import asyncio
import io
import logging
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from enfold.amounts import CallUsage
from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    ContextOverflowError,
    GatewayError,
    RateLimitError,
    RefusedError,
    UnavailableError,
)
from enfold.llm.calls import Call, Connection, Delta, Gateway, ModelReply
from enfold.llm.gateway import ModelGateway
from enfold.messages import Message, Text, ToolCall, text_of
from tests.llm.servers.anthropic import ANTHROPIC
from tests.llm.servers.bedrock import BEDROCK
from tests.llm.servers.google import GOOGLE, VERTEX
from tests.llm.servers.loopback import Loopback, ScriptedAnswer, Step
from tests.llm.servers.openai import AZURE, COMPATIBLE, OPENAI, OPENROUTER
from tests.llm.servers.protocol import KEY, ProviderProtocol, ScriptedReply

PROVIDERS = (OPENAI, ANTHROPIC, GOOGLE, AZURE, BEDROCK, VERTEX, OPENROUTER, COMPATIBLE)
WORDS = "What the user said in confidence"
CALL = Call((Message("user", (Text(WORDS),)),), "Be brief.", max_tokens=50, temperature=0.3)
TOOL = {
    "name": "weather",
    "description": "The weather in a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
}

every_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.name)
every_library = pytest.mark.parametrize(
    "provider", [OPENAI, ANTHROPIC, GOOGLE, BEDROCK], ids=lambda each: each.name
)
"""One provider for each client library: how it fails is the library's doing."""


@pytest.fixture
async def gateway() -> AsyncIterator[ModelGateway]:
    async with ModelGateway(first_pause=0.001, longest_pause=0.05) as gateway:
        yield gateway


async def streamed(gateway: Gateway, connection: Connection, call: Call) -> tuple[str, ModelReply]:
    """The text as it came, and the reply at the end."""
    text = ""
    reply = None
    async for item in gateway.stream(connection, call):
        assert reply is None, "nothing follows the reply"
        if isinstance(item, Delta):
            text += item.text
        else:
            reply = item
    assert reply is not None
    return text, reply


async def complete(
    gateway: Gateway, connection: Connection, call: Call, *, stream: bool
) -> ModelReply:
    """The reply, one way or the other."""
    if stream:
        return (await streamed(gateway, connection, call))[1]
    return await gateway.complete(connection, call)


either_way = pytest.mark.parametrize("stream", [False, True], ids=["complete", "stream"])


@every_provider
async def test_a_whole_answer(provider: ProviderProtocol, gateway: ModelGateway) -> None:
    async with Loopback(provider.whole(ScriptedReply())) as server:
        reply = await gateway.complete(provider.connection(server.url), CALL)
    assert text_of(reply.message.parts) == "Bonjour, le monde."
    assert reply.message.role == "assistant"
    assert reply.usage == CallUsage(100, 7, 40, 0)
    assert reply.ending == "stop"


@every_provider
async def test_an_answer_in_pieces(provider: ProviderProtocol, gateway: ModelGateway) -> None:
    async with Loopback(provider.streamed(ScriptedReply())) as server:
        text, reply = await streamed(gateway, provider.connection(server.url), CALL)
        assert provider.read_request(server.requests[0]).path == provider.streamed_path
    assert text == "Bonjour, le monde."
    assert text_of(reply.message.parts) == text
    assert reply.usage == CallUsage(100, 7, 40, 0)
    assert reply.ending == "stop"


@every_provider
async def test_the_server_receives_the_call_as_written(
    provider: ProviderProtocol, gateway: ModelGateway
) -> None:
    async with Loopback(provider.whole(ScriptedReply())) as server:
        connection = provider.connection(server.url)
        await gateway.complete(connection, CALL)
        request = provider.read_request(server.requests[0])
    assert request.path == provider.path
    assert request.key == provider.credential
    assert request.model == connection.model
    assert request.system == "Be brief."
    assert request.messages[-1] == ("user", WORDS)
    assert request.max_tokens == 50
    assert request.temperature == 0.3


@every_provider
@either_way
async def test_a_tool_call(provider: ProviderProtocol, gateway: ModelGateway, stream: bool) -> None:
    scripted = ScriptedReply((), ("call_7", "weather", {"town": "Łódź"}))
    answer = provider.streamed(scripted) if stream else provider.whole(scripted)
    async with Loopback(answer) as server:
        call = replace(CALL, tools=(TOOL,))
        reply = await complete(gateway, provider.connection(server.url), call, stream=stream)
        assert b'"weather"' in server.requests[0].body
    (made,) = reply.message.parts
    assert isinstance(made, ToolCall)
    assert (made.id, made.name) == ("call_7", "weather")
    assert made.arguments in ('{"town": "\\u0141\\u00f3d\\u017a"}', {"town": "Łódź"})
    assert reply.ending == "tool_call"


@every_library
@either_way
async def test_an_answer_that_ran_out_of_tokens_says_so(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    scripted = ScriptedReply(ending="length")
    async with Loopback(
        provider.streamed(scripted) if stream else provider.whole(scripted)
    ) as server:
        reply = await complete(gateway, provider.connection(server.url), CALL, stream=stream)
    assert reply.ending == "length"


@every_provider
@either_way
async def test_a_refusal(provider: ProviderProtocol, gateway: ModelGateway, stream: bool) -> None:
    scripted = ScriptedReply((), ending="refusal")
    async with Loopback(
        provider.streamed(scripted) if stream else provider.whole(scripted)
    ) as server:
        with pytest.raises(RefusedError, match="declined to answer"):
            await complete(gateway, provider.connection(server.url), CALL, stream=stream)


@every_provider
@either_way
async def test_a_request_that_is_too_long(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    async with Loopback(provider.overflow) as server:
        with pytest.raises(ContextOverflowError, match="compress the conversation"):
            await complete(gateway, provider.connection(server.url), CALL, stream=stream)
        assert len(server.requests) == 1


async def test_an_overflow_has_the_window_that_the_provider_names(gateway: ModelGateway) -> None:
    words = "This model's maximum context length is 8,192 tokens."
    answer = ScriptedAnswer.of(
        {"error": {"message": words, "code": "context_length_exceeded"}}, 400
    )
    async with Loopback(answer) as server:
        connection = Connection("compatible", "mine", base_url=server.url)
        with pytest.raises(ContextOverflowError) as caught:
            await gateway.complete(connection, CALL)
    assert caught.value.window == 8_192


@every_provider
@either_way
async def test_a_key_that_is_not_accepted(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    async with Loopback(provider.failed(401), provider.failed(403)) as server:
        connection = provider.connection(server.url)
        for status in (401, 403):
            with pytest.raises(AuthenticationError, match=f"status {status}") as caught:
                await complete(gateway, connection, CALL, stream=stream)
            assert connection.name in str(caught.value)
        assert len(server.requests) == 2


@every_library
@either_way
async def test_a_failing_provider_is_asked_again(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    good = provider.streamed(ScriptedReply()) if stream else provider.whole(ScriptedReply())
    bad = [provider.failed(status) for status in (429, 500, 503)]
    async with Loopback(*bad, good) as server:
        connection = replace(provider.connection(server.url), retries=3)
        reply = await complete(gateway, connection, CALL, stream=stream)
        assert len(server.requests) == 4
    assert text_of(reply.message.parts) == "Bonjour, le monde."


@every_library
@either_way
@pytest.mark.parametrize(("status", "kind"), [(429, RateLimitError), (503, UnavailableError)])
async def test_a_provider_that_keeps_failing_is_given_up(
    provider: ProviderProtocol,
    gateway: ModelGateway,
    stream: bool,
    status: int,
    kind: type[GatewayError],
) -> None:
    async with Loopback(provider.failed(status)) as server:
        connection = replace(provider.connection(server.url), retries=1)
        with pytest.raises(kind, match=f"status {status}"):
            await complete(gateway, connection, CALL, stream=stream)
        assert len(server.requests) == 2


@every_library
@either_way
async def test_a_refused_request_is_not_retried(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    async with Loopback(provider.failed(400)) as server:
        with pytest.raises(GatewayError, match="refuses this request") as caught:
            await complete(gateway, provider.connection(server.url), CALL, stream=stream)
        assert len(server.requests) == 1
    assert type(caught.value) is GatewayError


async def _assert_given_up(
    gateway: Gateway, connection: Connection, server: Loopback, *, stream: bool
) -> None:
    """Check that a call ends after its time-out, without a second request."""
    for seconds in (0.2, 2.0, 20.0):
        with pytest.raises(UnavailableError, match="did not respond"):
            await complete(gateway, replace(connection, timeout=seconds), CALL, stream=stream)
        # A busy machine may need more than the shortest time to connect.
        if server.requests:
            break
    await asyncio.wait_for(server.left.wait(), 60)
    assert len(server.requests) == 1


@every_library
@either_way
async def test_a_silent_server_is_given_up(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    async with Loopback(ScriptedAnswer(silent=True)) as server:
        await _assert_given_up(gateway, provider.connection(server.url), server, stream=stream)


@every_library
async def test_a_stream_that_stalls_is_given_up(
    provider: ProviderProtocol, gateway: ModelGateway
) -> None:
    answer = provider.streamed(ScriptedReply())
    stalled = replace(answer, steps=(*answer.steps[:-3], Step.WAIT))
    async with Loopback(stalled) as server:
        await _assert_given_up(gateway, provider.connection(server.url), server, stream=True)


@every_library
@pytest.mark.parametrize("end", [(), (Step.CUT,)], ids=["ends", "is cut"])
async def test_a_stream_that_breaks_off_is_no_answer(
    provider: ProviderProtocol, gateway: ModelGateway, end: tuple[Step, ...]
) -> None:
    answer = provider.streamed(ScriptedReply())
    truncated = replace(answer, steps=(*answer.steps[:3], *end))
    async with Loopback(truncated) as server:
        with pytest.raises(BadReplyError, match="stopped before its answer"):
            await streamed(gateway, provider.connection(server.url), CALL)
        assert len(server.requests) == 1


@every_library
@either_way
async def test_an_empty_answer(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    scripted = ScriptedReply(())
    async with Loopback(
        provider.streamed(scripted) if stream else provider.whole(scripted)
    ) as server:
        with pytest.raises(BadReplyError, match="empty answer"):
            await complete(gateway, provider.connection(server.url), CALL, stream=stream)


@every_provider
@either_way
async def test_garbage(provider: ProviderProtocol, gateway: ModelGateway, stream: bool) -> None:
    bodies = (b"", b"<html>Welcome to the hotel's network</html>", b"{")
    async with Loopback(*(ScriptedAnswer((body,)) for body in bodies)) as server:
        for _ in bodies:
            with pytest.raises(BadReplyError):
                await complete(gateway, provider.connection(server.url), CALL, stream=stream)
        assert len(server.requests) == len(bodies)


@every_provider
async def test_the_wrong_json(provider: ProviderProtocol, gateway: ModelGateway) -> None:
    bodies = (b"[]", b"0", b"{}", b"null", b'{"choices": null, "content": 1, "output": []}')
    async with Loopback(*(ScriptedAnswer((body,)) for body in bodies)) as server:
        for _ in bodies:
            with pytest.raises(BadReplyError):
                await gateway.complete(provider.connection(server.url), CALL)
        assert len(server.requests) == len(bodies)


@every_library
async def test_closing_the_stream_hangs_up(
    provider: ProviderProtocol, gateway: ModelGateway
) -> None:
    answer = provider.streamed(ScriptedReply())
    endless = replace(answer, steps=(*answer.steps[:-3], Step.WAIT))
    async with Loopback(endless) as server:
        async with aclosing(gateway.stream(provider.connection(server.url), CALL)) as pieces:
            assert await anext(pieces) == Delta("Bonjour, ")
        await asyncio.wait_for(server.left.wait(), 60)


@every_library
@either_way
async def test_cancelling_the_task_hangs_up(
    provider: ProviderProtocol, gateway: ModelGateway, stream: bool
) -> None:
    answer = provider.streamed(ScriptedReply())
    endless = replace(answer, steps=(*answer.steps[:-3], Step.WAIT))
    async with Loopback(endless if stream else ScriptedAnswer(silent=True)) as server:
        connection = provider.connection(server.url)
        if provider is BEDROCK and not stream:
            # Its library blocks a thread, which notices only when the time is up.
            connection = replace(connection, timeout=1.0)
        task = asyncio.create_task(complete(gateway, connection, CALL, stream=stream))
        await server.request_arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left.wait(), 60)


async def test_a_pause_that_is_asked_for_is_kept(gateway: ModelGateway) -> None:
    later = replace(OPENAI.failed(429), headers={"retry-after-ms": "30"})
    async with Loopback(later, OPENAI.whole(ScriptedReply())) as server:
        await gateway.complete(OPENAI.connection(server.url), CALL)
        assert len(server.requests) == 2


async def test_a_pause_that_is_too_long_is_not_waited_for(gateway: ModelGateway) -> None:
    later = replace(OPENAI.failed(429), headers={"retry-after": "3600"})
    async with Loopback(later) as server:
        with pytest.raises(RateLimitError) as caught:
            await gateway.complete(OPENAI.connection(server.url), CALL)
        assert len(server.requests) == 1
    assert caught.value.retry_after == 3600


async def test_nothing_is_there(gateway: ModelGateway) -> None:
    async with Loopback() as server:
        url = server.url
    with pytest.raises(UnavailableError, match="cannot be reached"):
        await gateway.complete(OPENAI.connection(url), CALL)


async def test_calls_share_a_connection(gateway: ModelGateway) -> None:
    async with Loopback(OPENAI.whole(ScriptedReply())) as server:
        for _ in range(3):
            await gateway.complete(OPENAI.connection(server.url), CALL)
        assert len(server.requests) == 3
        assert server.connections == 1


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that anybody logs, down to the finest detail."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(before)


@every_provider
@either_way
async def test_errors_and_logs_contain_neither_key_nor_messages(
    provider: ProviderProtocol, gateway: ModelGateway, log: io.StringIO, stream: bool
) -> None:
    good = provider.streamed(ScriptedReply()) if stream else provider.whole(ScriptedReply())
    answers = {
        "garbage": ScriptedAnswer((f"You sent {KEY} and {WORDS}".encode(),)),
        "cut": replace(good, steps=(b"{", Step.CUT)),
        **{str(status): provider.failed(status) for status in (400, 401, 429, 500)},
        "silent": ScriptedAnswer(silent=True),
    }
    async with Loopback(good, *answers.values()) as server:
        connection = replace(provider.connection(server.url), retries=0)
        await complete(gateway, connection, CALL, stream=stream)
        for case in answers:
            if case == "silent":
                assert len(server.requests) == len(answers)
                connection = replace(connection, timeout=0.3)
            with pytest.raises(GatewayError) as caught:
                await complete(gateway, connection, CALL, stream=stream)
            error = caught.value
            output = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
            assert KEY not in output, case
            assert WORDS not in output, case
            assert error.__context__ is None, "there, others would find the library's words"
    output = log.getvalue() + repr(gateway) + repr(connection) + repr(vars(gateway))
    assert "127.0.0.1" in output, "or no server was listening"
    assert KEY not in output
    assert WORDS not in output
