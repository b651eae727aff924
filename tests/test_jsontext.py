"""JSON text: all JSON values come back, and errors name their place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import InputError
from enfold.jsontext import dump_text, dumps, fields, items, loads

WITHOUT_SURROGATES = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    WITHOUT_SURROGATES,
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(WITHOUT_SURROGATES, inner)
)


@given(VALUES)
def test_every_value_comes_back(value: Any) -> None:
    assert loads(dumps(value)) == value
    assert loads(dump_text(value)) == value
    assert json.loads(dumps(value)) == value


@given(st.lists(VALUES))
def test_an_arrays_items_are_its_values(values: list[Any]) -> None:
    assert [loads(item) for item in items(dumps(values))] == values


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "\u2028", "😀"])
def test_odd_characters_come_back(text: str) -> None:
    assert loads(dumps({text: [text]})) == {text: [text]}
    assert list(map(loads, items(dumps([text])))) == [text]


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**60])
def test_large_integers_stay_integers(number: int) -> None:
    assert loads(str(number)) == number
    assert dumps(number) == str(number).encode()


def test_the_order_of_keys_is_kept_and_nothing_is_escaped_needlessly() -> None:
    assert dumps({"b": "ü", "a": "東京"}) == '{"b":"ü","a":"東京"}'.encode()


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", '["\\ud800",1e999]']
)
def test_an_invalid_number_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not valid JSON"):
        loads(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1"),
        ('{"a": 1,}', "line 1, column"),
        ('[1,\n2,\n"open', "line 3, column 1"),
        (b'["a",\n"\xff"]', "line 2"),
    ],
)
def test_errors_name_the_place(text: str | bytes, place: str) -> None:
    with pytest.raises(InputError) as caught:
        loads(text)
    assert caught.value.place.startswith(place)


def test_a_part_of_a_file_is_placed_in_the_file() -> None:
    with pytest.raises(InputError) as caught:
        loads('{"a"}', first_line=41)
    assert caught.value.place.startswith("line 41, column")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000], ids=["arrays", "objects"])
def test_a_bottomless_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        loads(text)
    with pytest.raises(InputError, match="nested too deeply"):
        list(items(f"[{text}".encode()))


def test_a_bottomless_value_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InputError, match="nested too deeply"):
        dumps(value)


def test_a_text_with_a_lone_surrogate_of_its_own_is_read_or_refused() -> None:
    assert loads('["\ud800"]') == ["\ud800"]
    with pytest.raises(InputError, match="not valid JSON"):
        loads("\ud800")


def test_the_fields_of_an_object_are_still_json() -> None:
    assert fields(b'{"b": [1, 2.50], "a":"\\u00e9"}') == {"b": b"[1, 2.50]", "a": b'"\\u00e9"'}
    assert loads(fields(b'{"a": "\\ud800"}')["a"]) == "\ud800"
    for wrong in (b"[1]", b"7", b'["\\ud800"]'):
        with pytest.raises(InputError, match="expected a JSON object"):
            fields(wrong)
    with pytest.raises(InputError, match="not valid JSON"):
        fields(b'{"a":')
    with pytest.raises(InputError, match="not UTF-8: byte 0xdd"):
        fields(b'{"\xdd": 1}')
