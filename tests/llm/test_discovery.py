"""Limits of models as each provider reports them."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.errors import AuthenticationError, BadReplyError, GatewayError, UnavailableError
from enfold.llm.calls import Connection, Secret
from enfold.llm.discovery import ModelLimits, discover
from tests.llm.servers.loopback import Loopback, ScriptedAnswer, Step

KEY = "sk-very-secret-7f3a"


def connection(provider: str, server: Loopback, model: str = "mine") -> Connection:
    return Connection(provider, model, key=Secret(KEY), base_url=server.url)


def listed(**fields: Any) -> dict[str, Any]:
    return {
        "object": "list",
        "data": [{"id": "other", "max_model_len": 7}, {"id": "mine", **fields}],
    }


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"max_model_len": 32_768}, ModelLimits(32_768)),
        ({"meta": {"n_ctx": 2_048, "n_ctx_train": 8_192}}, ModelLimits(2_048)),
        ({"meta": {"n_ctx_train": 8_192}}, ModelLimits(8_192)),
        ({"context_window": 131_072, "max_completion_tokens": 8_192}, ModelLimits(131_072, 8_192)),
        (
            {"context_length": 9_000, "top_provider": {"max_completion_tokens": 500}},
            ModelLimits(9_000, 500),
        ),
        (
            {"context_length": 9_000, "top_provider": {"context_length": 8_000}},
            ModelLimits(8_000),
        ),
        ({"max_context_length": 4_096}, ModelLimits(4_096)),
        ({}, None),
        ({"context_length": 0, "meta": None}, None),
        ({"context_length": "many", "top_provider": 3, "max_model_len": True}, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("provider", ["openai", "compatible", "openrouter"])
async def test_servers_with_openais_protocol(
    provider: str, fields: dict[str, Any], found: ModelLimits | None
) -> None:
    async with Loopback(ScriptedAnswer.of(listed(**fields))) as server:
        assert await discover(connection(provider, server)) == found
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/models")
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_a_model_that_is_not_in_the_list_is_not_taken_for_another() -> None:
    async with Loopback(ScriptedAnswer.of(listed(max_model_len=5))) as server:
        assert await discover(connection("compatible", server, "third")) is None


async def test_anthropic() -> None:
    answer = {"id": "claude-x", "max_input_tokens": 200_000, "max_tokens": 64_000}
    async with Loopback(ScriptedAnswer.of(answer)) as server:
        found = await discover(connection("anthropic", server, "claude-x"))
    assert found == ModelLimits(200_000, 64_000)
    (request,) = server.requests
    assert request.path == "/v1/models/claude-x"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"]


async def test_google() -> None:
    answer = {"name": "models/g", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}
    async with Loopback(ScriptedAnswer.of(answer)) as server:
        found = await discover(connection("google", server, "g"))
    assert found == ModelLimits(1_048_576, 65_536)
    (request,) = server.requests
    assert request.path == "/v1beta/models/g"
    assert request.headers["x-goog-api-key"] == KEY
    assert KEY not in request.path + request.query


@pytest.mark.parametrize("provider", ["azure", "bedrock", "vertex"])
async def test_those_that_say_nothing_are_not_asked(provider: str) -> None:
    async with Loopback(ScriptedAnswer.of(listed(max_model_len=5))) as server:
        assert await discover(connection(provider, server)) is None
    assert not server.requests


async def test_a_server_without_a_list_says_nothing() -> None:
    async with Loopback(ScriptedAnswer.of({"error": "not found"}, 404)) as server:
        assert await discover(connection("compatible", server)) is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ScriptedAnswer.of({"error": KEY}, 401), AuthenticationError),
        (ScriptedAnswer.of({"error": KEY}, 500), UnavailableError),
        (ScriptedAnswer((b"<html>" + KEY.encode(),)), BadReplyError),
        (ScriptedAnswer((b'{"data": [', Step.CUT)), UnavailableError),
        (ScriptedAnswer(silent=True), UnavailableError),
    ],
    ids=["denied", "failing", "garbage", "cut off", "silent"],
)
async def test_the_error_of_a_broken_server_does_not_quote_it(
    answer: ScriptedAnswer, error: type[GatewayError]
) -> None:
    seconds = 0.2 if answer.silent else 60
    async with Loopback(answer) as server:
        seconds = 0.2 if answer.silent else 60
        with pytest.raises(error, match="the list of models of compatible") as caught:
            await discover(connection("compatible", server), timeout=seconds)
    assert KEY not in repr(caught.value)
    assert caught.value.__context__ is None or KEY not in repr(caught.value.__context__)


async def test_the_key_does_not_follow_a_redirection() -> None:
    async with Loopback(ScriptedAnswer.of(listed(max_model_len=5))) as elsewhere:
        moved = ScriptedAnswer.of({}, 302, location=f"{elsewhere.url}/models")
        async with Loopback(moved) as server:
            with pytest.raises(UnavailableError, match="status 302"):
                await discover(connection("compatible", server))
    assert not elsewhere.requests


async def test_an_unreachable_server_is_an_error() -> None:
    async with Loopback(ScriptedAnswer.of({})) as server:
        gone = connection("compatible", server)
    with pytest.raises(UnavailableError, match="cannot be reached; check the base URL"):
        await discover(gone)
