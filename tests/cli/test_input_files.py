"""Reading: every file that cannot be read is named with the place, in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from enfold.cli.files import open_input
from tests.cli.conftest import Enfold

DAMAGED: dict[str, tuple[bytes, list[str]]] = {
    "broken JSON": (b'[{"role": "user",\n "content": }]', ["line 2, column 13", "not valid JSON"]),
    "cut off": (b'[{"role":"user","content":"hi"}', ["line 1, column 32", "not valid JSON"]),
    "a broken line": (
        b'{"messages":[]}\n{"messages":[}\n',
        ["line 2, column 14", "not valid JSON"],
    ),
    "a wrong type": (
        b'[{"role":"user","content":"a"},{"role":"user","content":5}]',
        ["messages[1].content", "found a number"],
    ),
    "a role that is none": (b'[{"role":5,"content":"a"}]', ["messages[0].role"]),
    "not UTF-8": (b'[{"role":"user","content":"\xff"}]', ["line 1", "byte 0xff at offset 27"]),
    "Latin-1 on line 3": (b'{"messages":[]}\n\n{"a":"\xe9"}', ["line 3", "0xe9"]),
    "binary": (b"\x7fELF\x02\x01\x01\0\0\0", ["a binary file"]),
    "gzip": (b"\x1f\x8b\x08\0abc", ["gzip"]),
    "zip": (b"PK\x03\x04abc", ["zip"]),
    "empty": (b"", ["the file is empty"]),
    "only spaces": (b" \n\t\n", ["the file is empty"]),
    "a text": (b"Dear diary", ["neither JSON nor JSON Lines", "'D'"]),
    "a number": (b"42", ["neither JSON nor JSON Lines"]),
    "another object": (b'{"name":"x","size":3}', ["an object of name, size"]),
    "deeply nested": (b"[" * 100_000 + b"]" * 100_000, ["nested too deeply"]),
    "deep in a message": (
        b'[{"role":"user","content":"hi","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
        ["nested too deeply"],
    ),
    "NaN": (b'[{"role":"user","content":"hi","x":NaN}]', ["NaN"]),
    "a number beyond all": (b'[{"role":"user","content":"hi","x":1e999}]', ["1e999"]),
}
COMMANDS = [["count"], ["condense"], ["import"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(("data", "words"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_named_with_its_place(
    command: list[str], data: bytes, words: list[str], stored: Enfold, tmp_path: Path
) -> None:
    file = tmp_path / "chat.json"
    file.write_bytes(data)
    stored(*command, file).refused(f"enfold: {file}", *words)
    stored(*command, stdin=data).refused("enfold: standard input", *words)


@pytest.mark.parametrize("command", [*COMMANDS, ["count", "--text"]], ids=" ".join)
def test_a_path_that_is_no_file_is_named(
    command: list[str], stored: Enfold, tmp_path: Path
) -> None:
    missing = tmp_path / "missing.json"
    stored(*command, missing).refused(f"{missing}: cannot be read: No such file")
    folder = stored(*command, tmp_path)
    if command == ["condense"]:
        folder.refused("many files need a folder for the results: name it with --out")
    else:
        folder.refused(f"{tmp_path}: cannot be read: Is a directory")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
)
@pytest.mark.parametrize("command", [*COMMANDS, ["count", "--text"]], ids=" ".join)
def test_a_file_without_permission_is_named(
    command: list[str], stored: Enfold, tmp_path: Path
) -> None:
    closed = tmp_path / "closed.json"
    closed.write_bytes(b"[]")
    closed.chmod(0)
    stored(*command, closed).refused(f"{closed}: cannot be read: Permission denied")


def test_a_dialect_that_is_none_is_named(enfold: Enfold, sample: Path) -> None:
    enfold("count", sample, "--dialect", "klingon").refused("no dialect 'klingon'", "openai")


def test_a_dialect_that_it_is_not_is_an_error(enfold: Enfold) -> None:
    contents = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'
    assert enfold("count", "--dialect", "gemini", stdin=contents).code == 0
    enfold("count", "--dialect", "openai", stdin=contents).refused("standard input", "messages")


def test_nothing_is_waited_for_on_a_closed_input(enfold: Enfold) -> None:
    enfold("count", stdin=None).refused("standard input", "name a file or pipe one in")


def test_a_hyphen_is_standard_input(enfold: Enfold) -> None:
    text = b'[{"role":"user","content":"hello"}]'
    assert enfold("count", "-", "--json", stdin=text) == enfold("count", "--json", stdin=text)
    assert enfold("count", "--", "-", stdin=text).code == 0


def test_a_byte_order_mark_and_utf_16_are_read(enfold: Enfold) -> None:
    text = '[{"role":"user","content":"héllo"}]'
    plain = enfold("count", "--json", stdin=text.encode())
    assert plain.json["messages"] == 1
    assert enfold("count", "--json", stdin=text.encode("utf-8-sig")).out == plain.out
    assert enfold("count", "--json", stdin=text.encode("utf-16")).out == plain.out


def test_an_input_can_be_read_twice(enfold: Enfold, sample: Path) -> None:
    given = open_input(str(sample))
    first = [transcript.entries for transcript in given.transcripts(dialect="auto")]
    assert first == [transcript.entries for transcript in given.transcripts(dialect="auto")]
    assert len(first) == 1
