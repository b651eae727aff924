"""The rules of the providers for a request: a fault for each rule that it breaks.

They are those that the real interfaces enforce: every call is answered, by its id and in its place;
signed reasoning comes back as it was written; a request has at most four cache marks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

MAX_CACHE_MARKS = 4
_CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
}

Issued: TypeAlias = Mapping[str, Any]
"""The provider's earlier reasoning, by call id and by signature."""
Rules: TypeAlias = Callable[[Mapping[str, Any], Issued], Iterator[str]]


def sign(text: str) -> str:
    """Return the signature that the provider gives a piece of reasoning."""
    return f"sig{blake2b(text.encode(), digest_size=16).hexdigest()}"


def check_anthropic(body: Mapping[str, Any], issued: Issued) -> Iterator[str]:
    """Yield the faults of a request to the Messages API."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    if messages[0]["role"] == "assistant":
        yield "messages: first message must use the user role"
    yield from _repeated("tools", [tool.get("name") for tool in body.get("tools") or ()])
    marks = _cache_marks(body)
    if marks > MAX_CACHE_MARKS:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    spoken = [message for message in messages if message["role"] != "system"]
    loop = _last_words(spoken, _has_anthropic_text)
    uses: list[str] = []
    for place, message in enumerate(spoken):
        blocks = _blocks(message["content"])
        where = f"messages.{place}"
        if not blocks:
            yield f"{where}: content must not be empty"
        yield from _anthropic_results(where, blocks, uses)
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        yield from _repeated(where, uses)
        yield from _anthropic_thinking(where, blocks, issued, is_running=place > loop)
    if uses:
        yield f"tool_use ids were found without tool_result blocks: {', '.join(uses)}"


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _has_anthropic_text(message: Any) -> bool:
    types = {block["type"] for block in _blocks(message["content"])}
    return message["role"] == "user" and "tool_result" not in types


def _last_words(messages: Sequence[Any], is_words: Callable[[Any], bool]) -> int:
    """Return the place of the last message of the user that is no tool result."""
    return max((place for place, each in enumerate(messages) if is_words(each)), default=-1)


def _anthropic_results(where: str, blocks: list[Any], uses: list[str]) -> Iterator[str]:
    """Check that the blocks begin with one result for each call of the message before."""
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    yield from _repeated(where, results)
    if missing := set(uses).difference(results):
        yield f"{where}: tool_use ids were found without tool_result blocks: {sorted(missing)}"
    if unknown := set(results).difference(uses):
        yield f"{where}: unexpected tool_use_id found in tool_result blocks: {sorted(unknown)}"
    types = [block["type"] == "tool_result" for block in blocks]
    if types != sorted(types, reverse=True):
        yield f"{where}: tool_result blocks must come before other blocks"
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield f"{where}: text content blocks must be non-empty"
        if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            yield f"{where}: content cannot be empty if is_error is true"


def _anthropic_thinking(
    where: str, blocks: list[Any], issued: Issued, *, is_running: bool
) -> Iterator[str]:
    thoughts = [block for block in blocks if block["type"] == "thinking"]
    for block in thoughts:
        if block.get("signature") != sign(block["thinking"]):
            yield f"{where}: Invalid `signature` in `thinking` block"
        if "cache_control" in block:
            yield f"{where}: thinking blocks cannot have cache_control"
    expected = [block["id"] for block in blocks if issued.get(block.get("id", "")) is not None]
    if expected and not thoughts and is_running:
        yield f"{where}: Expected `thinking`, but found `tool_use` ({expected[0]})"


def _cache_marks(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_cache_marks, value))
    if isinstance(value, dict):
        # Arguments and schemas may have a field of that name which is no mark.
        inner = (each for name, each in value.items() if name not in {"input", "input_schema"})
        return ("cache_control" in value) + sum(map(_cache_marks, inner))
    return 0


def check_chat(body: Mapping[str, Any], issued: Issued) -> Iterator[str]:  # noqa: ARG001 - a Rules
    """Yield the faults of a request to Chat Completions."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "[] is too short - 'messages'"
        return
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        where, role = f"messages.{place}", message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield f"{where}: messages with role 'tool' must be a response to a 'tool_calls'"
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            yield f"{where}: tool messages must follow an assistant message with 'tool_calls'"
        calls = message.get("tool_calls") or []
        if role not in {"system", "developer", "user", "assistant"}:
            yield f"{where}: unknown role {role!r}"
        if not message.get("content") and not calls:
            yield f"{where}: expected a string, got null"
        open_calls = [call["id"] for call in calls]
        yield from _repeated(where, open_calls)
        for call in calls:
            yield from _arguments(where, call["function"]["arguments"])
    if open_calls:
        yield f"tool_call_ids did not have response messages: {open_calls}"


