"""`enfold recall`: answers a question with messages, summarized or not."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Enfold
from tests.histories import LONG_RESULT

QUESTION = "Which error did the E-4031 machine show?"


def test_a_question_is_answered_with_messages(festival: Enfold) -> None:
    outcome = festival("recall", "festival", QUESTION)
    assert "E-4031" in outcome.text
    assert outcome.stderr_text.endswith("found\n")


def test_summarized_messages_answer_too(festival: Enfold) -> None:
    before = festival("recall", "--json", "festival", QUESTION).json
    assert before["fits"]
    festival("sessions", "compress", "festival")
    assert festival("recall", "--json", "festival", QUESTION).json == before


def test_nothing_fits_a_question_about_something_else(festival: Enfold) -> None:
    outcome = festival("recall", "festival", "Xylophone zeppelin quasar?")
    assert outcome.stderr_text == "nothing fits the question\n"


def test_an_unknown_session_is_refused(festival: Enfold) -> None:
    refused = festival("recall", "nowhere", QUESTION)
    assert refused.code != 0
    assert "nowhere" in refused.stderr_text


def test_a_reference_opens_a_message_and_its_neighbours(festival: Enfold) -> None:
    opened = festival("recall", "--json", "festival", "--reference", "3", "--around", "1").json
    assert [each["position"] for each in opened["passages"]] == [2, 3, 4]
    piece = festival("recall", "festival", "--reference", "3", "--tokens", "2")
    assert "goes on; use --start" in piece.stderr_text


def test_an_open_question_is_named(festival: Enfold) -> None:
    answer = festival("recall", "festival", f"{QUESTION} Which xylophone zeppelin?")
    assert "E-4031" in answer.text
    assert "nothing fits: Which xylophone zeppelin?" in answer.stderr_text


def test_a_tool_call_opens_its_whole_result(stored: Enfold, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text(json.dumps(LONG_RESULT), encoding="utf-8")
    assert stored("import", file, "--session", "log").code == 0
    opened = stored("recall", "--json", "log", "--reference", "read1", "--tokens", "50000").json
    assert [each["text"] for each in opened["passages"]] == [LONG_RESULT[2]["content"]]
