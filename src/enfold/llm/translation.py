"""Translation: our messages as the client library's, and its answers as ours.

Text, tool calls, tool results and attachments go both ways. A model's earlier reasoning is left
out: it is signed for the conversation it came from. What cannot be sent is named in its place.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from enfold.errors import InputError
from enfold.llm.calls import Call, CallUsage
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
    """The call's messages. What is said between two answers becomes one request.

    Where a provider knows no system messages inside a conversation, one that stands there is sent
    as the user's, in its place: moved to the front it would gain an authority it never had.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart

    if not call.messages:
        raise InputError("a call without messages asks nothing; give it at least one")
    translation = _Translation(inline_system=inline_system, image_urls=image_urls)
    said: list[ModelRequestPart] = [SystemPromptPart(call.system)] if call.system else []
    messages: list[ModelMessage] = []
    for message in call.messages:
        if message.role == "assistant":
            if said:
                messages.append(ModelRequest(said))
                said = []
            answer = list(translation.answered(message))
            if answer:
                messages.append(ModelResponse(answer))
        else:
            said.extend(translation.said(message, opening=not messages))
    if said:
        messages.append(ModelRequest(said))
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
    """The answer as an assistant's message."""
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
    """What an event of a stream adds to the answer's text."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content)):
            return content
        case PartDeltaEvent(delta=TextPartDelta(addition)):
            return addition
    return ""


def usage_of(usage: RequestUsage) -> CallUsage:
    """What was counted; the library already adds cached tokens to the input's where needed."""
    if usage.unmeasured_requests or not usage.has_values():
        return CallUsage()
    return CallUsage(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    )


class _Translation:
    """One conversation's translation: remembers which call each result answers."""

    def __init__(self, *, inline_system: bool, image_urls: bool) -> None:
        self._inline_system = inline_system
        self._image_urls = image_urls
        self._names: dict[str, str] = {}
        self._unanswered: deque[str] = deque()
        """The ids made up for calls without one, in order."""

    def answered(self, message: Message) -> Iterator[Any]:
        """The parts of an assistant's message."""
        from pydantic_ai.messages import TextPart, ToolCallPart

        for part in message.parts:
            match part:
                case Text(text) if text:
                    yield TextPart(text)
                case ToolCall(id, name, arguments):
                    known = id or f"call_{len(self._names)}"
                    self._names[known] = name
                    if not id:
                        self._unanswered.append(known)
                    yield ToolCallPart(
                        name,
                        arguments if isinstance(arguments, str) else dict(arguments),
                        tool_call_id=known,
                    )
                case Attachment() | Data() | Unknown():
                    yield TextPart(_in_words(part))

    def said(self, message: Message, *, opening: bool) -> Iterator[ModelRequestPart]:
        """The parts of what is said to the model; results first, as most providers ask."""
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
    """What stands for a part that cannot be sent as it is."""
    match part:
        case Data(value):
            return json.dumps(value, ensure_ascii=False)
        case Attachment(name, mime, url=url):
            said = " ".join(word for word in (name, mime, url) if word)
            return f"[attachment that cannot be shown here: {said or 'unnamed'}]"
        case ToolCall(name=name):
            return f"[call of {name}]"
        case Unknown():
            return "[content of a kind that cannot be shown here]"
