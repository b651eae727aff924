"""Clients: which client library speaks to a connection's provider, and how it is set up.

One row per provider. A client is kept for as long as the gateway is open, so that calls share its
connections. The libraries' own retries are switched off: the gateway repeats calls itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from enfold.errors import AuthenticationError, GatewayError
from enfold.llm.calls import Connection
from enfold.llm.failures import misfit

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.profiles.openai import OpenAIModelProfile

_TALKATIVE = ("anthropic", "botocore", "google_genai", "openai")
"""Libraries that write requests, with what was said and the key, into their debugging logs."""
_NO_KEY = "none"
"""Sent where a server asks for no key but its client library insists on one."""


def _openai(connection: Connection) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(connection.base_url, _key(connection))
    provider.client.max_retries = 0
    return OpenAIChatModel(connection.model, provider=provider, profile=_whole_streams())


def _compatible(connection: Connection) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    url = connection.base_url or ""  # asked for by the route
    provider = OpenAICompatibleProvider("compatible", base_url=url, api_key=_key(connection))
    provider.client.max_retries = 0
    # The older name of the setting is the one that every such server knows.
    profile = OpenAIModelProfile(
        **_whole_streams(), openai_chat_supports_max_completion_tokens=False
    )
    return OpenAIChatModel(connection.model, provider=provider, profile=profile)


def _azure(connection: Connection) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.azure import AzureProvider

    provider = AzureProvider(
        azure_endpoint=connection.base_url or "",
        api_version=connection.options.get("api_version"),
        api_key=_key(connection),
    )
    provider.client.max_retries = 0
    return OpenAIChatModel(connection.model, provider=provider, profile=_whole_streams())


def _openrouter(connection: Connection) -> Model[Any]:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    provider = OpenRouterProvider(api_key=_key(connection))
    provider.client.max_retries = 0
    if connection.base_url:
        provider.client.base_url = connection.base_url
    return OpenRouterModel(connection.model, provider=provider, profile=_whole_streams())


def _anthropic(connection: Connection) -> Model[Any]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key=_key(connection), base_url=connection.base_url)
    provider.client.max_retries = 0
    return AnthropicModel(connection.model, provider=provider)


def _google(connection: Connection) -> Model[Any]:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=_key(connection), base_url=connection.base_url)
    return GoogleModel(connection.model, provider=provider)


def _vertex(connection: Connection) -> Model[Any]:
    """With a key in express mode; else with the machine's own Google Cloud credentials."""
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google_cloud import GoogleCloudProvider

    if connection.key is not None:
        provider = GoogleCloudProvider(api_key=_key(connection), base_url=connection.base_url)
    else:
        provider = GoogleCloudProvider(
            project=connection.options.get("project"),
            location=connection.options.get("region"),
            base_url=connection.base_url,
        )
    return GoogleModel(connection.model, provider=provider)


def _bedrock(connection: Connection) -> Model[Any]:
    """With a Bedrock key, or a secret access key and its id, or the machine's own credentials."""
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    where: dict[str, Any] = {
        "base_url": connection.base_url,
        "region_name": connection.options["region"],
        "aws_read_timeout": connection.timeout,
        "aws_connect_timeout": connection.timeout,
    }
    access_key_id = connection.options.get("access_key_id")
    if connection.key is None:
        provider = BedrockProvider(**where)
    elif access_key_id is None:
        provider = BedrockProvider(api_key=_key(connection), **where)
    else:
        provider = BedrockProvider(
            aws_access_key_id=access_key_id,
            aws_secret_access_key=_key(connection),
            aws_session_token=connection.options.get("session_token"),
            **where,
        )
    # Its number of attempts can be set only when a client is made, which the provider does.
    provider.client.meta.events.unregister(
        "needs-retry.bedrock-runtime", unique_id="retry-config-bedrock-runtime"
    )
    return BedrockConverseModel(connection.model, provider=provider)


def _key(connection: Connection) -> str:
    return connection.key.reveal() if connection.key is not None else _NO_KEY


