from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import InputError
from enfold.jsontext import dumps
from enfold.transcripts.source import TranscriptSource, located, opened, split, within


def source(content: bytes, chunk: int = 1 << 20) -> TranscriptSource:
    chunks = (content[at : at + chunk] for at in range(0, len(content), chunk))
    return split("chats.json", chunks)


def values(content: bytes, chunk: int = 1 << 20) -> list[Any]:
    return [record.value() for record in source(content, chunk).records]


def error_of(content: bytes) -> str:
    with pytest.raises(InputError) as caught:
        values(content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "layout", "expected"),
    [
        (b'{"a": 1}', "value", [{"a": 1}]),
        (b'{\n  "a": 1\n}\n', "value", [{"a": 1}]),
        (b"[1, 2]\n", "array", [1, 2]),
        (b'[\n  {"a": 1},\n  {"a": 2}\n]', "array", [{"a": 1}, {"a": 2}]),
        (b"[]", "array", []),
        (b'{"a": 1}\n{"a": 2}\n', "lines", [{"a": 1}, {"a": 2}]),
        (b'\n{"a": 1}\n\n\n{"a": 2}\n\n', "lines", [{"a": 1}, {"a": 2}]),
        (b"[1]\n[2, 3]", "lines", [[1], [2, 3]]),
        (b'{"a": 1}\r\n{"a": 2}\r\n', "lines", [{"a": 1}, {"a": 2}]),
        (b'["\\ud800"]', "array", ["\ud800"]),
    ],
    ids=[
        "a line",
        "a pretty value",
        "an array",
        "a pretty array",
        "an empty array",
        "lines",
        "blank lines",
        "lines of arrays",
        "Windows line ends",
        "a lone surrogate",
    ],
)
def test_layouts(content: bytes, layout: str, expected: list[Any]) -> None:
    assert source(content).layout == layout
    assert values(content) == expected


@pytest.mark.parametrize(
    "encoded",
    [
        codecs.BOM_UTF8 + '{"a": "ä😀"}'.encode(),
        '{"a": "ä😀"}'.encode("utf-16"),
        codecs.BOM_UTF16_BE + '{"a": "ä😀"}'.encode("utf-16-be"),
    ],
    ids=["UTF-8 with a mark", "UTF-16", "UTF-16, the other end first"],
)
@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_encodings(encoded: bytes, chunk: int) -> None:
    assert values(encoded, chunk) == [{"a": "ä😀"}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text(), JSON, max_size=3), min_size=2, max_size=6),
    st.integers(1, 40),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.booleans(),
)
def test_lines_are_the_same_in_whatever_chunks_they_come(
    objects: list[dict[str, Any]], chunk: int, end: bytes, last_ended: bool
) -> None:
    content = end.join(dumps(each) for each in objects) + (end if last_ended else b"")
    records = list(source(content, chunk).records)
    assert [record.value() for record in records] == objects
    assert [record.is_ended for record in records] == [True] * (len(objects) - 1) + [last_ended]


