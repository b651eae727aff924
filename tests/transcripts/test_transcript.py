from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import DialectError, NotFoundError
from enfold.messages import Message, Text
from enfold.transcripts import Transcript, TranscriptEntry
from enfold.transcripts.transcript import Ids, parents_first


def entry(id: str, parent: str | None) -> TranscriptEntry:
    return TranscriptEntry(Message("user", (Text(id),)), id, parent)


TREE = Transcript(
    (entry("a", None), entry("b", "a"), entry("c", "b"), entry("d", "a"), entry("e", None)),
    tip="c",
)


def ids(entries: tuple[TranscriptEntry, ...]) -> str:
    return "".join(each.id for each in entries)


def test_the_active_branch_goes_from_the_root_to_the_tip() -> None:
    assert ids(TREE.branch()) == "abc"
    assert [message.parts for message in TREE.conversation().messages] == [
        (Text("a"),),
        (Text("b"),),
        (Text("c"),),
    ]


def test_any_branch_can_be_had_by_its_tip() -> None:
    assert ids(TREE.branch("d")) == "ad"
    assert ids(TREE.branch("b")) == "ab"
    assert len(TREE.conversation("e").messages) == 1


def test_every_branch_ends_at_a_leaf() -> None:
    assert TREE.leaves == ("c", "d", "e")
    assert [ids(TREE.branch(leaf)) for leaf in TREE.leaves] == ["abc", "ad", "e"]


def test_a_conversation_keeps_system_and_tools() -> None:
    prompt = Message("system", (Text("Be brief."),))
    body = {"model": "m", "messages": []}
    conversation = Transcript((), "openai", system=prompt, body=body).conversation()
    assert (conversation.dialect, conversation.system) == ("openai", prompt)
    assert conversation.extras is body
    assert conversation.messages == ()


def test_an_unknown_tip_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="no entry 'z'"):
        TREE.branch("z")


@given(st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "#0", "a#1", "#1"]), st.integers())))
def test_entry_ids_are_unique_and_the_first_of_a_name_keeps_it(given_ids: list[Any]) -> None:
    taken = Ids()
    made = [taken.take(each) for each in given_ids]
    assert len(set(made)) == len(made)
    assert all(made)
    if "a" in given_ids:
        assert "a" in made


@st.composite
def forests(draw: st.DrawFn) -> dict[str, str | None]:
    """Trees in any order: every node's parent has a smaller number."""
    size = draw(st.integers(0, 12))
    parents = {
        str(number): draw(st.one_of(st.none(), st.integers(0, number - 1).map(str)))
        if number
        else None
        for number in range(size)
    }
    order = draw(st.permutations(list(parents)))
    return {id: parents[id] for id in order}


@given(forests())
def test_parents_come_first_and_nothing_else_moves(parents: dict[str, str | None]) -> None:
    order = parents_first(parents)
    assert sorted(order) == sorted(parents)
    placed = {id: index for index, id in enumerate(order)}
    assert all(parent is None or placed[parent] < placed[id] for id, parent in parents.items())
    assert parents_first({id: parents[id] for id in order}) == order


@pytest.mark.parametrize(
    "parents",
    [{"a": "a"}, {"a": "b", "b": "a"}, {"x": None, "a": "c", "b": "a", "c": "b"}],
    ids=["itself", "two", "three"],
)
def test_a_circle_is_an_error(parents: dict[str, str | None]) -> None:
    with pytest.raises(DialectError, match="form a circle"):
        parents_first(parents)


def test_the_whole_has_every_branch_in_the_order_of_the_file() -> None:
    assert TREE.whole().messages == tuple(each.message for each in TREE.entries)
    assert len(TREE.conversation().messages) < len(TREE.whole().messages)
