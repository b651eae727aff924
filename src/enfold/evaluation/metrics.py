"""Metrics: the project's figures, each with its goal.

Conversations from 8,000 tokens are measured: shorter ones fit into the window of any model and are
never compressed. A figure that the data does not show is unknown, never a guess.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from enfold import transcripts
from enfold.errors import BlockedError, CompressionError
from enfold.evaluation import cases as formats
from enfold.evaluation.cases import Case
from enfold.evaluation.measures import CondensedCase, Method, condense_case
from enfold.history import is_from_user
from enfold.llm.costs import Candidate, Figures, compare
from enfold.messages import Conversation, Message, ToolCall, text_of
from enfold.modelconfig import CHEAP_MODEL, DEAR_MODEL
from enfold.sample import sample_messages
from enfold.tokens import count_messages
from enfold.wiring import local_summarizer, make_strategy, open_engine

_IN_MEMORY = "sqlite:///:memory:"
LONG = 8_000
"""Tokens from which conversations are measured."""
_SMALL = 0.5
"""The window of the model that conversations are too long for, as a share of their tokens."""
_STRUCTURE = 4
"""Tokens of structure per message."""
_SAMPLES = (1, 2, 3, 5, 8)
"""Days of the sample conversations that are measured where no files are given."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure and its goal."""

    name: str
    goal: str
    value: float | None
    shown: str
    """The figure as text, or why it is unknown."""
    over: int
    """Number of conversations, messages or requests in the mean."""


def metrics(
    paths: Sequence[Path], *, least: int = LONG, on_progress: Callable[[str], object] = str
) -> list[Metric]:
    """Return all metrics over the long conversations of the files, or over the sample."""
    if paths:
        found = [case for path in paths for case in formats.read(path)]
    else:
        found = [Case(f"sample of {n}", Conversation(sample_messages(n))) for n in _SAMPLES]
    cases = [case for case in found if _tokens(case) >= least]
    on_progress("counting")
    accuracy = _accuracy(paths)

    async def condense() -> list[Metric]:
        on_progress("condensing")
        views = [await _view(case, "native", 0.1) for case in cases]
        ratios = [view.tokens_before / max(1, view.tokens_after) for view in views]
        ratio = _mean("compression ratio", "10 : 1", ratios, lambda value: f"{value:.1f} : 1")
        users = await _users(cases)
        on_progress("automatic compressions")
        success, overhead = await _automatic(cases)
        return [accuracy, ratio, *users, overhead, _profiles(cases), success]

    return asyncio.run(condense())


def _tokens(case: Case) -> int:
    return sum(count_messages(case.messages))


def _accuracy(paths: Iterable[Path]) -> Metric:
    """Compare our counts with the output tokens that providers reported."""
    counted = reported = messages = 0
    for path in paths:
        for transcript in transcripts.read(path):
            for entry in transcript.entries:
                output = _reported(entry.message, entry.extras)
                if output:
                    messages += 1
                    reported += output
                    counted += max(0, count_messages([entry.message])[0] - _STRUCTURE)
    name, goal = "counting accuracy", "95 %"
    if not reported:
        return Metric(name, goal, None, "unknown: no usage is recorded in these files", 0)
    value = 1 - abs(counted - reported) / reported
    return Metric(name, goal, value, f"{value:.1%}", messages)


def _reported(message: Message, extras: Any) -> int | None:
    """Return the output tokens that the provider reported for a message."""
    for place in (message.extras, extras):
        usage = place.get("usage")
        if not isinstance(usage, dict) and isinstance(place.get("message"), dict):
            usage = place["message"].get("usage")
        if isinstance(usage, dict):
            found = usage.get("output_tokens", usage.get("completion_tokens"))
            return found if isinstance(found, int) else None
    return None


async def _view(case: Case, strategy: str, budget: float) -> CondensedCase:
    way = Method(strategy, budget)
    return await condense_case(case, way, make_strategy(way.settings, local_summarizer()))


async def _users(cases: Sequence[Case]) -> list[Metric]:
    """Return the shares of users' messages kept verbatim and of conversations restored.

    The goals apply to the sessions of agents, which have tool calls.
    """
    of_agents = [
        case
        for case in cases
        if any(isinstance(part, ToolCall) for each in case.messages for part in each.parts)
    ]
    found: list[Metric] = []
    given_back: list[float] = []
    for strategy in ("truncation", "smart"):
        kept: list[float] = []
        for case in of_agents:
            view = await _view(case, strategy, _SMALL)
            shown = {text_of(message.parts) for message in view.messages}
            users = [text_of(each.parts) for each in case.messages if is_from_user(each)]
            kept += [sum(text in shown for text in users) / len(users)] if users else []
            given_back += [] if view.is_restored is None else [view.is_restored]
        found.append(_mean(f"users' messages in the view, {strategy}", "90 %", kept, _percent))
    return [*found, _mean("conversations given back exactly", "100 %", given_back, _percent)]


async def _automatic(cases: Sequence[Case]) -> tuple[Metric, Metric]:
    """Compress sessions that outgrow their model; return success rate and overhead."""
    done: list[float] = []
    seconds: list[float] = []
    async with open_engine(_IN_MEMORY) as engine:
        for case in cases:
            window = int(_SMALL * _tokens(case))
            model = f"metrics:{window}"
            await engine.models.edit(model, max_input=window, max_output=window)
            session = await engine.session(case.id, model=model)
            await session.append(*case.messages)
            if not (await session.status()).needs_compression:
                continue
            try:
                await session.prepare()
            except (BlockedError, CompressionError):
                done.append(False)
            else:
                done.append(not (await session.status()).needs_compression)
            started = perf_counter()
            await session.status()
            seconds.append(perf_counter() - started)
    return (
        _mean("automatic success rate", "99 %", done, _percent),
        _mean("overhead of a turn", "20 % of 1 s", seconds, lambda value: f"{value:.1%} of 1 s"),
    )


def _profiles(cases: Sequence[Case]) -> Metric:
    """Return the cost saved by a cheaper condensing model."""
    tokens = [_tokens(case) for case in cases]
    figures = Figures(sum(tokens), sum(each // 10 for each in tokens), calls=max(1, len(cases)))
    candidates = [Candidate.of(name, name) for name in (DEAR_MODEL, CHEAP_MODEL)]
    offers = compare(figures, candidates, DEAR_MODEL)
    share = next(each.share for each in offers if each.name == CHEAP_MODEL)
    shown = "unknown: a price is not known"
    if share is not None:
        shown = f"{share:.0%}, {CHEAP_MODEL} for {DEAR_MODEL}"
    return Metric("condensing cost saved through a profile", "90 %", share, shown, len(cases))


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _mean(name: str, goal: str, values: Sequence[float], shown: Callable[[float], str]) -> Metric:
    if not values:
        return Metric(name, goal, None, "unknown: no conversation shows it", 0)
    return Metric(name, goal, mean(values), shown(mean(values)), len(values))
