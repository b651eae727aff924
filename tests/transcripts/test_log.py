from __future__ import annotations

import pytest

from enfold.errors import InputError
from enfold.transcripts.source import Log, split


def log(content: bytes) -> Log:
    return Log(split("run.jsonl", [content]))


def test_events_come_with_their_place() -> None:
    events = [(record.at, event) for record, event in log(b'{"n": 1}\n{"n": 2}\n')]
    assert events == [("line 1", {"n": 1}), ("line 2", {"n": 2})]


@pytest.mark.parametrize(
    "unfinished",
    [b'{"n": 3, "text": "so f', b'{"n": 3, "text": "\xc3', b"{"],
    ids=["in a text", "in a character", "at the start"],
)
def test_a_last_line_that_is_still_being_written_is_left_out(unfinished: bytes) -> None:
    running = log(b'{"n": 1}\n{"n": 2}\n' + unfinished)
    assert [event["n"] for _, event in running] == [1, 2]
    assert running.notes == {"truncated": "line 3"}


def test_a_last_line_without_its_end_counts_if_it_is_whole() -> None:
    running = log(b'{"n": 1}\n{"n": 2}')
    assert [event["n"] for _, event in running] == [1, 2]
    assert running.notes == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"n": 1}\n{"n": \n{"n": 3}\n', "run.jsonl line 2, column 6: not valid JSON"),
        (b'{"n": 1}\n{"n": \n', "run.jsonl line 2, column 6: not valid JSON"),
        (b'{"n": 1}\n[2]\n', "run.jsonl line 2: expected an object, found an array"),
    ],
    ids=["in the middle", "at the end, but finished", "no event"],
)
def test_anything_else_that_is_broken_is_an_error(content: bytes, words: str) -> None:
    with pytest.raises(InputError) as caught:
        list(log(content))
    assert str(caught.value).startswith(words)


def test_skipped_lines_are_counted_by_kind() -> None:
    running = log(b'{"n": 1}\n{"n": 2}\n')
    for kind in ("progress", "summary", "progress"):
        running.skip(kind)
    assert running.notes == {"skipped": {"progress": 2, "summary": 1}}
