"""Manifests as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import StoreError
from enfold.store.records import Edited, Kept, Summarized, manifest_from_json, manifest_to_json

ids = st.text("0123456789abcdef", min_size=1, max_size=32)
entries = st.one_of(
    st.builds(Kept, ids, ids),
    st.builds(Edited, ids),
    st.builds(Summarized, st.none() | st.integers(0, 9)),
)


@given(st.lists(entries).map(tuple))
def test_a_manifest_comes_back(manifest: tuple[Kept | Edited | Summarized, ...]) -> None:
    assert manifest_from_json(manifest_to_json(manifest)) == manifest


def test_the_stored_form_is_fixed() -> None:
    manifest = (Kept("a", "a"), Summarized(), Kept("b", "c"), Edited("e"), Summarized(1))
    assert json.loads(manifest_to_json(manifest)) == [
        {"message": "a"},
        {"summary": True},
        {"from": "b", "to": "c"},
        {"edit": "e"},
        {"summary": 1},
    ]


def test_an_entry_from_the_future_is_not_guessed_at() -> None:
    with pytest.raises(StoreError, match="hologram"):
        manifest_from_json('[{"hologram": 1}]')
