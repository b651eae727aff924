"""An answer that breaks a rule is refused with the reason."""

from dataclasses import replace

import pytest

from enfold.condensation import Condensation, Edited, Entry, Folded, Kept, Step, Task, validate
from enfold.errors import CompressionError
from enfold.messages import Message
from enfold.retention import Retention, split
from enfold.testing import assistant, call, result, user

MESSAGES = (
    user("first"),
    assistant("", call("1")),
    result("1", "long"),
    assistant("done"),
    user("and now?"),
    assistant("wait"),
)
COUNTS = (10, 20, 500, 20, 10, 10)


def task(messages: tuple[Message, ...] = MESSAGES) -> Task:
    retention = Retention("messages", 2, keep_first=1)
    return Task(messages, COUNTS, split(messages, COUNTS, retention), "o200k_base")


def answer(*entries: Entry) -> Condensation:
    return Condensation("test", entries)


def folded(*indexes: int, text: str = "summary", tokens: int = 50) -> Folded:
    return Folded(indexes, text, tokens, "local")


GOOD = (Kept(0), folded(1, 2, 3), Kept(4), Kept(5))


def test_a_sound_answer_passes_and_is_counted() -> None:
    validate(task(), answer(*GOOD))
    assert task().tokens == 570
    assert answer(*GOOD).tokens(task()) == 80


def test_a_new_summary_takes_the_place_of_the_old_one() -> None:
    before = replace(task(), previous="old", previous_tokens=100)
    assert before.tokens == 670
    assert answer(*GOOD).tokens(before) == 80
    edited = Edited(2, result("1", "short"), 5)
    kept = answer(Kept(0), Kept(1), edited, Kept(3), Kept(4), Kept(5))
    assert kept.tokens(before) == 175


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ((Kept(0), folded(1, 2), Kept(4), Kept(5)), "6 messages went in and 5"),
        ((Kept(0), folded(1, 2, 3, 4), Kept(4), Kept(5)), "accounted for"),
        ((folded(1, 2, 3), Kept(4), Kept(0), Kept(5)), "order"),
        ((Kept(0), folded(1, 2), folded(3), Kept(4), Kept(5)), "2 summaries"),
        ((Kept(0), folded(1, 2, 3, text=" \n"), Kept(4), Kept(5)), "empty"),
        ((folded(0, 1, 2, 3), Kept(4), Kept(5)), "message 0 is protected"),
        ((Kept(0), folded(1, 2, 3, 4), Kept(5)), "message 4 is protected"),
        ((Kept(0), folded(1), Kept(2), Kept(3), Kept(4), Kept(5)), "without its call"),
        ((Kept(0), folded(1, 2, 3, tokens=540), Kept(4), Kept(5)), "570 tokens became 570"),
        (
            (Kept(0), Kept(1), Edited(2, result("9"), 5), Kept(3), Kept(4), Kept(5)),
            "without its call",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(entries: tuple[Entry, ...], words: str) -> None:
    with pytest.raises(CompressionError, match=words):
        validate(task(), answer(*entries))


def test_a_step_knows_its_reduction() -> None:
    assert Step("fold", 200, 50).reduction == 0.75
    assert Step("fold", 0, 0).reduction == 0.0
