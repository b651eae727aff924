"""State that later results supersede."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from enfold.jsontext import loads
from enfold.messages import Reasoning, ToolCall
from enfold.strategies.lossless.config import Obsolete
from enfold.strategies.lossless.markers import SUPERSEDED_LIST
from tests.strategies.lossless.sessions import Session, code, condense, numbered, results

APP = code("app", 40)
CHANGED = [*APP[:10], "    changed = True", *APP[11:]]


def cleaned(session: Session, **config: Any) -> list[str]:
    return results(
        condense(session.end(), remove_obsolete_state=True, deduplicate_blocks=False, **config)
    )


def only(kind: str) -> Obsolete:
    kinds = ("covered_reads", "stale_reads", "todo_lists", "commands")
    return Obsolete(**{each: each == kind for each in kinds})


def test_nothing_is_taken_out_unless_asked_for() -> None:
    session = Session().read("a.py", numbered(APP[5:20], 6)).read("a.py", numbered(CHANGED))
    assert not any("Superseded" in text for text in results(condense(session.end())))


def test_a_read_that_a_later_one_covers_unchanged() -> None:
    session = Session().read("a.py", numbered(APP[5:20], 6)).read("a.py", numbered(APP))
    first, second = cleaned(session, obsolete=only("covered_reads"))
    assert first == "⟨ Superseded: see a.py below ⟩"
    assert second.startswith("1\t")


def test_a_read_of_what_has_changed_since() -> None:
    session = Session().read("a.py", numbered(APP)).read("a.py", numbered(CHANGED))
    first, _ = cleaned(session, obsolete=only("stale_reads"))
    assert first == "⟨ Superseded: see a.py below ⟩"
    first, _ = cleaned(session, obsolete=only("covered_reads"))
    assert first.startswith("1\t")


def test_a_read_of_other_lines_or_another_file_stays() -> None:
    session = Session().read("a.py", numbered(APP[:20])).read("a.py", numbered(APP[10:], 11))
    session.read("b.py", numbered(APP))
    assert not any("Superseded" in text for text in cleaned(session))


def test_the_latest_of_many_reads_is_named() -> None:
    session = Session().read("a.py", numbered(APP)).read("a.py", numbered(CHANGED))
    session.read("a.py", numbered(APP))
    first, second, third = cleaned(session)
    assert first == "⟨ Superseded: see read a.py (…ll_3) below ⟩"
    assert second == "⟨ Superseded: see a.py below ⟩"
    assert third.startswith("1\t")


def test_reads_without_line_numbers_are_recognised_by_their_offset() -> None:
    session = Session().read("a.py", "\n".join(APP[5:20]), offset=6).read("a.py", "\n".join(APP))
    first, _ = cleaned(session)
    assert first == "⟨ Superseded: see a.py below ⟩"
    session = Session().read("a.py", "\n".join(APP[5:20]), offset=60).read("a.py", "\n".join(APP))
    assert cleaned(session)[0] == "\n".join(APP[5:20])


def test_the_result_of_an_edit_counts_as_a_read() -> None:
    session = Session().act("edit", {"path": "a.py"}, f"Updated:\n{numbered(APP[5:20], 6)}")
    first, _ = cleaned(session.read("a.py", numbered(CHANGED)))
    assert first == "⟨ Superseded: see a.py below ⟩"


def test_only_a_whole_file_that_is_written_supersedes_a_read() -> None:
    text = "\n".join(CHANGED)
    written = (
        Session().read("a.py", numbered(APP)).act("write", {"path": "a.py", "content": text}, "ok")
    )
    assert cleaned(written)[0].startswith("⟨ Superseded")
    for name, arguments in (
        ("edit", {"path": "a.py", "old_string": APP[10], "new_string": text}),
        ("write", {"path": "a.py", "content": text, "summary": "\n".join(APP)}),
    ):
        edited = Session().read("a.py", numbered(APP)).act(name, arguments, "ok")
        shown = cleaned(edited)[0]
        assert shown.startswith("⟨ Superseded") == (name == "write")
    unnamed = Session().read("a.py", numbered(APP)).act("write", {"content": text}, "ok")
    assert not cleaned(unnamed)[0].startswith("⟨ Superseded")


def test_a_to_do_list_that_was_written_again() -> None:
    session = Session().act("todo_write", {"todos": ["a"]}, "\n".join(APP[:9]))
    session.act("todo_write", {"todos": ["b"]}, "\n".join(APP[9:18]))
    first, second = cleaned(session, obsolete=only("todo_lists"))
    assert first == "⟨ Superseded: see todo_write below ⟩"
    assert second == "\n".join(APP[9:18])
    assert "⟨" not in cleaned(session, obsolete=only("commands"))[0]


def test_the_list_in_the_parameters_of_a_call_is_taken_out_too() -> None:
    todos = [{"content": f"Do {line.strip()}", "status": "pending"} for line in APP[:6]]
    session = Session()
    for _ in range(3):
        session.act("TodoWrite", {"todos": todos}, "Todos have been modified successfully.")
    after = condense(session.end(), remove_obsolete_state=True, obsolete=only("todo_lists"))
    lists = [part.arguments for m in after for part in m.parts if isinstance(part, ToolCall)]
    assert lists == [{"todos": [SUPERSEDED_LIST]}, {"todos": [SUPERSEDED_LIST]}, {"todos": todos}]
    after = condense(session.end(), remove_obsolete_state=True, obsolete=only("commands"))
    assert after == session.end()


def test_the_list_in_arguments_that_are_a_text_is_taken_out_too() -> None:
    plan = json.dumps({"plan": [{"step": line.strip()} for line in APP[:6]], "explanation": "x"})
    session = Session().act("update_plan", plan, "ok").act("update_plan", plan, "ok")
    after = condense(session.end(), remove_obsolete_state=True)
    lists = [part.arguments for m in after for part in m.parts if isinstance(part, ToolCall)]
    assert loads(str(lists[0])) == {"plan": [SUPERSEDED_LIST], "explanation": "x"}
    assert lists[1] == plan


def test_a_list_in_a_reply_with_reasoning_stays() -> None:
    todos = {"todos": [f"Do {line.strip()}" for line in APP[:6]]}
    session = Session().act("TodoWrite", todos, "ok").act("TodoWrite", todos, "ok")
    first = session.messages[1]
    session.messages[1] = replace(first, parts=(Reasoning("Hm."), *first.parts))
    assert condense(session.end(), remove_obsolete_state=True) == session.end()


def test_a_look_that_was_taken_again() -> None:
    session = Session().run("git status", "\n".join(APP)).run("ls src", "\n".join(CHANGED))
    session.run("git status", "\n".join(CHANGED[:30]))
    first, second, third = cleaned(session, obsolete=only("commands"))
    assert first == "⟨ Superseded: see git status below ⟩"
    assert (second, third) == ("\n".join(CHANGED), "\n".join(CHANGED[:30]))


@pytest.mark.parametrize("command", ["pytest -q", "make test", "git status && make", "ls > a.txt"])
def test_a_command_that_does_something_is_not_superseded(command: str) -> None:
    session = Session().run(command, "\n".join(APP)).run(command, "\n".join(CHANGED))
    assert cleaned(session) == ["\n".join(APP), "\n".join(CHANGED)]


def test_a_file_that_was_written_whole_since() -> None:
    session = Session().read("a.py", numbered(APP))
    session.act("write", {"path": "a.py", "content": "\n".join(CHANGED)}, "written")
    first, _ = cleaned(session)
    assert first == "⟨ Superseded: see a.py below ⟩"


def test_errors_are_not_superseded_and_supersede_nothing() -> None:
    session = Session().run("make", "\n".join(APP), is_error=True).run("make", "\n".join(CHANGED))
    session.run("make", "\n".join(APP[:30]), is_error=True)
    assert cleaned(session) == ["\n".join(APP), "\n".join(CHANGED), "\n".join(APP[:30])]


@pytest.mark.parametrize("keep", ["first", "last"])
def test_a_superseding_read_is_shown_in_full(keep: str) -> None:
    session = Session().read("copy.py", numbered(APP)).read("a.py", numbered(CHANGED))
    session.read("a.py", numbered(APP))
    shown = cleaned(session, keep=keep)
    assert shown[1] == "⟨ Superseded: see a.py below ⟩"
    assert shown[2].startswith("1\t")