def test_a_record_knows_its_place() -> None:
    lines = list(source(b'{"a": 1}\n\n{"a": 2}\n').records)
    assert [record.place for record in lines] == ["chats.json line 1", "chats.json line 3"]
    items = list(source(b"[1, 2]").records)
    assert [record.place for record in items] == ["chats.json [0]", "chats.json [1]"]
    [value] = source(b'{"a": 1}').records
    assert value.place == "chats.json"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "chats.json: the file is empty"),
        (b" \n\t\n", "chats.json: the file is empty"),
        (codecs.BOM_UTF8, "chats.json: the file is empty"),
        (b"role: user", "chats.json: neither JSON nor JSON Lines: it begins with 'r'"),
        (b'{"a": 1}\n{"a": }\n', "chats.json line 2, column 7: not valid JSON: Expecting value"),
        (b'{"a": 1}\n{"a": NaN}\n', "chats.json line 2: not valid JSON: NaN is not a JSON number"),
        (b'{"a"\n: [1,\n2]]', "chats.json line 3, column 3: not valid JSON: "),
        (b'[\n{"a": 1}\n{"a": 2}\n]', "chats.json line 3, column 1: not valid JSON: "),
        (b"\n\n[1, 2", "chats.json line 3, column 6: not valid JSON: "),
        (b'[{"a": 1},]', "chats.json line 1, column "),
        (b'{"a": 1}\n{"a": 1,}\n', "chats.json line 2, column "),
        (b"[1, 1e999]", "chats.json [1]: not valid JSON: the number 1e999 is out of range"),
        (b'{"a": 1}\n{"a": "\xe4"}\n', "chats.json line 2: not UTF-8: byte 0xe4 at offset 16"),
        (b'["\xff\xff"]', "chats.json line 1: not UTF-8: byte 0xff at offset 2"),
        ('{"a": 1}'.encode("utf-16")[:-1], "chats.json: not valid UTF-16: truncated data"),
        (b"PK\x03\x04\x14\x00", "chats.json: a zip archive; unpack it and give a file from it"),
        (b"\x1f\x8b\x08\x00", "chats.json: compressed with gzip; unpack it first"),
        (b"\x28\xb5\x2f\xfd\x04", "chats.json: compressed with zstd; unpack it first"),
        (b"SQLite format 3\x00", "chats.json: an SQLite database, not a file of conversations"),
        (b"\x7fELF\x00\x01", "chats.json: a binary file, neither JSON nor JSON Lines"),
        (b"[" * 200_000, "chats.json: nested too deeply"),
        (b'{"a": 1}\n' + b'{"a":' * 200_000 + b"\n", "chats.json line 2: nested too deeply"),
    ],
    ids=[
        "empty",
        "blank",
        "only a mark",
        "not JSON",
        "a broken line",
        "no number",
        "a broken value",
        "a missing comma",
        "a cut-off array",
        "a trailing comma in an array",
        "a trailing comma in a line",
        "too large a number",
        "Latin-1",
        "no UTF-8 in an array",
        "half a UTF-16 character",
        "zip",
        "gzip",
        "zstd",
        "SQLite",
        "binary",
        "deep",
        "a deep line",
    ],
)
def test_errors_name_the_place_and_what_is_wrong(content: bytes, words: str) -> None:
    assert error_of(content).startswith(words)


@pytest.mark.parametrize("chunk", range(1, 9))
def test_the_place_of_a_wrong_byte_does_not_depend_on_the_chunks(chunk: int) -> None:
    content = '{"a": "ä"}\n{"b": "'.encode() + b'\xc3("}\n'
    with pytest.raises(InputError) as caught:
        values(content, chunk)
    assert str(caught.value) == "chats.json line 2: not UTF-8: byte 0xc3 at offset 19"


def test_bytes_a_path_and_a_stream_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[1, 2]")
    for origin in (b"[1, 2]", path, str(path), io.BytesIO(b"[1, 2]")):
        with opened(origin) as found:
            assert [record.value() for record in found.records] == [1, 2]
    with path.open("rb") as stream, opened(stream) as found:
        assert found.file == str(path)


def test_a_stream_is_left_open() -> None:
    stream = io.BytesIO(b"[1]")
    with opened(stream) as found:
        list(found.records)
    assert not stream.closed


@pytest.mark.parametrize("name", ["missing.json", "."], ids=["missing", "a folder"])
def test_a_file_that_cannot_be_opened(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read") as caught, opened(path):
        pass
    assert caught.value.place == path


def test_a_stream_that_fails() -> None:
    class FailingStream(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    words = "cannot be read: Input/output error"
    with pytest.raises(InputError, match=words), opened(FailingStream()):
        pass


def test_lines_are_read_only_when_asked_for() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b'{"a": 1}\n' * 1_000

    assert next(split("", endless()).records).value() == {"a": 1}


def test_places_are_joined_from_the_outside_in() -> None:
    with pytest.raises(InputError) as caught, located("a.json line 3"), within("messages[2]"):
        raise InputError("expected text", place="content")
    assert str(caught.value) == "a.json line 3: messages[2].content: expected text"
    with pytest.raises(InputError) as caught, located(""):
        raise InputError("expected text", place="content")
    assert str(caught.value) == "content: expected text"
