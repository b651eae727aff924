from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import wire
from enfold.errors import DialectError
from enfold.jsontext import dumps
from enfold.transcripts import read
from tests.transcripts.files import CONVERSATIONS, assistant, lines, outline, the_one, user


def conversation(*messages: dict[str, Any], **fields: Any) -> bytes:
    """A file of this one conversation and another, so that it is a file of many."""
    return lines([{"messages": list(messages), **fields}, {"messages": []}])


@pytest.mark.parametrize(
    "content", [lines(CONVERSATIONS), dumps(CONVERSATIONS)], ids=["lines", "array"]
)
def test_each_conversation_becomes_a_transcript(content: bytes) -> None:
    one, two = read(content)
    assert (one.format, one.id, one.title) == ("conversations", "one", "")
    assert (two.id, two.title) == ("two", "Second")
    assert one.extras == {"id": "one", "meta": {"n": 1}}
    assert outline(one) == ["user: hi", "assistant: hello"]
    assert outline(two) == ["user: bye"]


def test_bare_arrays_are_conversations_without_a_name() -> None:
    one, two = read(lines([[user("hi")], [user("bye")]]))
    assert (one.id, one.body, outline(one)) == ("", None, ["user: hi"])
    assert outline(two) == ["user: bye"]


def test_a_conversation_is_rendered_as_it_came() -> None:
    for transcript, item in zip(read(lines(CONVERSATIONS)), CONVERSATIONS, strict=True):
        assert wire.render(transcript.conversation()) == item


TREE = [
    user("2 + 2?", id="q"),
    assistant("Five.", id="wrong", parent_id="q"),
    assistant("Four.", id="right", parent_id="q"),
    user("Thanks.", id="t", parent_id="right"),
]


def test_messages_with_parents_form_a_tree() -> None:
    tree, _ = read(conversation(*TREE))
    assert tree.tip == "t"
    assert outline(tree) == ["user: 2 + 2?", "assistant: Four.", "user: Thanks."]
    assert tree.leaves == ("wrong", "t")
    assert outline(tree, "wrong") == ["user: 2 + 2?", "assistant: Five."]


def test_the_tip_may_be_given() -> None:
    tree, _ = read(conversation(*TREE, tip="wrong"))
    assert outline(tree) == ["user: 2 + 2?", "assistant: Five."]


def test_a_child_may_stand_before_its_parent() -> None:
    tree, _ = read(conversation(*reversed(TREE)))
    assert [entry.id for entry in tree.entries] == ["q", "right", "t", "wrong"]
    assert {entry.id: entry.parent_id for entry in tree.entries} == {
        "q": None,
        "right": "q",
        "t": "right",
        "wrong": "q",
    }


def test_without_parents_messages_follow_one_another() -> None:
    chain, _ = read(conversation(user("a"), assistant("b", id="b"), user("c")))
    assert [(entry.id, entry.parent_id) for entry in chain.entries] == [
        ("#0", None),
        ("b", "#0"),
        ("#2", "b"),
    ]


def test_an_id_may_be_given_twice() -> None:
    chain, _ = read(conversation(user("a", id="m"), assistant("b", id="m"), user("c", id="n")))
    assert [(entry.id, entry.parent_id) for entry in chain.entries] == [
        ("m", None),
        ("m#1", "m"),
        ("n", "m#1"),
    ]


def test_a_parent_that_is_named_twice_is_the_nearest_before() -> None:
    tree, _ = read(
        conversation(
            user("a", id="m"),
            assistant("b", id="x", parent_id="m"),
            user("c", id="m", parent_id="x"),
            assistant("d", id="y", parent_id="m"),
        )
    )
    assert outline(tree) == ["user: a", "assistant: b", "user: c", "assistant: d"]


@pytest.mark.parametrize(
    ("messages", "fields", "words"),
    [
        (
            [user("a", id="m", parent_id=[7])],
            {},
            "line 1: messages[0].parent_id: no message has the id [7]",
        ),
        (
            [user("a", id="m", parent_id="m")],
            {},
            "line 1: the parents of message 'm' form a circle",
        ),
        ([user("a", id="m")], {"tip": "n"}, "line 1: tip: no message has the id 'n'"),
        ([{"role": "user", "content": 5}], {}, "line 1: messages[0].content: expected "),
    ],
    ids=["no id", "a circle", "an unknown tip", "no content"],
)
def test_errors_name_the_line_and_the_message(
    messages: list[dict[str, Any]], fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(DialectError) as caught:
        list(read(conversation(*messages, **fields)))
    assert str(caught.value).startswith(words)


def test_an_error_in_an_array_names_the_item() -> None:
    with pytest.raises(DialectError) as caught:
        list(read(dumps([{"messages": []}, {"messages": [7]}])))
    assert str(caught.value) == "[1]: messages[0]: expected an object, found a number"


def test_conversations_before_a_broken_one_are_given() -> None:
    transcripts = read(lines([*CONVERSATIONS, {"messages": 7}]), dialect="openai")
    assert [next(transcripts).id, next(transcripts).id] == ["one", "two"]
    with pytest.raises(DialectError, match=r"^line 3: messages: expected an array"):
        next(transcripts)


@given(st.lists(st.integers(0, 5), max_size=10))
def test_every_message_is_on_some_branch(choices: list[int]) -> None:
    messages = [
        user(str(index), id=str(index), parent_id=str(choice % index) if index else None)
        for index, choice in enumerate(choices)
    ]
    tree, _ = read(conversation(*messages))
    assert {entry.id for leaf in tree.leaves for entry in tree.branch(leaf)} == {
        message["id"] for message in messages
    }
    assert tree.tip is None or tree.tip in tree.leaves


def test_a_branch_goes_on_only_where_the_file_says_so() -> None:
    transcript = the_one(dumps({"messages": [user("a"), assistant("b", parent_id=None)]}))
    assert outline(transcript) == ["assistant: b"]
    assert len(transcript.leaves) == 2


def test_a_condensed_tree_is_read_as_one_branch() -> None:
    """Some parents were condensed away, and the summary has neither id nor parent."""
    tree, _ = read(
        conversation(
            user("a", id="1"),
            {"role": "system", "content": "b and c"},
            assistant("d", id="4", parent_id="3"),
            user("e", id="5", parent_id="4"),
        )
    )
    assert outline(tree) == ["user: a", "system: b and c", "assistant: d", "user: e"]
