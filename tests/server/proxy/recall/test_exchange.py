"""Exchanges are put back where they belong, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from enfold import records
from enfold.engine.recognition import ClientHistory
from enfold.identity import content_hash
from enfold.server.proxy.bodies import parse_message
from enfold.server.proxy.recall import RecallExchange, find_replacements

ASK = {"role": "user", "content": "Which colour?"}
CALL = {
    "role": "assistant",
    "content": "Let me look.",
    "tool_calls": [
        {"id": "r", "type": "function", "function": {"name": "recall", "arguments": "{}"}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "r", "content": "teal"}
REPLY = {"role": "assistant", "content": "Teal."}
SHOWN_REPLY = {"role": "assistant", "content": "Let me look.\n\nTeal."}
THANKS = {"role": "user", "content": "Thanks"}


def _raws(*messages: Any) -> list[bytes]:
    return [json.dumps(each).encode() for each in messages]


def _history(raws: list[bytes], dialect: str = "openai") -> ClientHistory:
    messages = [parse_message(raw, dialect) for raw in raws]
    return ClientHistory(
        tuple(each.role for each in messages), tuple(content_hash(each) for each in messages)
    )


def _stored(
    exchange: RecallExchange, after: list[bytes], dialect: str = "openai"
) -> records.Exchange:
    return exchange.record(dialect, _history(after, dialect).ids[-1], "snapshot")


def _put_back(
    stored: records.Exchange, raws: list[bytes], name: str = "recall", dialect: str = "openai"
) -> dict[int, list[Any]]:
    found = find_replacements([stored], _history(raws, dialect), raws, dialect=dialect, name=name)
    return {at: [json.loads(raw) for raw in messages] for at, messages in found.items()}


STORED = _stored(RecallExchange("recall", (CALL, RESULT, REPLY)), _raws(ASK))


def test_the_recorded_exchange_replaces_the_reply_shown_to_the_client() -> None:
    assert _put_back(STORED, _raws(ASK, SHOWN_REPLY, THANKS)) == {1: [CALL, RESULT, REPLY]}


def test_spaces_and_blocks_make_no_difference() -> None:
    blocks = [{"type": "text", "text": "Let me look."}, {"type": "text", "text": "Teal."}]
    for content in ("Let me look. Teal.", blocks):
        sent = _raws(ASK, {"role": "assistant", "content": content}, THANKS)
        assert _put_back(STORED, sent) == {1: [CALL, RESULT, REPLY]}


def test_nothing_is_put_back_that_is_not_the_same() -> None:
    changed = {**SHOWN_REPLY, "content": "Red."}
    called = {
        **SHOWN_REPLY,
        "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{}"}}],
    }
    for sent in ([ASK, changed, THANKS], [ASK, called, THANKS], [THANKS, SHOWN_REPLY, ASK], [ASK]):
        assert _put_back(STORED, _raws(*sent)) == {}
    assert _put_back(STORED, _raws(ASK, SHOWN_REPLY, THANKS), name="enfold_recall") == {}
    assert _put_back(replace(STORED, dialect="gemini"), _raws(ASK, SHOWN_REPLY, THANKS)) == {}


def test_held_results_join_the_clients_own() -> None:
    mine = {"type": "tool_use", "id": "m", "name": "mine", "input": {"a": 1}}
    ours = {"type": "tool_use", "id": "r", "name": "recall", "input": {}}
    both = {"role": "assistant", "content": [ours, mine]}
    held = {"type": "tool_result", "tool_use_id": "r", "content": "teal"}
    theirs = {"type": "tool_result", "tool_use_id": "m", "content": "sunny"}
    exchange = RecallExchange("recall", (both,), ({"role": "user", "content": [held]},))
    stored = _stored(exchange, _raws(ASK), "anthropic")
    shown = {"role": "assistant", "content": [mine]}
    result = {"role": "user", "content": [theirs]}
    sent = _raws(ASK, shown, result)
    together = {"role": "user", "content": [held, theirs]}
    assert _put_back(stored, sent, dialect="anthropic") == {1: [both], 2: [together]}
    assert _put_back(stored, sent[:2], dialect="anthropic") == {}


def test_items_of_a_reply_are_replaced_together() -> None:
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}
    call = {"type": "function_call", "call_id": "r", "name": "recall", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "r", "output": "teal"}
    message = {"type": "message", "role": "assistant", "content": "Teal."}
    stored = _stored(
        RecallExchange("recall", (thought, call, result, message)), _raws(ASK), "openai-responses"
    )
    sent = _raws(ASK, {**thought, "id": "rs2"}, message, THANKS)
    assert _put_back(stored, sent, dialect="openai-responses") == {
        1: [thought, call, result, message],
        2: [],
    }
