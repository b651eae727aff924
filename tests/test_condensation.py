"""An answer that breaks a rule is refused with the reason."""

from dataclasses import replace

import pytest

from enfold.condensation import (
    Condensation,
    CondensationEntry,
    EditedMessage,
    KeptMessage,
    Plan,
    Step,
    SummarizedMessages,
    accept,
    removed_parts,
    unchanged,
    validate,
)
from enfold.errors import CompressionError, NoGainError
from enfold.messages import Attachment, Message, Reasoning, Text, ToolCall, ToolResult
from enfold.retention import Retention, Split, Zones, split
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


def plan(messages: tuple[Message, ...] = MESSAGES) -> Plan:
    retention = Retention("messages", 2, keep_first=1)
    return Plan(messages, COUNTS, split(messages, COUNTS, retention), "o200k_base")


def answer(*entries: CondensationEntry) -> Condensation:
    return Condensation("test", entries)


def summarized(*indexes: int, text: str = "summary", tokens: int = 50) -> SummarizedMessages:
    return SummarizedMessages(indexes, text, tokens, "local")


GOOD = (KeptMessage(0), summarized(1, 2, 3), KeptMessage(4), KeptMessage(5))


def test_a_sound_answer_passes_and_is_counted() -> None:
    validate(plan(), answer(*GOOD))
    assert plan().tokens == 570
    assert answer(*GOOD).tokens(plan()) == 80


def test_a_new_summary_takes_the_place_of_the_old_one() -> None:
    before = replace(plan(), previous="old", previous_tokens=100)
    assert before.tokens == 670
    assert answer(*GOOD).tokens(before) == 80
    edited = EditedMessage(2, result("1", "short"), 5)
    kept = answer(
        KeptMessage(0), KeptMessage(1), edited, KeptMessage(3), KeptMessage(4), KeptMessage(5)
    )
    assert kept.tokens(before) == 175


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (
            (KeptMessage(0), summarized(1, 2), KeptMessage(4), KeptMessage(5)),
            "6 messages went in and 5",
        ),
        ((KeptMessage(0), summarized(1, 2, 3, 4), KeptMessage(4), KeptMessage(5)), "accounted for"),
        ((summarized(1, 2, 3), KeptMessage(4), KeptMessage(0), KeptMessage(5)), "order"),
        (
            (KeptMessage(0), summarized(1, 2), summarized(3), KeptMessage(4), KeptMessage(5)),
            "2 summaries",
        ),
        (
            (KeptMessage(0), summarized(1, 2, 3, text=" \n"), KeptMessage(4), KeptMessage(5)),
            "empty",
        ),
        ((summarized(0, 1, 2, 3), KeptMessage(4), KeptMessage(5)), "message 0 is protected"),
        ((KeptMessage(0), summarized(1, 2, 3, 4), KeptMessage(5)), "message 4 is protected"),
        (
            (
                KeptMessage(0),
                summarized(1),
                KeptMessage(2),
                KeptMessage(3),
                KeptMessage(4),
                KeptMessage(5),
            ),
            "without its call",
        ),
        (
            (KeptMessage(0), summarized(1, 2, 3, tokens=540), KeptMessage(4), KeptMessage(5)),
            "570 tokens became 570",
        ),
        (
            (
                KeptMessage(0),
                KeptMessage(1),
                summarized(2),
                KeptMessage(3),
                KeptMessage(4),
                KeptMessage(5),
            ),
            "without its result",
        ),
        (
            (
                KeptMessage(0),
                KeptMessage(1),
                EditedMessage(2, result("9"), 5),
                KeptMessage(3),
                KeptMessage(4),
                KeptMessage(5),
            ),
            "without its call",
        ),
    ],
)
def test_an_answer_that_breaks_a_rule_is_refused(
    entries: tuple[CondensationEntry, ...], words: str
) -> None:
    with pytest.raises(CompressionError, match=words):
        validate(plan(), answer(*entries))


def test_a_step_knows_its_reduction() -> None:
    assert Step("fold", 200, 50).reduction == 0.75
    assert Step("fold", 0, 0).reduction == 0.0


IMAGE = Attachment("a.png", "image/png", 6, "aGVsbG8h")
RICH = (
    user("first"),
    Message("assistant", (Reasoning("Hm.", {"signature": "s"}), Text("So."), call("1"), call("2"))),
    Message("tool", (ToolResult("1", (Text("long"), IMAGE), is_error=True),)),
    result("2", "long"),
    assistant("done"),
    user("and now?"),
)
RICH_COUNTS = (10, 100, 100, 100, 10, 10)


def rich() -> Plan:
    divided = Split(head=1, cut=5, tail_tokens=10)
    return Plan(RICH, RICH_COUNTS, divided, "o200k_base")


def edited(index: int, message: Message) -> Condensation:
    entries: list[CondensationEntry] = list(map(KeptMessage, range(len(RICH))))
    entries[index] = EditedMessage(index, message, 5)
    return answer(*entries)


