"""Estimates and their rules."""

import base64
import struct

import pytest

from enfold.messages import Attachment, Message, Part, Reasoning, Text, ToolResult
from enfold.wire import estimate


def png(width: int, height: int) -> Attachment:
    head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\0" * 40
    return Attachment(mime="image/png", data=base64.b64encode(head).decode())


def gif(width: int, height: int) -> Attachment:
    head = b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 40
    return Attachment(mime="image/gif", data=base64.b64encode(head).decode())


def of(dialect: str, *parts: Part) -> int:
    return estimate(Message("user", parts, dialect=dialect))


def test_text_has_an_exact_count_and_needs_no_estimate() -> None:
    assert of("openai", Text("hello")) == 0


@pytest.mark.parametrize(
    ("dialect", "tokens"), [("anthropic", 1_334), ("openai", 765), ("gemini", 1_032)]
)
def test_an_image_counts_by_its_providers_rule(dialect: str, tokens: int) -> None:
    assert of(dialect, png(1_000, 1_000)) == tokens


def test_a_small_image_is_cheap() -> None:
    assert of("gemini", gif(300, 300)) == 258
    assert of("anthropic", gif(75, 100)) == 10


@pytest.mark.parametrize(
    "image",
    [
        Attachment(mime="image/jpeg", url="https://example.org/a.jpg"),
        Attachment(mime="image/png", data="not base64 at all!"),
        Attachment(mime="image/png", data="iVBORw0KGgo="),
        png(0, 0),
    ],
)
def test_an_image_of_unknown_size_is_taken_to_be_large(image: Attachment) -> None:
    assert of("anthropic", image) == 1_600


def test_documents_and_sound_go_by_their_size() -> None:
    assert of("openai", Attachment(mime="application/pdf", size=120_001)) == 6_000
    assert of("openai", Attachment(mime="audio/wav", size=32_000)) == 64


def test_opaque_reasoning_is_estimated_and_readable_reasoning_is_not() -> None:
    assert of("openai-responses", Reasoning("", {"encrypted_content": "x" * 400})) == 100
    assert of("anthropic", Reasoning("I think", {"signature": "x" * 400})) == 0


def test_an_image_inside_a_tool_result_counts_too() -> None:
    assert of("anthropic", ToolResult("1", (png(750, 100),))) == 100
