"""Recipes: shortened texts become what they were, or an error says that they do not."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import RestoreError
from enfold.jsontext import dumps, loads
from enfold.ledger import (
    BARE,
    ITSELF,
    CopiedPiece,
    Form,
    Piece,
    PieceSource,
    Recipe,
    Shortening,
    StoredPiece,
    VisiblePiece,
    digest,
)

forms = st.one_of(
    st.just(BARE),
    st.builds(Form, sign=st.sampled_from(["+", "-", " "])),
    st.builds(Form, separator=st.sampled_from("→\t:|-"), width=st.sampled_from([0, 4, 6])),
    st.builds(Form, separator=st.just("\t"), every=st.just(5), phase=st.integers(0, 4)),
)
maybe_escaped = st.builds(
    lambda form, escaped, is_ascii: Form(
        form.sign,
        form.separator,
        form.width,
        form.every,
        form.phase,
        escaped,
        escaped and is_ascii,
    ),
    forms,
    st.booleans(),
    st.booleans(),
)
lines = st.lists(
    st.text(max_size=12).filter(lambda line: not re.search(r"\n|^\d+\t", line)),
    min_size=1,
    max_size=12,
)


@given(maybe_escaped, lines, st.integers(0, 99_999))
def test_lines_in_any_form_can_be_had_bare(form: Form, given_lines: list[str], first: int) -> None:
    assert form.bare(form.text(given_lines, first)) == given_lines


@given(maybe_escaped, maybe_escaped, lines, st.integers(1, 9_999))
def test_a_copy_takes_lines_from_one_form_to_another(
    of: Form, to: Form, given_lines: list[str], first: int
) -> None:
    source = f"before{of.text(given_lines, 7)}after"
    copy = CopiedPiece(0, 6, len(source) - 5, of, to, first)
    assert copy.take(source) == to.text(given_lines, first)


def test_escaped_lines_are_those_of_json() -> None:
    inner = 'say "hi"\t→\n\\n\x01é'
    for is_ascii in (False, True):
        whole = json.dumps({"output": inner}, ensure_ascii=is_ascii)
        form = Form(escaped=True, is_ascii=is_ascii)
        assert form.text(inner.split("\n")) in whole


def recipe(original: str, *pieces: Piece) -> Recipe:
    return Recipe(pieces, digest(original))


def test_pieces_are_put_together_in_order() -> None:
    shown, source = "head ⟨ marker ⟩ tail", "xxrepeatedxx"
    found = recipe(
        "head repeated tail aside head",
        VisiblePiece(0, 5),
        CopiedPiece(0, 2, 10),
        VisiblePiece(15, 20),
        StoredPiece(" aside "),
        CopiedPiece(ITSELF, 0, 4),
    )
    assert found.follow(shown, [source]) == "head repeated tail aside head"


def test_the_result_of_a_recipe_is_verified() -> None:
    found = recipe("original", VisiblePiece(0, 8))
    assert found.follow("original", []) == "original"
    with pytest.raises(RestoreError, match="not the one"):
        found.follow("0riginal", [])


@pytest.mark.parametrize(
    "piece",
    [
        CopiedPiece(3, 0, 1),
        CopiedPiece(0, 0, 3, Form(separator=":"), BARE),
        CopiedPiece(0, 0, 3, Form(escaped=True)),
    ],
    ids=["no such source", "no number there", "nothing escaped there"],
)
def test_a_piece_that_is_not_there_is_an_error(piece: CopiedPiece) -> None:
    with pytest.raises(RestoreError, match="not where it was"):
        recipe("a", piece).follow("shown", ['a"b'])


def test_encodings_are_undone_last_one_first() -> None:
    original = "\x1b[1m     1→a\x1b[0m\n     2→b"
    found = Recipe(
        (VisiblePiece(0, 7),),
        digest(original),
        (
            ("colours", {"codes": ["\x1b[1m", "\x1b[0m"], "at": [[0, 0], [8, 1]]}),
            ("line_numbers", [[0, 2, 6, "→"]]),
        ),
    )
    assert found.follow("1\ta\n2\tb", []) == original


pieces = st.one_of(
    st.builds(VisiblePiece, st.integers(0, 9), st.integers(0, 9)),
    st.builds(StoredPiece, st.text(max_size=5)),
    st.builds(
        CopiedPiece,
        st.integers(-1, 3),
        st.integers(0, 9),
        st.integers(0, 9),
        maybe_escaped,
        maybe_escaped,
        st.integers(0, 99),
    ),
)


@given(st.lists(pieces, max_size=4), st.text(max_size=9))
def test_a_recipe_survives_a_file(some: list[Piece], text: str) -> None:
    found = Recipe(tuple(some), digest(text), (("runs", [[1, 2]]),))
    assert Recipe.from_json(loads(dumps(found.as_json()))) == found


def test_a_reference_sets_nothing_aside_and_encodes_nothing() -> None:
    assert recipe("", VisiblePiece(0, 1), CopiedPiece(0, 0, 1)).is_reference
    assert not recipe("", StoredPiece("x")).is_reference
    assert not Recipe((VisiblePiece(0, 1),), "", (("runs", []),)).is_reference


def test_a_shortening_restores_itself() -> None:
    short = Shortening(
        "ab" * 9,
        "⟨ x ⟩",
        recipe("ab" * 9, CopiedPiece(0, 1, 19)),
        (PieceSource(3, f"-{'ab' * 9}"),),
    )
    assert short.restore() == short.original


def test_texts_that_differ_have_other_digests() -> None:
    assert len({digest(text) for text in ("", "a", "b", "\ud800", "é")}) == 5
