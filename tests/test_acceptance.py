"""Acceptance of a strategy's answer, and its receipt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enfold.condensation import (
    Condensation,
    CondensationEntry,
    EditedMessage,
    KeptMessage,
    Plan,
    SummarizedMessages,
    accept,
    receipt_for,
    unchanged,
)
from enfold.errors import CompressionError, NoGainError
from enfold.receipt import ItemCount
from enfold.retention import Split
from enfold.testing import assistant, call, result, user

PATHS = [f"src/part_{n}.py" for n in range(10)]
CHAT = (
    user("Begin."),
    user(f"Look at {' '.join(PATHS)}. " + "alpha " * 200),
    assistant("", call("1", "read", {"path": "src/part_3.py"})),
    result("1", "see lib/other.py\n" + "beta " * 200),
    user("Go on."),
)
PLAN = Plan(
    CHAT,
    (5, 300, 20, 220, 5),
    Split(head=1, cut=4, tail_tokens=5),
    "o200k_base",
    restorable_by="ledger",
)


def summarized(text: str) -> Condensation:
    entries = (KeptMessage(0), SummarizedMessages((1, 2, 3), text, 30, "test"), KeptMessage(4))
    return Condensation("test", entries)


def test_an_answer_is_taken_with_its_receipt() -> None:
    taken = accept(PLAN, summarized("Parts src/part_1.py and src/part_2.py are read."))
    assert taken.receipt is not None
    assert taken.receipt.counts["path"] == ItemCount(2, 9, 0)
    assert taken.receipt.stated["path"] == ItemCount(2, 8, 0)
    assert taken.receipt.restorable_by == "ledger"
    assert accept(PLAN, taken) is taken, "the receipt is not made out twice"


def test_a_summary_without_the_users_facts_is_accepted_with_a_warning() -> None:
    taken = accept(PLAN, summarized("They talked."))
    assert taken.receipt is not None
    assert taken.receipt.warnings == taken.warnings
    assert "0 of 10 (0%) path items in users' words" in taken.warnings[0]
    tight = replace(PLAN, summary_tokens=64)
    assert accept(tight, summarized("They talked.")).warnings == ()


def test_items_without_a_way_back_are_lost() -> None:
    irreversible = replace(PLAN, restorable_by=None)
    taken = accept(irreversible, summarized(" ".join(PATHS)))
    assert taken.receipt is not None
    assert taken.receipt.counts["path"] == ItemCount(10, 0, 1)


def test_the_rules_come_first() -> None:
    with pytest.raises(CompressionError, match="accounted for"):
        accept(PLAN, Condensation("test", (KeptMessage(0),)))
    with pytest.raises(NoGainError):
        accept(PLAN, unchanged(PLAN, "test", "nothing to do"))


def test_an_answer_that_changes_nothing_takes_nothing() -> None:
    taken = accept(PLAN, unchanged(PLAN, "test", "nothing to do"), may_be_unchanged=True)
    assert taken.receipt is not None
    assert taken.receipt.total == ItemCount()


def test_only_changed_parts_of_an_edited_message_have_left() -> None:
    before = user("keep docs/a.md", *user("cut docs/b.md " + "alpha " * 50).parts)
    after = replace(before, parts=(before.parts[0], user("cut").parts[0]))
    plan = replace(PLAN, messages=(before, *CHAT[1:]))
    entries: tuple[CondensationEntry, ...] = (
        EditedMessage(0, after, 3),
        *map(KeptMessage, range(1, 5)),
    )
    made = receipt_for(plan, Condensation("test", entries))
    assert made.items["path"] == {"docs/b.md": "restorable"}


def test_the_earlier_summary_leaves_with_what_is_summarized() -> None:
    plan = replace(PLAN, previous="Earlier: etc/old.conf", previous_tokens=20)
    made = receipt_for(plan, summarized("New."))
    assert made.items["path"]["etc/old.conf"] == "restorable"
    edited = Condensation(
        "test", (*map(KeptMessage, range(3)), EditedMessage(3, CHAT[3], 2), KeptMessage(4))
    )
    assert "etc/old.conf" not in receipt_for(plan, edited).items["path"], "it stays in the view"


def test_messages_edited_before_count_by_their_originals() -> None:
    message = user("once it said docs/long.md")
    plan = replace(PLAN, originals={1: message})
    assert "docs/long.md" in receipt_for(plan, summarized("x")).items["path"]
