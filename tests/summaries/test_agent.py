"""Summaries of an agent's work: goal, state, errors with their fixes, plan, dates, harness text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from enfold.messages import Message
from enfold.summaries import SummaryRequest
from enfold.summaries.local import summarize
from enfold.summaries.prompts import build
from enfold.summaries.request import AGENT_SECTIONS, style_for
from enfold.testing import assistant, call, result, user

EDIT = {"file_path": "src/cart.py", "old_string": "return a", "new_string": "return round(a, 2)"}
TODO = {
    "todos": [
        {"content": "Round the totals", "status": "completed"},
        {"content": "Write the changelog", "status": "in_progress"},
        {"content": "Tag release 2.4", "status": "pending"},
    ]
}
REMINDER = (
    "<system-reminder>\nAs you answer, consider whether the skill pdf-tools applies here?\n"
    "</system-reminder>\n"
)
WORK = (
    user(
        f"{REMINDER}Totals in the cart are off by a cent; please fix the rounding in src/cart.py."
    ),
    assistant("Yes, noted. " * 60),
    assistant(
        "I run the tests first.", call("1", "Bash", {"command": "pytest -q tests/test_cart.py"})
    ),
    result("1", "E AssertionError: 0.1 + 0.2 != 0.3\n1 failed in 0.12s", is_error=True),
    assistant("", call("2", "Edit", EDIT)),
    result("2", "The file was updated."),
    assistant("", call("3", "Bash", {"command": "pytest -q tests/test_cart.py"})),
    result("3", "3 passed in 0.10s"),
    assistant("", call("4", "Bash", {"command": "git checkout -b fix/rounding"})),
    result("4", "Switched to a new branch 'fix/rounding'"),
    assistant("", call("5", "Bash", {"command": "npm run deploy"})),
    result("5", "Error: missing token DEPLOY_KEY", is_error=True),
    assistant("", call("6", "TodoWrite", TODO)),
    result("6", "ok"),
)


def sections(text: str) -> dict[str, str]:
    blocks = (block.partition("\n") for block in text.removeprefix("## ").split("\n\n## "))
    return {name: lines for name, _, lines in blocks}


def written(messages: tuple[Message, ...], previous: str | None = None) -> str:
    request = SummaryRequest(messages, previous=previous, max_tokens=600, style="agent")
    return summarize(request).text


def test_the_state_of_the_work_is_read_from_the_calls() -> None:
    found = sections(written(WORK))
    assert [name for name in AGENT_SECTIONS if name in found] == list(found)
    assert "off by a cent" in found["Goal"]
    state = found["State"]
    assert "src/cart.py: edited (`return round(a, 2)`)" in state
    assert "Tests `pytest -q tests/test_cart.py`: 3 passed in 0.10s" in state
    assert "Branch: fix/rounding" in state
    fixed = found["Errors and Fixes"]
    assert "AssertionError: 0.1 + 0.2 != 0.3; it succeeded after src/cart.py changed" in fixed
    assert "`npm run deploy`: failed with" in found["Tried Without Success"]
    assert "In progress: Write the changelog" in found["Next Step"]
    assert "To do: Tag release 2.4" in found["Next Step"]


def test_a_failed_run_that_is_not_marked_as_an_error_is_linked_to_its_fix() -> None:
    unmarked = tuple(
        result("1", "E AssertionError: 0.1 + 0.2 != 0.3\n1 failed in 0.12s")
        if message == WORK[3]
        else message
        for message in WORK
    )
    fixed = sections(written(unmarked))["Errors and Fixes"]
    assert "1 failed in 0.12s; it succeeded after src/cart.py changed" in fixed


def test_a_later_state_replaces_the_earlier_one() -> None:
    later = (
        assistant("", call("7", "Bash", {"command": "npm run deploy"})),
        result("7", "deployed successfully"),
        assistant("", call("8", "Edit", {**EDIT, "new_string": "return quantize(a)"})),
        result("8", "The file was updated."),
        assistant(
            "", call("9", "TodoWrite", {"todos": [{"content": "Rest", "status": "pending"}]})
        ),
        result("9", "ok"),
    )
    found = sections(written(later, written(WORK)))
    assert found["State"].count("src/cart.py: ") == 1
    assert "return quantize(a)" in found["State"]
    assert "To do: Rest" in found["Next Step"]
    assert "changelog" not in found["Next Step"]
    assert "failed with" not in found.get("Tried Without Success", "")


def test_text_that_a_client_added_is_never_the_users_word() -> None:
    text = written(WORK)
    assert "User: As you answer" not in text
    assert "pdf-tools" not in sections(text).get("Open Questions", "")
    single_text = summarize(SummaryRequest((user(f"{REMINDER}Fix the cart, please."),))).text
    assert "User: Fix the cart" in single_text
    assert "User: As you answer" not in single_text


def test_lines_that_differ_only_in_a_counter_are_one_line() -> None:
    lines = tuple(
        assistant(f"Archived archive-1-{n}; the active project did not change.")
        for n in range(1, 41)
    )
    rooms = tuple(assistant(f"Room {n} seats {seats}.") for n, seats in enumerate((9, 4, 7, 5, 8)))
    text = summarize(SummaryRequest((*lines, *rooms), max_tokens=400)).text
    assert text.count("Archived") == 1
    assert "Archived archive-1-1–40; the active project did not change. (40 times)" in text
    assert "Room 3 seats 5." in text, "numbers that say something are not a counter"


def dated(message: Message, day: int) -> Message:
    return replace(message, at=datetime(2026, 5, day, 12, tzinfo=UTC))


def test_dates_stand_before_the_messages_of_their_day() -> None:
    messages = (
        dated(user("We ship the parser to Oslo on Friday, whatever happens to the lexer."), 4),
        dated(user("The customer in Bergen wants the invoice module before the parser."), 7),
        dated(assistant("Yes, noted. " * 60), 7),
    )
    text = summarize(SummaryRequest(messages, max_tokens=300)).text
    assert "[2026-05-04] User: We ship the parser" in text
    assert "[2026-05-07] User: The customer in Bergen" in text
    again = summarize(
        SummaryRequest((dated(user("Fine, thanks."), 9),), previous=text, max_tokens=300)
    ).text
    assert "[2026-05-04] User: We ship the parser" in again
    prompt = build(SummaryRequest(messages)).user
    assert "[2026-05-04]\nUSER: We ship" in prompt
    assert "[2026-05-07]\nUSER: The customer" in prompt


def test_the_style_follows_the_messages_and_the_summary_before_them() -> None:
    assert style_for(WORK, None) == "agent"
    assert style_for((user("Hello."),), None) == "default"
    assert style_for((user("Hello."),), written(WORK)) == "agent"
    system = build(SummaryRequest(WORK, style="agent")).system
    headings = [line[3:] for line in system.splitlines() if line.startswith("## ")]
    assert tuple(headings) == AGENT_SECTIONS
