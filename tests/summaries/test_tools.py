"""Digests: tool calls in one line each."""

from __future__ import annotations

import pytest

from enfold.messages import Attachment, Data, Text, ToolCall, ToolResult
from enfold.summaries.local.units import (
    MAX_TARGETS,
    OUTCOME_LENGTH,
    TARGET_LENGTH,
    ToolDigest,
    describe_arguments,
    digest_result,
    join_digests,
)


def _line(output: str, *, is_error: bool = False, name: str = "bash") -> str:
    call = ToolCall("1", name, {"command": "make"})
    return digest_result(call, ToolResult("1", (Text(output),), is_error), 0).text


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", "bash make"),
        ("built in 3.1s", "bash make → built in 3.1s"),
        ("a\nb\nc", "bash make"),
        ("...\n3 failed, 145 passed in 12s\n", "bash make → failed: 3 failed, 145 passed in 12s"),
        ("x\nld: error: no symbol foo\nstop\n", "bash make → ld: error: no symbol foo"),
        ('{"id": "R7", "by": {"name": "Al"}, "n": [1, 2]}', "bash make → id=R7, name=Al, n=1, 2"),
        ("-rw- 1 dev 3377 Mar 3 09:12 errors.py\n-rw- 1 dev 12 Mar 3 09:12 x.py", "bash make"),
        ("[1, 2, 3]", "bash make → 3 entries"),
        ("     1→import os\n     2→x = 12 files\n", "bash make"),
        ("Error: no such branch", "bash make → failed: Error: no such branch"),
        ("Traceback (last call):\n  File x\nKeyError: 'k'", "bash make → failed: KeyError: 'k'"),
    ],
    ids=ascii,
)  # fmt: skip
def test_outcomes(output: str, line: str) -> None:
    assert _line(output) == line


def test_an_error_is_named_by_its_line() -> None:
    output = "step one ok\nfatal: not a git repository\nhint: run git init"
    assert _line(output, is_error=True) == "bash make → failed: fatal: not a git repository"
    assert _line("the user said no", is_error=True) == "bash make → failed: the user said no"


def test_only_the_ends_of_a_huge_output_are_read() -> None:
    output = "start\n" + "filler line\n" * 100_000 + "2 errors\n"
    assert _line(output) == "bash make → failed: 2 errors"


def test_lines_are_short() -> None:
    call = ToolCall("1", "bash", {"command": "echo " + "x" * 500})
    line = digest_result(call, ToolResult("1", (Text("Error: " + "y " * 200),)), 0).text
    assert len(line) < TARGET_LENGTH + OUTCOME_LENGTH + 30


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ({"path": "a.py", "content": "x = 1"}, "a.py"),
        ({"user_id": "omar_3817"}, "user_id=omar_3817"),
        ('{"query": "pumps"}', "pumps"),
        ("not json {", "not json {"),
        ({}, ""),
        ({"ids": ["A", "B"], "deep": {"on": True, "off": None}}, "ids=A, B, on=True"),
        ("[1]", "[1]"),
    ],
    ids=ascii,
)
def test_targets(arguments: str | dict[str, object], target: str) -> None:
    assert describe_arguments(arguments) == target


def test_structured_results_and_attachments() -> None:
    result = ToolResult("1", (Data({"seat": "12A"}), Attachment("x.png")), name="book")
    assert digest_result(None, result, 0).text == "book → seat=12A"


def test_an_unknown_call_without_output_has_no_line() -> None:
    assert digest_result(None, ToolResult("1"), 0).text == ""


def _read(number: int, folder: str = "/srv/payments/") -> ToolDigest:
    return ToolDigest(number, "read", f"{folder}f{number}.py", "", failed=False)


def test_calls_without_an_outcome_share_a_line() -> None:
    other = ToolDigest(9, "bash", "make", "2 errors", failed=False)
    lines = [each.text for each in join_digests([_read(1), other, _read(2), _read(1), _read(3)])]
    assert lines == ["bash make → 2 errors", "read /srv/payments/{f1.py, f2.py, f3.py}"]


def test_a_line_lists_a_few() -> None:
    lines = [
        each.text
        for each in join_digests([_read(number, "x/") for number in range(MAX_TARGETS + 1)])
    ]
    assert lines[0] == "read " + ", ".join(f"x/f{number}.py" for number in range(MAX_TARGETS))
    assert lines[1] == f"read x/f{MAX_TARGETS}.py"


def test_a_marker_is_no_outcome() -> None:
    assert _line("⟨ File content already provided above: see src/a.py ⟩") == "bash make"
    assert _line("first\n⟨ ... truncated, 45 of 60 lines ⟩\nlast") == "bash make"
