"""However often a model recalls, a client gets one reply, and the same streamed as whole."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from enfold.server.proxy.recall import reply_hash
from enfold.wire import WIRES
from enfold.wire.replies import EventParser, Reply, ReplyReader
from tests.server.proxy.voices import INPUT, OUTPUT, Part, Say, Think, Use, written

SSE = [(b"content-type", b"text/event-stream")]
JSON = [(b"content-type", b"application/json")]

words = st.text("abc é\n", min_size=1, max_size=8).filter(str.strip)
thoughts = st.builds(Think, words)
texts = st.builds(Say, words)


@st.composite
def turns(draw: st.DrawFn) -> list[list[Part]]:
    """Replies that recall, and one that ends the turn, perhaps with calls of both kinds."""
    rounds: list[list[Part]] = []
    for number in range(draw(st.integers(0, 3))):
        parts: list[Part] = draw(st.lists(thoughts | texts, max_size=3))
        calls = draw(st.integers(1, 2))
        rounds.append([*parts, *(_recall(f"{number}-{at}") for at in range(calls))])
    last: list[Part] = [*draw(st.lists(thoughts, max_size=1)), draw(texts)]
    kinds = draw(st.lists(st.sampled_from(["recall", "lookup"]), max_size=3))
    last += [Use(f"l{at}", kind, {"at": at}) for at, kind in enumerate(kinds)]
    return [*rounds, last]


def _recall(id: str) -> Part:
    return Use(f"r{id}", "recall", {"query": "q"})


def _streamed(form: str, rounds: list[list[Part]], size: int) -> bytes:
    joiner = WIRES[form].recall.joiner("recall")
    out: list[bytes] = []
    for number, parts in enumerate(rounds):
        events = EventParser()
        _, raw = written(form, parts, _body(form, number))
        chunks = [raw[at : at + size] for at in range(0, len(raw), size)]
        found = [event for chunk in chunks for event in events.feed(chunk)]
        for event in found:
            out += [shown.raw for shown in joiner.add(event, event.json())]
        goes_on = number < len(rounds) - 1
        out += [shown.raw for shown in joiner.end_reply(is_last=not goes_on)]
    return b"".join(out)


def _body(form: str, number: int) -> Any:
    messages = {"openai-responses": "input", "gemini": "contents"}.get(form, "messages")
    return {messages: [{}] * number, "stream_options": {"include_usage": True}, "tools": []}


def _read(form: str, headers: Any, raw: bytes) -> Reply:
    reader = ReplyReader(WIRES[form].reply_parser(), headers)
    reader.feed(raw)
    return reader.end()


def _key(form: str, messages: Any) -> str:
    return reply_hash([json.dumps(each).encode() for each in messages], form, "recall")


@given(st.sampled_from(sorted(WIRES)), turns(), st.integers(1, 300))
def test_streamed_and_whole_are_the_same_reply(
    form: str, rounds: list[list[Part]], size: int
) -> None:
    wholes = [written(form, parts, _body(form, n))[0] for n, parts in enumerate(rounds)]
    joined = WIRES[form].recall.join_bodies(wholes, "recall")
    whole = _read(form, JSON, json.dumps(joined).encode())
    streamed = _read(form, SSE, _streamed(form, rounds, size))
    real = [each for one in wholes for each in _read_whole(form, one).messages]

    assert [call.name for call in whole.calls] == ["lookup"] * len(whole.calls)
    assert streamed.calls == whole.calls
    assert streamed.finish == whole.finish
    assert (whole.finish in {"tool_calls", "tool_use"}) <= bool(whole.calls)
    assert streamed.usage == whole.usage
    assert whole.usage.input_tokens == INPUT
    assert whole.usage.output_tokens == OUTPUT * len(rounds)
    # The client's reply is recognised as the recorded messages.
    assert _key(form, whole.messages) == _key(form, streamed.messages) == _key(form, real)


def _read_whole(form: str, body: Any) -> Reply:
    return _read(form, JSON, json.dumps(body).encode())


@given(st.sampled_from(["openai-responses", "anthropic"]), turns())
def test_reasoning_that_a_client_keeps_is_followed_by_what_it_led_to(
    form: str, rounds: list[list[Part]]
) -> None:
    wholes = [written(form, parts, _body(form, n))[0] for n, parts in enumerate(rounds)]
    joined = WIRES[form].recall.join_bodies(wholes, "recall")
    blocks = joined["output"] if form == "openai-responses" else joined["content"]
    kinds = [block["type"] in {"reasoning", "thinking"} for block in blocks]
    assert not kinds or not kinds[-1]
    streamed = _read(form, SSE, _streamed(form, rounds, 50)).messages
    again = streamed if form == "openai-responses" else streamed[0]["content"]
    assert [block["type"] for block in again] == [block["type"] for block in blocks]


@given(st.sampled_from(sorted(WIRES)), st.lists(thoughts | texts, min_size=1, max_size=4))
def test_a_stream_without_recall_is_not_changed(form: str, parts: list[Part]) -> None:
    _, raw = written(form, parts, _body(form, 0))
    if form == "openai-responses":
        whole = _read(form, SSE, _streamed(form, [parts], 64))
        assert whole == _read(form, SSE, raw)
    else:
        assert _streamed(form, [parts], 64) == raw
