"""Sample conversations: two that look like life, and one of any length for experiments.

`festival.txt` and `agent.txt` hold the two, a line for each message:

    # 2021-01-11 09:02     the time of the next message
    > text                 a person
    < text                 the model
    % text                 a line of the instructions of a coding agent
    $ tool {"json": …}     a call; the lines with | that follow are its result
    @branch … @main        another branch that follows the message before it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Literal

from enfold.jsontext import loads
from enfold.messages import Message, Text, ToolCall, ToolResult, text_of

SESSION = "sample"
"""The id of the session with the sample conversation."""
AGENT_SESSION = "sample-agent"
"""The id of the session with the sample of a coding agent."""
SESSIONS = (SESSION, AGENT_SESSION)
TITLE = "Planning the harbour festival"
AGENT_TITLE = "Tides: the wrong day west of Greenwich"

_LINES = 40
"""Lines of a tool result."""


@dataclass(frozen=True, slots=True)
class SampleConversation:
    """A conversation and its other branches."""

    messages: tuple[Message, ...]
    branches: tuple[tuple[int, tuple[Message, ...]], ...] = ()
    """The number of messages before each other branch, and the messages of the branch."""


def read_sample(name: Literal["festival", "agent"]) -> SampleConversation:
    """Return one of the two conversations."""
    lines = files(__package__).joinpath(f"{name}.txt").read_text("utf-8").splitlines()
    reader = _ScriptReader()
    for line in lines:
        reader.read(line)
    return SampleConversation(tuple(reader.main), tuple(reader.branches))


class _ScriptReader:
    """Reads the lines of a script into messages."""

    def __init__(self) -> None:
        self.main: list[Message] = []
        self.branches: list[tuple[int, tuple[Message, ...]]] = []
        self._messages = self.main
        self._clock = datetime(2021, 1, 1, tzinfo=UTC)
        self._calls = 0

    def read(self, line: str) -> None:
        """Read one line."""
        sign, text = line[:1], line[2:]
        match sign:
            case "#":
                self._clock = datetime.fromisoformat(text).replace(tzinfo=UTC)
            case ">" | "<":
                self._add(Message("user" if sign == ">" else "assistant", (Text(text),)))
            case "%" | "|":
                self._extend(text, starts=sign == "%")
            case "$":
                self._call(text)
            case "@" if line == "@branch":
                self._messages = []
            case "@":
                self.branches.append((len(self.main), tuple(self._messages)))
                self._messages = self.main

    def _add(self, message: Message) -> None:
        self._messages.append(replace(message, at=self._clock))
        # A person takes longer than a model, and a tool answers at once.
        self._clock += timedelta(seconds=95 if message.role == "assistant" else 7)

    def _call(self, text: str) -> None:
        self._calls += 1
        tool, _, arguments = text.partition(" ")
        id = f"call-{self._calls}"
        self._add(Message("assistant", (ToolCall(id, tool, loads(arguments.encode())),)))
        self._add(Message("tool", (ToolResult(id, (), name=tool),)))

    def _extend(self, line: str, *, starts: bool) -> None:
        """Add a line to the result before it, or to the instructions at the beginning."""
        last = self._messages[-1] if self._messages else None
        if starts and last is None:
            self._add(Message("system", (Text(line),)))
            return
        if last is None:
            return
        part = last.parts[0]
        if isinstance(part, ToolResult):
            shown = "\n".join(filter(None, (text_of(part.parts), line or " ")))
            part = replace(part, parts=(Text(shown),))
        elif isinstance(part, Text):
            part = replace(part, text=f"{part.text}\n{line}")
        self._messages[-1] = replace(last, parts=(part,))


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
