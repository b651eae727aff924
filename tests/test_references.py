"""References: their targets must be in view, and nothing else may have changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from enfold.ledger import (
    CopiedPiece,
    PieceSource,
    Recipe,
    Shortening,
    VisiblePiece,
    digest,
    explains,
    texts_in,
    unresolved,
)
from enfold.messages import Attachment, Data, Message, Text, ToolCall, ToolResult
from enfold.testing import assistant, call, result, user

LONG = "line one\nline two\n" * 9
SHORT = Shortening(
    LONG,
    "⟨ see 1 ⟩",
    Recipe((CopiedPiece(0, 0, len(LONG)),), digest(LONG)),
    (PieceSource(0, LONG),),
)


def shown(source: str = LONG) -> dict[int, Message]:
    return {0: result("1", source), 1: result("2", SHORT.shown)}


def test_a_reference_resolves_while_its_source_is_shown() -> None:
    assert unresolved(shown(), {1: [SHORT]}) == {}


@pytest.mark.parametrize(
    "view",
    [shown("something else"), {1: result("2", SHORT.shown)}, {1: result("1", LONG)}],
    ids=["changed", "gone", "elsewhere"],
)
def test_a_reference_to_what_is_not_shown_is_named(view: dict[int, Message]) -> None:
    (fault,) = unresolved(view, {1: [SHORT]}).values()
    assert "points to message 0" in fault


def test_a_recipe_that_gives_something_else_is_named() -> None:
    wrong = replace(SHORT, recipe=Recipe((VisiblePiece(0, 2),), digest(LONG)))
    assert "cannot be restored" in unresolved(shown(), {1: [wrong]})[1]
    other = replace(SHORT, original="other")
    assert "something else" in unresolved(shown(), {1: [other]})[1]


def test_texts_are_all_that_a_message_shows() -> None:
    message = Message(
        "assistant",
        (
            Text("said"),
            ToolCall("1", "write", {"path": "a.py", "edits": [{"new": "x"}], "n": 1}),
            ToolCall("2", "write", '{"raw": 1}'),
            ToolResult("1", (Text("out"), Data({"a": ["deep"]}), Attachment("f.png"))),
        ),
    )
    assert list(texts_in(message)) == ["said", "a.py", "x", '{"raw": 1}', "out", "deep"]


BEFORE = Message(
    "user",
    (
        ToolResult("1", (Text(LONG, {"type": "text"}), Attachment("f.png")), name="read"),
        ToolResult("2", (Data({"output": LONG, "n": [1, {"x": LONG}]}),), is_error=True),
        Text("and this?"),
    ),
    id="m1",
)
FIRST, SECOND, WORDS = BEFORE.parts


def with_first(**changes: Any) -> Message:
    assert isinstance(FIRST, ToolResult)
    return replace(BEFORE, parts=(replace(FIRST, **changes), SECOND, WORDS))


def shortened(part: Text) -> Text:
    return replace(part, text=SHORT.shown)


def test_shortened_texts_explain_a_message() -> None:
    assert isinstance(FIRST, ToolResult)
    assert isinstance(FIRST.parts[0], Text)
    assert explains(BEFORE, BEFORE, [])
    after = with_first(parts=(shortened(FIRST.parts[0]), FIRST.parts[1]))
    assert explains(BEFORE, after, [SHORT])
    assert not explains(BEFORE, after, [])


def test_shortened_texts_inside_structured_output_explain_it_too() -> None:
    value = {"output": LONG, "n": [1, {"x": SHORT.shown}]}
    assert isinstance(SECOND, ToolResult)
    assert isinstance(SECOND.parts[0], Data)
    changed = replace(SECOND, parts=(replace(SECOND.parts[0], value=value),))
    assert explains(BEFORE, replace(BEFORE, parts=(FIRST, changed, WORDS)), [SHORT])
    worse = {**value, "n": [True, {"x": SHORT.shown}]}
    changed = replace(SECOND, parts=(replace(SECOND.parts[0], value=worse),))
    assert not explains(BEFORE, replace(BEFORE, parts=(FIRST, changed, WORDS)), [SHORT])


@pytest.mark.parametrize(
    "after",
    [
        replace(BEFORE, role="tool"),
        replace(BEFORE, id="m2"),
        replace(BEFORE, parts=(FIRST, SECOND)),
        replace(BEFORE, parts=(FIRST, SECOND, Text("and that?"))),
        replace(BEFORE, extras={"x": 1}),
        with_first(call_id="9"),
        with_first(is_error=True),
        with_first(parts=(Text(SHORT.shown), Attachment("f.png"))),
        with_first(parts=(Text(SHORT.shown, {"type": "text"}), Attachment("g.png"))),
        with_first(parts=(Text(SHORT.shown, {"type": "text"}),)),
        replace(BEFORE, parts=(Text("x"), SECOND, WORDS)),
    ],
    ids=range(11),
)
def test_any_other_difference_is_seen(after: Message) -> None:
    assert not explains(BEFORE, after, [SHORT])


def test_messages_made_by_hand_hold_together() -> None:
    assert explains(user("a"), user("a"), [])
    assert not explains(user("a"), user("b"), [SHORT])
    message = assistant("", call("1"))
    assert explains(message, message, [])
