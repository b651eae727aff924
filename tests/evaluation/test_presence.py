"""The rule by which a text counts as present in a view."""

from __future__ import annotations

import pytest

from enfold.evaluation.measures import (
    RULES,
    TextIndex,
    quotation,
    says_something,
    share,
    typed_sentences,
)
from enfold.testing import assistant, user
from enfold.text.sentences import telling_words

LONG = (
    "The harbour master closed the northern pier at dawn because the lighthouse beam had failed "
    "twice during the storm and nobody could repair the mechanism before the weekend ended"
)


def test_telling_words_are_of_any_language() -> None:
    assert telling_words("The anchor weighs 9 stone, yeah") == {"anchor", "weighs", "9", "stone"}
    assert {"灯塔", "修理"} <= telling_words("灯塔需要修理")
    assert not says_something(user("Yeah, okay, right."))
    assert says_something(user("The anchor weighs nine stone."))


@pytest.mark.parametrize(
    ("view", "rules"),
    [
        (LONG, 4),
        (f"- Ada: {LONG} … and more", 4),
        (f"- Ada: {LONG}ish", 3),
        (" ".join(LONG.split()[3:]), 3),
        (" ".join(LONG.split()[5:]), 2),
        ("- Ada: closed the northern pier at dawn because the lighthouse", 2),
        ("- Ada: the northern pier at dawn", 0),
        ("the harbour, a pier, some dawn", 0),
        (
            "Mechanism: harbour master, northern pier, lighthouse beam failed twice, storm, repair",
            1,
        ),
        ("", 0),
    ],
)
def test_a_long_message_counts_as_present_by_several_rules(view: str, rules: int) -> None:
    shown = TextIndex([view])
    holding = [rule.holds(shown, user(LONG)) for rule in RULES[1:]]
    assert holding == [False] * (4 - rules) + [True] * rules


def test_only_the_strictest_rule_counts_what_says_nothing() -> None:
    yes = user("Yeah, okay.")
    assert [rule.counts(yes) for rule in RULES] == [True] + [False] * 4
    assert [rule.counts(user("  ")) for rule in RULES] == [False] * 5
    assert TextIndex(["Well.\nYeah,\nokay. So"]).has_whole(yes)
    assert not TextIndex(["Well, yeah,", "okay."]).has_whole(yes)


def test_a_message_stands_in_a_line_without_blanks() -> None:
    assert TextIndex(["他说灯塔的灯坏了需要修理然后走了"]).has_whole(user("灯塔的灯坏了需要修理"))


def test_words_scattered_over_a_long_line_are_no_substance() -> None:
    words = LONG.split()
    scattered = " ".join(f"{word} {'filler ' * 12}" for word in words)
    assert not TextIndex([scattered]).has_substance(user(LONG))


def test_a_quotation_is_the_first_words_that_tell_something() -> None:
    shown = TextIndex([f"- Ada: {LONG}"])
    message = user(f"and so it was that we all did go. {LONG}")
    assert quotation(message, shown) == "The harbour master closed the northern pier at"
    assert (
        quotation(user("The harbour master closed nothing, as far as I know, today"), shown) is None
    )


def test_shares() -> None:
    assert share([1, 2, 9], [1, 3]) == 0.5


def test_sentences_that_people_typed_leave_out_what_clients_add() -> None:
    reminder = "<system-reminder>\nRemember to be kind to every file.\n</system-reminder>"
    typed = "Please mend the pier first. Yes! 灯塔的灯坏了需要修理。"
    assert typed_sentences([user(f"{reminder}\n{typed}"), assistant("I mended the pier.")]) == (
        "Please mend the pier first.",
        "灯塔的灯坏了需要修理。",
    )


def test_the_words_of_an_answer_are_in_one_passage() -> None:
    shown = TextIndex([LONG, "The anchor weighs nine stone.", "The buoy is red."])
    assert shown.has_answer("Nine stone")
    assert shown.has_answer("the lighthouse beam")
    assert not shown.has_answer("nine red stones")
