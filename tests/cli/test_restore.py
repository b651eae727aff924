"""`enfold restore`: condensed conversations come back byte for byte, in every dialect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from enfold import wire
from enfold.jsontext import dumps, loads
from enfold.messages import Conversation, Message, Text
from enfold.sample import sample_messages
from enfold.strategies.contract import BUILT_IN
from tests.cli.conftest import Enfold

ODD = 'null \0, lone \\ud800, wide 港, "quotes", \u2028 and 🎉'
BODIES: dict[str, Callable[[Any], Any]] = {
    "openai": lambda messages: {"model": "m", "messages": messages, "n": 1e-7},
    "openai-responses": lambda messages: {"model": "m", "input": messages, "store": False},
    "anthropic": lambda messages: {"system": "Be brief.", "messages": messages, "max_tokens": 9},
    "gemini": lambda messages: {"contents": messages, "generationConfig": {"topK": 3}},
    "langchain": lambda messages: {"messages": messages, "thread": "t"},
    "enfold": lambda messages: {"id": "c", "title": "Festival", "messages": messages},
}
Files: TypeAlias = tuple[Path, Path, Path]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A conversation, what it is condensed to, and its ledger."""
    return tmp_path / "chat.json", tmp_path / "small.json", tmp_path / "chat.ledger"


def _render_sample(dialect: str, repeats: int = 1) -> Any:
    odd = Message("user", (Text(ODD),))
    return wire.render(Conversation((odd, *sample_messages(repeats))), dialect)


@pytest.mark.parametrize("shape", ["array", "body"])
@pytest.mark.parametrize("dialect", wire.DIALECTS)
def test_every_dialect_comes_back_byte_for_byte(
    dialect: str, shape: str, enfold: Enfold, files: Files
) -> None:
    chat, small, ledger = files
    messages = _render_sample(dialect)
    value = BODIES[dialect](messages) if shape == "body" else messages
    original = dumps(value) + b"\n"
    chat.write_bytes(original)
    done = enfold(
        "condense", chat, "--dialect", dialect, "--ledger", ledger, "--out", small, "--json"
    )
    assert done.code == 0, done.stderr_text
    small.write_bytes(dumps(loads(small.read_bytes())["messages"]))
    assert small.stat().st_size < len(original) / 2
    restored = enfold("restore", small, "--ledger", ledger)
    assert (restored.code, restored.err) == (0, b"")
    assert restored.out == original


@pytest.mark.parametrize("strategy", BUILT_IN)
def test_every_strategy_can_be_undone(strategy: str, enfold: Enfold, files: Files) -> None:
    chat, small, ledger = files
    chat.write_bytes(dumps(_render_sample("anthropic", repeats=3)) + b"\n")
    arguments = ["--strategy", strategy, "--ledger", ledger, "--out", small]
    assert enfold("condense", chat, *arguments).code == 0
    assert small.stat().st_size < chat.stat().st_size
    assert enfold("restore", small, "--ledger", ledger).out == chat.read_bytes()


def _condensed(enfold: Enfold, files: Files) -> list[Any]:
    chat, small, ledger = files
    chat.write_bytes(dumps(_render_sample("openai")) + b"\n")
    assert enfold("condense", chat, "--ledger", ledger, "--out", small).code == 0
    condensed = loads(small.read_bytes())
    assert isinstance(condensed, list)
    return condensed


def test_restore_keeps_newer_messages(enfold: Enfold, files: Files) -> None:
    chat, small, ledger = files
    since = [{"role": "user", "content": "And now?"}, {"role": "assistant", "content": "Done."}]
    small.write_bytes(dumps([*_condensed(enfold, files), *since]))
    assert enfold("restore", small, "--ledger", ledger).json == [
        *loads(chat.read_bytes()),
        *since,
    ]


def test_restore_reads_and_writes_the_given_files(enfold: Enfold, files: Files) -> None:
    chat, small, ledger = files
    _condensed(enfold, files)
    expected = chat.read_bytes()
    assert enfold("restore", "-", "--ledger", ledger, stdin=small.read_bytes()).out == expected
    outcome = enfold("restore", small, "--ledger", ledger, "--out", small)
    assert (outcome.code, outcome.out) == (0, b"")
    assert small.read_bytes() == expected


