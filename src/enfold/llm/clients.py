"""Client libraries: their setup for each provider, and the translation of messages.

A client is kept as long as the gateway is open, so that calls share its connections. The libraries'
retries are switched off, because the gateway repeats calls itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64decode
from binascii import Error as Base64Error
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from enfold.amounts import CallUsage
from enfold.errors import AuthenticationError, GatewayError, InputError
from enfold.llm.calls import Call, Connection
from enfold.llm.failures import misfit
from enfold.llm.providers import PROVIDERS, Provider
from enfold.messages import (
    Attachment,
    Data,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    text_of,
)

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers import Provider as ClientProvider

_LOGGING_LIBRARIES = ("anthropic", "botocore", "google_genai", "openai")
"""Libraries that write requests, with messages and keys, into their debug logs."""
_NO_KEY = "none"
"""Sent to servers without keys, because the client library requires one."""


def _chat_model(
    connection: Connection,
    provider: ClientProvider[Any],
    kind: type[OpenAIChatModel] | None = None,
    **settings: Any,
) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel

    provider.client.max_retries = 0
    # A stream without a finish reason was cut off.
    profile: Any = {"openai_chat_streaming_requires_finish_reason": True, **settings}
    return (kind or OpenAIChatModel)(connection.model, provider=provider, profile=profile)


def _openai(connection: Connection) -> Model[Any]:
    from pydantic_ai.providers.openai import OpenAIProvider

    return _chat_model(connection, OpenAIProvider(connection.base_url, _key(connection)))


def _compatible(connection: Connection) -> Model[Any]:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    url = connection.base_url or ""  # checked by check_connection
    provider = OpenAICompatibleProvider("compatible", base_url=url, api_key=_key(connection))
    # The older name of the setting is the one that every such server knows.
    return _chat_model(connection, provider, openai_chat_supports_max_completion_tokens=False)


def _azure(connection: Connection) -> Model[Any]:
    from pydantic_ai.providers.azure import AzureProvider

    provider = AzureProvider(
        azure_endpoint=connection.base_url or "",
        api_version=connection.options.get("api_version"),
        api_key=_key(connection),
    )
    return _chat_model(connection, provider)


def _openrouter(connection: Connection) -> Model[Any]:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    provider = OpenRouterProvider(api_key=_key(connection))
    if connection.base_url:
        provider.client.base_url = connection.base_url
    return _chat_model(connection, provider, OpenRouterModel)


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
    """Use a key in express mode, else the machine's Google Cloud credentials."""
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
    """Use a Bedrock key, a secret access key with its id, or the machine's credentials."""
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


CLIENTS: Mapping[str, Callable[[Connection], Model[Any]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google": _google,
    "azure": _azure,
    "bedrock": _bedrock,
    "vertex": _vertex,
    "openrouter": _openrouter,
    "compatible": _compatible,
}
"""Sets up the client library of each provider."""


class Clients:
    """The clients in use: one per connection, made at its first use."""

    def __init__(self) -> None:
        self._models: dict[tuple[object, ...], Model[Any]] = {}
        self._open = AsyncExitStack()
        self._building = asyncio.Lock()

    async def model(self, connection: Connection) -> Model[Any]:
        """Return the model of a connection."""
        identity = (
            connection.name,
            connection.base_url,
            connection.key and connection.key.reveal(),
            tuple(sorted(connection.options.items())),
            connection.timeout,
        )
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


def check_connection(connection: Connection) -> Provider:
    """Return the connection's provider; raise an error if something that it needs is missing."""
    found = PROVIDERS.get(connection.provider)
    if found is None:
        raise GatewayError(
            f"there is no provider {connection.provider!r}; available: {', '.join(PROVIDERS)}"
        )
    if found.needs_key and connection.key is None:
        raise AuthenticationError(f"{connection.name} needs a key and has none; give it one")
    if found.needs_base_url and not connection.base_url:
        raise GatewayError(f"{connection.name} has no base URL; set the address of its server")
    for option in found.needs_options:
        if not connection.options.get(option):
            raise GatewayError(f"{connection.name} has no {option}; give it as an option")
    return found


def takes_temperature(model: Model[Any]) -> bool:
    """Return True if a model accepts a temperature; some models, such as reasoning ones, do not."""
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


def _built(connection: Connection) -> Model[Any] | GatewayError:
    """Return the model, or the error. A returned error has no library error as its cause."""
    try:
        model = CLIENTS[connection.provider](connection)
    except ImportError:
        return GatewayError(
            f"{connection.name} cannot be called: its client library is not installed; "
            "install enfold[models]"
        )
    except Exception as error:  # noqa: BLE001  whatever a library says of a wrong setting
        return misfit(error, connection)
    for name in _LOGGING_LIBRARIES:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))
    return model


if TYPE_CHECKING:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponseStreamEvent,
        UserContent,
    )
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.usage import RequestUsage

_UNNAMED_TOOL = "tool"
_UNKNOWN_MIME = "application/octet-stream"


