"""Manifests as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import StoreError
from enfold.records import (
    EditReference,
    KeptRange,
    SummaryPlace,
    manifest_from_json,
    manifest_to_json,
)

ids = st.text("0123456789abcdef", min_size=1, max_size=32)
entries = st.one_of(
    st.builds(KeptRange, ids, ids),
    st.builds(EditReference, ids),
    st.builds(SummaryPlace, st.none() | st.integers(0, 9)),
)


@given(st.lists(entries).map(tuple))
def test_a_manifest_comes_back(
    manifest: tuple[KeptRange | EditReference | SummaryPlace, ...],
) -> None:
    assert manifest_from_json(manifest_to_json(manifest)) == manifest


def test_the_stored_form_is_fixed() -> None:
    manifest = (
        KeptRange("a", "a"),
        SummaryPlace(),
        KeptRange("b", "c"),
        EditReference("e"),
        SummaryPlace(1),
    )
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
