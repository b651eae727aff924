"""What counts as being in a view, and what does not."""

from __future__ import annotations

import pytest

from enfold.engine.recall import Passage
from enfold.evaluation.presence import Shown, content_words, is_shown, says_something, share
from enfold.testing import assistant, user

LONG = (
    "The harbour master closed the northern pier at dawn because the lighthouse beam had failed "
    "twice during the storm and nobody could repair the mechanism before the weekend ended"
)


def test_content_words_are_of_any_language() -> None:
    assert content_words("The anchor weighs 9 stone, yeah") == {"anchor", "weighs", "9", "stone"}
    assert {"灯塔", "修理"} <= content_words("灯塔需要修理")
    assert not says_something(user("Yeah, okay, right."))
    assert says_something(user("The anchor weighs nine stone."))


@pytest.mark.parametrize(
    ("view", "holds"),
    [
        (LONG, True),
        (f"- Ada: {LONG} … and more", True),
        ("- Ada: closed the northern pier at dawn because the lighthouse", True),
        ("- Ada: the northern pier at dawn", False),
        ("the harbour, a pier, some dawn", False),
        (
            "Mechanism: harbour master, northern pier, lighthouse beam failed twice, storm, repair",
            True,
        ),
        ("", False),
    ],
)
def test_a_long_message_is_in_a_view(view: str, holds: bool) -> None:
    assert Shown([assistant(view)]).holds(user(LONG)) is holds


def test_words_scattered_over_a_long_line_are_no_substance() -> None:
    words = LONG.split()
    scattered = " ".join(f"{word} {'filler ' * 12}" for word in words)
    assert not Shown([assistant(scattered)]).holds(user(LONG))


def test_a_passage_shows_its_message_whole_or_quotes_it() -> None:
    def passage(text: str, length: int) -> Passage:
        return Passage("id", 1, "user", text, 0, length)

    assert is_shown(passage("Yes.", 4))
    assert not is_shown(passage("the northern pier", 200))
    assert is_shown(passage(" ".join(LONG.split()[:8]), 200))
    assert not is_shown(passage("and so it was that we all did go", 200))


def test_shares() -> None:
    assert share([1, 2, 9], [1, 3]) == 0.5
