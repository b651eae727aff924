"""The offer: the last of the tools, the same bytes each time, and nothing of the client's lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from enfold.server.proxy import bodies
from enfold.server.proxy.recall import offer_recall as offer
from enfold.wire import WIRES, Wire

CHAT = {"type": "function", "function": {"name": "find"}}


def _offer(form: Wire, when: str = "tools", **fields: Any) -> Any:
    raw = json.dumps({form.messages_key: [{"role": "user"}], **fields}).encode()
    return offer(bodies.parse_body(form, raw), when)


def test_the_clients_tools_come_first_with_their_own_bytes() -> None:
    raw = b'{"messages": [{}], "tools": [ {"name":"a",  "n": 1.50} ], "max_tokens": 9}'
    offered = offer(bodies.parse_body(WIRES["anthropic"], raw), "tools")
    assert offered is not None
    sent = offered.body.with_messages([b"{}"])
    assert b'"tools":[{"name":"a",  "n": 1.50},{"name":"recall",' in sent
    again = offer(bodies.parse_body(WIRES["anthropic"], raw), "tools")
    assert again is not None
    assert again.body.with_messages([b"{}"]) == sent
    assert "`recall`" in offered.note


@pytest.mark.parametrize(
    ("taken", "name"),
    [(["find"], "recall"), (["recall"], "enfold_recall"), (["recall", "enfold_recall"], None)],
)
def test_a_name_that_is_taken_is_the_clients(taken: list[str], name: str | None) -> None:
    tools = [{"type": "function", "function": {"name": each}} for each in taken]
    offered = _offer(WIRES["openai"], tools=tools)
    assert (offered and offered.name) == name


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        (WIRES["openai"], {"tools": [CHAT], "tool_choice": "required"}),
        (WIRES["openai"], {"tools": [CHAT], "n": 2}),
        (WIRES["openai"], {"functions": [{"name": "old"}]}),
        (
            WIRES["openai-responses"],
            {"tools": [{"name": "a"}], "tool_choice": {"type": "function"}},
        ),
        (WIRES["openai-responses"], {"tools": [{"name": "a"}], "background": True}),
        (WIRES["openai-responses"], {"tools": [{"name": "a"}], "conversation": "c"}),
        (WIRES["anthropic"], {"tools": [{"name": "a"}], "tool_choice": {"type": "tool"}}),
        (WIRES["gemini"], {"tools": [{"googleSearch": {}}]}),
        (
            WIRES["gemini"],
            {
                "tools": [{"functionDeclarations": []}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            },
        ),
        (
            WIRES["gemini"],
            {
                "tools": [{"functionDeclarations": []}],
                "generationConfig": {"candidateCount": 2},
            },
        ),
    ],
)
@pytest.mark.parametrize("when", ["tools", "always"])
def test_recall_is_not_offered_if_the_model_cannot_choose(
    form: Wire, fields: dict[str, Any], when: str
) -> None:
    assert _offer(form, when, **fields) is None


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_geminis_functions_are_declared_together(key: str) -> None:
    tools = [{"codeExecution": {}}, {key: [{"name": "find"}], "other": 1}]
    offered = _offer(WIRES["gemini"], tools=tools)
    first, second = json.loads(offered.body.fields["tools"])
    assert first == tools[0]
    assert [each["name"] for each in second[key]] == ["find", "recall"]
    assert second["other"] == 1
    taken = _offer(WIRES["gemini"], tools=[{key: [{"name": "recall"}]}])
    assert taken.name == "enfold_recall"


@pytest.mark.parametrize("form", WIRES.values(), ids=WIRES)
def test_without_tools_it_is_offered_only_always(form: Wire) -> None:
    without: list[dict[str, Any]] = [{}, {"tools": []}, {"tools": None}]
    for fields in without:
        assert _offer(form, "tools", **fields) is None
        assert _offer(form, "off", **fields) is None
        offered = _offer(form, "always", **fields)
        assert b'"recall"' in offered.body.fields["tools"]
