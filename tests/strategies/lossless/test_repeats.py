"""Results that are in view elsewhere, word for word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import enfold
from enfold.jsontext import dumps, loads, to_json
from enfold.ledger import Ledger, digest
from enfold.messages import Conversation, Message, Text, ToolCall, ToolResult, text_of
from enfold.strategies.lossless import shorten
from enfold.testing import assistant
from tests.strategies.lossless.sessions import (
    Session,
    code,
    condense,
    numbered,
    plan_for,
    results,
)

APP = numbered(code("app", 30))
LISTING = "\n".join(f"-rw-r--r-- 1 me me {n * 37} Jan 1 file_{n}.txt" for n in range(20))
OTHER = "\n".join(code("page", 25))


def test_a_file_read_again_is_a_reference_to_the_first_time() -> None:
    session = Session().read("src/app.py", APP).read("src/app.py", APP).read("src/app.py", APP)
    first, second, third = results(condense(session.end()))
    assert first.startswith("1\t")
    assert second == "⟨ File content already provided above: see src/app.py ⟩"
    assert third == "⟨ File content already provided above: see read src/app.py (…ll_1) ⟩"


def test_keep_last_leaves_the_last_one_in_view() -> None:
    session = Session().read("src/app.py", APP).read("src/app.py", APP).read("src/app.py", APP)
    first, second, third = results(condense(session.end(), keep="last"))
    assert first == "⟨ File content already provided below: see read src/app.py (…ll_3) ⟩"
    assert second == "⟨ File content already provided below: see src/app.py ⟩"
    assert third.startswith("1\t")


def test_other_results_are_referred_to_by_what_was_called() -> None:
    session = Session().act("fetch", {"url": "https://example.org/a"}, LISTING)
    session.act("fetch", {"url": "https://example.org/b"}, LISTING)
    _, second = results(condense(session.end()))
    assert second == "⟨ Reference: see https://example.org/a ⟩"


def test_text_that_differs_in_one_character_is_no_repeat() -> None:
    session = Session().read("a.py", APP).read("a.py", APP.replace("app_7 =", "app_7  ="))
    _, second = results(condense(session.end(), deduplicate_blocks=False))
    assert "⟨" not in second


def test_short_results_stay() -> None:
    session = Session().run("true", "ok").run("true", "ok").run("true", "")
    assert results(condense(session.end())) == ["ok", "ok", ""]


def test_results_that_hold_markers_are_not_pointed_to() -> None:
    text = f"⟨ Reference: see x ⟩\n{LISTING}"
    session = Session().act("a", {}, text).act("b", {}, text)
    for shown in results(condense(session.end(), deduplicate_blocks=False, reencode=False)):
        assert shown == text


def test_a_command_run_again_with_the_same_outcome_is_consolidated() -> None:
    session = Session().run("ls -l", LISTING).run("ls -l", LISTING).run("ls -l", LISTING)
    first, second, third = results(condense(session.end()))
    assert first == LISTING
    assert second == "⟨ Consolidated 3 operations: see ls -l ⟩"
    assert third == "⟨ Consolidated 3 operations: see bash ls -l (…ll_1) ⟩"


def test_an_outcome_that_another_contains_is_not_consolidated() -> None:
    part = "\n".join(LISTING.split("\n")[3:15])
    session = Session().run("ls -l", part).run("ls -l", LISTING)
    first, second = results(condense(session.end(), deduplicate_blocks=False))
    assert (first, second) == (part, LISTING)


@pytest.mark.parametrize("config", [{}, {"remove_obsolete_state": True}, {"keep": "last"}])
def test_a_test_run_that_differs_from_a_later_one_stays(config: dict[str, Any]) -> None:
    passed = "\n".join([*(f"tests/test_{n}.py ." for n in range(12)), "12 passed"])
    failed = f"{passed}\nFAILED tests/test_3.py::test_totals"
    session = Session().run("pytest", passed).act("edit", {"path": "a.py"}, "edited")
    first, _, second = results(condense(session.run("pytest", failed).end(), **config))
    assert "12 passed" in first or "12 passed" in second
    assert "Consolidated" not in first + second
    assert "Superseded" not in first + second
    assert "FAILED" in second
    assert first != second


def test_outcomes_that_differ_stay_both() -> None:
    other = LISTING.replace("file_9", "FILE_9").replace("file_2.", "FILE_2.")
    session = Session().run("ls -l", LISTING).run("ls -l", other)
    _, second = results(condense(session.end(), deduplicate_blocks=False))
    assert second == other


def test_different_operations_are_not_consolidated() -> None:
    session = (
        Session().act("grep", {"pattern": "a"}, LISTING).act("grep", {"pattern": "b"}, LISTING)
    )
    _, second = results(
        condense(session.end(), deduplicate_file_reads=False, deduplicate_blocks=False)
    )
    assert second == LISTING


@pytest.mark.parametrize("errors", [(True, True), (True, False), (False, True)], ids=str)
def test_errors_stay_separate(errors: tuple[bool, bool]) -> None:
    session = Session()
    for is_error in errors:
        session.run("make", LISTING, is_error=is_error)
    shown = results(condense(session.end(), deduplicate_blocks=False, reencode=False))
    assert shown == [LISTING, LISTING]


def test_names_of_files_do_not_end_a_marker() -> None:
    session = Session().read("odd ⟩ name\n.py", APP).read("odd ⟩ name\n.py", APP)
    _, second = results(condense(session.end()))
    assert second == ("⟨ File content already provided above: see odd name .py ⟩")


def test_long_paths_are_named_by_their_end() -> None:
    path = "/home/somebody/projects/of/many/years/application/src/deep/down/module.py"
    session = Session().read(path, APP).read(path, APP)
    _, second = results(condense(session.end()))
    assert second.endswith("see …/module.py ⟩")


def test_only_new_lines_of_a_grown_output_are_shown_again() -> None:
    """The first output is a strict subset of the second, which therefore says all of it."""
    more = "\n".join(code("new", 12))
    session = Session().run("make report", LISTING).run("make report", f"{LISTING}\n{more}")
    first, second = results(condense(session.end()))
    assert first == LISTING
    assert second.startswith("⟨ ")
    assert second.endswith(more)
    assert LISTING not in second


def test_a_reference_has_its_type_path_operation_and_hash() -> None:
    session = Session().read("src/app.py", APP).run("make", LISTING)
    session.act("fetch", {"url": "https://example.org/a"}, OTHER)
    session.read("src/app.py", APP).run("make", LISTING)
    session.act("fetch", {"url": "https://example.org/a"}, OTHER)
    plan = plan_for(session.end())
    found = shorten(plan).references(plan)
    assert [(each.type, each.path, each.operation) for each in found] == [
        ("file", "src/app.py", "read"),
        ("output", None, "bash"),
        ("tool_result", None, "fetch"),
    ]
    assert [each.hash for each in found] == [digest(APP), digest(LISTING), digest(OTHER)]
    assert [each.index - each.original_index for each in found] == [6, 6, 6]
    for each, text in zip(found, (APP, LISTING, OTHER), strict=True):
        assert text in text_of(plan.messages[each.original_index].parts)


def test_a_reference_names_the_call_of_its_result_among_several() -> None:
    calls = [ToolCall(path, "read", {"path": path}) for path in ("a.py", "b.py")]
    answers = [ToolResult("a.py", (Text(APP),)), ToolResult("b.py", (Text(OTHER),))]
    session = Session()
    session.messages += [assistant("", *calls), Message("tool", tuple(answers))]
    plan = plan_for(session.read("again.py", APP).read("again.py", OTHER).end())
    found = shorten(plan).references(plan)
    assert [(each.path, each.hash) for each in found] == [
        ("a.py", digest(APP)),
        ("b.py", digest(OTHER)),
    ]


def test_a_ledger_lists_its_references(tmp_path: Path) -> None:
    session = Session().read("src/app.py", APP).read("src/app.py", APP)
    done = enfold.condense_sync(Conversation(tuple(session.end())), strategy="lossless")
    file = tmp_path / "condensed.json"
    file.write_bytes(dumps(to_json(done)))
    written = loads(file.read_bytes())["ledger"]
    assert Ledger.from_json(written) == done.ledger
    assert written["references"] == [
        {
            "type": "file",
            "index": 4,
            "original_index": 2,
            "path": "src/app.py",
            "operation": "read",
            "hash": digest(APP),
        }
    ]
