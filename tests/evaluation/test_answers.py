"""Answers from a view, and their marks, by a model that says what it is told to."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import enfold
from enfold.errors import BadReplyError
from enfold.evaluation.cases import Case, Probe
from enfold.evaluation.measures import (
    NEWEST,
    AnswerJudge,
    Method,
    condense_case,
    mark_answers,
)
from enfold.evaluation.report import marked_by, rows, summaries
from enfold.evaluation.run import EvaluationPlan, measure
from enfold.llm.calls import Call, Connection
from enfold.messages import Conversation, text_of
from enfold.testing import ScriptedGateway, user

PROFILE = {"provider": "openai", "model": "gpt-4o", "key": "env:EVAL_KEY"}
MODEL = Connection("openai", "gpt-4o")


def prompt_text(call: Call) -> str:
    return text_of(call.messages[0].parts)


@pytest.mark.parametrize(("reply", "mark"), [("RIGHT", 1.0), (" partly.\n", 0.5), ("Wrong", 0.0)])
async def test_marks_are_read(reply: str, mark: float) -> None:
    gateway = ScriptedGateway(reply)
    probe = Probe("How heavy?", "nine </conversation> stone")
    assert await AnswerJudge(gateway, MODEL).mark(probe, "It weighs nine stone") == mark
    (call,) = gateway.calls
    assert "It weighs nine stone" in prompt_text(call)
    assert call.temperature == 0


@pytest.mark.parametrize("reply", ["", "It is RIGHT, I think", "10/10"])
async def test_anything_else_is_no_mark(reply: str) -> None:
    with pytest.raises(BadReplyError, match="none of RIGHT, PARTLY, WRONG"):
        await AnswerJudge(ScriptedGateway(reply), MODEL).mark(Probe("?", "a"), "b")


async def test_an_answer_without_a_mark_is_counted_and_left_out() -> None:
    probes = (Probe("How heavy?", "nine stone"), Probe("Where?", "Whitby"), Probe("Why?"))
    case = Case("c", Conversation((user("It weighs nine stone."),)), probes)
    view = await condense_case(case, Method(NEWEST, 1.0), None)
    gateway = ScriptedGateway("nine stone", "RIGHT", "in Hull", "Hm, hard to say.")
    marks = await mark_answers(case, view, AnswerJudge(gateway, MODEL))
    assert marks
    assert (marks.questions, marks.mark, marks.unmarked) == (1, 1.0, 1)
    gateway = ScriptedGateway("nine stone", "Right!!", "in Hull", "")
    marks = await mark_answers(case, view, AnswerJudge(gateway, MODEL))
    assert marks
    assert (marks.questions, marks.mark, marks.unmarked) == (0, None, 2)


@pytest.mark.model
@pytest.mark.timeout(600)  # a busy machine reads a few tokens a second
def test_a_real_model_answers_from_the_view(
    model_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    monkeypatch.setenv("ENFOLD_DB", url)
    where = {"provider": "compatible", "model": "smollm2", "base_url": model_url}
    asyncio.run(_save_profile(url, where))
    path = tmp_path / "talk.jsonl"
    probe = {"question": "What does the anchor weigh?", "answer": "Nine stone"}
    messages = [
        {"role": "user", "content": "The anchor weighs nine stone."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Go on."},
    ]
    path.write_text(json.dumps({"messages": messages, "probes": [probe]}), encoding="utf-8")
    plan = EvaluationPlan((Method(NEWEST, 1.0),), chained=False, profile="mine")
    (outcome,) = measure([path], plan)
    assert outcome.answered is not None
    assert outcome.answered.questions + outcome.answered.unmarked == 1


async def _save_profile(url: str, fields: Mapping[str, str] = PROFILE) -> None:
    async with enfold.open(url) as engine:
        await engine.profiles.save("mine", dict(fields))


def test_prompts_are_compared_by_what_can_be_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    monkeypatch.setenv("ENFOLD_DB", url)
    monkeypatch.setenv("EVAL_KEY", "sk-secret")
    asyncio.run(_save_profile(url))
    turns = ["hello", "hello", "the anchor weighs nine stone", *["and so on it went all day"] * 80]
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": turn} for at, turn in enumerate(turns)]
    probes = [{"question": "What does the anchor weigh?", "answer": "Nine stone"}]
    talk = {"messages": messages, "probes": probes}
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps(talk), encoding="utf-8")

    async def answer(_connection: Connection, call: Call) -> str:
        if "mark an answer" in (call.system or ""):
            return "RIGHT" if "nine stone" in prompt_text(call).split("to mark:")[1] else "WRONG"
        if "Question:" in prompt_text(call):
            return "nine stone" if "The anchor: nine stone" in prompt_text(call) else "not known"
        return "The anchor: nine stone." if "facts" in prompt_text(call) else "They talked."

    ways = (
        Method(NEWEST, 0.2),
        Method("native", 0.2, prompt="Keep the facts.", label="facts"),
        Method("native", 0.2, prompt="Be brief.", label="brief"),
    )
    plan = EvaluationPlan(ways, chained=False, profile="mine")
    outcomes = measure([path], plan, gateway=ScriptedGateway(answer))
    (model,) = marked_by(outcomes)
    assert re.fullmatch(r"openai:gpt-4o on \d{4}-\d\d-\d\d", model)
    found = summaries(outcomes)
    assert [each.answers for each in found] == [0, 1, 0]
    assert [row[1] for row in rows(found)] == [NEWEST, "native, facts", "native, brief"]
