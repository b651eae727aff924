from __future__ import annotations

from typing import Any

import pytest

from enfold.errors import DialectError
from enfold.jsontext import dumps
from enfold.transcripts import read
from tests.transcripts.files import ARCHIVE, archived, outline, the_one, user


def archive(**fields: Any) -> bytes:
    return dumps({**ARCHIVE, **fields})


def test_an_archive_is_a_session() -> None:
    transcript = the_one(archive())
    assert (transcript.format, transcript.id, transcript.title) == ("archive", "s", "Greetings")
    assert outline(transcript) == ["user: hi", "assistant: hello"]


def test_every_message_keeps_its_own_dialect() -> None:
    block = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    other = {**archived("c", "b", block), "dialect": "anthropic"}
    transcript = the_one(archive(entries=[*ARCHIVE["entries"], other], tip="c"))
    assert [entry.message.dialect for entry in transcript.entries] == [
        "openai",
        "openai",
        "anthropic",
    ]


def test_a_child_may_stand_before_its_parent() -> None:
    transcript = the_one(archive(entries=ARCHIVE["entries"][::-1]))
    assert [entry.id for entry in transcript.entries] == ["a", "b"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"version": 2}, "version: version 2: expected 1"),
        ({"entries": 7}, "entries: expected an array"),
        ({"tip": "z"}, "tip: no message has the id 'z'"),
        ({"tip": ["b"]}, "tip: expected text"),
        ({"entries": [archived("a", None, user("hi"))] * 2}, "entries: two messages have the same"),
        ({"entries": [archived("b", "z", user("hi"))]}, "entries[0].parent_id: no message has"),
        ({"entries": [archived("b", "b", user("hi"))]}, "the parents of message 'b' form a circle"),
        (
            {"entries": [{**archived("b", None, user("hi")), "dialect": "morse"}]},
            "entries[0].dialect: no dialect 'morse'",
        ),
        ({"entries": [archived("b", None, {"role": 7})]}, "entries[0].message.role: expected text"),
    ],
    ids=[
        "a newer version",
        "no entries",
        "an unknown tip",
        "no tip",
        "an id twice",
        "an unknown parent",
        "a circle",
        "no dialect",
        "no message",
    ],
)
def test_errors_name_the_place(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(DialectError) as caught:
        list(read(archive(**fields)))
    assert str(caught.value).startswith(words)
