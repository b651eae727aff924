"""What a ledger puts back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import ledger
from enfold.errors import RestoreError
from enfold.jsontext import dumps, loads
from enfold.ledger import Ledger


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def test_what_was_taken_out_comes_back_in_its_place() -> None:
    before, after = said("a", "b", "c", "d"), said("a", "summary", "d")
    written = ledger.write(before, after)
    assert ledger.restore(after, written) == before
    assert len(written.changes) == 1


def test_only_what_changed_is_in_the_ledger() -> None:
    before, after = said("a", "b", "c", "d", "e"), said("a", "B", "c", "D", "e")
    written = ledger.write(before, after)
    assert [change.originals for change in written.changes] == [tuple(said("b")), tuple(said("d"))]


def test_messages_added_afterwards_are_kept() -> None:
    before, after = said("a", "b"), said("s")
    written = ledger.write(before, after)
    assert ledger.restore([*after, *said("new")], written) == [*before, *said("new")]


@pytest.mark.parametrize("altered", [said("a", "s!", "d"), said("a", "s"), [], said("s", "a", "d")])
def test_an_altered_conversation_is_refused(altered: list[Any]) -> None:
    written = ledger.write(said("a", "b", "c", "d"), said("a", "s", "d"))
    with pytest.raises(RestoreError, match="altered"):
        ledger.restore(altered, written)


def test_numbers_that_python_takes_for_equal_are_not() -> None:
    before, after = [{"n": 1}], [{"n": True}]
    written = ledger.write(before, after)
    assert dumps(ledger.restore(after, written)) == dumps(before)


def test_a_ledger_survives_a_file() -> None:
    written = ledger.write(said("a", "b", "c"), said("s", "c"))
    assert Ledger.from_json(loads(dumps(written.as_json()))) == written


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"version": 2}, {"version": 1}, {"version": 1, "digest": "x", "length": "y"}],
)
def test_what_is_no_ledger_is_refused(value: Any) -> None:
    with pytest.raises(RestoreError):
        Ledger.from_json(value)


names = st.lists(st.sampled_from("abc"), max_size=12)


@given(names, names)
def test_any_change_can_be_taken_back(old: list[str], new: list[str]) -> None:
    before, after = said(*old), said(*new)
    assert ledger.restore(after, ledger.write(before, after)) == before
