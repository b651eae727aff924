"""Runs: measure every case of files with each method, files in several processes.

Sessions live in memory, and a result has figures only, no text of a conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from enfold.engine import Session
from enfold.evaluation import cases, measures
from enfold.evaluation.cases import HALVES, Case, Half, halves
from enfold.history import is_from_user
from enfold.llm.calls import Gateway
from enfold.messages import text_of
from enfold.processes import worker_processes
from enfold.strategies.contract import Strategy
from enfold.wiring import open_engine, open_strategy

_MODEL = "evaluation:large"
_WINDOW = 10_000_000
_IN_MEMORY = "sqlite:///:memory:"

OnProgress: TypeAlias = Callable[[str], object]
"""Called with the name of each finished case or file."""


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The methods to measure, and how."""

    ways: tuple[measures.Method, ...]
    chained: bool = True
    """True to measure chains of compressions too."""
    profile: str | None = None
    """The profile whose models write summaries, answer and mark. None: no model."""
    rules: tuple[str, ...] = ()
    """Rules to plant in the chains."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The figures of one case with one method."""

    case: str
    file: str
    half: Half
    way: measures.Method
    messages: int
    tokens_before: int
    tokens_after: int
    seconds: float
    items: int
    """Exact items of the whole conversation."""
    items_kept: int
    """Of these, the items in the view."""
    users: int
    """Users' messages."""
    users_kept: int
    """Of these, the messages in the view, verbatim."""
    typed: int
    """Sentences that people typed."""
    typed_kept: int
    """Of these, the sentences in the view, verbatim."""
    is_restored: bool | None
    pairs_are_whole: bool
    failure: str
    evidence: measures.Evidence | None
    sending: measures.SendingCost
    decay: measures.Decay | None
    answered: measures.AnswerMarks | None = None
    rules: tuple[float, ...] | None = None
    """The share of planted rules in view after each compression of a chain."""
    kinds: tuple[measures.ProbeResult, ...] = ()
    """The questions that have a kind."""

    @property
    def is_on_target(self) -> bool:
        """True if the result ends between 80 and 100 % of its target."""
        return not self.failure and self.way.is_on_target(self.tokens_before, self.tokens_after)

    @property
    def ratio(self) -> float:
        """Tokens before per token after."""
        return self.tokens_before / max(1, self.tokens_after)


def measure(
    paths: Sequence[Path],
    plan: EvaluationPlan,
    *,
    jobs: int = 1,
    on_progress: OnProgress = str,
    gateway: Gateway | None = None,
) -> list[CaseResult]:
    """Measure every case of the files with each method; `gateway` replaces the real one."""
    found: list[CaseResult] = []
    if jobs == 1 or len(paths) == 1 or gateway is not None:
        for path in paths:
            found += asyncio.run(_measure_file(path, plan, on_progress, gateway))
    else:
        task = MeasureTask(plan)
        with worker_processes(min(jobs, len(paths))) as submit:
            for path, outcomes in [(path, submit(task, path)) for path in paths]:
                found += outcomes.result()
                on_progress(path.name)
    which = halves(outcome.case for outcome in found)
    return [replace(outcome, half=which[outcome.case]) for outcome in found]


@dataclass(frozen=True, slots=True)
class MeasureTask:
    """Measures the cases of files in a worker process."""

    plan: EvaluationPlan

    def do(self, unit: Path) -> list[CaseResult]:
        """Measure every case of a file."""
        return asyncio.run(_measure_file(unit, self.plan))


async def _measure_file(
    path: Path, plan: EvaluationPlan, on_progress: OnProgress = str, gateway: Gateway | None = None
) -> list[CaseResult]:
    found: list[CaseResult] = []
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(_IN_MEMORY))
        await engine.models.edit(_MODEL, max_input=_WINDOW, max_output=_WINDOW)
        judge = None
        if plan.profile is not None:
            profiles = (await stack.enter_async_context(open_engine(gateway=gateway))).profiles
            connection = await profiles.connection(plan.profile)
            judge = measures.AnswerJudge((await profiles.roster()).gateway, connection)
        strategies: list[Strategy | None] = []
        for way in plan.ways:
            if way.strategy == measures.NEWEST:
                strategies.append(None)
            else:
                opening = open_strategy(way.settings, plan.profile, gateway=gateway)
                strategies.append(await stack.enter_async_context(opening))
        for case in cases.read(path):
            if not case.messages:
                continue
            session = await measures.store_case(engine, case, _MODEL)
            for way, strategy in zip(plan.ways, strategies, strict=True):
                view = await measures.condense_case(case, way, strategy)
                outcome = await _outcome(case, path.name, way, view, session)
                if judge is not None:
                    marks = await measures.mark_answers(case, view, judge)
                    outcome = replace(outcome, answered=marks)
                if plan.chained and strategy is not None:
                    chain = (engine, case, way.strategy, way.budget)
                    outcome = replace(outcome, decay=await measures.measure_decay(*chain))
                    if plan.rules:
                        rules = await measures.measure_rules(*chain, plan.rules)
                        outcome = replace(outcome, rules=rules)
                found.append(outcome)
            on_progress(case.id)
    return found


async def _outcome(
    case: Case, file: str, way: measures.Method, view: measures.CondensedCase, session: Session
) -> CaseResult:
    shown = {text_of(message.parts) for message in view.messages}
    users = [text_of(message.parts) for message in case.messages if is_from_user(message)]
    typed = measures.typed_sentences(case.messages)
    index = measures.TextIndex(text_of(message.parts) for message in view.messages)
    return CaseResult(
        case.id,
        file,
        HALVES[0],
        way,
        len(case.messages),
        view.tokens_before,
        view.tokens_after,
        view.seconds,
        items=view.items.total,
        items_kept=view.items.kept,
        users=len(users),
        users_kept=sum(text in shown for text in users),
        typed=len(typed),
        typed_kept=sum(map(index.has_words, typed)),
        is_restored=view.is_restored,
        pairs_are_whole=view.pairs_are_whole,
        failure=view.failure,
        evidence=await measures.measure_evidence(case, view.messages, session),
        kinds=await measures.measure_kinds(case, view.messages, session),
        sending=measures.sending_cost(case, view),
        decay=None,
    )