def to_library(call: Call, *, inline_system: bool, image_urls: bool) -> list[ModelMessage]:
    """Return the call's messages; all messages between two replies become one request.

    Where a provider knows no system messages inside a conversation, one that stands there is sent
    as the user's, in its place: moved to the front it would gain an authority it never had.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart

    if not call.messages:
        raise InputError("a call needs at least one message")
    translation = _Translation(inline_system=inline_system, image_urls=image_urls)
    request_parts: list[ModelRequestPart] = [SystemPromptPart(call.system)] if call.system else []
    messages: list[ModelMessage] = []
    for message in call.messages:
        if message.role == "assistant":
            if request_parts:
                messages.append(ModelRequest(request_parts))
                request_parts = []
            answer = list(translation.answered(message))
            if answer:
                messages.append(ModelResponse(answer))
        else:
            request_parts.extend(translation.request_parts(message, opening=not messages))
    if request_parts:
        messages.append(ModelRequest(request_parts))
    return messages


def tools_of(call: Call) -> ModelRequestParameters:
    """The tools that the model may call, as the library declares them."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    definitions = [
        ToolDefinition(
            name=tool["name"],
            description=tool.get("description"),
            parameters_json_schema=dict(tool.get("parameters") or {"type": "object"}),
        )
        for tool in call.tools
    ]
    return ModelRequestParameters(function_tools=definitions)


def from_library(response: ModelResponse) -> Message:
    """Return the reply as an assistant's message."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    parts: list[Part] = []
    for part in response.parts:
        match part:
            case TextPart(content) if content:
                parts.append(Text(content))
            case ThinkingPart(content) if content:
                parts.append(Reasoning(content))
            case ToolCallPart(name, arguments):
                parts.append(ToolCall(part.tool_call_id, name, arguments or {}))
    return Message("assistant", tuple(parts))


def text_in(event: ModelResponseStreamEvent) -> str:
    """Return the text that an event adds to the reply."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content)):
            return content
        case PartDeltaEvent(delta=TextPartDelta(addition)):
            return addition
    return ""


def usage_of(usage: RequestUsage) -> CallUsage:
    """Return the usage; the library counts cached tokens in the input."""
    if usage.unmeasured_requests or not usage.has_values():
        return CallUsage()
    return CallUsage(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    )


class _Translation:
    """Translates one conversation; keeps the call of each result."""

    def __init__(self, *, inline_system: bool, image_urls: bool) -> None:
        self._inline_system = inline_system
        self._image_urls = image_urls
        self._names: dict[str, str] = {}
        self._unanswered: deque[str] = deque()
        """The generated ids of calls without one, in order."""

    def answered(self, message: Message) -> Iterator[Any]:
        """Yield the parts of an assistant's message."""
        from pydantic_ai.messages import TextPart, ToolCallPart

        for part in message.parts:
            match part:
                case Text(text) if text:
                    yield TextPart(text)
                case ToolCall(id, name, arguments):
                    call_id = id or f"call_{len(self._names)}"
                    self._names[call_id] = name
                    if not id:
                        self._unanswered.append(call_id)
                    yield ToolCallPart(
                        name,
                        arguments if isinstance(arguments, str) else dict(arguments),
                        tool_call_id=call_id,
                    )
                case Attachment() | Data() | Unknown():
                    yield TextPart(_in_words(part))

    def request_parts(self, message: Message, *, opening: bool) -> Iterator[ModelRequestPart]:
        """Yield the parts of a message to the model; results first, as most providers require."""
        from pydantic_ai.messages import SystemPromptPart, UserPromptPart

        for part in message.parts:
            if isinstance(part, ToolResult):
                yield self._result(part)
        rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if message.role == "system" and (opening or self._inline_system):
            text = text_of(rest)
            if text:
                yield SystemPromptPart(text)
            return
        content = list(self._content(rest))
        if content:
            only = content[0]
            yield UserPromptPart(only if len(content) == 1 and isinstance(only, str) else content)

    def _result(self, result: ToolResult) -> ModelRequestPart:
        from pydantic_ai.messages import ToolReturnPart

        id = result.call_id or (self._unanswered.popleft() if self._unanswered else "")
        content = list(self._content(result.parts))
        texts = [piece for piece in content if isinstance(piece, str)]
        return ToolReturnPart(
            tool_name=result.name or self._names.get(id, _UNNAMED_TOOL),
            content="\n\n".join(texts) if len(texts) == len(content) else content,
            tool_call_id=id,
            outcome="failed" if result.is_error else "success",
        )

    def _content(self, parts: Iterable[Part]) -> Iterator[UserContent]:
        for part in parts:
            match part:
                case Text(text):
                    if text:
                        yield text
                case Attachment():
                    yield self._attachment(part)
                case ToolCall() | Data() | Unknown():
                    yield _in_words(part)

    def _attachment(self, attachment: Attachment) -> UserContent:
        from pydantic_ai.messages import BinaryContent, ImageUrl

        if attachment.data is not None:
            try:
                content = b64decode(attachment.data, validate=True)
            except Base64Error:
                return _in_words(attachment)
            return BinaryContent(content, media_type=attachment.mime or _UNKNOWN_MIME)
        if attachment.url and attachment.mime.startswith("image/") and self._image_urls:
            return ImageUrl(attachment.url)
        return _in_words(attachment)


def _in_words(part: Attachment | Data | ToolCall | Unknown) -> str:
    """Return a text in place of a part that cannot be sent."""
    match part:
        case Data(value):
            return json.dumps(value, ensure_ascii=False)
        case Attachment(name, mime, url=url):
            facts = " ".join(word for word in (name, mime, url) if word)
            return f"[attachment that cannot be shown here: {facts or 'unnamed'}]"
        case ToolCall(name=name):
            return f"[call of {name}]"
        case Unknown():
            return "[content of a kind that cannot be shown here]"
