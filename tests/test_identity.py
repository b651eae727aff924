"""Identity: equal messages have equal hashes, and others do not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import wire as dialects
from enfold.identity import chain, content_hash, digest, identity
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)

CONVERSATION = (
    Message("user", (Text("What is in the picture?"), Attachment(mime="image/png", data="aGk="))),
    Message("assistant", (Text("I will look."), ToolCall("c1", "look", {"at": [1, 2], "in": "x"}))),
    Message("tool", (ToolResult("c1", (Text("a cat"),)),)),
    Message("assistant", (Text("A cat."),)),
)


def hash_of(*parts: Any, role: Any = "user", name: str | None = None) -> str:
    return content_hash(Message(role, parts, name=name))


def openai(raw: dict[str, Any]) -> str:
    return content_hash(dialects.get("openai").parse_message(raw))


@pytest.mark.parametrize(
    "name", [n for n in ("openai", "anthropic", "enfold") if n in dialects.DIALECTS]
)
def test_a_conversation_has_the_same_identities_in_every_dialect(name: str) -> None:
    wire = json.loads(json.dumps(dialects.render(Conversation(CONVERSATION), name)))
    read = dialects.get(name).parse(wire).messages
    assert chain(map(content_hash, read)) == chain(map(content_hash, CONVERSATION))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"content": "hi"}, {"content": [{"type": "text", "text": "hi"}]}),
        ({"content": None}, {"content": ""}),
        ({"content": None}, {}),
        ({"content": []}, {"content": ""}),
        (
            {"content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
            {"content": "hi"},
        ),
        (
            {"content": [{"type": "new", "of": {"b": 1, "a": 2}, "id": "x", "status": "done"}]},
            {"content": [{"of": {"a": 2, "b": 1, "cache_control": {}}, "type": "new"}]},
        ),
        ({"content": "hi", "id": "m1"}, {"content": "hi", "metadata": {"a": 1}}),
        ({"content": "hi", "reasoning_content": "hm"}, {"content": "hi"}),
    ],
    ids=repr,
)
def test_equivalent_forms_have_the_same_hash(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert openai({"role": "assistant", **one}) == openai({"role": "assistant", **other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}'),
        ('{"a": 1}', {"a": 1}),
        ("", "{}"),
        ("", {}),
    ],
    ids=repr,
)
def test_arguments_are_compared_as_what_they_mean(one: Any, other: Any) -> None:
    assert hash_of(ToolCall("c", "f", one)) == hash_of(ToolCall("c", "f", other))


PARTS = {
    "a text": (Text("hi"),),
    "another text": (Text("hi "),),
    "two texts": (Text("h"), Text("i")),
    "nothing": (),
    "a call": (ToolCall("c", "f", '{"a": 1}'),),
    "another call": (ToolCall("d", "f", '{"a": 1}'),),
    "another tool": (ToolCall("c", "g", '{"a": 1}'),),
    "other arguments": (ToolCall("c", "f", '{"a": 2}'),),
    "large arguments": (ToolCall("c", "f", '{"a": 12345678901234567890123}'),),
    "larger arguments": (ToolCall("c", "f", '{"a": 12345678901234567890124}'),),
    "broken arguments": (ToolCall("c", "f", '{"a": 1'),),
    "arguments like broken ones": (ToolCall("c", "f", '"{\\"a\\": 1"'),),
    "a result": (ToolResult("c", (Text("hi"),)),),
    "an error": (ToolResult("c", (Text("hi"),), is_error=True),),
    "another's result": (ToolResult("d", (Text("hi"),)),),
    "a structured result": (ToolResult("c", (Data({"a": "hi"}),)),),
    "two results": (ToolResult("c", (Text("hi"),)), ToolResult("d", (Text("hi"),))),
    "a picture": (Attachment(data="aGk="),),
    "another picture": (Attachment(data="aG8="),),
    "a picture elsewhere": (Attachment(url="https://example.org/a.png"),),
    "a provider's file": (Attachment(extras={"type": "file", "file": {"file_id": "f1"}}),),
    "another file": (Attachment(extras={"type": "file", "file": {"file_id": "f2"}}),),
    "something new": (Unknown({"type": "new", "a": 1}),),
    "something newer": (Unknown({"type": "newer", "a": 1}),),
    "half a character": (Text("\ud83d"),),
    "its escape": (Text("\\ud83d"),),
    "zero": (Text("\x00"),),
}


def test_different_things_are_different() -> None:
    hashes = {name: hash_of(*parts) for name, parts in PARTS.items()}
    assert len(set(hashes.values())) == len(hashes)


def test_roles_and_names_count() -> None:
    assert (
        len(
            {
                hash_of(Text("hi")),
                hash_of(Text("hi"), role="assistant"),
                hash_of(Text("hi"), name="Ann"),
                hash_of(Text("hi"), name="Bob"),
            }
        )
        == 4
    )
    assert hash_of(Text("hi"), name="") == hash_of(Text("hi"))


def test_the_tool_name_of_a_result_does_not_change_the_hash() -> None:
    result = ToolResult("c", (Text("hi"),))
    assert hash_of(result, role="tool", name="f") == hash_of(replace(result, name="f"), role="user")


def test_reasoning_does_not_count() -> None:
    assert hash_of(Reasoning("hm", {"signature": "x"}), Text("hi")) == hash_of(Text("hi"))


def test_reasoning_that_is_a_message_of_its_own_counts_by_what_its_provider_knows_it_by() -> None:
    def item(**fields: str) -> str:
        return hash_of(Reasoning("hm", {"type": "reasoning", **fields}))

    assert item(id="rs_1") != item(id="rs_2")
    assert item(id="rs_1", encrypted_content="a") != item(id="rs_1", encrypted_content="b")
    assert item(id="rs_1", encrypted_content="a") == item(encrypted_content="a", status="completed")
    assert item() == hash_of()


def test_an_identity_stands_for_all_that_came_before() -> None:
    a, b, c = (hash_of(Text(text)) for text in "abc")
    first = identity(None, a)
    assert chain([a, b, c]) == [first, identity(first, b), identity(identity(first, b), c)]
    assert chain([b, c], parent=first) == chain([a, b, c])[1:]
    assert chain([a, c])[-1] != chain([b, c])[-1]
    assert not chain([])


@given(st.lists(st.sampled_from("abcd"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=8))
def test_histories_share_identities_as_far_as_they_agree(one: list[str], other: list[str]) -> None:
    agree = next(
        (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y),
        min(len(one), len(other)),
    )
    shared = set(chain(one)) & set(chain(other))
    assert len(shared) == agree


def test_a_digest_is_of_the_exact_bytes() -> None:
    assert digest(b'{"a":1}') != digest(b'{"a": 1}')
    assert digest(b"") != identity(None, "")
