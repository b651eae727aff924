"""Detection of a value's dialect, by the signs found in it.

A sign is a field or value that only some dialects have; each sign rules out the others. If several
dialects are left, hints decide: fields that one of them usually has and the others may have. If
there are no hints, the value is the same JSON in several dialects, and the first one is taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from enfold.errors import DialectError
from enfold.wire.fields import kind_of
from enfold.wire.langchain import CLASSES, is_object
from enfold.wire.replies import mappings_in

ORDER = ("openai", "openai-responses", "anthropic", "gemini", "langchain", "enfold")
"""All dialects; the first that fits is taken."""

_MESSAGES = "body.messages: array"
_NO_TYPE = "message.type: missing"
_NO_ROLE = "message.type without role"
_REFERENCE = "message.id: only field"
_NO_CONTENT = "message.content: missing"
_BARE_RESULT = "message.role = tool without results"
_WEAK_SIGNS = frozenset({_MESSAGES, _NO_TYPE, _NO_ROLE, _NO_CONTENT})
"""Signs that rule dialects out, but do not show that a value is a conversation at all."""

_RESPONSES_ITEMS = (
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "computer_call",
    "computer_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "function_call",
    "function_call_output",
    "image_generation_call",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "reasoning",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
)

# A LangChain message is recognised by its type and may have any provider's fields and blocks, so
# most rows have `langchain` too. `message.type: missing` rules it out.
SIGNS: Mapping[str, str] = {
    # request bodies
    "body.contents: array": "gemini",
    "body.contents: object": "gemini",
    "body.systemInstruction: object": "gemini",
    "body.system_instruction: object": "gemini",
    "body.input: array": "openai-responses",
    "body.input: text": "openai-responses",
    "body.input: empty": "openai-responses",
    "body.previous_response_id: text": "openai-responses",
    "body.anthropic_version: text": "anthropic",
    "body.functions: array": "openai",
    "body.system: array": "anthropic langchain enfold",
    "body.system: text": "anthropic langchain enfold",
    "body.system: object": "langchain enfold",
    _MESSAGES: "openai anthropic langchain enfold",
    # their tools
    "tool.custom: object": "openai langchain",
    "tool.function: object": "openai langchain",
    "tool.functionDeclarations: array": "gemini",
    "tool.function_declarations: array": "gemini",
    "tool.input_schema: object": "anthropic langchain",
    "tool.type: missing": "anthropic gemini langchain enfold",
    # messages
    "message.object": "langchain",
    "message.lc: number": "langchain",
    **{f"message.type = {type_}": "langchain" for type_ in CLASSES},
    **{f"message.type = {type_}": "openai-responses" for type_ in _RESPONSES_ITEMS},
    "message.type = message": "openai-responses anthropic",
    _NO_TYPE: "openai openai-responses anthropic gemini enfold",
    _NO_ROLE: "openai-responses langchain",
    _REFERENCE: "openai-responses",
    "message.role = user": "openai openai-responses anthropic gemini langchain enfold",
    "message.role = assistant": "openai openai-responses anthropic langchain enfold",
    "message.role = system": "openai openai-responses anthropic langchain enfold",
    "message.role = developer": "openai openai-responses langchain",
    "message.role = tool": "openai langchain enfold",
    _BARE_RESULT: "openai langchain",
    "message.role = function": "openai gemini langchain",
    "message.role = model": "gemini langchain",
    "message.parts": "gemini",
    "message.content: text": "openai openai-responses anthropic langchain enfold",
    _NO_CONTENT: "openai openai-responses gemini langchain enfold",
    "message.content: array": "openai openai-responses anthropic langchain enfold",
    "message.audio: object": "openai langchain",
    "message.function_call: object": "openai langchain",
    **{
        f"message.id: {kind}": "openai openai-responses anthropic gemini langchain"
        for kind in ("number", "array", "object", "other")
    },
    "message.name: text": "openai openai-responses langchain enfold",
    "message.reasoning: text": "openai langchain",
    "message.reasoning_content: text": "openai langchain",
    "message.reasoning_details: array": "openai langchain",
    "message.refusal: text": "openai langchain",
    "message.tool_call_id: text": "openai langchain",
    # the calls of a message
    "call.custom: object": "openai langchain",
    "call.function: object": "openai langchain",
    # the blocks of its content
    "block.type = text": "openai anthropic langchain enfold",
    "block.type = file": "openai langchain",
    "block.type = image_url": "openai langchain",
    "block.type = input_audio": "openai openai-responses langchain",
    "block.type = refusal": "openai openai-responses langchain",
    "block.type = input_file": "openai-responses langchain",
    "block.type = input_image": "openai-responses langchain",
    "block.type = input_text": "openai-responses langchain",
    "block.type = output_text": "openai-responses langchain",
    "block.type = container_upload": "anthropic langchain",
    "block.type = document": "anthropic langchain",
    "block.type = image": "anthropic langchain",
    "block.type = mcp_tool_result": "anthropic langchain",
    "block.type = mcp_tool_use": "anthropic langchain",
    "block.type = redacted_thinking": "anthropic langchain",
    "block.type = search_result": "anthropic langchain",
    "block.type = server_tool_use": "anthropic langchain",
    "block.type = thinking": "anthropic langchain",
    "block.type = web_search_tool_result": "anthropic langchain",
    "block.type = tool_result": "anthropic langchain enfold",
    "block.type = tool_use": "anthropic langchain enfold",
    "block.type = reasoning": "langchain enfold",
    "block.type = attachment": "enfold",
    "block.type = data": "enfold",
}
"""The dialects that have each sign: `field`, `field: kind of value`, or `field = text`."""

HINTS: Mapping[str, str] = {
    "body.instructions: text": "openai-responses",
    "block.cache_control: object": "anthropic",
    "message.id: text": "enfold",
    "message.kind: text": "enfold",
    "message.parent_id: text": "enfold",
    "message.status: text": "openai-responses",
    "message.ts: text": "enfold",
}
"""The dialect that usually has the field, where the signs leave more than one."""

_KINDS: Mapping[type, str] = {str: "text", list: "array", dict: "object", int: "number"}
_LONGEST_NAME = 40
"""Roles and types are short; longer texts are content."""


def detect(value: Any) -> str:
    """Return the name of the dialect of a body or an array of messages."""
    if isinstance(value, list) and len(value) == 1 and type(value[0]) is dict:
        (message,) = value
        if _is_plain(message):
            return _dialect_of_role(message["role"])
    return _detect(value)


@lru_cache(maxsize=16)
def _dialect_of_role(role: str) -> str:
    """Return the dialect of a message with this role, a text and nothing else."""
    return _detect([{"role": role, "content": "-"}])


def _detect(value: Any) -> str:
    traits = {trait for trait in _traits(value) if trait in SIGNS or trait in HINTS}
    signs = traits & SIGNS.keys()
    if value == [] or signs == {_MESSAGES}:
        return ORDER[0]
    telling = signs - _WEAK_SIGNS
    if not telling:
        raise DialectError(
            f"no dialect is recognised in {kind_of(value)}: looked for `messages`, `contents` or "
            "`input`, and in messages for a `role`, `type` or `parts`; name it (--dialect)"
        )
    if all(sign.startswith(("body.", "tool.")) for sign in telling):
        # There is a field `messages`, but nothing in it looks like a message.
        signs = telling
    left = _narrowed(signs)
    votes = [HINTS[hint] for hint in traits & HINTS.keys()]
    return max(left, key=lambda dialect: (votes.count(dialect), -ORDER.index(dialect)))


def _narrowed(signs: Iterable[str]) -> set[str]:
    """Return the dialects that have every sign."""
    left = set(ORDER)
    reasons: list[str] = []
    for sign in sorted(signs, key=lambda sign: (len(SIGNS[sign]), sign)):
        fits = SIGNS[sign].split()
        if not left.issubset(fits):
            reasons.append(f"`{sign}` is {' or '.join(fits)}")
        left.intersection_update(fits)
        if not left:
            found = "; ".join(reasons)
            raise DialectError(f"no dialect fits all that is found: {found}; name it (--dialect)")
    return left


def _traits(value: Any) -> Iterator[str]:
    forms: set[Hashable] = set()
    if isinstance(value, list):
        yield from _traits_of_messages(value, forms)
    elif isinstance(value, dict):
        yield from _traits_of("body", value)
        yield from _traits_of_each("tool", value.get("tools"), forms)
        yield from _traits_of_messages(value.get("messages"), forms)


def _traits_of_messages(messages: Any, forms: set[Hashable]) -> Iterator[str]:
    plain: set[str] = set()
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            if _is_plain(message):
                # Nearly all messages of a chat: a role and a text, which tell the same each time.
                if message["role"] in plain:
                    continue
                plain.add(message["role"])
            yield from _new_traits_of("message", message, forms)
            if isinstance(message.get("id"), str) and not any(
                message.get(key) is not None for key in ("role", "type", "content", "parts")
            ):
                yield _REFERENCE
            blocks = mappings_in(message.get("content"))
            if message.get("role") == "tool" and not any(
                block.get("type") == "tool_result" for block in blocks
            ):
                yield _BARE_RESULT
            yield from _traits_of_each("call", message.get("tool_calls"), forms)
            for block in blocks:
                yield from _new_traits_of("block", block, forms)
                yield from _traits_of_each("block", block.get("content"), forms)
        elif is_object(message):
            yield "message.object"


_PLAIN_FIELDS = len(("role", "content"))


def _is_plain(message: dict[str, Any]) -> bool:
    """Return True if a message has a role, a text and nothing else."""
    content = message.get("content")
    is_text = type(content) is str and content != ""
    return is_text and len(message) == _PLAIN_FIELDS and type(message.get("role")) is str


def _traits_of_each(level: str, values: Any, forms: set[Hashable]) -> Iterator[str]:
    for value in mappings_in(values):
        yield from _new_traits_of(level, value, forms)


def _new_traits_of(level: str, raw: dict[str, Any], forms: set[Hashable]) -> Iterable[str]:
    """Return the traits of an object, or nothing if one of the same form was read before.

    Most messages of a conversation have the form of another one.
    """
    role, type_ = raw.get("role"), raw.get("type")
    if not isinstance(role, str | None) or not isinstance(type_, str | None):
        return _traits_of(level, raw)
    values = raw.values()
    form = (level, role, type_, tuple(raw), tuple(map(type, values)), tuple(map(bool, values)))
    if form in forms:
        return ()
    forms.add(form)
    return _traits_of(level, raw)


def _traits_of(level: str, raw: dict[str, Any]) -> Iterator[str]:
    """Yield everything that can be a sign; a field that is null is missing."""
    if raw.get("content") is None:
        yield f"{level}.content: missing"
    if raw.get("type") is None:
        yield f"{level}.type: missing"
    elif raw.get("role") is None:
        yield f"{level}.type without role"
    for key, value in raw.items():
        if value is None:
            continue
        yield f"{level}.{key}"
        yield f"{level}.{key}: {'empty' if value == '' else _KINDS.get(type(value), 'other')}"
        if isinstance(value, str) and len(value) <= _LONGEST_NAME:
            yield f"{level}.{key} = {value}"
