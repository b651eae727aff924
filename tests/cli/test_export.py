"""`enfold export`: an imported session comes out byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from enfold import wire
from enfold.jsontext import dumps, loads
from enfold.messages import Conversation
from enfold.sample import sample_messages
from tests.cli.conftest import Enfold

ODD = (
    b'[{"role":"user","content":"\\u0000 \\ud800 \xe6\xb8\xaf \xf0\x9f\x8e\x89 \xc2\x85 \x7f"},'
    b'{"role":"assistant","content":"\\u001b[31m","x":{"b":1,"a":[1.5e-7,123456789012345678901]}}]'
)


def test_odd_bytes_are_exact(stored: Enfold, tmp_path: Path) -> None:
    stored("import", "--session", "odd", stdin=ODD)
    assert stored("export", "odd").out == ODD + b"\n"
    out = tmp_path / "odd.json"
    outcome = stored("export", "odd", "--out", out)
    assert (outcome.code, outcome.out, outcome.err) == (0, b"", b"")
    assert out.read_bytes() == ODD + b"\n"


@pytest.mark.parametrize("dialect", wire.DIALECTS)
def test_every_dialect_comes_out_as_it_went_in(dialect: str, stored: Enfold) -> None:
    messages = dumps(wire.render(Conversation(sample_messages(1)), dialect))
    stored("import", "--dialect", dialect, "--session", "s", stdin=messages)
    assert stored("export", "s").out == messages + b"\n"


def test_summarized_messages_are_exported_too(festival: Enfold, sample: Path) -> None:
    assert "Summarized" in festival("sessions", "compress", "festival").text
    assert festival("export", "festival").out == sample.read_bytes() + b"\n"


def test_an_archive_carries_a_session_to_another_database(festival: Enfold, tmp_path: Path) -> None:
    archive = tmp_path / "archive.json"
    festival("sessions", "rename", "festival", "Harbour")
    assert festival("export", "festival", "--all-branches", "--out", archive).code == 0
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert festival("import", archive, "--db", other).text == "festival\n"
    (session,) = festival("sessions", "--json", "--db", other).json
    assert session["title"] == "Harbour"
    assert festival("export", "festival", "--db", other).out == festival("export", "festival").out


def test_a_session_that_does_not_exist_is_named(stored: Enfold, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    stored("export", "nobody", "--out", out).refused("there is no session 'nobody'")
    assert not out.exists()


def test_a_file_that_cannot_be_written_is_named(festival: Enfold, tmp_path: Path) -> None:
    place = tmp_path / "no" / "folder.json"
    festival("export", "festival", "--out", place).refused(f"{place}: cannot be written")


def test_an_archive_is_one_json_object(festival: Enfold) -> None:
    archive = festival("export", "festival", "--all-branches").json
    assert archive["id"] == "festival"
    assert [loads(dumps(entry["message"]))["role"] for entry in archive["entries"][:2]] == [
        "user",
        "assistant",
    ]
