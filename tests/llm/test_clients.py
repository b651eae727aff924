"""Which client speaks to whom, and what a connection must bring."""

from __future__ import annotations

import pytest

from enfold.errors import AuthenticationError, GatewayError
from enfold.llm.calls import Connection, Secret
from enfold.llm.clients import CLIENTS, Clients, check_connection, takes_temperature
from enfold.llm.providers import PROVIDERS

KEY = Secret("sk-secret")
HERE = "http://127.0.0.1:9"


def test_the_providers() -> None:
    assert set(CLIENTS) == set(PROVIDERS) == {
        "anthropic", "azure", "bedrock", "compatible", "google", "openai", "openrouter", "vertex",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("connection", "kind", "words"),
    [
        (Connection("nobody", "m", KEY), GatewayError, "no provider 'nobody'; available: openai"),
        (Connection("openai", "m"), AuthenticationError, "openai:m needs a key"),
        (Connection("azure", "m", KEY), GatewayError, "azure:m has no base URL"),
        (Connection("compatible", "m"), GatewayError, "compatible:m has no base URL"),
        (Connection("bedrock", "m", KEY), GatewayError, "bedrock:m has no region"),
    ],
    ids=lambda value: value.name if isinstance(value, Connection) else None,
)
def test_errors_name_the_missing_setting(
    connection: Connection, kind: type[GatewayError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        check_connection(connection)


async def test_a_client_library_names_the_setting_it_misses() -> None:
    clients = Clients()
    with pytest.raises(GatewayError, match="api_version"):
        await clients.model(Connection("azure", "m", KEY, HERE))
    await clients.aclose()


async def test_a_client_is_kept_for_its_connection() -> None:
    clients = Clients()
    one = await clients.model(Connection("openai", "gpt-4o", Secret("a"), HERE))
    assert await clients.model(Connection("openai", "gpt-4o", Secret("a"), HERE)) is one
    assert await clients.model(Connection("openai", "gpt-4o", Secret("b"), HERE)) is not one
    assert await clients.model(Connection("openai", "gpt-4.1", Secret("a"), HERE)) is not one
    await clients.aclose()


@pytest.mark.parametrize(
    ("provider", "model", "takes"),
    [
        ("openai", "gpt-4o", True),
        ("openai", "gpt-4.1-mini", True),
        ("openai", "o3", False),
        ("openai", "gpt-5-mini", False),
        ("openai", "gpt-5.1", True),
        ("anthropic", "claude-haiku-4-5", True),
        ("anthropic", "claude-opus-4-8", False),
        ("openrouter", "openai/o3", False),
        ("google", "gemini-2.5-flash", True),
        ("compatible", "smol", True),
    ],
)
async def test_only_some_models_take_a_temperature(provider: str, model: str, takes: bool) -> None:
    clients = Clients()
    built = await clients.model(Connection(provider, model, KEY, HERE))
    assert takes_temperature(built) is takes
    await clients.aclose()
