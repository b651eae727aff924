"""Texts inside JSON values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.jsontext import Path, text_at, texts_within, with_text_at

values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def test_texts_are_found_in_order_with_their_paths() -> None:
    value = {"a": ["x", 1, {"b": "y"}], "c": "z", "d": None}
    assert list(texts_within(value)) == [(("a", 0), "x"), (("a", 2, "b"), "y"), (("c",), "z")]
    assert list(texts_within("bare")) == [((), "bare")]


@given(values)
def test_every_text_is_where_its_path_leads(value: Any) -> None:
    for path, text in texts_within(value):
        assert text_at(value, path) == text


@given(values)
def test_a_text_can_be_replaced_without_changing_the_value(value: Any) -> None:
    before = repr(value)
    for path, _ in texts_within(value):
        changed = with_text_at(value, path, "new")
        assert text_at(changed, path) == "new"
        assert len(list(texts_within(changed))) == len(list(texts_within(value)))
    assert repr(value) == before


@pytest.mark.parametrize("path", [("x",), ("a", 9), ("a", "b"), ("n",), ("n", 0), ()], ids=repr)
def test_a_path_without_text_gives_none(path: Path) -> None:
    assert text_at({"a": ["x"], "n": 1}, path) is None
