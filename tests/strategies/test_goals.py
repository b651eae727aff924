"""Goals of the requirements, on a generated session of an agent that reads its files again.

No test asserts a time, because that depends on the machine. What a strategy does is counted
instead: calls of functions grow with the session, and memory stays within a multiple of the
messages.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

import enfold
from enfold import wire
from enfold.jsontext import dumps, loads
from enfold.messages import Conversation, Message, text_of
from enfold.testing import assistant, call, result, user
from enfold.tokens import compute_async

LOSSLESS: Mapping[str, Any] = {"strategy": "lossless"}
WAYS: list[Mapping[str, Any]] = [
    LOSSLESS,
    {"strategy": "truncation"},
    {"strategy": "native"},
    {"preset": "balanced"},
]


def name_of(how: Mapping[str, Any]) -> str:
    """The strategy or the preset."""
    return str(*how.values())


def steps(reads: int, lines: int) -> Iterator[Message]:
    """A session: about half of the reads are of a file that was read before."""
    rng = random.Random(7)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(2_000)]

    def some(number: int) -> str:
        return " ".join(rng.choices(words, k=number))

    files = [f"src/part{n}.py" for n in range(reads * 2 // 3)]
    contents = {path: "\n".join(some(9) for _ in range(lines)) for path in files}
    yield user("Please mend the parser, and keep the tests green.")
    for n in range(reads):
        path = rng.choice(files)
        yield assistant(f"Step {n}: {some(8)}.", call(f"c{n}", "read_file", {"path": path}))
        yield result(f"c{n}", contents[path])
        if n % 4 == 3:
            yield assistant(f"Part {n} is done: {some(10)}.")
            yield user(f"Go on with part {n + 1}: {some(12)}.")


@cache
def written(reads: int = 90, lines: int = 60) -> bytes:
    """The session as the wire has it."""
    return dumps(wire.render(Conversation(tuple(steps(reads, lines))), "openai"))


def people(messages: list[Any]) -> set[str]:
    """Return the typed messages."""
    return {each["content"] for each in messages if each["role"] == "user"}


def test_lossless_saves_thirty_percent_where_files_are_read_again() -> None:
    messages = loads(written())
    done = enfold.condense_sync(messages, **LOSSLESS)
    assert done.report.tokens_before > 100_000
    assert done.report.tokens_after <= 0.7 * done.report.tokens_before
    assert enfold.restore(done.messages, done.ledger) == messages


def test_nine_of_ten_typed_messages_stay_at_half_of_the_tokens() -> None:
    messages = loads(written())
    half = enfold.count(messages) // 2
    for how in ({"strategy": "truncation"}, {"preset": "balanced"}):
        done = enfold.condense_sync(messages, target=half, **how)
        assert done.report.tokens_after <= half
        kept = people(messages) & people(done.messages)
        assert len(kept) >= 0.9 * len(people(messages)), how


def test_truncation_leaves_long_typed_messages_though_it_misses_the_target() -> None:
    messages = [
        {"role": role, "content": f"{role} {number}: {text}"}
        for number in range(20)
        for role, text in (("user", "the tide came in " * 80), ("assistant", "gamma " * 600))
    ]
    target = enfold.count(messages) // 5
    config = {"preserveAssistantText": False}
    done = enfold.condense_sync(messages, "truncation", target=target, config=config)
    assert people(messages) == people(done.messages)


def test_the_shortest_typed_messages_stay_if_not_all_fit() -> None:
    short = [f"Is pier {number} open?" for number in range(20)]
    long = [f"In harbour {number} " + "the tide came in and " * 60 for number in range(4)]
    typed = [*short[:10], *long, *short[10:]]
    messages = [
        {"role": role, "content": text}
        for number, question in enumerate(typed)
        for role, text in (("user", question), ("assistant", f"Answer {number}. " + "gamma " * 120))
    ]
    target = enfold.count(messages) // 5
    done = enfold.condense_sync(messages, "native", target=target)
    assert done.report.tokens_after <= target
    assert people(messages) & people(done.messages) >= set(short)


def test_truncation_keeps_a_tenth_more_of_typed_text_than_native() -> None:
    messages = loads(written())
    half = enfold.count(messages) // 2

    def share_kept(strategy: str) -> float:
        done = enfold.condense_sync(messages, target=half, strategy=strategy)
        texts = [text_of(m.parts) for m in steps(90, 60) if m.role in {"user", "assistant"}]
        shown = {text_of(m.parts) for m in wire.parse(done.messages).messages}
        return sum(text in shown for text in texts) / len(texts)

    assert share_kept("truncation") >= share_kept("native") + 0.1


def calls_of(how: Mapping[str, Any], reads: int) -> int:
    """Return the number of functions that a condensation calls."""
    messages = loads(written(reads))
    asyncio.run(enfold.condense(messages, **how))  # counts are stored, modules are loaded
    calls = 0

    def profile(_frame: object, event: str, _value: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    _set_profile(profile)
    try:
        asyncio.run(enfold.condense(messages, **how))
    finally:
        _set_profile(None)
    return calls


def _set_profile(function: Callable[[object, str, object], None] | None) -> None:
    """Call a function at every event of this thread and of the one that computes."""
    asyncio.run(compute_async(sys.setprofile, function))
    sys.setprofile(function)


@pytest.mark.parametrize("how", WAYS, ids=name_of)
def test_work_grows_with_the_session_and_not_faster(how: Mapping[str, Any]) -> None:
    # Nearly four times as many: a part that is quadratic soon shows.
    assert calls_of(how, 160) < 4.3 * calls_of(how, 40)


@pytest.mark.parametrize(("how", "times"), list(zip(WAYS, (2, 2, 1.6, 2.35), strict=True)), ids=str)
def test_memory_is_bounded_by_the_messages_and_given_back(
    how: Mapping[str, Any], times: float
) -> None:
    _check_memory(written(), how, times)


def test_a_summary_of_many_sentences_holds_no_copies_of_them() -> None:
    _check_memory(discussion(), {"strategy": "native"}, 8)


def discussion() -> bytes:
    """Return a chat of many short sentences, in which every word occurs often."""
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(2_000)]

    def sentences(number: int, length: int) -> str:
        some = (" ".join(rng.choices(words, k=length)) for _ in range(number))
        return " ".join(f"{text.capitalize()}." for text in some)

    turns = [(user(sentences(3, 9)), assistant(sentences(12, 12))) for _ in range(600)]
    messages = tuple(message for turn in turns for message in turn)
    return dumps(wire.render(Conversation(messages), "openai"))


def _check_memory(session: bytes, how: Mapping[str, Any], times: float) -> None:
    """Fail if a condensation takes more than this many times the memory of the messages."""
    asyncio.run(enfold.condense(wire.parse(loads(session)), **how))  # fills the shared memo
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        conversation = wire.parse(loads(session))
        gc.collect()
        start, _ = tracemalloc.get_traced_memory()
        needed: list[int] = []
        ends: list[int] = [start]
        for _ in range(3):
            tracemalloc.reset_peak()
            asyncio.run(enfold.condense(conversation, **how))
            needed.append(tracemalloc.get_traced_memory()[1] - ends[-1])
            gc.collect()
            ends.append(tracemalloc.get_traced_memory()[0])
        # A cache that grows during one of the runs belongs to the process, not to the messages.
        assert min(needed) <= times * (start - before)
        assert ends[3] - ends[2] <= 0.05 * (start - before)
    finally:
        tracemalloc.stop()
