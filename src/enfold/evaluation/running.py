"""Running: every case of some files measured, each way, files in several processes.

Nothing is kept of what is measured: sessions live in memory, and an outcome holds figures, never a
word of a conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from enfold.engine import Engine, Session
from enfold.evaluation import formats
from enfold.evaluation.cases import HALVES, Case, Half, halves
from enfold.evaluation.chains import Decay, decay
from enfold.evaluation.measuring import Evidence, Sending, evidence, sending, stored
from enfold.evaluation.views import NEWEST, View, Way, view_of
from enfold.history import is_said_by_user
from enfold.messages import text_of
from enfold.wiring import local_summarizer, make_strategy, open_engine

_MODEL = "evaluation:large"
_WINDOW = 10_000_000
_IN_MEMORY = "sqlite:///:memory:"

Told: TypeAlias = Callable[[str], object]
"""Is told the name of each case, or file, that is finished."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    ways: tuple[Way, ...]
    chained: bool = True
    """Whether chains of compressions too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured of one case, one way."""

    case: str
    file: str
    half: Half
    way: Way
    messages: int
    tokens_before: int
    tokens_after: int
    seconds: float
    items: int
    """Exact items of the whole conversation."""
    items_kept: int
    """Of these, what the view still has."""
    users: int
    """Users' messages."""
    users_kept: int
    """Of these, those that stand in the view word for word."""
    is_restored: bool | None
    pairs_are_whole: bool
    failure: str
    evidence: Evidence | None
    sending: Sending
    decay: Decay | None

    @property
    def ratio(self) -> float:
        """How many tokens of before one of after stands for."""
        return self.tokens_before / max(1, self.tokens_after)


def measure(paths: Sequence[Path], plan: Plan, *, jobs: int = 1, told: Told = str) -> list[Outcome]:
    """Every case of the files, each way."""
    if jobs == 1 or len(paths) == 1:
        found = [outcome for path in paths for outcome in _file(path, plan, told)]
    else:
        found = _in_processes(paths, plan, min(jobs, len(paths)), told)
    which = halves(outcome.case for outcome in found)
    return [replace(outcome, half=which[outcome.case]) for outcome in found]


def _in_processes(paths: Sequence[Path], plan: Plan, jobs: int, told: Told) -> list[Outcome]:
    found: list[Outcome] = []
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for path, outcomes in zip(paths, pool.map(_file, paths, [plan] * len(paths)), strict=True):
            found += outcomes
            told(path.name)
    return found


def _file(path: Path, plan: Plan, told: Told = str) -> list[Outcome]:
    return asyncio.run(_measure(path, plan, told))


async def _measure(path: Path, plan: Plan, told: Told) -> list[Outcome]:
    found: list[Outcome] = []
    async with open_engine(_IN_MEMORY) as engine:
        await engine.models.edit(_MODEL, max_input=_WINDOW, max_output=_WINDOW)
        for case in formats.read(path):
            if case.messages:
                found += [outcome async for outcome in _outcomes(engine, case, path.name, plan)]
                told(case.id)
    return found


async def _outcomes(engine: Engine, case: Case, file: str, plan: Plan) -> AsyncIterator[Outcome]:
    session = await stored(engine, case, _MODEL)
    for way in plan.ways:
        strategy = None
        if way.strategy != NEWEST:
            strategy = make_strategy(way.settings, local_summarizer())
        view = await view_of(case, way, strategy)
        chain = None
        if plan.chained and strategy is not None:
            chain = await decay(engine, case, way.strategy, way.budget)
        yield await _outcome(case, file, way, view, session, chain)


async def _outcome(
    case: Case, file: str, way: Way, view: View, session: Session, chain: Decay | None
) -> Outcome:
    shown = {text_of(message.parts) for message in view.messages}
    users = [text_of(message.parts) for message in case.messages if is_said_by_user(message)]
    return Outcome(
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
        is_restored=view.is_restored,
        pairs_are_whole=view.pairs_are_whole,
        failure=view.failure,
        evidence=await evidence(case, view, session),
        sending=sending(case, view),
        decay=chain,
    )
