"""Sessions of an agent with planted repeats, by hand and generated; and what is done with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from enfold import ledger
from enfold import wire as dialects
from enfold.condensation import Condensation, EditedMessage, Plan, validate
from enfold.encodings import prefix
from enfold.jsontext import dumps, loads
from enfold.ledger import Ledger
from enfold.messages import Attachment, Conversation, Data, Message, Text, ToolCall, ToolResult
from enfold.retention import Retention, split, zones
from enfold.strategies.lossless import shorten
from enfold.strategies.lossless.config import LosslessConfig
from enfold.testing import assistant, user
from enfold.tokens import count_messages

TOKENIZER = "o200k_base"
NOTHING_KEPT = Retention("messages", 1)


class Session:
    """A session that is written call by call."""

    def __init__(self) -> None:
        self.messages: list[Message] = [user("Please look at this project and repair it.")]
        self._calls = 0

    def act(
        self,
        name: str,
        arguments: dict[str, Any] | str,
        *parts: Text | Data | Attachment | str,
        is_error: bool = False,
    ) -> Session:
        """A call and what came of it."""
        self._calls += 1
        id = f"call_{self._calls}"
        content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
        self.messages.append(assistant("", ToolCall(id, name, arguments)))
        self.messages.append(Message("tool", (ToolResult(id, content, is_error),)))
        return self

    def read(self, path: str, text: str, **arguments: Any) -> Session:
        """A file that was read."""
        return self.act("read", {"path": path, **arguments}, text)

    def run(self, command: str, text: str, *, is_error: bool = False) -> Session:
        """A command that was run."""
        return self.act("bash", {"command": command}, text, is_error=is_error)

    def end(self) -> list[Message]:
        """The session, answered and gone on with, so that no loop is open and all is old."""
        return [*self.messages, assistant("Done."), user("Thanks. What next?"), assistant("This.")]


def numbered(lines: Sequence[str], first: int = 1, width: int = 6, separator: str = "→") -> str:
    """Lines as a tool shows them."""
    return "\n".join(prefix(n, width, separator) + line for n, line in enumerate(lines, first))


def code(name: str, size: int) -> list[str]:
    """Lines of a made-up module, all different from each other and from other modules'."""
    return [f"    {name}_{n} = compute({name!r}, {n * 7919}) + offset_{n % 5}" for n in range(size)]


def plan_for(messages: Iterable[Message], retention: Retention = NOTHING_KEPT) -> Plan:
    """The plan of condensing them."""
    all_messages = tuple(messages)
    counts = tuple(count_messages(all_messages, TOKENIZER))
    return Plan(
        all_messages,
        counts,
        split(all_messages, counts, retention, room=0),
        TOKENIZER,
        zones=zones(counts, retention),
    )


def view(plan: Plan, answer: Condensation) -> list[Message]:
    """The messages that the answer shows."""
    return [
        entry.message if isinstance(entry, EditedMessage) else plan.messages[entry.index]
        for entry in answer.entries
        if not hasattr(entry, "indexes")
    ]


def condense(messages: Iterable[Message], **config: Any) -> list[Message]:
    """The messages after the strategy, its answer checked in every way."""
    plan = plan_for(messages)
    answer = shorten(plan, LosslessConfig(**config))
    check(plan, answer)
    return view(plan, answer)


def check(plan: Plan, answer: Condensation) -> None:
    """Valid, counted exactly, never larger, and exactly restored through a file."""
    after = view(plan, answer)
    assert sum(count_messages(after, plan.tokenizer)) + plan.previous_tokens == answer.tokens(plan)
    if answer.is_unchanged:
        assert answer.tokens(plan) == plan.tokens
        return
    validate(plan, answer)
    assert answer.tokens(plan) < plan.tokens
    assert answer.steps[0].tokens_before == plan.tokens
    assert answer.steps[-1].tokens_after == answer.tokens(plan)
    conversation = Conversation(plan.messages, dialect=plan.messages[0].dialect)
    restores(conversation, answer, after)


def restores(conversation: Conversation, answer: Condensation, after: list[Message]) -> Ledger:
    """The ledger, after it was shown to lead back byte for byte and to hold recipes alone."""
    before = dialects.render(conversation)
    wire = dialects.render(replace(conversation, messages=tuple(after)))
    edits = {edit.index: edit.shortenings for edit in answer.edits}
    written = ledger.write(before, wire, edits)
    assert len(written.changes) <= sum(not shortenings for shortenings in edits.values())
    read = Ledger.from_json(loads(dumps(written.as_json())))
    assert dumps(ledger.restore(loads(dumps(wire)), read)) == dumps(before)
    return written


def results(messages: Iterable[Message]) -> list[str]:
    """The texts that tools returned, in order."""
    found: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                found += (each.text for each in part.parts if isinstance(each, Text))
    return found


