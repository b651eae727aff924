"""Every encoding: decoding gives any text back, and encoding never makes it longer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.encodings import ENCODINGS, decode, encode
from enfold.errors import RestoreError
from enfold.jsontext import dumps, loads

FRAGMENTS = [
    *("\n", "\n", "\n", "\r", "\r\n", " ", "\t", "  ", "    "),
    *("     1→", "     2→", "    10→", "1\t", "2\t", "3\t", "1:", "2:", "007:", "12-", "1|", "2|"),
    *("src/app.py:12:", "src/app.py:13:", "src/app.py-14-", "/home/a/b.py", "/home/a/c/d.py"),
    *("\x1b[32m", "\x1b[0m", "\x1b[", "\x1b[2K", "10%", "100%"),
    *('{"a": 1}', "[\n", "{\n", "]\n", "}\n", '  "a": [],\n', "[1, 2]", '"', "\\n"),
    *("./a:\n", "./a/b:\n", "b.py\n", "\n\n", "a/b/c\n", "a/b/d\n", "a/b\n", "/a\n", "a/"),
    *("-rw-r--r-- 1 me us 7 Oct 24  2024 a\n", "drwxr-xr-x 2 me us 40 Oct  2 10:05 b\n"),
    *('  File "/a/b.py", line 3, in f\n', '  File "c/b.py", line 4, in <g>\n'),
    *("<a>", "</a>", "<a>1</a>", "<output>\n", "\n</output>", ": "),
    *("same line of a log, again and again", "⟨ the line above 3 more times ⟩", "⟨", "⟩"),
    *("é", "漢字", "→", "\u2028", "\ud800", "x", "word"),
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


@pytest.mark.parametrize("name", list(ENCODINGS))
@given(text=texts | st.text(max_size=60))
def test_decoding_gives_back_what_was_encoded(name: str, text: str) -> None:
    found = ENCODINGS[name].encode(text)
    if found is not None:
        encoded, how = found
        assert decode(name, encoded, loads(dumps(how))) == text


@pytest.mark.parametrize("name", list(ENCODINGS))
@given(text=texts)
def test_an_encoding_never_makes_the_text_longer(name: str, text: str) -> None:
    found = encode(name, text)
    assert found is None or len(found[0]) <= len(text)


@pytest.mark.parametrize("name", list(ENCODINGS))
@given(text=texts)
def test_a_text_that_was_encoded_is_left_alone_or_can_be_encoded_again(
    name: str, text: str
) -> None:
    once = encode(name, text)
    twice = encode(name, once[0]) if once is not None else None
    if once is not None and twice is not None:
        assert decode(name, *twice) == once[0]


@pytest.mark.parametrize(
    ("name", "text", "how"),
    [
        ("line_numbers", "1\ta", [[0, 1, "wide", "→"]]),
        ("line_numbers", "1\ta", [[0, 1]]),
        ("paths", "a", [[7, 1, True]]),
        ("colours", "a", {}),
        ("progress", "a", [[3, "x\r"]]),
        ("runs", "a", [[5, 2]]),
        ("json", "[1", [[0, 2, {}, []]]),
        ("tables", '{"columns":["a"],"rows":[[1,2]]}', [[0, 32, {"indent": None}, [[]]]]),
        ("rot13", "a", None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_invalid_encoding_is_an_error(name: str, text: str, how: Any) -> None:
    with pytest.raises(RestoreError, match=name):
        decode(name, text, how)


@pytest.mark.parametrize(("name", "text"), [("blanks", " \t "), ("colours", "\x1b[0m\x1b[0m")])
def test_a_text_never_becomes_empty(name: str, text: str) -> None:
    assert ENCODINGS[name].encode(text) is not None
    assert encode(name, text) is None