SPOKEN = RICH[1]
RESULT = RICH[2]


@pytest.mark.parametrize(
    ("index", "message", "words"),
    [
        (0, user("f"), "message 0 is protected and was edited"),
        (5, user("n"), "message 5 is protected and was edited"),
        (4, user("done"), "changed the role"),
        (4, replace(RICH[4], id="new"), "id of the message"),
        (1, replace(SPOKEN, parts=SPOKEN.parts[1:3]), "without its call"),
        (1, replace(SPOKEN, parts=(call("1", "write"), call("2"))), "lost or changed a tool call"),
        (1, replace(SPOKEN, parts=(ToolCall("1", "read", "{"), call("2"))), "changed a tool call"),
        (1, replace(SPOKEN, parts=SPOKEN.parts[:2] + SPOKEN.parts[2:]), "kept reasoning"),
        (2, Message("tool", (ToolResult("1", (Text("l"), IMAGE)),)), "error"),
        (2, Message("tool", (ToolResult("1", (Text("l"),), is_error=True),)), "an attachment"),
    ],
    ids=range(10),
)
def test_an_edit_that_breaks_a_rule_is_refused(index: int, message: Message, words: str) -> None:
    with pytest.raises(CompressionError, match=words):
        validate(rich(), edited(index, message))


def test_an_edit_that_adds_text_next_to_a_result_is_refused() -> None:
    more = replace(RESULT, parts=(*RESULT.parts, Text("And by the way.")))
    with pytest.raises(CompressionError, match="added text beside a tool result"):
        validate(rich(), edited(2, more))


def test_tokens_are_counted_here_whatever_a_strategy_reports() -> None:
    long = "word " * 900
    before = plan()
    larger = answer(
        *(KeptMessage(index) for index in range(2)),
        EditedMessage(2, result("1", long), 1),
        *(KeptMessage(index) for index in range(3, len(before.messages))),
    )
    with pytest.raises(NoGainError):
        accept(before, larger)


def test_an_edit_that_keeps_to_the_rules_is_fine() -> None:
    validate(rich(), edited(1, replace(SPOKEN, parts=(Text("S."), *SPOKEN.parts[2:]))))
    short = Message("tool", (ToolResult("1", (Text("l"), IMAGE), is_error=True),))
    validate(rich(), edited(2, short))


def test_reasoning_items_and_the_last_user_message_are_protected() -> None:
    item = Message("assistant", (Reasoning("Hm.", {"id": "r"}),))
    messages = (user("a"), item, assistant("b"), user("c"), assistant("", call("1")), result("1"))
    divided = Split(head=0, cut=3, tail_tokens=0)
    running = Plan(messages, (9,) * 6, divided, "o200k_base", zones=Zones(0, 6))
    assert running.protected == {1, 2, 3}
    assert running.editable == (0, 4, 5)
    assert replace(running, zones=None).editable == (0,)


def test_results_of_a_running_loop_may_be_edited_up_to_what_retention_keeps() -> None:
    loop = [
        message
        for id in ("1", "2", "3")
        for message in (assistant("", call(id), thinking="Hm."), result(id))
    ]
    messages = (user("a"), *loop)
    running = Plan(messages, (9,) * 7, Split(0, 0, 0), "o200k_base", zones=Zones(0, 5))
    assert running.protected == {0, 1, 3, 5, 6}
    assert running.editable == (2, 4)


def test_a_call_that_waits_for_its_result_is_protected() -> None:
    messages = (user("a"), assistant("", call("1")), result("1"), assistant("", call("2")))
    waiting = Plan(messages, (9,) * 4, Split(0, 0, 0), "o200k_base", zones=Zones(0, 4))
    assert waiting.protected == {0, 3}


def test_an_answer_that_changes_nothing_is_fine_where_that_is_expected() -> None:
    same = unchanged(plan(), "test", "why")
    assert same.is_unchanged
    assert same.warnings == ("why",)
    validate(plan(), same, may_be_unchanged=True)
    with pytest.raises(NoGainError):
        validate(plan(), same)
    with pytest.raises(CompressionError, match="accounted for"):
        validate(plan(), answer(KeptMessage(0)), may_be_unchanged=True)


def test_messages_edited_before_are_summarized_from_their_originals() -> None:
    before = replace(plan(), originals={2: result("1", "all of it")})
    assert before.original(2) == result("1", "all of it")
    assert before.original(1) == MESSAGES[1]


def test_only_changed_parts_of_an_edited_message_are_removed() -> None:
    kept, cut = Text("as it was"), ToolCall("1", "write", {"content": "long " * 90})
    original = Message("assistant", (kept, cut))
    shown = replace(original, parts=(kept, replace(cut, arguments={"content": "long"})))
    assert removed_parts(original, shown) == replace(original, parts=(cut,))
    assert removed_parts(original, original).parts == ()