FILES = {f"src/{name}.py": code(name, 40) for name in ("app", "store", "server")}
STYLES = [(0, ""), (6, "→"), (6, "\t"), (0, "\t"), (0, ":"), (4, "|"), (0, "-")]
ODD = [
    "⟨ lines 1-20 as in read src/app.py ⟩",
    "⟨ Reference: see read a.py ⟩",
    "ends with a tab\t",
    "CRLF at the end\r",
    "\x1b[31mred\x1b[0m",
    "10%\r50%\r100%",
    "漢字とかな交じり文 é → \u2028",
    '{"a": 1, "b": [1, 2, 3]}',
    "x" * 700,
    "",
]


LISTED = [f"{path.removesuffix('.py')}/part_{n}.py" for path in FILES for n in range(8)]
STEPS = [
    *("read", "read", "read", "edit", "write", "run", "again"),
    *("list", "fetch", "build", "todo", "odd"),
]


@st.composite
def sessions(draw: st.DrawFn) -> list[Message]:
    """A session in which files are read, edited and read again, and commands repeat themselves."""
    session = Session()
    files = {path: list(lines) for path, lines in FILES.items()}
    outputs: list[str] = []
    for _ in range(draw(st.integers(2, 9))):
        _step(draw, session, files, outputs)
        if draw(st.integers(0, 5)) == 0:
            session.messages.append(assistant("So far so good."))
            session.messages.append(user("Go on."))
    return session.end() if draw(st.integers(0, 4)) else session.messages


def _step(
    draw: st.DrawFn, session: Session, files: dict[str, list[str]], outputs: list[str]
) -> None:
    path = draw(st.sampled_from(sorted(files)))
    lines = files[path]
    match draw(st.sampled_from(STEPS)):
        case "read":
            session.read(path, _looked_at(draw, lines))
        case "edit":
            at = draw(st.integers(0, len(lines)))
            new = draw(st.lists(st.sampled_from(["    return None", "", *ODD]), max_size=3))
            lines[at : at + draw(st.integers(0, 4))] = new
            session.act("edit", {"path": path, "new": "\n".join(new)}, "edited")
        case "write":
            session.act("write", {"path": path, "content": "\n".join(lines)}, "written")
        case "run":
            outputs.append(_output(draw, lines))
            session.run("make test", outputs[-1], is_error=draw(st.booleans()))
        case "again" if outputs:
            session.run("make test", draw(st.sampled_from(outputs)))
        case "list":
            names = draw(st.slices(len(LISTED)))
            session.act("glob", {"pattern": "**"}, "\n".join(LISTED[names]))
        case "fetch":
            session.act("fetch", {"url": "https://example.org"}, _fetched(draw))
        case "build":
            session.run("make", _built(draw))
        case "todo":
            tasks = [f"[ ] {line}" for line in lines[: draw(st.integers(1, 12))]]
            text = "\n".join(tasks)
            given = {"tasks": tasks if draw(st.booleans()) else text}
            session.act("todo_write", given, f"The list is now:\n{text}")
        case _:
            odd = draw(st.lists(st.sampled_from(ODD), max_size=6))
            session.act("tool", "not { json", "\n".join(odd), Attachment("a.png", "image/png"))


def _fetched(draw: st.DrawFn) -> str:
    """Records as JSON, in some layout: one long line, or a table in the making."""
    first = draw(st.integers(0, 20))
    rows = [{"id": n, "name": f"item {n}", "on": n % 2 == 0} for n in range(first, first + 25)]
    layout: dict[str, Any] = draw(
        st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"indent": "\t"}])
    )
    return json.dumps({"rows": rows, "next": None} if draw(st.booleans()) else rows, **layout)


def _built(draw: st.DrawFn) -> str:
    """Return terminal output: a progress bar, colours, the same line many times."""
    steps = "".join(f"\r{n * 5:3}% of everything" for n in range(draw(st.integers(1, 21))))
    colour = draw(st.sampled_from(["", "\x1b[1;32m"]))
    waiting = ["waiting for the lock that another process holds"] * draw(st.integers(1, 8))
    files = [f"{colour}ok{colour and chr(27) + '[0m'} {path}" for path in LISTED]
    return "\n".join([steps, *waiting, *files[draw(st.slices(len(files)))]])


def _looked_at(draw: st.DrawFn, lines: list[str]) -> str:
    first = draw(st.integers(0, max(0, len(lines) - 1)))
    some = lines[first : first + draw(st.integers(0, 60))] if draw(st.booleans()) else lines
    width, separator = draw(st.sampled_from(STYLES))
    return numbered(some, first + 1, width, separator) if separator else "\n".join(some)


def _output(draw: st.DrawFn, lines: list[str]) -> str:
    text = "\n".join(
        ["$ make test", *lines[: draw(st.integers(0, 30))], draw(st.sampled_from(ODD))]
    )
    if draw(st.booleans()):
        ascii_only = draw(st.booleans())
        return json.dumps({"output": text, "metadata": {"exit": 0}}, ensure_ascii=ascii_only)
    return text
