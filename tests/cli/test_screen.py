"""The screen: plain in a pipe, tables on a terminal, and nothing that steers it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.cli.screen import complain, confirm, put, put_json, put_table, working
from enfold.errors import ConfigError, EnfoldError
from enfold.jsontext import loads
from tests.cli.processes import run_in_pipes, run_on_terminal
from tests.cli.streams import Full, Stream, standing_in

STEERING = "red\x1b[31m \x07bell \x9b2J \x7f"


def test_an_error_is_one_line_whatever_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"first\nsecond\r\n third {STEERING}")
    printed = capsys.readouterr().err
    assert printed.startswith("enfold: first second third red\\x1b[31m \\x07bell")
    assert printed.count("\n") == 1
    assert not set(printed[:-1]) & set("\n\r\x1b\x07\x9b\x7f")


def test_results_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    put(f"{STEERING}\n\tindented")
    assert capsys.readouterr().out == "red\\x1b[31m \\x07bell \\x9b2J \\x7f\n\tindented\n"


@given(st.text())
def test_json_is_exact_whatever_the_text(text: str) -> None:
    with standing_in("stdout", Stream("ascii")) as stream:
        put_json({"said": text})
    assert loads(stream.written) == {"said": text}


def test_text_without_a_sign_in_the_encoding_is_escaped() -> None:
    with standing_in("stdout", Stream("ascii")) as stream:
        put("12 → 3")
    assert stream.written == b"12 \\u2192 3\n"


def test_a_table_lines_up_wide_and_combining_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [("港湾祭り", "1"), ("plain", "1,000"), ("e\u0301te\u0301", "20")]
    put_table("three", ("name", "tokens"), rows)
    assert capsys.readouterr().out == (
        "three\n"
        "name      tokens\n"
        "港湾祭り       1\n"
        "plain      1,000\n"
        "e\u0301te\u0301           20\n"
    )


def test_a_table_sets_only_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    put_table("t", ("a", "b", "c"), [("x", "1", "y"), ("long", "22.5%", "")])
    assert capsys.readouterr().out == "t\na         b  c\nx         1  y\nlong  22.5%\n"


def test_a_cell_stays_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    put_table("t", ("a", "b"), [("one\ntwo", f"[/x] {STEERING}")])
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("one two  [/x] red\\x1b[31m")


def test_a_table_without_rows_has_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    put_table("none", ("a", "b"), [])
    assert capsys.readouterr().out == "none\na  b\n"


def _on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, cell: str) -> str:
    """A table of one cell, as a terminal of that width gets it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    with standing_in("stdout", Stream(terminal=True)) as stream:
        put_table("title [b]", ("name", "tokens"), [(cell, "12")])
    return stream.written.decode()


def test_a_terminal_gets_lines_and_the_same_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _on_terminal(monkeypatch, 80, f"[/x] {STEERING}")
    assert "─" in shown
    assert "title [b]" in shown
    assert "[/x] red\\x1b[31m \\x07bell" in shown
    assert "\x07" not in shown


def test_a_cell_wider_than_the_terminal_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "n" * 90 in _on_terminal(monkeypatch, 80, "n" * 90)
    assert "─" not in _on_terminal(monkeypatch, 80, "n" * 90)


def test_a_terminal_sees_what_is_being_done() -> None:
    with (
        standing_in("stderr", Stream(terminal=True)) as stream,
        working("Counting [x]") as progress,
    ):
        progress("3 conversations")
    assert "Counting [x]" in stream.written.decode()


def test_a_pipe_sees_nothing_of_it() -> None:
    with standing_in("stderr", Stream()) as stream, working("Counting") as progress:
        progress("3 conversations")
    assert stream.written == b""


def test_a_failed_write_is_an_error() -> None:
    with standing_in("stdout", Full()), pytest.raises(EnfoldError, match="No space left"):
        put("result")


@pytest.mark.parametrize(
    ("typed", "agreed"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)],
    ids=repr,
)
def test_only_a_yes_is_a_yes(typed: str, agreed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with standing_in("stdin", Stream(terminal=True, text=typed)):
        assert confirm("Delete?") is agreed
    assert capsys.readouterr().err == "Delete? [y/N]\n"


def test_confirm_without_a_terminal_requires_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="--yes"):
        confirm("Delete everything?")


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Two conversations, one with an id that would be trouble on a terminal."""
    file = tmp_path / "chats.jsonl"
    file.write_text(
        '{"id":"[bold]a[/b] \\u001b[31m","messages":[{"role":"user","content":"hi"}]}\n'
        f'{{"id":"{"x" * 250}","messages":[{{"role":"user","content":"hi"}}]}}\n'
    )
    return file


def test_a_pipe_gets_neither_colour_nor_lines(chats: Path, tmp_path: Path) -> None:
    db = f"sqlite:///{tmp_path / 'a.db'}"
    imported = run_in_pipes("import", chats, "--db", db)
    listed = run_in_pipes("sessions", "--db", db)
    for done in (imported, listed):
        assert done.code == 0
        assert "\x1b" not in done.text + done.stderr_text
        assert not re.search("[\u2500-\u257f]", done.text + done.stderr_text)
    assert "x" * 250 in listed.text


def test_a_terminal_gets_a_table(sample: Path) -> None:
    code, shown = run_on_terminal("count", sample)
    assert code == 0
    assert "─" in shown
    assert re.search(r"text +[\d,]+ +\d+\.\d%", shown)


def test_a_table_too_wide_for_the_terminal_leaves_names_whole(chats: Path, tmp_path: Path) -> None:
    db = f"sqlite:///{tmp_path / 'a.db'}"
    assert run_in_pipes("import", chats, "--db", db).code == 0
    code, shown = run_on_terminal("sessions", "--db", db, columns=60)
    assert code == 0
    assert "x" * 250 in shown
    assert "[bold]a[/b] \\x1b[31m" in shown


def test_a_terminal_sees_how_far_it_is(chats: Path, tmp_path: Path) -> None:
    db = f"sqlite:///{tmp_path / 'a.db'}"
    code, shown = run_on_terminal("import", chats, "--db", db, columns=300)
    assert code == 0
    assert f"Reading {chats}" in shown
    assert f"Storing {chats}: 2 of 2 conversations" in shown
