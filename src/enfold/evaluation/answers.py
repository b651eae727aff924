"""Answers: what a model can still answer from a view, marked by a model.

The marks are read strictly: whatever is not one of them is no mark, never a guess. A question that
got none is left out of the mean and counted: one odd reply must not cost a long evaluation.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import mean

from enfold.errors import BadReplyError
from enfold.evaluation.cases import Case, Probe
from enfold.evaluation.measures import View
from enfold.llm.calls import Call, Connection, Gateway
from enfold.messages import Message, Text, text_of
from enfold.summaries.fence import escape
from enfold.summaries.request import transcript

MARKS = {"RIGHT": 1.0, "PARTLY": 0.5, "WRONG": 0.0}
_ANSWER_TOKENS = 1_024
_MARK_TOKENS = 256
"""Generous: models that reason do it within the limit, before they write."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How a model's answers were marked, in the mean: 1 is right, 0.5 partly, 0 wrong."""

    questions: int
    """That were marked."""
    mark: float | None
    """None if no question was."""
    unmarked: int = 0
    """Questions to whose answer the marking model did not give a mark."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who answers, and who marks the answers."""

    gateway: Gateway
    connection: Connection

    async def ask(self, view: View, question: str) -> str:
        """What the model answers from the view."""
        shown = f"<conversation>\n{transcript(view.messages)}\n</conversation>"
        asked = f"{shown}\n\nQuestion: {escape(question)}"
        return await self._said("answer", asked, _ANSWER_TOKENS)

    async def mark(self, probe: Probe, answer: str) -> float:
        """What the answer is worth."""
        given = (
            f"Question: {escape(probe.question)}\n\nA right answer says: "
            f"{escape(probe.answer or '')}\n\nThe answer to mark: {escape(answer)}"
        )
        said = (await self._said("judge", given, _MARK_TOKENS)).strip().rstrip(".").upper()
        if said not in MARKS:
            raise BadReplyError(
                f"{self.connection.name} marked an answer with {len(said):,} characters that are "
                f"none of {', '.join(MARKS)}; ask another model"
            )
        return MARKS[said]

    async def _said(self, prompt: str, text: str, most: int) -> str:
        call = Call(
            (Message("user", (Text(text),)),),
            system=_text(prompt),
            max_tokens=most,
            temperature=0.0,
        )
        reply = await self.gateway.complete(self.connection, call)
        return text_of(reply.message.parts)


async def answered(case: Case, view: View, asker: Asker) -> Answered | None:
    """The marks of a case's questions. None if nobody wrote down what is right."""
    probes = [probe for probe in case.probes if probe.answer]
    marks: list[float] = []
    for probe in probes:
        answer = await asker.ask(view, probe.question)
        with suppress(BadReplyError):
            marks.append(await asker.mark(probe, answer))
    if not probes:
        return None
    return Answered(len(marks), mean(marks) if marks else None, len(probes) - len(marks))


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")
