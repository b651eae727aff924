"""Generated conversations with what strategies work on: long output, parameters, files, errors."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Part, Reasoning, Text, ToolCall, ToolResult
from enfold.strategies.shortened_text import SUPPRESSED

LINES = "\n".join(f"{n}: the quick brown fox jumps over the lazy dog" for n in range(40))
LONG_TEXTS = (
    LINES,
    LINES.replace("fox", "cat") + "\n",
    "one line without an end " * 120,
    "漢字かな交じり文" * 150,
    "=" * 3_000,
    "\n" * 200,
    f"⟨ ... truncated, 3 of 9 lines ⟩\n{LINES}",
    "half a pair: \ud83d " + "word " * 300,
)
texts = st.sampled_from(("", "ok", "Please go on.", SUPPRESSED, *LONG_TEXTS))
words = st.sampled_from(("Please go on.", "What about the tests?", "short", LINES))
images = st.builds(
    Attachment,
    name=st.sampled_from(["", "shot.png"]),
    mime=st.just("image/png"),
    size=st.just(6),
    data=st.just("aGVsbG8h"),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | texts,
    lambda inner: (
        st.lists(inner, max_size=14) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=20,
)
objects = st.dictionaries(st.sampled_from(("path", "content", "edits", "n")), json_values)
arguments: st.SearchStrategy[Any] = st.one_of(
    objects, objects.map(dump_text), st.sampled_from(['{"path": "a', "", "[1]"])
)
result_parts = st.lists(
    st.one_of(st.builds(Text, texts), st.builds(Text, texts), images), min_size=1, max_size=2
)


@st.composite
def rounds(draw: st.DrawFn, number: int) -> list[Message]:
    """A reply that calls tools, and their results in any order."""
    ids = [f"call-{number}-{index}" for index in range(draw(st.integers(1, 2)))]
    parts: list[Part] = []
    if draw(st.booleans()):
        parts.append(Reasoning("Let me see.", {"signature": f"signed-{number}"}))
    if draw(st.booleans()):
        parts.append(Text(draw(words)))
    parts += [ToolCall(id, "read", draw(arguments)) for id in ids]
    answers = [
        Message(
            "tool",
            (
                ToolResult(
                    id,
                    tuple(draw(result_parts))
                    if draw(st.integers(0, 3))
                    else (Data(draw(json_values)),),
                    is_error=draw(st.integers(0, 4)) == 0,
                ),
            ),
        )
        for id in draw(st.permutations(ids))
    ]
    return [Message("assistant", tuple(parts)), *answers]


@st.composite
def conversations(draw: st.DrawFn, max_turns: int = 5) -> tuple[Message, ...]:
    """From the first message on; perhaps with instructions, and with a tool loop that is open."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message("system", (Text("Be brief."),)))
    for turn in range(draw(st.integers(1, max_turns))):
        files = draw(st.lists(images, max_size=1))
        messages.append(Message("user", (Text(draw(words)), *files)))
        for number in range(draw(st.integers(0, 2))):
            messages.extend(draw(rounds(turn * 10 + number)))
        if draw(st.booleans()):
            messages.append(Message("assistant", (Text(draw(words)),)))
    if draw(st.integers(0, 2)) == 0:
        open_round = draw(rounds(999))
        messages.extend(open_round[: draw(st.integers(1, len(open_round)))])
    return tuple(messages)