ALTERATIONS: dict[str, Callable[[list[Any]], Any]] = {
    "the order": lambda messages: messages[::-1],
    "one less": lambda messages: messages[1:],
    "cut at the end": lambda messages: messages[:-1],
    "one more before": lambda messages: [{"role": "user", "content": "x"}, *messages],
    "nothing left": lambda _: [],
}


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS.keys())
def test_another_conversation_is_refused(
    alter: Callable[[list[Any]], Any], enfold: Enfold, files: Files
) -> None:
    chat, small, ledger = files
    small.write_bytes(dumps(alter(_condensed(enfold, files))))
    out = chat.with_name("restored.json")
    outcome = enfold("restore", small, "--ledger", ledger, "--out", out)
    outcome.refused(f"{small}: ", "the ledger belongs to", "was altered")
    assert not out.exists()


def test_unaltered_messages_are_restored_with_exit_code_1(enfold: Enfold, files: Files) -> None:
    chat, small, ledger = files
    condensed = _condensed(enfold, files)
    condensed[-1] = {**condensed[-1], "content": "altered"}
    small.write_bytes(dumps(condensed))
    outcome = enfold("restore", small, "--ledger", ledger)
    assert outcome.code == 1
    assert f"not restored: index {len(condensed) - 1}" in outcome.err.decode()
    assert loads(outcome.out) == [*loads(chat.read_bytes())[:-1], condensed[-1]]


LEDGERS: dict[str, tuple[bytes, list[str]]] = {
    "not JSON": (b"{", ["chat.ledger line 1, column 2", "not valid JSON"]),
    "empty": (b"", ["chat.ledger", "not valid JSON"]),
    "no ledger": (b"[]", ["chat.ledger: ledger version None"]),
    "of a later version": (b'{"version":99}', ["chat.ledger: ledger version 99: expected 1"]),
    "a part of one": (b'{"version":1,"changes":[]}', ["chat.ledger: not a ledger", "digest"]),
}


@pytest.mark.parametrize(("data", "words"), LEDGERS.values(), ids=LEDGERS.keys())
def test_an_invalid_ledger_is_named(
    data: bytes, words: list[str], enfold: Enfold, files: Files
) -> None:
    _, small, ledger = files
    _condensed(enfold, files)
    ledger.write_bytes(data)
    enfold("restore", small, "--ledger", ledger).refused(*words)


def test_files_that_are_not_there_are_named(enfold: Enfold, files: Files) -> None:
    _, small, ledger = files
    _condensed(enfold, files)
    missing = small.with_name("missing")
    enfold("restore", small, "--ledger", missing).refused(f"{missing}: cannot be read")
    enfold("restore", missing, "--ledger", ledger).refused(f"{missing}: cannot be read")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[{", ["small.json line 1, column 3", "not valid JSON"]),
        (b"5", ["small.json: expected an array of messages"]),
        (b'{"a":1}', ["small.json: expected an array of messages"]),
    ],
    ids=["broken", "a number", "no messages"],
)
def test_an_invalid_conversation_is_named(
    data: bytes, words: list[str], enfold: Enfold, files: Files
) -> None:
    _, small, ledger = files
    _condensed(enfold, files)
    small.write_bytes(data)
    enfold("restore", small, "--ledger", ledger).refused(*words)


def _tree() -> list[dict[str, Any]]:
    """Two branches that part after the first question; the second is long, and the active one."""
    first = {"id": "q", "parent_id": None, "role": "user", "content": "Shall we?"}
    other = {"id": "o", "parent_id": "q", "role": "assistant", "content": "No."}
    branch = [
        {
            "id": f"m{turn}",
            "parent_id": f"m{turn - 1}" if turn else "q",
            "role": role,
            "content": text,
        }
        for turn in range(30)
        for role, text in [(("assistant", "user")[turn % 2], f"Turn {turn}: " + "word " * 60)]
    ]
    return [first, other, *branch]


def test_branches_that_were_left_out_come_back(enfold: Enfold, files: Files) -> None:
    chat, small, ledger = files
    tree = {"id": "tree", "messages": _tree()}
    chat.write_bytes(dumps(tree) + b"\n")
    outcome = enfold("condense", chat, "--ledger", ledger, "--out", small)
    assert outcome.code == 0
    assert "1 message of other branches left out; the ledger has them" in outcome.stderr_text
    assert "No." not in small.read_text()
    assert enfold("restore", small, "--ledger", ledger).out == chat.read_bytes()
