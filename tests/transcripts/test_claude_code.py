from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import wire
from enfold.errors import DialectError
from enfold.transcripts import problems, read
from tests.transcripts.files import (
    CLAUDE_LOG,
    call,
    claude_block,
    claude_event,
    claude_user,
    lines,
    outline,
    result,
    text,
    the_one,
)

WHOLE = [
    "user: list the files",
    "assistant: Two looks., Bash(c1), Bash(c2)",
    "user: c1 = main.py",
    "user: c2 = README",
    "assistant: Two files.",
]


def test_the_blocks_of_a_reply_are_one_message() -> None:
    transcript = the_one(lines(CLAUDE_LOG))
    assert (transcript.format, transcript.dialect) == ("claude-code", "anthropic")
    assert outline(transcript) == WHOLE
    assert [entry.id for entry in transcript.entries] == ["u1", "a1", "r1", "r2", "a4"]
    assert [entry.message.id for entry in transcript.entries] == ["u1", "a1", "r1", "r2", "a4"]
    assert problems(transcript.conversation().messages) == ()


def test_fields_of_the_log_are_kept() -> None:
    transcript = the_one(lines(CLAUDE_LOG))
    assert transcript.id == "s-1"
    assert transcript.extras == {
        "sessionId": "s-1",
        "cwd": "/home/ada/ledger",
        "gitBranch": "main",
        "version": "2.1.62",
        "skipped": {"file-history-snapshot": 1, "progress": 1},
    }
    assert transcript.entries[1].extras["events"] == CLAUDE_LOG[3:6]
    assert transcript.entries[2].extras["events"][0]["toolUseResult"] == {"stdout": "main.py"}


def test_only_what_the_provider_takes_is_in_the_messages() -> None:
    rendered = wire.render(the_one(lines(CLAUDE_LOG)).conversation())
    assert [sorted(message) for message in rendered] == [["content", "role"]] * 5


def test_a_reply_whose_first_call_is_answered_before_the_second_is_made() -> None:
    transcript = the_one(
        lines(
            [
                claude_user("u1", None, "look"),
                claude_block("a1", "u1", "msg_1", call("c1")),
                claude_user("r1", "a1", result("c1", "one")),
                claude_block("a2", "r1", "msg_1", call("c2")),
                claude_user("r2", "a2", result("c2", "two")),
                claude_block("a3", "r2", "msg_2", text("Done.")),
            ]
        )
    )
    assert outline(transcript) == [
        "user: look",
        "assistant: Bash(c1), Bash(c2)",
        "user: c1 = one",
        "user: c2 = two",
        "assistant: Done.",
    ]
    assert len(transcript.leaves) == 1


PARALLEL = st.integers(1, 4).flatmap(
    lambda size: st.tuples(st.permutations(range(size)), st.integers(0, size - 1), st.booleans())
)


@given(PARALLEL)
def test_no_result_of_parallel_calls_falls_off_the_branch(
    case: tuple[list[int], int, bool],
) -> None:
    order, followed, through_progress = case
    made = range(len(order))
    events = [
        claude_user("u", None, "go"),
        *(claude_block(f"a{n}", f"a{n - 1}" if n else "u", "msg_1", call(f"c{n}")) for n in made),
        *(claude_user(f"r{n}", f"a{n}", result(f"c{n}", str(n))) for n in order),
    ]
    last = f"a{followed}" if through_progress else f"r{followed}"
    events.append(claude_event("progress", "p", last))
    events.append(claude_block("end", "p", "msg_2", text("Done.")))
    transcript = the_one(lines(events))
    assert outline(transcript) == [
        "user: go",
        "assistant: " + ", ".join(f"Bash(c{n})" for n in made),
        *(f"user: c{n} = {n}" for n in order),
        "assistant: Done.",
    ]
    assert len(transcript.leaves) == 1


