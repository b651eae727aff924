"""Reading as a whole: which format it is, what is refused, and what a large file costs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enfold import transcripts
from enfold.errors import ConfigError, InputError
from enfold.jsontext import dumps, loads
from enfold.transcripts import FORMATS, read, sniff
from tests.transcripts.files import EXAMPLES, assistant, claude_user, lines, outline, user


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_is_recognised(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(EXAMPLES[name])
    assert sniff(path) == name
    assert sniff(EXAMPLES[name]) == name
    assert {transcript.format for transcript in read(path)} == {name}


def test_every_format_has_an_example() -> None:
    assert set(EXAMPLES) == set(FORMATS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_format_may_be_named(name: str) -> None:
    assert list(read(EXAMPLES[name], format=name)) == list(read(EXAMPLES[name]))


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(
    "start", [b"\xef\xbb\xbf", b"\n\n", b"  "], ids=["mark", "lines", "spaces"]
)
def test_leading_whitespace_and_marks_do_not_matter(name: str, start: bytes) -> None:
    found = list(read(start + EXAMPLES[name]))
    assert [outline(transcript) for transcript in found] == [
        outline(transcript) for transcript in read(EXAMPLES[name])
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_line_ends_and_encodings_do_not_matter(name: str) -> None:
    expected = [outline(transcript) for transcript in read(EXAMPLES[name])]
    windows = EXAMPLES[name].replace(b"\n", b"\r\n")
    wide = EXAMPLES[name].decode().encode("utf-16")
    assert [outline(transcript) for transcript in read(windows)] == expected
    assert [outline(transcript) for transcript in read(wide)] == expected


def test_a_log_may_begin_with_events_that_tell_nothing() -> None:
    opening = [{"type": "file-history-snapshot", "snapshot": {}}] * 30
    assert sniff(lines([*opening, claude_user("u1", None, "hi")])) == "claude-code"


def test_a_log_of_which_only_one_line_is_whole() -> None:
    assert sniff(lines([{"type": "mode"}]) + b'{"type":') == "json"
    [transcript] = read(lines([claude_user("u1", None, "hi")]) + b'{"type":')
    assert outline(transcript) == ["user: hi"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"prompt": "hi", "n": 1}', "it begins with an object of prompt, n"),
        (b"{}", "it begins with an empty object"),
        (b"[1, 2]", "it begins with a number"),
        (b'["hi"]', "it begins with text"),
        (b'{"a": 1}\n{"a": 2}\n', "it begins with an object of a"),
    ],
    ids=["a prompt", "nothing", "numbers", "texts", "lines"],
)
def test_a_file_of_no_format_is_refused(content: bytes, words: str) -> None:
    for refuse in (sniff, lambda origin: list(read(origin))):
        with pytest.raises(InputError) as caught:
            refuse(content)
        assert str(caught.value) == f"none of {', '.join(FORMATS)}: {words}"


def test_a_name_that_is_not_a_format() -> None:
    with pytest.raises(ConfigError, match="no format 'yaml'; available: auto, "):
        list(read(b"[]", format="yaml"))


def test_a_name_that_is_not_a_dialect() -> None:
    with pytest.raises(ConfigError, match="no dialect 'morse'"):
        list(read(EXAMPLES["json"], dialect="morse"))


def test_logs_have_a_dialect_of_their_own() -> None:
    assert list(read(EXAMPLES["codex"], dialect="openai-responses"))
    with pytest.raises(ConfigError, match="a codex file is of the dialect 'openai-responses'"):
        list(read(EXAMPLES["codex"], dialect="openai"))


def test_only_a_log_may_end_in_the_middle() -> None:
    with pytest.raises(InputError, match=r"^line 3, column \d+: not valid JSON"):
        list(read(EXAMPLES["conversations"] + b'{"messages": ['))


def test_the_public_names() -> None:
    assert transcripts.__all__ == sorted(
        transcripts.__all__, key=lambda name: (not name.isupper(), name)
    )
    assert all(hasattr(transcripts, name) for name in transcripts.__all__)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "m1", "user", "text"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "type", "role", "content"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def outcome(content: bytes, wanted: str = "auto") -> list[list[str]] | str:
    """Return the messages of the file, or the error; anything else is a fault."""
    try:
        return [outline(transcript) for transcript in read(content, format=wanted)]
    except InputError as error:
        return str(error)


@st.composite
def damaged_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of some format in which one value, at any depth, is another."""
    name = draw(st.sampled_from(sorted(EXAMPLES)))
    content = EXAMPLES[name]
    in_lines = content.count(b"\n") > 1
    root = [loads(line) for line in content.splitlines()] if in_lines else loads(content)
    at: Any = root
    while True:
        key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not (isinstance(at[key], dict | list) and at[key]) or draw(st.integers(0, 3)) == 0:
            break
        at = at[key]
    at[key] = draw(JSON)
    return name, lines(root) if in_lines else dumps(root)


@settings(max_examples=300)
@given(damaged_files())
def test_a_damaged_file_reads_or_is_refused_in_our_words(case: tuple[str, bytes]) -> None:
    name, content = case
    assert outcome(content) != ""
    assert outcome(content, name) != ""


@settings(max_examples=200)
@given(st.sampled_from(sorted(EXAMPLES)), st.data())
def test_any_bytes_read_or_are_refused_in_our_words(name: str, data: st.DataObject) -> None:
    content = bytearray(EXAMPLES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for damaged in (bytes(content), bytes(content[:cut])):
        assert outcome(damaged) != ""


def test_errors_contain_no_messages() -> None:
    secret = "the-secret-word"
    content = lines([{"messages": [user(secret), {"role": secret, "content": [secret]}]}] * 2)
    with pytest.raises(InputError) as caught:
        list(read(content, dialect="openai"))
    assert caught.value.place == "line 1: messages[1].role"


MEASURE = """
import resource, sys
from enfold.transcripts import read

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

count = messages = 0
for transcript in read(sys.argv[1]):
    before = before if count else peak()
    count += 1
    messages += len(transcript.entries)
print(count, messages, peak() - before)
"""


def test_a_large_file_is_never_held_as_a_whole(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    turns = [user("x" * 500, id="m0"), *(assistant("y" * 500, id=f"m{n}") for n in range(1, 600))]
    line = dumps({"id": "c", "messages": turns}) + b"\n"
    count = 100_000_000 // len(line) + 1
    path = tmp_path / "large.jsonl"
    with path.open("wb") as stream:
        for _ in range(count):
            stream.write(line)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    read_count, messages, growth = map(int, done.stdout.split())
    assert path.stat().st_size > 100_000_000
    assert (read_count, messages) == (count, count * 600)
    assert growth < 20_000_000


def test_a_stream_that_cannot_be_wound_back() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def read(self, _size: int | None = -1) -> bytes:
            return super().read(7)

    assert len(list(read(Pipe(EXAMPLES["conversations"])))) == 2


def test_every_file_of_real_conversations_reads(data_dir: Path) -> None:
    files = sorted(data_dir.glob("*.jsonl"))
    assert files
    for path in files:
        expected = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        found = list(read(path))
        assert [transcript.id for transcript in found] == [item["id"] for item in expected]
        assert [len(transcript.entries) for transcript in found] == [
            len(item["messages"]) for item in expected
        ]
