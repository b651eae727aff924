"""Truncation: cut texts, unchanged texts, and complete pairs, ids and files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from enfold.condensation import Condensation, EditedMessage, validate
from enfold.jsontext import dumps
from enfold.messages import Attachment, Data, Message, Part, Reasoning, Text, ToolCall, ToolResult
from enfold.strategies.shortened_text import SUPPRESSED
from enfold.testing import assistant, call, result, system, user
from tests.strategies.tasks import plan_for, strategy

OUTPUT = "\n".join(f"line {n} of the output" for n in range(1, 101))
CODE = "def f():\n    return 1\n" * 60
IMAGE = Attachment("shot.png", "image/png", 6, "aGVsbG8h")
CHAT = (
    user("First of all, look around."),
    assistant("Looking.", call("1", "read", {"path": "a.py", "note": CODE, "n": 7})),
    result("1", OUTPUT),
    assistant("There it is. " + "More words. " * 200),
    user("Fine. " + "And so on. " * 200),
    assistant("", call("2")),
    result("2", OUTPUT),
    assistant("Done."),
    user("Thanks."),
)


async def condense(
    messages: tuple[Message, ...] = CHAT, **config: Any
) -> tuple[list[Message], Condensation]:
    how = strategy("truncation", {"preserveRecentCount": 2, **config})
    plan = plan_for(messages, how)
    answer = await how.condense(plan)
    if not answer.is_unchanged:
        validate(plan, answer)
    edits = {edit.index: edit.message for edit in answer.edits}
    return [edits.get(index, message) for index, message in enumerate(messages)], answer


def text(part: Part) -> str:
    assert isinstance(part, ToolResult)
    assert isinstance(part.parts[0], Text)
    return part.parts[0].text


async def test_old_results_and_parameters_keep_their_beginning() -> None:
    shown, answer = await condense(maxToolResultLines=3, maxToolParamChars=50)
    assert text(shown[2].parts[0]).split("\n") == [
        "line 1 of the output",
        "line 2 of the output",
        "line 3 of the output",
        "⟨ ... truncated, 97 of 100 lines ⟩",
    ]
    cut = shown[1].parts[1]
    assert isinstance(cut, ToolCall)
    assert isinstance(cut.arguments, dict)
    assert (cut.id, cut.name, cut.arguments["path"], cut.arguments["n"]) == ("1", "read", "a.py", 7)
    assert cut.arguments["note"].startswith(CODE[:40])
    assert "truncated" in cut.arguments["note"]
    assert [edit.index for edit in answer.edits] == [1, 2, 6]
    assert answer.steps[0].tokens_after < answer.steps[0].tokens_before


async def test_typed_and_assistant_text_stays_by_default() -> None:
    shown, _ = await condense()
    assert (shown[3], shown[4]) == (CHAT[3], CHAT[4])
    shown, _ = await condense(preserveAssistantText=False, maxMessageChars=20)
    assert shown[3] != CHAT[3]
    assert shown[4] == CHAT[4]
    shown, _ = await condense(preserve_user_messages=False, max_message_chars=20)
    assert shown[3] == CHAT[3]
    assert isinstance(shown[4].parts[0], Text)
    assert shown[4].parts[0].text.startswith("Fine. And so on. And")


async def test_suppressed_content_is_a_marker_in_its_place() -> None:
    shown, answer = await condense(truncationMode="suppress")
    assert text(shown[2].parts[0]) == text(shown[6].parts[0]) == SUPPRESSED
    assert answer.operations == ("suppress_completed",)
    cut = shown[1].parts[1]
    assert isinstance(cut, ToolCall)
    assert cut.arguments == {"path": "a.py", "note": SUPPRESSED, "n": 7}


async def test_each_type_of_content_has_its_own_mode() -> None:
    shown, _ = await condense(toolResultMode="suppress", toolParamMode="keep")
    assert text(shown[2].parts[0]) == SUPPRESSED
    assert shown[1] == CHAT[1]
    shown, _ = await condense(toolResultMode="keep", toolParamMode="suppress")
    assert shown[2] == CHAT[2]
    assert shown[1] != CHAT[1]


async def test_the_first_the_recent_and_the_users_last_message_are_left_alone() -> None:
    texts = {"preserveUserMessages": False, "preserveAssistantText": False, "maxMessageChars": 5}
    long = (user(OUTPUT), *CHAT[1:], assistant(OUTPUT))
    shown, _ = await condense(long, **texts)
    assert shown[0] == long[0]
    assert shown[-2:] == list(long[-2:])
    shown, _ = await condense(long, **texts, preserveFirstCount=3, preserveRecentCount=7)
    assert [a == b for a, b in zip(shown, long, strict=True)] == [True] * 10


async def test_the_first_messages_are_counted_after_the_instructions() -> None:
    messages = (system("Be brief."), *CHAT)
    for first, edited in ((0, [2, 3, 7]), (2, [3, 7]), (3, [7])):
        _, answer = await condense(messages, preserveFirstCount=first, maxToolParamChars=50)
        assert [edit.index for edit in answer.edits] == edited


@pytest.mark.parametrize(
    ("mode", "most", "length", "is_edited"),
    [("suppress", 2_000, 100, True), ("suppress", 5, 10, False), ("truncate", 5, 100, True)],
)
async def test_arguments_that_are_a_json_text_are_shortened_too(
    mode: str, most: int, length: int, *, is_edited: bool
) -> None:
    written = ToolCall("1", "read", dumps({"note": "word " * (length // 5)}).decode())
    messages = (CHAT[0], assistant("Looking.", written), *CHAT[2:])
    shown, _ = await condense(messages, toolParamMode=mode, maxToolParamChars=most)
    assert (shown[1] != messages[1]) == is_edited


async def test_errors_stay_unless_they_need_not_and_are_errors_all_the_same() -> None:
    failed = (user("Go."), assistant("", call("1")), result("1", OUTPUT, is_error=True), *CHAT)
    shown, _ = await condense(failed)
    assert shown[2] == failed[2]
    shown, _ = await condense(failed, preserveErrors=False, maxToolResultLines=3, headAndTail=True)
    part = shown[2].parts[0]
    assert isinstance(part, ToolResult)
    assert part.is_error
    assert text(part).split("\n")[:2] == OUTPUT.split("\n")[:2]
    assert text(part).endswith("line 100 of the output")


async def test_a_running_tool_loop_is_cut_short_up_to_what_stays() -> None:
    running = (*CHAT, assistant("", call("3", "read", {"note": CODE})), result("3", OUTPUT))
    signed = assistant("", call("4", "read", {"note": CODE}), thinking="Hm.")
    messages = (*running, signed, result("4", OUTPUT), *_more_rounds(6))
    shown, answer = await condense(messages, preserveRecentCount=4)
    assert {9, 10, 12, len(messages) - 5} <= {edit.index for edit in answer.edits}
    assert shown[11] == signed
    assert shown[-4:] == list(messages[-4:])


def _more_rounds(number: int) -> tuple[Message, ...]:
    return tuple(
        m for n in range(number) for m in (assistant("", call(f"m{n}")), result(f"m{n}", OUTPUT))
    )


async def test_an_edited_reply_loses_all_its_reasoning_and_another_none() -> None:
    thinking = Reasoning("Hm.", {"signature": "s"})
    written = call("1", "write", {"content": CODE})
    long = Message("assistant", (thinking, Text("So."), thinking, written))
    short = Message("assistant", (thinking, call("2")))
    shown, _ = await condense((user("Go."), long, result("1"), short, result("2"), *CHAT))
    assert [type(part) for part in shown[1].parts] == [Text, ToolCall]
    assert shown[3] == short


async def test_reasoning_that_is_an_item_binds_what_follows_it() -> None:
    item = Message("assistant", (Reasoning("Hm.", {"encrypted_content": "x"}),))
    written = assistant("", call("1", "write", {"content": CODE}))
    messages = (user("Go."), item, written, result("1", OUTPUT), *CHAT)
    shown, _ = await condense(messages)
    assert shown[1:3] == [item, written]
    assert shown[3] != messages[3]


async def test_files_stay_where_they_are() -> None:
    rich = Message("tool", (ToolResult("1", (Text(OUTPUT), IMAGE, Text("end"))),))
    message = Message("user", (Text("See."), IMAGE))
    shown, _ = await condense((user("Go."), message, assistant("", call("1")), rich, *CHAT))
    part = shown[3].parts[0]
    assert isinstance(part, ToolResult)
    assert part.parts[1] is IMAGE
    assert shown[1] == message


async def test_structured_output_is_cut_inside() -> None:
    data = Data({"rows": [{"id": n, "text": OUTPUT} for n in range(40)], "total": 40})
    rich = Message("tool", (ToolResult("1", (data,)),))
    shown, _ = await condense(
        (user("Go."), assistant("", call("1")), rich, *CHAT), maxToolResultLines=2
    )
    part = shown[2].parts[0]
    assert isinstance(part, ToolResult)
    cut = part.parts[0]
    assert isinstance(cut, Data)
    assert cut.value["total"] == 40
    assert len(cut.value["rows"]) == 3
    assert cut.value["rows"][0]["id"] == 0
    assert cut.value["rows"][2] == "⟨ ... truncated, 38 of 40 items ⟩"


async def test_a_conversation_without_long_texts_stays_unchanged_with_a_warning() -> None:
    messages = (user("Hi."), assistant("", call("1")), result("1", "ok"), assistant("Hello."))
    shown, answer = await condense(messages, preserveRecentCount=0)
    assert answer.is_unchanged
    assert answer.warnings
    assert shown == list(messages)


async def test_estimates_are_exact_and_cost_nothing() -> None:
    how = strategy("truncation")
    plan = plan_for(CHAT * 3, how)
    answer = await how.condense(plan)
    foretold = await how.estimate(plan)
    assert foretold.reduction.tokens_after == answer.tokens(plan)
    assert (foretold.cost.calls, foretold.cost.dollars) == (0, 0.0)
    assert set(how.touches(plan)) == {
        e.index for e in answer.entries if isinstance(e, EditedMessage)
    }


@pytest.mark.parametrize(("recent", "cut"), [(2, [2, 6]), (3, [2]), (7, []), (0, [2, 6])])
async def test_as_many_of_the_newest_messages_stay_as_the_config_says(
    recent: int, cut: list[int]
) -> None:
    _, answer = await condense(maxToolResultLines=3, preserveRecentCount=recent)
    results = [edit.index for edit in answer.edits if edit.index in {2, 6}]
    assert results == cut
    # A target that is out of reach changes nothing about that.
    how = strategy("truncation", {"maxToolResultLines": 3, "preserveRecentCount": recent})
    aimed = await how.condense(plan_for(CHAT, how, target=1))
    assert [edit.index for edit in aimed.edits if edit.index in {2, 6}] == cut


async def test_content_is_left_out_only_where_cutting_misses_the_target() -> None:
    config = {"preserveRecentCount": 2, "maxToolResultLines": 3, "suppressIfNeeded": True}
    how = strategy("truncation", config)
    plan = plan_for(CHAT, how)
    reached = (await how.condense(plan)).tokens(plan)
    at_it, below_it = (replace(plan, target=reached - missing) for missing in (0, 1))
    assert SUPPRESSED not in str((await how.condense(at_it)).entries)
    assert SUPPRESSED in str((await how.condense(below_it)).entries)
