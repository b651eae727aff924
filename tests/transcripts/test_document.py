from __future__ import annotations

from typing import Any

import pytest

from enfold import wire
from enfold.errors import DialectError, InputError
from enfold.jsontext import dumps
from enfold.transcripts import read
from tests.transcripts.files import assistant, lines, outline, the_one, user

TURNS = [user("hi"), assistant("hello")]


@pytest.mark.parametrize(
    "content",
    [dumps(TURNS), lines(TURNS), dumps({"model": "m", "messages": TURNS})],
    ids=["an array", "lines", "a body"],
)
def test_the_file_is_one_conversation(content: bytes) -> None:
    transcript = the_one(content)
    assert transcript.format == "json"
    assert outline(transcript) == ["user: hi", "assistant: hello"]


def test_a_single_message_is_a_conversation_of_one() -> None:
    assert outline(the_one(dumps(user("hi")))) == ["user: hi"]


def test_no_messages_are_a_conversation_too() -> None:
    transcript = the_one(b"[]")
    assert (transcript.entries, transcript.tip, transcript.leaves) == ((), None, ())
    assert transcript.conversation().messages == ()


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai", {"model": "m", "messages": TURNS, "tools": []}),
        ("anthropic", {"model": "m", "max_tokens": 9, "system": "Be brief.", "messages": TURNS}),
        ("openai-responses", {"model": "m", "instructions": "Be brief.", "input": TURNS}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    ],
    ids=["openai", "anthropic", "openai-responses", "gemini"],
)
def test_a_body_is_rendered_as_it_came(dialect: str, body: dict[str, Any]) -> None:
    transcript = the_one(dumps(body), dialect=dialect)
    assert transcript.dialect == dialect
    assert wire.render(transcript.conversation()) == body


def test_an_array_is_rendered_as_an_array() -> None:
    assert wire.render(the_one(dumps(TURNS), dialect="openai").conversation()) == TURNS


def test_a_body_keeps_its_other_fields() -> None:
    body = {"model": "m", "system": "Be brief.", "messages": TURNS, "user": "ada"}
    transcript = the_one(dumps(body), dialect="anthropic")
    assert transcript.system is not None
    assert transcript.extras == {"model": "m", "system": "Be brief.", "user": "ada"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"messages": 1}', "messages: expected an array, found a number"),
        (
            b'[{"role": "user", "content": "a"}, 2]',
            "messages[1]: expected an object, found a number",
        ),
        (b'[{"role": "user", "content": 2}]', "messages[0].content: "),
        (
            b'{"messages": [{"role": "user", "content": [{"type": "text"}]}]}',
            "messages[0].content[0]",
        ),
    ],
    ids=["no array", "no object", "no text", "a block without its text"],
)
def test_errors_name_the_place(content: bytes, words: str) -> None:
    with pytest.raises(DialectError) as caught:
        list(read(content, dialect="openai"))
    assert str(caught.value).startswith(words)


def test_errors_name_the_file(tmp_path: Any) -> None:
    path = tmp_path / "body.json"
    path.write_bytes(b'{"messages": [{"role": "nobody", "content": ""}]}')
    with pytest.raises(InputError) as caught:
        list(read(path, dialect="openai"))
    assert caught.value.place == f"{path}: messages[0].role"
