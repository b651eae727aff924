"""The beginning of a long body that came before is not read again, and nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import InputError
from enfold.server.proxy import bodies
from enfold.server.proxy.bodies import MessageFacts, MessageSlices, PrefixCache, RequestBody
from enfold.wire import WIRES

TEXTS = st.text(max_size=20)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": TEXTS | st.lists(TEXTS, max_size=2)}
)
HISTORIES = st.lists(MESSAGES, max_size=14)


def same(found: RequestBody, expected: RequestBody) -> bool:
    return (found.raw, list(found.messages), dict(found.fields), list(found.fields)) == (
        expected.raw,
        list(expected.messages),
        dict(expected.fields),
        list(expected.fields),
    )


def talk(count: int, **more: Any) -> bytes:
    messages = [{"role": "user", "content": f"number {number}"} for number in range(count)]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 14), HISTORIES, st.sampled_from([None, 1, 0]), st.booleans(), TEXTS
        ),
        max_size=5,
    ),
    st.sampled_from([0, 300, 10_000]),
)
def test_parsing_with_a_prefix_cache_equals_parsing_without(
    steps: list[tuple[int, list[Any], int | None, bool, str]], held: int
) -> None:
    prefixes = PrefixCache(min_body=0, max_prefixes=3, max_held=held)
    history: list[Any] = []
    for kept, new, indent, first, extra in steps:
        history = history[:kept] + new
        fields = {"messages": history, "x": extra, "copy": history[:1]}
        body = dict(reversed(fields.items())) if first else fields
        raw = json.dumps(body, indent=indent).encode()
        found, prefix = prefixes.parse(WIRES["openai"], raw)
        assert same(found, bodies.parse_body(WIRES["openai"], raw))
        if prefix is not None:
            assert list(MessageSlices(raw, prefix.offsets)) == list(found.messages[: prefix.count])


@given(st.integers(-25, 25), st.integers(-25, 25))
def test_messages_that_are_cut_out_when_needed_are_a_sequence_like_any_other(
    start: int, stop: int
) -> None:
    prefixes = PrefixCache(min_body=0)
    prefixes.parse(WIRES["openai"], talk(20))
    cut, _ = prefixes.parse(WIRES["openai"], talk(22))
    whole = bodies.parse_body(WIRES["openai"], talk(22)).messages
    assert isinstance(cut.messages, MessageSlices)
    assert list(cut.messages[start:stop]) == list(whole[start:stop])
    assert list(cut.messages[start:][:stop]) == list(whole[start:][:stop])
    if -22 <= start < 22:
        assert cut.messages[start] == whole[start]
    else:
        with pytest.raises(IndexError):
            cut.messages[start]


def test_a_history_that_grows_is_known_by_all_but_its_newest_messages() -> None:
    prefixes = PrefixCache(min_body=0)
    _, first = prefixes.parse(WIRES["openai"], talk(20))
    _, second = prefixes.parse(WIRES["openai"], talk(22))
    assert first is not None
    assert second is not None
    assert (first.count, second.count) == (14, 16)


def test_facts_of_a_prefix_are_reused_for_its_continuation() -> None:
    prefixes = PrefixCache(min_body=0)
    facts = [MessageFacts("user", str(number), number, 0) for number in range(20)]
    _, first = prefixes.parse(WIRES["openai"], talk(20))
    assert first is not None
    first.remember_facts("t", facts)
    _, second = prefixes.parse(WIRES["openai"], talk(24))
    assert second is not None
    assert list(second.facts["t"]) == facts[:14]
    second.remember_facts("t", [*facts, *facts[:4]])
    assert list(second.facts["t"]) == facts[:18]
    assert list(first.facts["t"]) == facts[:14]


def test_so_are_the_identities_after_the_system_prompt() -> None:
    prefixes = PrefixCache(min_body=0)
    ids = [str(number) for number in range(19)]
    _, first = prefixes.parse(WIRES["openai"], talk(20))
    assert first is not None
    first.remember_ids(ids, lead=1)
    _, second = prefixes.parse(WIRES["openai"], talk(24))
    assert second is not None
    assert first.ids == second.ids == ids[:13]


def test_the_same_bytes_replaced_fields_are_not_taken_for_the_messages() -> None:
    messages = [{"role": "user", "content": f"number {number}"} for number in range(12)]
    prefixes = PrefixCache(min_body=0)
    for count in (10, 12):
        raw = json.dumps({"metadata": messages[:count], "messages": messages[:count]}).encode()
        found, _ = prefixes.parse(WIRES["openai"], raw)
        assert same(found, bodies.parse_body(WIRES["openai"], raw))


def test_the_last_of_two_fields_of_one_name_counts() -> None:
    prefixes = PrefixCache(min_body=0)
    whole = talk(12)
    prefixes.parse(WIRES["openai"], whole)
    twice = whole[:-1] + b', "messages": [{"role": "user", "content": "another"}]}'
    found, _ = prefixes.parse(WIRES["openai"], twice)
    assert same(found, bodies.parse_body(WIRES["openai"], twice))


@pytest.mark.parametrize("end", [b",]}", b"", b"]", b"}}", b"] 1}", b', {"role"}]}'])
def test_a_known_prefix_with_invalid_json_is_refused(end: bytes) -> None:
    prefixes = PrefixCache(min_body=0)
    whole = talk(12)
    prefixes.parse(WIRES["openai"], whole)
    with pytest.raises(InputError):
        prefixes.parse(WIRES["openai"], whole[:-2] + end)


def test_prefixes_of_different_forms_are_separate() -> None:
    prefixes = PrefixCache(min_body=0)
    raw = talk(12, system="Be brief.")
    _, as_openai = prefixes.parse(WIRES["openai"], raw)
    body, as_anthropic = prefixes.parse(WIRES["anthropic"], raw)
    assert body.wire is WIRES["anthropic"]
    assert as_openai is not as_anthropic


@pytest.mark.parametrize("held", [0, 1_000, 10_000])
def test_a_beginning_is_known_whether_its_bytes_are_held_or_not(held: int) -> None:
    prefixes = PrefixCache(min_body=0, max_held=held)
    _, short = prefixes.parse(WIRES["openai"], talk(20))
    _, other = prefixes.parse(WIRES["openai"], talk(20).replace(b"number", b"figure"))
    _, long = prefixes.parse(WIRES["openai"], talk(40))
    assert short is not None
    assert other is not None
    assert long is not None
    assert sum(len(each.raw or b"") for each in (short, other, long)) <= held
    assert prefixes.parse(WIRES["openai"], talk(40))[1] is long
    changed = talk(40).replace(b"number 30", b"figure 30")
    _, found = prefixes.parse(WIRES["openai"], changed)
    assert found is not long
    assert same(
        prefixes.parse(WIRES["openai"], changed)[0], bodies.parse_body(WIRES["openai"], changed)
    )


def test_the_oldest_are_forgotten() -> None:
    prefixes = PrefixCache(min_body=0, max_messages=20)
    _, first = prefixes.parse(WIRES["openai"], talk(20))
    _, again = prefixes.parse(WIRES["openai"], talk(20))
    assert again is first
    prefixes.parse(WIRES["openai"], talk(20, n=1).replace(b"number", b"figure"))
    _, anew = prefixes.parse(WIRES["openai"], talk(20))
    assert anew is not first


def test_short_bodies_are_not_worth_it() -> None:
    body, prefix = PrefixCache().parse(WIRES["openai"], talk(20))
    assert len(body.messages) == 20
    assert prefix is None
