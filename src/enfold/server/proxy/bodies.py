"""Request bodies: cut into messages that are still bytes, and put together again.

A message that is not changed is never decoded for its own sake: it leaves with the bytes that it
came with. What has to be known of it is in `facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import dumps, fields, items, loads

_MOST_OUTPUT = 2**53
"""Tokens. What is larger limits nothing, and cannot be reckoned with."""


@dataclass(frozen=True, slots=True)
class Form:
    """Where a dialect's bodies have what."""

    dialect: str
    provider: str
    """As models are named by it."""
    upstream: str
    """Whose address requests go to."""
    messages: str
    beside: tuple[str, ...]
    """What is sent beside the messages and takes tokens: system prompt, tools."""
    max_output: tuple[str, ...]
    """Where the length of the answer is limited, as paths with dots."""


OPENAI = Form(
    "openai",
    "openai",
    "openai",
    "messages",
    ("tools", "functions"),
    ("max_completion_tokens", "max_tokens"),
)
RESPONSES = Form(
    "openai-responses",
    "openai",
    "openai",
    "input",
    ("instructions", "tools"),
    ("max_output_tokens",),
)
ANTHROPIC = Form(
    "anthropic", "anthropic", "anthropic", "messages", ("system", "tools"), ("max_tokens",)
)
GEMINI = Form(
    "gemini",
    "google",
    "gemini",
    "contents",
    ("systemInstruction", "system_instruction", "tools"),
    ("generationConfig.maxOutputTokens",),
)


@dataclass(frozen=True, slots=True)
class Body:
    """A request as it came."""

    form: Form
    raw: bytes
    fields: Mapping[str, bytes]
    """Each still as JSON; the messages' own is empty, so that they are not held twice."""
    messages: Sequence[bytes]
    """Each still as JSON."""
    elsewhere: tuple[str, ...] = ()
    """Fields that name messages at the provider, which stand among these messages too."""

    @property
    def beside(self) -> bytes:
        """What is sent beside the messages, as a body with no messages in it."""
        there = [(name, self.fields[name]) for name in self.form.beside if name in self.fields]
        return _object([(self.form.messages, b"[]"), *there])

    def value(self, name: str) -> Any:
        """A field of the body, decoded; None where it is not there."""
        raw = self.fields.get(name)
        return None if raw is None else loads(raw)

    def max_output(self) -> int | None:
        """The limit that the request sets to the answer. None where it sets none."""
        for path in self.form.max_output:
            first, *rest = path.split(".")
            found = self.value(first)
            for name in rest:
                found = found.get(name) if isinstance(found, dict) else None
            if isinstance(found, int) and not isinstance(found, bool):
                return min(found, _MOST_OUTPUT)
        return None

    def with_messages(self, messages: Iterable[bytes]) -> bytes:
        """The same request with other messages; its other fields as they came, where they were."""
        array = b"[" + b",".join(messages) + b"]"
        fields = {**self.fields, self.form.messages: array}
        return _object((name, raw) for name, raw in fields.items() if name not in self.elsewhere)


def read(form: Form, raw: bytes) -> Body:
    """The body, cut into messages; `InputError` says what is wrong with it."""
    found = fields(raw)
    sent = found.get(form.messages, b"[]").lstrip()
    if form.messages in found:
        found[form.messages] = b"[]"
    if sent.startswith(b'"'):
        # Responses take a text for the one message that it is.
        return Body(form, raw, found, (dumps({"role": "user", "content": loads(sent)}),))
    if not sent.startswith(b"["):
        raise InputError(f"expected an array in {form.messages!r}")
    return Body(form, raw, found, tuple(items(sent)))


def _object(members: Iterable[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(dumps(name) + b":" + raw for name, raw in members) + b"}"
