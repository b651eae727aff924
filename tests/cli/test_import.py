"""`enfold import`: sessions from files, all of a file or nothing."""

from __future__ import annotations

from pathlib import Path

from enfold.jsontext import dumps, loads
from tests.cli.conftest import Enfold

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello!"}]


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _line(id: str) -> bytes:
    return dumps({"id": id, "messages": CHAT}) + b"\n"


def test_every_conversation_becomes_a_session(stored: Enfold) -> None:
    outcome = stored("import", stdin=_line("a") + _line("b"))
    assert (outcome.code, outcome.text, outcome.stderr_text) == (
        0,
        "a\nb\n",
        "2 sessions imported\n",
    )
    listed = stored("sessions", "--json").json
    assert {session["id"] for session in listed} == {"a", "b"}
    assert {session["messages"] for session in listed} == {2}


def test_the_names_come_as_json_too(stored: Enfold) -> None:
    outcome = stored("import", "--json", stdin=_line("a") + _line("b"))
    assert outcome.json == ["a", "b"]
    assert outcome.err == b""


def test_a_conversation_can_be_named(stored: Enfold) -> None:
    assert stored("import", "--session", "mine", stdin=dumps(CHAT)).text == "mine\n"
    assert stored("import", stdin=dumps(CHAT)).text == "imported-1\n"


def test_an_import_recognises_stored_messages(stored: Enfold) -> None:
    stored("import", stdin=_line("a"))
    assert stored("import", stdin=_line("a")).code == 0
    (session,) = stored("sessions", "--json").json
    assert session["messages"] == 2


def test_several_conversations_cannot_have_one_name(stored: Enfold) -> None:
    outcome = stored("import", "--session", "mine", stdin=_line("a") + _line("b"))
    outcome.refused("standard input holds 2 conversations", "--session")
    assert stored("sessions", "--json").json == []


def test_a_file_with_a_mistake_leaves_nothing_behind(stored: Enfold, tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_bytes(_line("a") + _line("b") + b'{"messages":[5]}\n')
    stored("import", file).refused(f"{file} line 3", "messages[0]")
    assert stored("sessions", "--json").json == []


def test_a_name_that_cannot_be_stored_leaves_nothing_behind(stored: Enfold) -> None:
    outcome = stored("import", stdin=_line("a") + _line("x" * 300))
    outcome.refused("standard input: session 'xxx", "at most 256 characters")
    assert stored("sessions", "--json").json == []


def test_values_nested_too_deeply_are_refused(stored: Enfold) -> None:
    deep = "[" * 900 + "]" * 900
    call = f'{{"type":"tool_use","id":"c","name":"f","input":{{"a":{deep}}}}}'
    message = f'{{"role":"assistant","content":[{call}]}}'
    stored("import", stdin=f"[{message}]".encode()).refused("nested too deeply")


def test_branches_come_along(stored: Enfold) -> None:
    messages = [
        {"id": "1", "parent_id": None, "role": "user", "content": _text("a")},
        {"id": "2", "parent_id": "1", "role": "assistant", "content": _text("x")},
        {"id": "3", "parent_id": "1", "role": "assistant", "content": _text("y")},
        {"id": "4", "parent_id": "3", "role": "user", "content": _text("b")},
    ]
    body = {"id": "tree", "messages": messages}
    assert stored("import", stdin=dumps(body)).text == "tree\n"
    archive = loads(stored("export", "tree", "--all-branches").out)
    assert len(archive["entries"]) == 4
    assert len(loads(stored("export", "tree").out)) == 3


def test_the_database_can_be_named(enfold: Enfold, tmp_path: Path) -> None:
    one, two = (f"sqlite:///{tmp_path / name}" for name in ("one.db", "two.db"))
    enfold("import", "--db", one, stdin=_line("a"))
    assert len(enfold("sessions", "--db", one, "--json").json) == 1
    assert enfold("sessions", "--db", two, "--json").json == []
