from __future__ import annotations

from typing import Any

import pytest

from enfold.errors import DialectError
from enfold.messages import Message, Text
from enfold.transcripts import problems, read
from tests.transcripts.files import CODEX_LOG, codex_line, codex_message, lines, outline, the_one


def item(**fields: Any) -> dict[str, Any]:
    return codex_line("response_item", **fields)


def spoken(role: str, content: str) -> dict[str, Any]:
    return item(**codex_message(role, content))


def test_items_are_entries_and_events_say_nothing_twice() -> None:
    transcript = the_one(lines(CODEX_LOG))
    assert (transcript.format, transcript.dialect) == ("codex", "openai-responses")
    assert outline(transcript) == [
        "user: <environment_context>…",
        "user: count the lines",
        "assistant: Reasoning",
        "assistant: shell(call_1)",
        "tool: call_1 = 42",
        "assistant: 42 lines.",
    ]
    assert problems(transcript.conversation().messages) == ()


def test_session_fields_of_the_log_are_kept() -> None:
    transcript = the_one(lines(CODEX_LOG))
    assert transcript.id == "019f"
    assert transcript.system == Message(
        "system", (Text("You are a careful programmer."),), dialect="openai-responses"
    )
    assert transcript.extras["cwd"] == "/home/ada/ledger"
    assert transcript.extras["turn_context"]["model"] == "gpt-5-codex"
    assert transcript.extras["skipped"] == {"event_msg": 4, "turn_context": 1}
    assert transcript.entries[1].extras["timestamp"] == "2026-01-27T12:34:56.000Z"


def test_an_entry_has_the_id_of_its_item_if_there_is_one() -> None:
    entries = the_one(lines(CODEX_LOG)).entries
    assert [entry.id for entry in entries] == ["#0", "#1", "rs_1", "#3", "#4", "#5"]
    assert [entry.parent_id for entry in entries] == [None, "#0", "#1", "rs_1", "#3", "#4"]


def test_logs_of_bare_items() -> None:
    transcript = the_one(
        lines(
            [
                {"id": "c3c4", "timestamp": "2025-08-18T01:16:13.522Z", "instructions": None},
                {"record_type": "state"},
                codex_message("user", "hi"),
                {"record_type": "state"},
                codex_message("assistant", "hello"),
            ]
        )
    )
    assert (transcript.format, transcript.id) == ("codex", "c3c4")
    assert outline(transcript) == ["user: hi", "assistant: hello"]
    assert transcript.extras["skipped"] == {"record": 2}


def test_a_compaction_takes_nothing_away() -> None:
    replacement = [codex_message("user", "old words"), {"type": "compaction"}]
    transcript = the_one(
        lines(
            [
                spoken("user", "old words"),
                spoken("assistant", "an old answer"),
                codex_line("compacted", message="In short: …", replacement_history=replacement),
                spoken("user", "new words"),
            ]
        )
    )
    assert outline(transcript) == ["user: old words", "assistant: an old answer", "user: new words"]
    assert transcript.extras["compactions"] == [
        {"after": "#1", "message": "In short: …", "replacement_history": replacement}
    ]


def rolled_back(count: Any) -> dict[str, Any]:
    return codex_line("event_msg", type="thread_rolled_back", num_turns=count)


def test_a_roll_back_leaves_a_branch_behind() -> None:
    transcript = the_one(
        lines(
            [
                spoken("user", "<environment_context>…"),
                spoken("user", "one"),
                spoken("assistant", "first"),
                spoken("user", "two"),
                spoken("assistant", "second"),
                spoken("user", "<turn_aborted>…"),
                rolled_back(1),
                spoken("user", "other"),
            ]
        )
    )
    assert outline(transcript)[1:] == ["user: one", "assistant: first", "user: other"]
    assert len(transcript.leaves) == 2
    assert outline(transcript, transcript.leaves[0])[3:5] == ["user: two", "assistant: second"]


def test_a_roll_back_of_everything() -> None:
    start = [spoken("user", "one"), spoken("assistant", "first"), rolled_back(7)]
    assert outline(the_one(lines(start))) == []
    assert outline(the_one(lines([*start, spoken("user", "again")]))) == ["user: again"]


def test_a_forked_log_is_named_after_itself() -> None:
    forked = the_one(lines([codex_line("session_meta", id="child"), *CODEX_LOG]))
    assert forked.id == "child"
    assert len(forked.entries) == 6


def test_items_that_were_never_sent_are_no_entries() -> None:
    transcript = the_one(
        lines([spoken("user", "hi"), item(type="ghost_snapshot", ghost_commit={})])
    )
    assert outline(transcript) == ["user: hi"]
    assert transcript.extras["skipped"] == {"ghost_snapshot": 1}


def test_a_session_that_has_not_begun() -> None:
    assert list(read(lines(CODEX_LOG[:2]))) == []


def test_a_log_that_is_still_being_written() -> None:
    transcript = the_one(lines(CODEX_LOG) + b'{"timestamp":"2026-01-27T12:35')
    assert len(transcript.entries) == 6
    assert transcript.extras["truncated"] == "line 13"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            codex_line("response_item", type="message", role=7),
            "line 2: payload.role: expected text",
        ),
        (
            codex_line("response_item", type="message", role="user", content=[{"text": "a"}, 7]),
            "line 2: payload.content[1]: expected an object",
        ),
        ({"type": "response_item", "payload": [7]}, "line 2: payload: expected an object"),
        (rolled_back("one"), "line 2: payload.num_turns: expected a whole number"),
    ],
    ids=["no role", "no block", "no payload", "no number"],
)
def test_errors_name_the_line_and_the_field(event: dict[str, Any], words: str) -> None:
    with pytest.raises(DialectError) as caught:
        list(read(lines([CODEX_LOG[0], event])))
    assert str(caught.value).startswith(words)
