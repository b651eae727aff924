"""Bodies are cut into bytes and put together again from the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from enfold.errors import InputError
from enfold.server.proxy import bodies
from enfold.wire import WIRES, Wire


def test_only_the_messages_change_and_everything_stays_in_its_place() -> None:
    messages = b'[{"role": "user", "content": "\\u00e9"}, {"a": 1.0}]'
    body = bodies.parse_body(
        WIRES["openai"], b'{"model": "m", "messages": ' + messages + b', "n": 1.50}'
    )
    assert b"[" + b", ".join(body.messages) + b"]" == messages
    made = body.with_messages([body.messages[0]])
    assert made == b'{"model":"m","messages":[' + body.messages[0] + b'],"n":1.50}'
    assert list(json.loads(replace(body, replaced_fields=("n",)).with_messages([]))) == [
        "model",
        "messages",
    ]


def test_messages_stand_at_the_end_where_none_came() -> None:
    body = bodies.parse_body(
        WIRES["openai-responses"], b'{"previous_response_id": "r", "model": "m"}'
    )
    whole = replace(body, replaced_fields=("previous_response_id",))
    assert body.messages == ()
    assert whole.with_messages([b"{}"]) == b'{"model":"m","input":[{}]}'


def test_a_text_is_the_one_message_that_it_stands_for() -> None:
    body = bodies.parse_body(WIRES["openai-responses"], b'{"input": "Hi"}')
    assert [json.loads(raw) for raw in body.messages] == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("wrong", [b"", b"[]", b"{", b'{"messages": 7}', b'{"messages": {}}'])
def test_an_invalid_body_is_refused(wrong: bytes) -> None:
    with pytest.raises(InputError):
        bodies.parse_body(WIRES["openai"], wrong)


@pytest.mark.parametrize(
    ("form", "fields", "found"),
    [
        (WIRES["openai"], {"max_tokens": 7}, 7),
        (WIRES["openai"], {"max_tokens": 7, "max_completion_tokens": 8}, 8),
        (WIRES["openai"], {"max_tokens": True}, None),
        (WIRES["openai"], {"max_tokens": 10**309}, 2**53),
        (WIRES["openai-responses"], {"max_output_tokens": 9}, 9),
        (WIRES["gemini"], {"generationConfig": {"maxOutputTokens": 5}}, 5),
        (WIRES["gemini"], {"generationConfig": None}, None),
        (WIRES["anthropic"], {}, None),
    ],
    ids=[
        "chat",
        "newer name",
        "no number",
        "no limit",
        "responses",
        "gemini",
        "gemini without",
        "unset",
    ],
)
def test_the_limit_of_an_answer_is_where_the_dialect_has_it(
    form: Wire, fields: dict[str, object], found: int | None
) -> None:
    raw = json.dumps({form.messages_key: [], **fields}).encode()
    assert bodies.parse_body(form, raw).max_output() == found


def test_the_overhead_is_the_body_without_its_messages() -> None:
    raw = b'{"system": "Be brief.", "messages": [{"role": "user"}], "tools": [], "x": 1}'
    overhead = json.loads(bodies.parse_body(WIRES["anthropic"], raw).overhead)
    assert overhead == {"messages": [], "system": "Be brief.", "tools": []}