def test_going_back_leaves_a_branch_behind() -> None:
    transcript = the_one(
        lines(
            [
                claude_user("u1", None, "hi"),
                claude_block("a1", "u1", "msg_1", text("Hello.")),
                claude_user("u2", "a1", "a joke"),
                claude_block("a2", "u2", "msg_2", text("Knock knock.")),
                claude_user("u3", "a1", "a poem"),
            ]
        )
    )
    assert outline(transcript) == ["user: hi", "assistant: Hello.", "user: a poem"]
    assert transcript.leaves == ("a2", "u3")


def test_a_call_that_is_answered_twice_makes_a_branch() -> None:
    transcript = the_one(
        lines(
            [
                claude_block("a1", None, "msg_1", call("c1")),
                claude_user("r1", "a1", result("c1", "interrupted")),
                claude_user("r2", "a1", result("c1", "done")),
                claude_block("a2", "r2", "msg_2", text("Done.")),
            ]
        )
    )
    assert outline(transcript) == ["assistant: Bash(c1)", "user: c1 = done", "assistant: Done."]
    assert transcript.leaves == ("r1", "a2")


def test_a_compaction_takes_nothing_away() -> None:
    boundary = claude_event(
        "system", "b", None, subtype="compact_boundary", logicalParentUuid="a4", content="…"
    )
    transcript = the_one(
        lines(
            [
                *CLAUDE_LOG,
                boundary,
                claude_user("s", "b", "In short: …", isCompactSummary=True),
                claude_user("u9", "s", "go on"),
            ]
        )
    )
    assert outline(transcript) == [*WHOLE, "user: In short: …", "user: go on"]
    assert transcript.extras["skipped"]["system:compact_boundary"] == 1
    assert transcript.entries[-2].extras["events"][0]["isCompactSummary"] is True


def test_a_compaction_that_does_not_say_what_it_followed() -> None:
    summary = claude_user("s", None, "In short: …", isCompactSummary=True)
    assert outline(the_one(lines([*CLAUDE_LOG, summary]))) == [*WHOLE, "user: In short: …"]


def side(event: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**event, "isSidechain": True, **fields}


def test_sub_agents_are_transcripts_of_their_own() -> None:
    main, named, unnamed = read(
        lines(
            [
                claude_user("u1", None, "research this"),
                claude_block("a1", "u1", "msg_1", call("c1", "Task")),
                side(claude_user("x1", None, "find the paper"), agentId="ag7"),
                side(claude_user("y1", None, "find the book")),
                side(claude_block("x2", "x1", "msg_2", text("Found it.")), agentId="ag7"),
                side(claude_event("progress", "y2", "y1")),
                side(claude_block("y3", "y2", "msg_3", text("Here."))),
                claude_user("r1", "a1", result("c1", "both found")),
            ]
        )
    )
    assert outline(main) == ["user: research this", "assistant: Task(c1)", "user: c1 = both found"]
    assert outline(named) == ["user: find the paper", "assistant: Found it."]
    assert outline(unnamed) == ["user: find the book", "assistant: Here."]
    assert [main.id, named.id, unnamed.id] == ["s-1", "s-1/ag7", "s-1/y1"]
    assert named.extras["agentId"] == "ag7"
    assert (main.extras["skipped"], "skipped" in named.extras) == ({"progress": 1}, False)


def test_the_log_of_a_sub_agent_alone() -> None:
    agent = the_one(lines([side(claude_user("x1", "elsewhere", "find the paper"), agentId="ag7")]))
    assert (agent.id, outline(agent)) == ("s-1/ag7", ["user: find the paper"])


