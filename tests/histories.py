"""Histories: one with a long tool result, and generated valid ones with calls of all kinds."""

from typing import Any

from hypothesis import strategies as st

from enfold.messages import Message
from enfold.testing import assistant, call, result, user

LONG_RESULT: list[dict[str, Any]] = [
    {"role": "user", "content": "Read it."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "read1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        ],
    },
    {
        "role": "tool",
        "tool_call_id": "read1",
        "content": "\n".join(f"line {n} of the log" for n in range(400)),
    },
    {"role": "user", "content": "Thanks."},
    {"role": "user", "content": "What now?"},
]
"""A conversation in the form of OpenAI, with a tool result of 400 lines."""

words = st.text(alphabet="abcdefghij é漢字 \n", min_size=1, max_size=40)


@st.composite
def tool_rounds(draw: st.DrawFn, number: int) -> list[Message]:
    """One reply that calls tools, then their results in any order, perhaps interleaved."""
    ids = [f"call-{number}-{index}" for index in range(draw(st.integers(1, 3)))]
    calls = [call(id, "read", {"path": draw(words)}) for id in ids]
    text = draw(st.one_of(st.just(""), words))
    thinking = draw(st.one_of(st.just(""), words))
    answers = [
        result(id, draw(words), is_error=draw(st.booleans())) for id in draw(st.permutations(ids))
    ]
    if draw(st.integers(0, 5)) == 0:
        answers.insert(draw(st.integers(0, len(answers))), user(draw(words)))
    return [assistant(text, *calls, thinking=thinking), *answers]


@st.composite
def histories(draw: st.DrawFn, max_turns: int = 8) -> list[Message]:
    """A history from its first user message on; the last tool loop may be open."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, max_turns))):
        messages.append(user(draw(words)))
        for number in range(draw(st.integers(0, 3))):
            messages.extend(draw(tool_rounds(turn * 10 + number)))
        if draw(st.booleans()):
            messages.append(assistant(draw(words)))
    if draw(st.integers(0, 3)) == 0:
        open_round = draw(tool_rounds(999))
        messages.extend(open_round[: draw(st.integers(1, len(open_round)))])
    return messages
