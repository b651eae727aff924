"""State that later results supersede."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.strategies.lossless.config import Obsolete
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
    assert first == "⟨ Superseded by message #5: read a.py ⟩"
    assert second.startswith("1\t")


def test_a_read_of_what_has_changed_since() -> None:
    session = Session().read("a.py", numbered(APP)).read("a.py", numbered(CHANGED))
    first, _ = cleaned(session, obsolete=only("stale_reads"))
    assert first == "⟨ Superseded by message #5: read a.py ⟩"
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
    assert first == second == "⟨ Superseded by message #7: read a.py ⟩"
    assert third.startswith("1\t")


def test_reads_without_numbers_are_told_by_where_they_begin() -> None:
    session = Session().read("a.py", "\n".join(APP[5:20]), offset=6).read("a.py", "\n".join(APP))
    first, _ = cleaned(session)
    assert first == "⟨ Superseded by message #5: read a.py ⟩"
    session = Session().read("a.py", "\n".join(APP[5:20]), offset=60).read("a.py", "\n".join(APP))
    assert cleaned(session)[0] == "\n".join(APP[5:20])


def test_what_an_edit_returned_is_a_look_at_the_file() -> None:
    session = Session().act("edit", {"path": "a.py"}, f"Updated:\n{numbered(APP[5:20], 6)}")
    first, _ = cleaned(session.read("a.py", numbered(CHANGED)))
    assert first == "⟨ Superseded by message #5: edit a.py ⟩"


def test_a_to_do_list_that_was_written_again() -> None:
    session = Session().act("todo_write", {"todos": ["a"]}, "\n".join(APP[:9]))
    session.act("todo_write", {"todos": ["b"]}, "\n".join(APP[9:18]))
    first, second = cleaned(session, obsolete=only("todo_lists"))
    assert first == "⟨ Superseded by message #5: todo_write ⟩"
    assert second == "\n".join(APP[9:18])
    assert "⟨" not in cleaned(session, obsolete=only("commands"))[0]


def test_a_command_that_was_run_again() -> None:
    session = Session().run("make test", "\n".join(APP)).run("make lint", "\n".join(CHANGED))
    session.run("make test", "\n".join(CHANGED[:30]))
    first, second, third = cleaned(session, obsolete=only("commands"))
    assert first == "⟨ Superseded by message #7: bash make test ⟩"
    assert (second, third) == ("\n".join(CHANGED), "\n".join(CHANGED[:30]))


def test_errors_are_not_superseded_and_supersede_nothing() -> None:
    session = Session().run("make", "\n".join(APP), is_error=True).run("make", "\n".join(CHANGED))
    session.run("make", "\n".join(APP[:30]), is_error=True)
    assert cleaned(session) == ["\n".join(APP), "\n".join(CHANGED), "\n".join(APP[:30])]


@pytest.mark.parametrize("keep", ["first", "last"])
def test_what_supersedes_others_is_shown_and_not_a_reference_itself(keep: str) -> None:
    session = Session().read("copy.py", numbered(APP)).read("a.py", numbered(CHANGED))
    session.read("a.py", numbered(APP))
    shown = cleaned(session, keep=keep)
    assert shown[1] == "⟨ Superseded by message #7: read a.py ⟩"
    assert shown[2].startswith("1\t")
