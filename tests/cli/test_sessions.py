"""`enfold sessions`: looked at, compressed, undone, renamed and deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import enfold
from enfold.errors import BlockedError
from tests.cli.conftest import Enfold
from tests.cli.processes import run_on_terminal


def test_an_empty_database_says_what_to_do(stored: Enfold) -> None:
    outcome = stored("sessions")
    assert outcome.code == 0
    assert outcome.text.startswith("0 sessions\n")
    assert "enfold import FILE" in outcome.stderr_text
    assert stored("sessions", "list", "--json").json == []


def test_sessions_are_listed(festival: Enfold) -> None:
    festival("sessions", "rename", "festival", "港湾祭り [red]")
    title, head, row = festival("sessions").text.splitlines()
    assert title == "1 session"
    assert head.split() == ["session", "title", "messages", "tokens", "last", "used"]
    assert row.startswith("festival  港湾祭り [red]")
    (session,) = festival("sessions", "--json").json
    assert session["id"] == "festival"
    assert session["title"] == "港湾祭り [red]"
    assert session["messages"] == 36


def test_a_list_cut_short_says_so(festival: Enfold) -> None:
    festival("import", "--session", "second", stdin=b'[{"role":"user","content":"hi"}]')
    outcome = festival("sessions", "--limit", "1")
    assert outcome.text.startswith("1 session\n")
    assert "second" in outcome.text
    assert "there are more" in outcome.stderr_text
    assert "there are more" not in festival("sessions", "--limit", "2").stderr_text


def test_a_limit_beyond_what_a_database_counts_is_refused(festival: Enfold) -> None:
    festival("sessions", "--limit", "9" * 30).refused("limit: 1000", "too large a number")


def test_the_status_says_how_full_it_is(festival: Enfold) -> None:
    status = festival("sessions", "status", "festival", "--json").json
    assert status["messages"] == 36
    assert status["decision"]["action"] == "keep"
    shown = festival("sessions", "status", "festival").text
    assert shown.startswith(f"festival: {status['decision']['words']}\n")
    assert f"{status['current_token_count']:,} tokens" in shown
    assert "openai:gpt-4o (o200k_base)" in shown


def test_a_dry_run_changes_nothing(festival: Enfold) -> None:
    before = festival("sessions", "status", "festival").out
    outcome = festival("sessions", "compress", "festival", "--dry-run")
    assert outcome.code == 0
    assert outcome.text.startswith("would condense ")
    assert "by the built-in summarizer, no cost" in outcome.text
    preview = festival("sessions", "compress", "festival", "--dry-run", "--json").json
    assert preview["messages"] > 0
    assert festival("sessions", "summaries", "festival", "--json").json == []
    assert festival("sessions", "status", "festival").out == before


def test_a_compression_is_made_shown_and_undone(festival: Enfold) -> None:
    whole = festival("sessions", "status", "festival", "--json").json["current_token_count"]
    done = festival("sessions", "compress", "festival", "--json").json
    assert done["outcome"] == "compressed"
    status = festival("sessions", "status", "festival", "--json").json
    assert status["current_token_count"] == done["tokens_after"] < whole
    (summary,) = festival("sessions", "summaries", "festival", "--json").json
    assert (summary["id"], summary["text"]) == (done["snapshot"], done["summary"])
    assert not summary["undone"]
    assert done["summary"] in festival("sessions", "summaries", "festival").text
    assert festival("sessions", "undo", "festival").text == f"undone: {done['snapshot']}\n"
    (summary,) = festival("sessions", "summaries", "festival", "--json").json
    assert summary["undone"]
    assert ", undone" in festival("sessions", "summaries", "festival").text
    status = festival("sessions", "status", "festival", "--json").json
    assert status["current_token_count"] == whole


def test_the_output_says_how_much_was_summarized(festival: Enfold) -> None:
    outcome = festival("sessions", "compress", "festival", "--keep-tokens", "100")
    assert outcome.code == 0
    assert outcome.text.startswith("Summarized ")
    assert "by the built-in summarizer." in outcome.text


def test_an_unchanged_conversation_is_reported(stored: Enfold) -> None:
    stored("import", "--session", "short", stdin=b'[{"role":"user","content":"hi"}]')
    outcome = stored("sessions", "compress", "short")
    assert outcome.text == "Nothing was summarized: all messages are recent enough to stay.\n"
    assert "would condense nothing" in stored("sessions", "compress", "short", "--dry-run").text
    for command in ("retry", "acknowledge"):
        assert "the session is not paused" in stored("sessions", command, "short").text
    assert stored("sessions", "undo", "short").text == "nothing to undo\n"
    outcome = stored("sessions", "summaries", "short")
    assert (outcome.code, outcome.out) == (0, b"")
    assert "no summary yet" in outcome.stderr_text


def test_a_summary_is_written_again_edited_and_deleted(festival: Enfold) -> None:
    festival("sessions", "compress", "festival", "--keep-tokens", "100")
    again = festival("sessions", "regenerate", "festival")
    assert again.text.startswith("Summarized "), again.stderr_text
    edited = festival("sessions", "edit", "festival", "-", stdin=b"They plan a festival.")
    assert edited.text.startswith("edited: "), edited.stderr_text
    newest = festival("sessions", "summaries", "festival", "--json").json[0]
    assert newest["text"] == "They plan a festival."
    deleted = festival("sessions", "delete-summary", "festival", newest["id"])
    assert deleted.text == f"deleted: {newest['id']}\n"
    texts = [each["text"] for each in festival("sessions", "summaries", "festival", "--json").json]
    assert "They plan a festival." not in texts


def test_a_paused_session_is_retried_or_continued_once(festival: Enfold) -> None:
    festival(
        "profiles",
        "add",
        "gone",
        "--provider",
        "openai",
        "--model",
        "gpt-4o",
        "--key",
        "env:NO_KEY",
    )
    festival("settings", "set", "summarizer", "gone")
    festival("settings", "set", "max_tokens", "2500")

    async def pause() -> None:
        async with enfold.open() as engine:
            with pytest.raises(BlockedError):
                await (await engine.find("festival")).prepare()

    asyncio.run(pause())
    festival("sessions", "retry", "festival").refused("gone", code=4)
    outcome = festival("sessions", "acknowledge", "festival")
    assert "the next request is sent without a compression" in outcome.text
    outcome = festival("sessions", "retry", "festival", "--summarizer", "local")
    assert outcome.code == 0, outcome.stderr_text


def test_a_deleted_session_is_gone(festival: Enfold) -> None:
    festival("sessions", "delete", "festival").refused("'festival'", "--yes")
    assert len(festival("sessions", "--json").json) == 1
    assert festival("sessions", "delete", "festival", "--yes").text == "deleted: festival\n"
    assert festival("sessions", "--json").json == []
    assert festival("search", "--json", "Lindvik").json == []


@pytest.mark.parametrize(("typed", "left"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)], ids=repr)
def test_a_terminal_is_asked_before_a_session_is_deleted(
    typed: bytes, left: int, festival: Enfold
) -> None:
    code, shown = run_on_terminal("sessions", "delete", "festival", typed=typed)
    assert code == 0
    assert "Delete session 'festival' and its whole history? [y/N]" in shown
    assert len(festival("sessions", "--json").json) == left


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["compress"],
        ["compress", "--dry-run"],
        ["summaries"],
        ["undo"],
        ["delete", "--yes"],
        ["delete"],
    ],
    ids=" ".join,
)
def test_a_session_that_does_not_exist_is_named(command: list[str], stored: Enfold) -> None:
    name, *options = command
    stored("sessions", name, "nobody", *options).refused("there is no session 'nobody'")


def test_renaming_needs_a_session(stored: Enfold) -> None:
    stored("sessions", "rename", "nobody", "Title").refused("there is no session 'nobody'")


@pytest.mark.parametrize(
    ("url", "words", "code"),
    [
        ("mysql://x", ["no database engine 'mysql'", "sqlite:///"], 2),
        ("chats.db", ["no database engine", "sqlite:///"], 2),
        ("sqlite:///missing/folder/x.db", ["no folder 'missing/folder'"], 2),
        ("sqlite:///", ["sqlite:///file.db"], 2),
        ("postgresql://127.0.0.1:1/none", ["127.0.0.1", "cannot be reached"], 5),
    ],
    ids=["another engine", "a path", "no folder", "no file", "nobody there"],
)
def test_a_database_that_cannot_be_opened_is_named(
    url: str, words: list[str], code: int, enfold: Enfold
) -> None:
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg", reason="the extra enfold[postgres] is not installed")
    enfold("sessions", "--db", url).refused(*words, code=code)


def test_a_file_that_is_no_database_is_named(enfold: Enfold, sample: Path) -> None:
    before = sample.read_bytes()
    outcome = enfold("sessions", "--db", f"sqlite:///{sample}")
    outcome.refused(str(sample), "it is not an SQLite database", code=5)
    assert sample.read_bytes() == before


def test_a_password_in_the_address_is_not_shown(enfold: Enfold) -> None:
    pytest.importorskip("psycopg", reason="the extra enfold[postgres] is not installed")
    outcome = enfold("sessions", "--db", "postgresql://me:geheim@127.0.0.1:1/none")
    outcome.refused("cannot be reached", code=5)
    assert "geheim" not in outcome.stderr_text
