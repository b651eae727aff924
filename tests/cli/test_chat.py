"""`enfold chat` as a process: in pipes, on a terminal, interrupted and killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Enfold
from tests.cli.processes import run_in_pipes
from tests.cli.terminals import terminal

ALTERNATE_SCREEN = "\x1b[?1049h"
ORDINARY_SCREEN = b"\x1b[?1049l"
CTRL_C = b"\x03"


@pytest.fixture
def db(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


def test_without_a_profile_a_question_says_how_to_add_one(db: str) -> None:
    outcome = run_in_pipes("chat", "--db", db, stdin=b"Why?\n")
    # The question is stored before a model is looked for, so the first line names the session.
    place, error = outcome.err.splitlines(keepends=True)
    replace(outcome, err=error).refused("No model is set up", "enfold profiles add")
    (session,) = run_in_pipes("sessions", "--json", "--db", db).json
    assert place.decode() == f"Continue with `enfold chat {session['id']}`\n"
    assert session["title"] == "Why?"


def test_without_a_profile_commands_work(festival: Enfold) -> None:
    assert "messages found." in festival("chat", "festival", stdin=b"/search euros\n").text
    summarized = festival("chat", "festival", stdin=b"/summarize\n")
    assert summarized.text.startswith("Summarized ")
    assert "by the built-in summarizer" in summarized.text


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        ((), b"", "the message is empty"),
        ((), b"\xff", "not UTF-8"),
        ((), b"/sumarize", "/summarize"),
        (("--window", "10"), b"Why?", "--window"),
    ],
    ids=["nothing", "no text", "no such command", "no such window"],
)
def test_an_invalid_question_is_refused(
    arguments: tuple[str, ...], stdin: bytes, words: str, stored: Enfold
) -> None:
    stored("chat", *arguments, stdin=stdin).refused(words)
    assert stored("sessions", "--json").json == []


def test_the_terminal_chat_opens_shows_help_and_closes(db: str) -> None:
    with terminal("chat", "harbour", "--db", db) as screen:
        place = screen.wait_for(ALTERNATE_SCREEN)
        place = screen.wait_for("enfold profiles add", after=place)
        screen.type(b"/help\r")
        screen.wait_for("/acknowledge", after=place)
        screen.type(CTRL_C)
        assert screen.wait() == 0
    assert ORDINARY_SCREEN in screen.shown
    assert b"Traceback" not in screen.shown


def test_an_empty_unnamed_chat_is_not_stored(db: str) -> None:
    with terminal("chat", "--db", db) as screen:
        screen.wait_for("enfold profiles add")
        screen.type(CTRL_C)
        assert screen.wait() == 0
    assert run_in_pipes("sessions", "--db", db, "--json").json == []