def check_responses(body: Mapping[str, Any], issued: Issued) -> Iterator[str]:
    """Yield the faults of a request to the Responses API."""
    items = body.get("input")
    if isinstance(items, str):
        return
    if not isinstance(items, list) or not items:
        yield "input: at least one item is required"
        return
    calls = [item["call_id"] for item in items if item.get("type") in _CALLS]
    outputs = [item["call_id"] for item in items if item.get("type") in _CALLS.values()]
    yield from _repeated("input", calls)
    yield from _repeated("input", outputs)
    for call in set(calls).difference(outputs):
        yield f"No tool output found for function call {call}."
    yield from _item_order(items, issued)


def _item_order(items: Sequence[Any], issued: Issued) -> Iterator[str]:
    """Check that calls come before their outputs, and reasoning before the item it led to."""
    answerable: set[str] = set()
    for place, item in enumerate(items):
        before = items[place - 1] if place else {}
        after = items[place + 1] if place + 1 < len(items) else {}
        if item.get("type") == "reasoning":
            yield from _reasoning_item(item, after, issued)
        elif item.get("type") in _CALLS:
            answerable.add(item["call_id"])
            yield from _arguments(f"input.{place}", item.get("arguments", "{}"))
            if issued.get(item["call_id"]) and item.get("id") and not _is_of_reply(before):
                yield f"Item {item['id']} was provided without its required 'reasoning' item."
        elif item.get("type") in _CALLS.values() and item["call_id"] not in answerable:
            yield f"input.{place}: no call before the output for {item['call_id']}"


def _is_of_reply(item: Mapping[str, Any]) -> bool:
    """True if the item is of a model's reply: reasoning may come before any of its items."""
    kind = item.get("type", "message")
    return kind == "reasoning" or kind in _CALLS or item.get("role") == "assistant"


def _reasoning_item(
    item: Mapping[str, Any], after: Mapping[str, Any], issued: Issued
) -> Iterator[str]:
    encrypted = item.get("encrypted_content")
    if encrypted is not None and encrypted not in issued:
        yield f"The encrypted content for item {item.get('id')} could not be verified."
    is_user = after.get("type", "message") == "message" and after.get("role") != "assistant"
    if is_user or after.get("type") in _CALLS.values():
        yield f"Item {item.get('id')} of type 'reasoning' was provided without its following item."


def check_gemini(body: Mapping[str, Any], issued: Issued) -> Iterator[str]:
    """Yield the faults of a request to generateContent."""
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        yield "contents is not specified"
        return
    if contents[0].get("role", "user") != "user":
        yield "contents: the first turn must be the user's"
    loop = _last_words(contents, _has_gemini_text)
    calls: list[str] = []
    for place, content in enumerate(contents):
        where, parts = f"contents.{place}", content.get("parts") or []
        if not parts:
            yield f"{where}.parts: must not be empty"
        results = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
        if (calls or results) and sorted(calls) != sorted(results):
            yield (
                f"{where}: the number of function response parts must equal the number of "
                f"function call parts: {calls} and {results}"
            )
        found = [part for part in parts if "functionCall" in part]
        calls = [part["functionCall"]["name"] for part in found]
        if calls and content.get("role") != "model":
            yield f"{where}: function calls belong to the model's turn"
        yield from _gemini_signatures(where, found, issued, is_running=place > loop)
    if calls:
        yield f"contents: function calls without responses: {calls}"


def _has_gemini_text(content: Any) -> bool:
    parts = content.get("parts") or []
    return content.get("role", "user") == "user" and not any("functionResponse" in p for p in parts)


def _gemini_signatures(
    where: str, parts: list[Any], issued: Issued, *, is_running: bool
) -> Iterator[str]:
    """Check the signature of the turn's first call; parallel calls have none."""
    for part in parts:
        signature, call = part.get("thoughtSignature"), part["functionCall"]
        if signature is not None and signature != gemini_signature(call):
            yield f"{where}: the thought signature of {call['name']} is not valid"
    if parts and is_running and parts[0].get("thoughtSignature") is None:
        call = parts[0]["functionCall"]
        if issued.get(gemini_signature(call)) is not None:
            yield f"{where}: function call {call['name']} is missing a thought_signature"


def gemini_signature(call: Mapping[str, Any]) -> str:
    """Return the signature of a function call: base64, as the real ones."""
    text = json.dumps([call["name"], call.get("args") or {}], sort_keys=True)
    return sign(text).ljust(36, "A")


def _repeated(where: str, names: Sequence[Any]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{where}: {name!r} occurs {times} times; it must be unique"


def _arguments(where: str, arguments: Any) -> Iterator[str]:
    try:
        json.loads(arguments)
    except (TypeError, ValueError):
        yield f"{where}: the arguments of a call are not JSON"
