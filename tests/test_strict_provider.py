"""The strict provider: it answers valid requests in every form, and refuses wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from enfold.testing import assistant, call
from enfold.testing.provider import Overflow, ProviderRequest, StrictProvider
from enfold.testing.request_rules import gemini_signature, sign

TOOL = {"name": "read", "input_schema": {"type": "object"}}
THOUGHT = "Read it first."


def _model(request: ProviderRequest) -> Any:
    """Call a tool first, then answer; a long request is too long."""
    if len(request.raw) > 5_000:
        raise Overflow
    if len(request.messages) == 1:
        return assistant("", call("c1", "read", {"path": "a"}), thinking=THOUGHT)
    return assistant("Done.")


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider(_model) as running:
        yield running


def _post(provider: StrictProvider, path: str, body: Any) -> httpx.Response:
    return httpx.post(f"{provider.address}{path}", json=body, timeout=60)


USER = {"role": "user", "content": "hi"}
THINKING = {"type": "thinking", "thinking": THOUGHT, "signature": sign(THOUGHT)}
USE = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "text"}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "text"}
REASONING = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": sign(THOUGHT)}
GEMINI_CALL = {"name": "read", "args": {"path": "a"}}
GEMINI_PART = {"functionCall": GEMINI_CALL, "thoughtSignature": gemini_signature(GEMINI_CALL)}
GEMINI_RESULT = {"functionResponse": {"name": "read", "response": {"output": "text"}}}
MARK = {"cache_control": {"type": "ephemeral"}}


def _turn(role: str, *blocks: Any) -> Any:
    return {"role": role, "content": list(blocks)}


def _content(role: str, *parts: Any) -> Any:
    return {"role": role, "parts": list(parts)}


VALID: dict[str, Any] = {
    "anthropic": [USER, _turn("assistant", THINKING, USE), _turn("user", RESULT)],
    "chat": [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
    ],
    "responses": [USER, REASONING, {**ITEM, "id": "fc"}, OUTPUT],
    "gemini": [
        _content("user", {"text": "hi"}),
        _content("model", GEMINI_PART),
        _content("user", GEMINI_RESULT),
    ],
}
PATHS: dict[str, tuple[str, str, Any]] = {
    "anthropic": ("/v1/messages", "messages", {"model": "m", "max_tokens": 9, "tools": [TOOL]}),
    "chat": ("/v1/chat/completions", "messages", {"model": "m"}),
    "responses": ("/v1/responses", "input", {"model": "m"}),
    "gemini": ("/v1beta/models/m:generateContent", "contents", {}),
}


def _ask(provider: StrictProvider, form: str, messages: Any, **more: Any) -> httpx.Response:
    """Let the provider issue its call, then send the messages."""
    path, field, rest = PATHS[form]
    first = _post(provider, path, {**rest, field: VALID[form][:1]})
    assert first.status_code == 200, first.text
    return _post(provider, path, {**rest, field: messages, **more})


@pytest.mark.parametrize("form", VALID)
def test_a_valid_loop_is_answered(provider: StrictProvider, form: str) -> None:
    answer = _ask(provider, form, VALID[form])
    assert answer.status_code == 200, answer.text
    assert "Done." in answer.text
    assert not provider.refused


A, C, R, G = "anthropic", "chat", "responses", "gemini"


@pytest.mark.parametrize(
    ("form", "messages", "words"),
    [
        (A, VALID[A][:2], "without tool_result"),
        (A, [USER, _turn("user", RESULT)], "unexpected tool_use_id"),
        (A, [*VALID[A][:2], _turn("user", {"type": "text", "text": "x"}, RESULT)], "before other"),
        (A, [_turn("user", {"type": "text", "text": ""})], "non-empty"),
        (A, [_turn("assistant", {"type": "text", "text": "x"})], "first message"),
        (A, [USER, _turn("assistant", USE), _turn("user", RESULT)], "Expected `thinking`"),
        (
            A,
            [
                USER,
                _turn("assistant", {**THINKING, "thinking": "other"}, USE),
                _turn("user", RESULT),
            ],
            "signature",
        ),
        (A, [_turn("user", *[{"type": "text", "text": "x", **MARK}] * 5)], "maximum of 4"),
        (A, [USER, _turn("assistant", USE, USE), _turn("user", RESULT)], "unique"),
        (C, VALID[C][:2], "did not have response"),
        (C, [USER, VALID[C][2]], "must be a response"),
        (C, [*VALID[C][:2], USER], "must follow"),
        (C, [{"role": "user", "content": None}], "null"),
        (R, VALID[R][:3], "No tool output"),
        (R, [USER, OUTPUT], "no call before"),
        (R, [USER, OUTPUT, ITEM], "no call before the output for c1"),
        (R, [USER, {**ITEM, "id": "fc"}, OUTPUT], "required 'reasoning'"),
        (R, [REASONING, USER], "without its following item"),
        (R, [USER, {**REASONING, "encrypted_content": "x"}, ITEM, OUTPUT], "verified"),
        (G, VALID[G][:2], "without responses"),
        (G, [VALID[G][0], VALID[G][2]], "number of function response"),
        (G, VALID[G][1:], "first turn"),
        (G, [_content("user")], "must not be empty"),
        (
            G,
            [VALID[G][0], _content("model", {"functionCall": GEMINI_CALL}), VALID[G][2]],
            "missing a thought_signature",
        ),
        (
            G,
            [VALID[G][0], _content("model", {**GEMINI_PART, "thoughtSignature": "x"}), VALID[G][2]],
            "not valid",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_a_request_that_breaks_a_rule_is_refused(
    provider: StrictProvider, form: str, messages: Any, words: str
) -> None:
    answer = _ask(provider, form, messages)
    assert answer.status_code == 400
    (refused,) = provider.refused
    assert any(words in fault for fault in refused.faults), refused.faults


@pytest.mark.parametrize("form", VALID)
def test_a_script_can_say_that_a_request_is_too_long(provider: StrictProvider, form: str) -> None:
    long = {"anthropic": USER, "chat": USER, "responses": USER}.get(form, VALID[G][0])
    text = "x" * 6_000
    message = _content("user", {"text": text}) if form == G else {**long, "content": text}
    answer = _ask(provider, form, [message])
    assert answer.status_code == 400
    assert provider.overflows == 1
    assert not provider.refused


def test_libraries_read_its_streams(provider: StrictProvider) -> None:
    user: Any = USER
    with openai.OpenAI(base_url=f"{provider.address}/v1", api_key="any") as client:
        with client.chat.completions.stream(model="m", messages=[user]) as chunks:
            assert chunks.get_final_completion().choices[0].message.tool_calls
        with client.responses.stream(model="m", input="hi") as events:
            assert events.get_final_response().output[1].type == "function_call"
    with (
        anthropic.Anthropic(base_url=provider.address, api_key="any") as other,
        other.messages.stream(model="m", max_tokens=9, messages=[user]) as blocks,
    ):
        assert blocks.get_final_message().content[0].type == "thinking"
