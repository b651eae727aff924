"""The gist of a conversation: its content, equal in every dialect.

A system message that opens is the system prompt. A tool's results are said by the user's side;
neighbouring messages of one side are one turn. A failed result says so, by a flag or in words.
Arguments are an object, or the text that was meant to be one. Calls are numbered: each dialect may
spell an id as it must, so long as results keep to their calls. Names, ids of messages and what a
file is called are said by some dialects only.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import dropwhile, groupby, takewhile
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)

FAILURE = "Error: "
"""How a failed result begins where there is no flag for it."""


def gist(conversation: Conversation) -> dict[str, Any]:
    """Return the content of the conversation."""
    systems = () if conversation.system is None else (conversation.system,)
    messages = (*systems, *conversation.messages)
    prompts = takewhile(_is_system, messages)
    spoken = dropwhile(_is_system, messages)
    numbers: dict[str, int] = {}
    return {
        "system": "\n\n".join(text_of(message.parts) for message in prompts),
        "turns": [
            (
                "assistant" if is_assistant else "user",
                [item for message in turn for item in _items(message.parts, numbers)],
            )
            for is_assistant, turn in groupby(spoken, lambda m: m.role == "assistant")
        ],
        "tools": [(tool.name, tool.description, tool.parameters) for tool in conversation.tools],
    }


def _is_system(message: Message) -> bool:
    return message.role == "system"


def _items(parts: Iterable[Part], numbers: dict[str, int]) -> list[tuple[Any, ...]]:
    items: list[tuple[Any, ...]] = []
    for part in parts:
        match part:
            case Text(text):
                items.append(("text", text))
            case ToolCall(call_id, name, arguments):
                number = numbers.setdefault(call_id, len(numbers))
                items.append(("call", number, name, _object(arguments)))
            case ToolResult(call_id, inner, is_error):
                number = numbers.setdefault(call_id, len(numbers))
                items.append(("result", number, _words(inner, is_error=is_error)))
            case Attachment(mime=mime, data=data, url=url):
                items.append(("file", url) if data is None else ("file", mime, data))
    return items


def _object(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        return loads(arguments)
    except InputError:
        return {"arguments": arguments}


def _words(parts: Iterable[Part], *, is_error: bool) -> str:
    texts = [part for part in parts if isinstance(part, Data | Text)]
    written = [part.text if isinstance(part, Text) else dump_text(part.value) for part in texts]
    unwrapped = [_unwrapped(text) for text in written]
    has_failed = is_error or any(failed for failed, _ in unwrapped)
    return (FAILURE if has_failed else "") + "\n\n".join(text for _, text in unwrapped)


def _unwrapped(text: str) -> tuple[bool, str]:
    """Return whether a tool failed and its output, unwrapped from the forms of dialects.

    Gemini has to put a text into an object, and others can flag a failure in words only; both
    happen again on every visit.
    """
    has_failed = False
    while True:
        has_failed |= text.startswith(FAILURE)
        text = text.removeprefix(FAILURE)
        try:
            value = loads(text)
        except InputError:
            return has_failed, text
        match value:
            case {"output": str(texts), **rest} | {"error": str(texts), **rest} if not rest:
                text = texts
            case _:
                return has_failed, text