def _whole_streams() -> OpenAIModelProfile:
    """A stream that ends without saying why it ends was cut off."""
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)


@dataclass(frozen=True, slots=True)
class Route:
    """How a provider is reached, and what its protocol can say."""

    build: Callable[[Connection], Model[Any]]
    needs: tuple[str, ...] = ("key",)
    """What a connection must have: `key`, `base_url`, or options by name."""
    inline_system: bool = True
    """Whether a system message may stand inside a conversation, not only before it."""
    image_urls: bool = True
    """Whether the provider fetches an image from an address itself."""


ROUTES: dict[str, Route] = {
    "openai": Route(_openai),
    "anthropic": Route(_anthropic, inline_system=False),
    "google": Route(_google, inline_system=False, image_urls=False),
    "azure": Route(_azure, ("key", "base_url")),
    "bedrock": Route(_bedrock, ("region",), inline_system=False, image_urls=False),
    "vertex": Route(_vertex, (), inline_system=False, image_urls=False),
    "openrouter": Route(_openrouter),
    "compatible": Route(_compatible, ("base_url",)),
}
"""The providers, by the names that connections use."""

_Identity: TypeAlias = tuple[object, ...]


class Clients:
    """The clients in use: one per connection, made when it is first asked for."""

    def __init__(self) -> None:
        self._models: dict[_Identity, Model[Any]] = {}
        self._open = AsyncExitStack()
        self._building = asyncio.Lock()

    async def model(self, connection: Connection) -> Model[Any]:
        """The model behind a connection."""
        identity = _identity(connection)
        async with self._building:
            if identity not in self._models:
                # The libraries take a second to load, in which the program goes on.
                built = await asyncio.to_thread(_built, connection)
                if isinstance(built, GatewayError):
                    raise built
                self._models[identity] = await self._open.enter_async_context(built)
        return self._models[identity]

    async def aclose(self) -> None:
        """Close every connection to a provider."""
        self._models.clear()
        await self._open.aclose()


def route(connection: Connection) -> Route:
    """The row of the connection's provider, once it is sure that nothing it needs is missing."""
    found = ROUTES.get(connection.provider)
    if found is None:
        raise GatewayError(
            f"there is no provider {connection.provider!r}; there are {', '.join(ROUTES)}"
        )
    for need in found.needs:
        if need == "key" and connection.key is None:
            raise AuthenticationError(f"{connection.name} needs a key and has none; give it one")
        if need == "base_url" and not connection.base_url:
            raise GatewayError(f"{connection.name} has no base URL; say where its server is")
        if need not in {"key", "base_url"} and not connection.options.get(need):
            raise GatewayError(f"{connection.name} has no {need}; give it as an option")
    return found


def takes_temperature(model: Model[Any]) -> bool:
    """Whether a model may be told one; those that always reason, and some others, refuse it."""
    profile: Any = model.profile  # each library has settings of its own in it
    if profile.get("anthropic_disallows_sampling_settings") or profile.get(
        "bedrock_disallows_sampling_settings"
    ):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = profile.get("openai_reasoning_efforts")
    if efforts is None:
        can_rest = bool(profile.get("openai_supports_reasoning_effort_none"))
    else:
        can_rest = "none" in efforts
    return can_rest and not profile.get("thinking_enabled_by_default", False)


def _identity(connection: Connection) -> _Identity:
    """What makes two connections the same; keys are compared by what they are."""
    return (
        connection.name,
        connection.base_url,
        connection.key and connection.key.reveal(),
        tuple(sorted(connection.options.items())),
        connection.timeout,
    )


def _built(connection: Connection) -> Model[Any] | GatewayError:
    """The model; or why there is none, handed back so that no library's words come along."""
    try:
        model = ROUTES[connection.provider].build(connection)
    except ImportError:
        return GatewayError(
            f"{connection.name} cannot be asked: its client library is not installed; "
            "install enfold[models]"
        )
    except Exception as error:  # noqa: BLE001  whatever a library says of a wrong setting
        return misfit(error, connection)
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))
    return model