def test_queued_prompts_are_messages() -> None:
    queued = {"type": "queued_command", "prompt": "and hurry", "commandMode": "prompt"}
    transcript = the_one(
        lines(
            [
                claude_user("u1", None, "go"),
                claude_event("attachment", "q", "u1", attachment=queued),
                claude_event("attachment", "w", "q", attachment={"type": "todo_reminder"}),
                claude_block("a1", "w", "msg_1", text("Yes.")),
            ]
        )
    )
    assert outline(transcript) == ["user: go", "user: and hurry", "assistant: Yes."]
    assert transcript.extras["skipped"] == {"attachment": 1}


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        ([{"type": "summary", "summary": "Files", "leafUuid": "a4"}], "Files"),
        ([{"type": "summary", "summary": "Another session", "leafUuid": "z"}], ""),
        (
            [
                {"type": "custom-title", "customTitle": "Mine", "sessionId": "s-1"},
                {"type": "ai-title", "aiTitle": "Its own", "sessionId": "s-1"},
            ],
            "Mine",
        ),
        (
            [
                {"type": "ai-title", "aiTitle": "First", "sessionId": "s-1"},
                {"type": "ai-title", "aiTitle": "Second", "sessionId": "s-1"},
            ],
            "Second",
        ),
    ],
    ids=["a summary", "a summary of another", "the person's own", "the latest"],
)
def test_titles(titles: list[dict[str, Any]], expected: str) -> None:
    assert the_one(lines([*titles, *CLAUDE_LOG])).title == expected


def test_events_that_were_written_twice_count_once() -> None:
    transcript = the_one(lines([*CLAUDE_LOG, *CLAUDE_LOG[2:5]]))
    assert outline(transcript) == WHOLE
    assert transcript.extras["repeated"] == 3


def test_repeated_blocks_count_once() -> None:
    first = claude_block("a1", None, "msg_1", text("Hello."))
    again = claude_block("a2", "a1", "msg_1", text("Hello."))
    again["message"]["content"].append(call("c1"))
    assert outline(the_one(lines([first, again]))) == ["assistant: Hello., Bash(c1)"]


def test_a_message_whose_parent_is_lost_follows_the_one_before() -> None:
    transcript = the_one(lines([*CLAUDE_LOG, claude_user("u9", "lost", "and now?")]))
    assert outline(transcript) == [*WHOLE, "user: and now?"]
    assert transcript.extras["relinked"] == 1


def test_the_stream_format_of_the_program_is_read() -> None:
    def printed(kind: str, content: Any, caller: str | None = None) -> dict[str, Any]:
        message = {"role": kind, "content": content, "id": f"msg_{content}"}
        return {
            "type": kind,
            "message": message,
            "parent_tool_use_id": caller,
            "session_id": "s-2",
        }

    main, agent = read(
        lines(
            [
                {"type": "system", "subtype": "init", "session_id": "s-2", "tools": []},
                printed("user", "go"),
                printed("assistant", [call("c1", "Task")]),
                printed("user", "find it", "c1"),
                printed("assistant", "Found.", "c1"),
                printed("user", result("c1", "found")),
                {"type": "result", "subtype": "success", "session_id": "s-2"},
            ]
        )
    )
    assert outline(main) == ["user: go", "assistant: Task(c1)", "user: c1 = found"]
    assert outline(agent) == ["user: find it", "assistant: Found."]
    assert [main.id, agent.id] == ["s-2", "s-2/c1"]


def test_a_session_without_messages_is_read() -> None:
    assert list(read(lines([{"type": "summary", "summary": "…", "leafUuid": "z"}]))) == []


def test_a_log_that_is_still_being_written() -> None:
    transcript = the_one(lines(CLAUDE_LOG) + b'{"parentUuid":"a4","isSidechain":fal')
    assert outline(transcript) == WHOLE
    assert transcript.extras["truncated"] == "line 10"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (claude_user("u9", "a4", 7), "line 10: message.content: expected "),
        (claude_event("user", "u9", "a4"), "line 10: message: expected an object"),
        (
            claude_block("a9", "a4", "msg_2", {"type": "text"}),
            "line 10: message.content[0].text: expected text",
        ),
        ({**claude_user("u9", "a4", "…"), "uuid": 7}, "line 10: uuid: expected text"),
        (claude_user("u9", "a4", "…", parentUuid=[7]), "line 10: parentUuid: expected text"),
        (side(claude_user("u9", "a4", "…"), agentId=[7]), "line 10: agentId: expected text"),
    ],
    ids=["no content", "no message", "no text", "no id", "no parent", "no agent"],
)
def test_errors_name_the_line_and_the_field(event: dict[str, Any], words: str) -> None:
    with pytest.raises(DialectError) as caught:
        list(read(lines([*CLAUDE_LOG, event])))
    assert str(caught.value).startswith(words)
