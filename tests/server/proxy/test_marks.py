"""Cache marks: lost marks are set again at stable places, and never more than came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.server.proxy import bodies
from enfold.server.proxy.bodies import RequestBody
from enfold.summaries import HEADING, fence
from enfold.wire import WIRES, Wire
from enfold.wire.request_additions import remove_cache_marks, restore_cache_marks
from tests.server.proxy.stage import question, stage

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
SUMMARY = fence("They agreed.")


def _raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def _body(messages: list[Any], form: Wire = WIRES["anthropic"], **fields: Any) -> RequestBody:
    return bodies.parse_body(form, _raw({"model": "m", **fields, "messages": messages}))


def _marks(raws: Any) -> list[Any]:
    """Every mark in the text, by brute force."""
    found: list[Any] = []

    def note(pairs: list[tuple[str, Any]]) -> Any:
        found.extend(value for key, value in pairs if key == "cache_control")
        return dict(pairs)

    for raw in raws:
        json.loads(raw, object_pairs_hook=note)
    return found


def _text(text: str, mark: Any = None) -> Any:
    return {"type": "text", "text": text, **({"cache_control": mark} if mark else {})}


def _set(body: RequestBody, covered: int, view: list[Any], lead: int = 0) -> list[Any]:
    sent = body.messages[lead:]
    raws = [_raw(message) for message in view]
    again = restore_cache_marks(
        body.wire,
        body.field,
        lead=body.messages[:lead],
        covered=covered,
        sent=sent,
        view=raws,
        summary_heading=HEADING,
    )
    return [json.loads(raw) for raw in again]


def test_a_mark_on_a_summarized_message_moves_to_the_end_of_the_summary() -> None:
    last_message = {"role": "user", "content": "And now?"}
    body = _body(
        [{"role": "user", "content": [_text("Long.", HOUR)]}, last_message], system="Be brief."
    )
    summary = {"role": "user", "content": [_text(SUMMARY), _text("And now?")]}
    (merged,) = _set(body, 1, [summary])
    assert merged["content"] == [_text(SUMMARY, HOUR), _text("And now?")]


def test_a_summary_that_is_a_text_of_its_own_becomes_a_block() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [_text("Long.", MARK)]},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And now?"},
    ]
    body = _body(messages, WIRES["openai"])
    first, last = _set(body, 2, [{"role": "system", "content": SUMMARY}, messages[-1]], lead=1)
    assert first == {"role": "system", "content": [_text(SUMMARY, MARK)]}
    assert last == messages[-1]


def test_reasoning_and_empty_texts_carry_none() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"cache_control": "mine"}}
    kept = {"role": "assistant", "content": [call, _text("\n"), thought]}
    messages = [
        {"role": "user", "content": [_text("Long.", MARK)]},
        kept,
        {"role": "user", "content": "Go on."},
    ]
    first = {"role": "user", "content": [_text(SUMMARY)]}
    view = _set(_body(messages), 2, [first, kept, messages[-1]])
    assert view[1]["content"] == [{**call, "cache_control": MARK}, _text("\n"), thought]
    assert (view[0], view[2]) == (first, messages[-1])


@pytest.mark.parametrize(
    ("fields", "marked"),
    [
        ({"system": [_text("Be brief.", MARK)] * 3}, 4),
        ({"system": [_text("Be brief.", MARK)] * 4}, 4),
        ({"tools": [{"name": "f", "cache_control": MARK}] * 2, "cache_control": MARK}, 4),
        ({"tools": [{"name": "f", "cache_control": MARK}] * 3, "cache_control": MARK}, 4),
    ],
    ids=["room", "full", "room beside tools", "full with an automatic one"],
)
def test_a_request_has_at_most_four_marks_in_all(fields: Any, marked: int) -> None:
    messages = [
        {"role": "user", "content": [_text("Long.", MARK)]},
        {"role": "user", "content": "And now?"},
    ]
    view = _set(_body(messages, **fields), 1, [{"role": "user", "content": [_text(SUMMARY)]}])
    assert len(_marks([_raw(fields), _raw(view)])) == marked


def test_marks_of_dialects_that_have_none_are_not_looked_for() -> None:
    messages = [{"role": "user", "content": [_text("Long.", MARK)]}, {"role": "user"}]
    body = bodies.parse_body(WIRES["openai-responses"], _raw({"model": "m", "input": messages}))
    assert _set(body, 1, [{}]) == [{}]


def test_a_recorded_message_loses_only_its_cache_mark() -> None:
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"cache_control": "mine"}}
    inner = {"type": "tool_result", "tool_use_id": "c", "content": [_text("Done.", MARK)]}
    raw = _raw({"role": "user", "content": [inner, {**call, "cache_control": MARK}]})
    bare = {"type": "tool_result", "tool_use_id": "c", "content": [_text("Done.")]}
    assert json.loads(remove_cache_marks(raw)) == {"role": "user", "content": [bare, call]}
    assert remove_cache_marks(b'{ "role": "user" }') == b'{ "role": "user" }'


async def test_a_client_that_marks_its_opening_still_has_it_cached(tmp_path: Path) -> None:
    opening = {"role": "user", "content": [_text(question(0), HOUR)]}
    messages: list[Any] = [opening]
    async with (
        stage(f"sqlite:///{tmp_path / 'proxy.db'}") as on,
        anthropic.AsyncAnthropic(base_url=on.address, api_key="k") as client,
    ):
        for number in range(1, 25):
            reply = await client.messages.create(model="small", max_tokens=100, messages=messages)
            answer = [block.to_dict() for block in reply.content]
            messages.append({"role": "assistant", "content": answer})
            messages.append({"role": "user", "content": question(number)})
        sent = [json.loads(raw)["messages"] for raw in on.provider.bodies]
    summarized = [each for each in sent if SUMMARY.splitlines()[0] in json.dumps(each[0])]
    assert len(summarized) > 2
    for each in summarized:
        assert _marks([_raw(each)]) == [HOUR]
        (marked,) = (block for block in each[0]["content"] if "cache_control" in block)
        assert marked["text"].startswith(SUMMARY.splitlines()[0])


BLOCKS = st.one_of(
    st.builds(_text, st.sampled_from(["", " ", "Some words."]), st.sampled_from([None, MARK])),
    st.just({"type": "thinking", "thinking": "Hm.", "signature": "s"}),
    st.just({"type": "tool_use", "id": "c", "name": "f", "input": {}}),
)
MESSAGES = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant"]),
        st.one_of(st.lists(BLOCKS, max_size=3), st.sampled_from(["", "A text."])),
    ),
    min_size=2,
    max_size=7,
)


@given(
    messages=MESSAGES,
    system=st.lists(BLOCKS.filter(lambda b: "text" in b), max_size=2),
    x=st.data(),
)
def test_no_more_than_came_none_where_they_may_not_be_and_the_same_on_every_turn(
    messages: list[Any], system: list[Any], x: st.DataObject
) -> None:
    covered = x.draw(st.integers(1, len(messages) - 1))
    kept = x.draw(st.lists(st.sampled_from(range(covered)), unique=True).map(sorted))
    prefix = [{"role": "user", "content": [_text(SUMMARY)]}, *(messages[i] for i in kept)]
    body = _body(messages, system=system)
    view = _set(body, covered, [*prefix, *messages[covered:]])
    came = _marks([_raw(system), _raw(messages)])
    before = _marks([_raw(system), _raw(prefix), _raw(messages[covered:])])
    after = _marks([_raw(system), _raw(view)])
    assert len(before) <= len(after) <= len(came)
    assert len(after) <= max(4, len(before))
    assert view[len(prefix) :] == messages[covered:]
    for block in (b for message in view for b in message["content"] if isinstance(b, dict)):
        if "cache_control" in block and block["type"] == "text" and block not in _all(messages):
            assert block["text"].strip()
        assert block["type"] != "thinking" or "cache_control" not in block
    if len(came) > len(before) and len(before) < 4:
        assert any("cache_control" in block for block in _all(view[: len(prefix)]))
    later = [*messages, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "?"}]
    longer = _set(_body(later, system=system), covered, [*prefix, *later[covered:]])
    assert longer[: len(view)] == view


def _all(messages: list[Any]) -> list[Any]:
    return [b for message in messages for b in message["content"] if isinstance(b, dict)]
