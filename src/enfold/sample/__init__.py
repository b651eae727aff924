"""A long sample conversation, for the demo and for experiments."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from enfold.jsontext import loads
from enfold.messages import Message, Text, ToolCall, ToolResult

TITLE = "Planning the harbour festival"

_LINES = 40
"""Lines of a tool result."""


def sample_messages(repeats: int = 3) -> tuple[Message, ...]:
    """Return the conversation; more repeats make its middle longer, with more days of work."""
    rounds = loads(files(__package__).joinpath("rounds.json").read_bytes())
    return tuple(
        message
        for day in range(repeats)
        for number, values in enumerate(rounds)
        for message in _round(f"{day}-{number}", **values)
    )


def _round(id: str, question: str, tool: str, target: str, answer: str) -> Iterator[Message]:
    yield Message("user", (Text(question),))
    if tool:
        yield Message("assistant", (ToolCall(f"call-{id}", tool, {"target": target}),))
        output = _output(tool, target)
        yield Message("tool", (ToolResult(f"call-{id}", (Text(output),), name=tool),))
    yield Message("assistant", (Text(answer),))


def _output(tool: str, target: str) -> str:
    """Return a long tool result."""
    lines = {
        "read_file": "{n:>4}  row {n}: item {n}, {a} euros, paid {b} of {c}, note {target}",
        "search": "{n:>3}. supplier {a} in Lindvik, {b} euros, rated {c} of 900 for {target}",
        "run": "[{n:>3}] step {n}: processed {a} records in {b} ms, {c} left ({target})",
    }[tool]
    return "\n".join(
        lines.format(n=n, a=n * 37 % 911, b=n * 53 % 577, c=n * 71 % 883, target=target)
        for n in range(1, _LINES + 1)
    )
