"""A ledger restores messages."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import ledger
from enfold import ledger as recipes
from enfold.errors import RestoreError
from enfold.jsontext import dumps, loads
from enfold.ledger import AlteredWarning, CopiedPiece, Ledger, PieceSource, Recipe, Shortening


def user_messages(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def test_removed_messages_return_to_their_place() -> None:
    before, after = user_messages("a", "b", "c", "d"), user_messages("a", "summary", "d")
    written = ledger.write(before, after)
    assert ledger.restore(after, written) == before
    assert len(written.changes) == 1


def test_only_what_changed_is_in_the_ledger() -> None:
    before, after = user_messages("a", "b", "c", "d", "e"), user_messages("a", "B", "c", "D", "e")
    written = ledger.write(before, after)
    assert [change.originals for change in written.changes] == [
        tuple(user_messages("b")),
        tuple(user_messages("d")),
    ]


def test_messages_added_afterwards_are_kept() -> None:
    before, after = user_messages("a", "b"), user_messages("s")
    written = ledger.write(before, after)
    assert ledger.restore([*after, *user_messages("new")], written) == [
        *before,
        *user_messages("new"),
    ]


@pytest.mark.parametrize("altered", [user_messages("a", "s"), [], user_messages("s", "a", "d")])
def test_another_conversation_is_refused(altered: list[Any]) -> None:
    written = ledger.write(user_messages("a", "b", "c", "d"), user_messages("a", "s", "d"))
    with pytest.raises(RestoreError, match="altered"):
        ledger.restore(altered, written)


def test_a_ledger_without_digests_refuses_an_altered_conversation() -> None:
    written = replace(
        ledger.write(user_messages("a", "b", "c"), user_messages("a", "s", "c")), digests=()
    )
    with pytest.raises(RestoreError, match="altered"):
        ledger.restore(user_messages("a!", "s", "c"), written)


def test_unaltered_messages_are_restored_and_the_rest_is_named() -> None:
    before: list[Any] = user_messages("a", "b", "c", "d", "e")
    after: list[Any] = user_messages("a", "s", "d", "e")
    written = ledger.write(before, after)
    after[2] = {**after[2], "cache_control": {"type": "ephemeral"}}
    restored, altered = ledger.restore_unaltered([*after, *user_messages("new")], written)
    assert altered == (2,)
    assert restored == [*before[:3], after[2], before[4], *user_messages("new")]
    with pytest.warns(AlteredWarning, match=r"^1 message was altered .* index 2,"):
        assert ledger.restore(after, written) == restored[:-1]
    with pytest.warns(AlteredWarning, match=r"^2 messages were altered .* index 2, 3,"):
        ledger.restore([*after[:3], {**after[3], "name": "other"}], written)


def test_an_altered_message_that_the_ledger_holds_is_restored() -> None:
    before, after = user_messages("a", "b", "c", "d"), user_messages("a", "s", "d")
    written = ledger.write(before, after)
    restored, altered = ledger.restore_unaltered(user_messages("a", "s!", "d"), written)
    assert (restored, altered) == (before, (1,))


@given(st.lists(st.sampled_from("abcdef"), min_size=4, max_size=9), st.data())
def test_everything_but_an_altered_message_comes_back(
    texts: list[str], data: st.DataObject
) -> None:
    before = user_messages(*texts)
    after = [*before[:1], *user_messages("summary"), *before[3:]]
    written = Ledger.from_json(loads(dumps(ledger.write(before, after).as_json())))
    at = data.draw(st.integers(0, len(after) - 1))
    changed = [{**m, "mark": 1} if index == at else m for index, m in enumerate(after)]
    restored, altered = ledger.restore_unaltered(changed, written)
    assert altered == (at,)
    kept = [{k: v for k, v in message.items() if k != "mark"} for message in restored]
    assert kept == before


def test_numbers_that_python_takes_for_equal_are_not() -> None:
    before, after = [{"n": 1}], [{"n": True}]
    written = ledger.write(before, after)
    assert dumps(ledger.restore(after, written)) == dumps(before)


def test_a_ledger_survives_a_file() -> None:
    written = ledger.write(user_messages("a", "b", "c"), user_messages("s", "c"))
    assert Ledger.from_json(loads(dumps(written.as_json()))) == written


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"version": 2}, {"version": 1}, {"version": 1, "digest": "x", "length": "y"}],
)
def test_an_invalid_ledger_is_refused(value: Any) -> None:
    with pytest.raises(RestoreError):
        Ledger.from_json(value)


names = st.lists(st.sampled_from("abc"), max_size=12)


@given(names, names)
def test_any_change_can_be_taken_back(old: list[str], new: list[str]) -> None:
    before, after = user_messages(*old), user_messages(*new)
    assert ledger.restore(after, ledger.write(before, after)) == before


LONG = "one line\nand another\n" * 20
MARKER = "⟨ see message #1 ⟩"
SHORT = Shortening(
    LONG,
    MARKER,
    Recipe((CopiedPiece(0, 0, len(LONG)),), recipes.digest(LONG)),
    (PieceSource(0, LONG),),
)


def test_a_text_that_is_elsewhere_is_not_in_the_ledger() -> None:
    before, after = user_messages(LONG, "between", LONG), user_messages(LONG, "between", MARKER)
    written = ledger.write(before, after, {2: [SHORT]})
    assert not written.changes
    assert "another" not in dumps(written.as_json()).decode()
    assert Ledger.from_json(loads(dumps(written.as_json()))) == written
    assert ledger.restore([*after, *user_messages("new")], written) == [
        *before,
        *user_messages("new"),
    ]


def test_edited_messages_are_found_behind_a_summary() -> None:
    before = user_messages(LONG, "b", "c", LONG, "e")
    after = user_messages(LONG, "a summary of b and c", MARKER, "e")
    written = ledger.write(before, after, {3: [SHORT]})
    assert [change.originals for change in written.changes] == [tuple(user_messages("b", "c"))]
    assert ledger.restore(after, written) == before


def test_texts_inside_blocks_are_found() -> None:
    before = [{"role": "user", "content": [{"n": [LONG]}, {"n": [LONG]}, {"x": 1}]}]
    shown = [{"role": "user", "content": [{"n": [LONG]}, {"n": [MARKER]}, {"x": 1}]}]
    after = loads(dumps(shown))  # equal texts are other objects
    written = ledger.write(before, after, {0: [SHORT]})
    (change,) = written.texts
    assert (change.place, change.sources) == (
        (0, ("content", 1, "n", 0)),
        ((0, ("content", 0, "n", 0)),),
    )
    assert ledger.restore(after, written) == before
    assert after[0]["content"][1] == {"n": [MARKER]}  # what was given is not changed


@pytest.mark.parametrize(
    "after",
    [
        user_messages("gone", MARKER),
        [*user_messages(LONG), {"role": "assistant", "content": MARKER}],
        [*user_messages(LONG), {"content": MARKER, "role": "user"}],
        [*user_messages(LONG), {"role": "user", "content": MARKER, "more": 1}],
        [*user_messages(LONG), {"role": "user", "content": [MARKER]}],
        user_messages(LONG, "another marker"),
        user_messages(LONG),
        [],
    ],
    ids=range(8),
)
def test_text_that_recipes_cannot_produce_is_kept(after: list[Any]) -> None:
    before = user_messages(LONG, LONG)
    written = ledger.write(before, after, {1: [SHORT]})
    assert not written.texts
    assert dumps(ledger.restore(after, written)) == dumps(before)


def test_an_edit_of_a_message_that_is_not_on_the_wire_is_ignored() -> None:
    assert ledger.write(user_messages("a"), user_messages("a"), {5: [SHORT]}) == ledger.write(
        user_messages("a"), user_messages("a")
    )


@pytest.mark.parametrize(
    "text",
    [
        {"place": [0, "content"], "sources": [], "digest": "", "pieces": [[0, 1]]},
        {"place": [0, "nowhere"], "sources": [], "digest": "", "pieces": []},
        {"place": [9], "sources": [], "digest": "", "pieces": []},
        {"place": [0, "content"], "sources": [[0, "x"]], "digest": "", "pieces": []},
    ],
    ids=range(4),
)
def test_a_recipe_that_does_not_fit_is_refused(text: dict[str, Any]) -> None:
    after = user_messages("shown")
    value = {**ledger.write(after, after).as_json(), "texts": [text]}
    with pytest.raises(RestoreError):
        ledger.restore(after, Ledger.from_json(value))


@pytest.mark.parametrize(
    "text",
    [
        {},
        {"place": [], "sources": [], "digest": "", "pieces": []},
        {"place": [0, None], "sources": [], "digest": "", "pieces": []},
        {"place": [0], "sources": [], "digest": "", "pieces": [[1, 2, 3]]},
        {"place": [0], "sources": [], "digest": "", "pieces": [{"from": 0}]},
        {"place": [0], "sources": [], "digest": "", "pieces": [], "encodings": ["x"]},
    ],
    ids=range(6),
)
def test_an_invalid_recipe_is_refused(text: dict[str, Any]) -> None:
    value = {**ledger.write([], []).as_json(), "texts": [text]}
    with pytest.raises(RestoreError, match="not a ledger"):
        Ledger.from_json(value)
