"""JSON with fewer blanks, and arrays of like objects as tables."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.encodings import decode_json, encode_json, encode_tables

ROWS = [{"id": n, "name": f"n{n}", "tags": ["a", "é"]} for n in range(4)]


@pytest.mark.parametrize("indent", [1, 2, 3, 4, "\t"])
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_blanks_between_values_go(indent: Any, ensure_ascii: bool) -> None:
    text = json.dumps({"items": ROWS}, indent=indent, ensure_ascii=ensure_ascii)
    found = encode_json(text)
    assert found is not None
    assert "\n" not in found[0]
    assert json.loads(found[0]) == {"items": ROWS}
    assert decode_json(*found) == text


def test_json_among_other_lines_is_found() -> None:
    text = f"$ cat a.json\n{json.dumps(ROWS, indent=2)}\n$ exit\n{{\nint x;\n}}\n"
    found = encode_json(text)
    assert found is not None
    shown = json.dumps(ROWS, separators=(",", ":"), ensure_ascii=False)
    assert found[0] == f"$ cat a.json\n{shown}\n$ exit\n{{\nint x;\n}}\n"
    assert decode_json(*found) == text


def test_lone_surrogates_stay_escaped() -> None:
    text = json.dumps({"a": "\ud800", "b": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, indent=2)
    found = encode_json(text)
    assert found is not None
    assert found[0].isascii()
    assert decode_json(*found) == text


def test_like_objects_become_a_table() -> None:
    text = json.dumps({"items": ROWS, "next": None}, separators=(",", ":"))
    found = encode_tables(text)
    assert found is not None
    table = {"columns": ["id", "name", "tags"], "rows": [list(row.values()) for row in ROWS]}
    assert json.loads(found[0]) == {"items": table, "next": None}
    assert decode_json(*found) == text


def test_an_object_that_looks_like_a_table_comes_back() -> None:
    value = {"a": {"columns": ["x"], "rows": [[1]]}, "b": ROWS}
    text = json.dumps(value)
    found = encode_tables(text)
    assert found is not None
    assert decode_json(*found) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.10,\n "b":2}',
        '{"a": 1, "a": 2, "filler": "so that it is long enough to be looked at"}',
        "[1, 2",
        "{\nnot json\n}",
        '{\n"unusual":    1\n}',
        "",
    ],
    ids=repr,
)
def test_json_that_cannot_be_reproduced_stays_unchanged(text: str) -> None:
    assert encode_json(text) is None


def test_objects_that_differ_in_keys_or_their_order_are_no_table() -> None:
    unlike = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}]
    assert encode_tables(json.dumps(unlike)) is None
    assert (
        encode_tables(json.dumps([{}, {}, {}, {"filler": "long enough to be looked at"}])) is None
    )


keys = st.sampled_from(["a", "b", "c", "é"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=20,
)
tables = st.builds(
    lambda names, rows: [dict(zip(names, row, strict=False)) for row in rows],
    st.lists(keys, min_size=1, max_size=3, unique=True),
    st.lists(st.lists(values, min_size=3, max_size=3), min_size=3, max_size=5),
)


@given(values | tables, st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans())
def test_any_json_comes_back(value: Any, indent: Any, ensure_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)
    for encode in (encode_json, encode_tables):
        found = encode(text)
        if found is not None:
            assert decode_json(*found) == text
