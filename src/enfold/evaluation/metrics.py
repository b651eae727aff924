"""Metrics: the figures that the project set out to reach, each beside its goal.

A figure that the data does not show is unknown, never a guess.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from enfold import transcripts
from enfold.engine import Session
from enfold.errors import BlockedError, CompressionError
from enfold.evaluation import formats
from enfold.evaluation.cases import Case
from enfold.evaluation.views import Way, view_of
from enfold.history import is_said_by_user
from enfold.llm.comparison import Candidate, Figures, compare
from enfold.messages import Message, text_of
from enfold.tokens import count_messages
from enfold.wiring import local_summarizer, make_strategy, open_engine

_IN_MEMORY = "sqlite:///:memory:"
_SMALL = 0.5
"""The window of the model that conversations are too long for, as a share of their tokens."""
_SMALLEST = 2_000
_STRUCTURE = 4
"""Tokens that a message counts beside what it says."""
DEAR, CHEAP = "anthropic:claude-sonnet-4-5", "anthropic:claude-haiku-4-5"
"""A model that people talk with, and one that condenses for it through a profile."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure and its goal."""

    name: str
    goal: str
    value: float | None
    shown: str
    """The figure as people read it, or why it is not known."""
    over: int
    """How many conversations, messages or requests it is the mean of."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def metrics(paths: Sequence[Path], *, told: Callable[[str], object] = str) -> list[Metric]:
    """All metrics over the conversations of some files."""
    cases = [case for path in paths for case in formats.read(path) if case.messages]
    told("counting")
    accuracy = _accuracy(paths)
    told("condensing")
    ratio, kept = asyncio.run(_ratios(cases))
    told("automatic compressions")
    success, overhead = asyncio.run(_automatic(cases))
    return [accuracy, ratio, kept, overhead, _profiles(cases), success]


def _accuracy(paths: Iterable[Path]) -> Metric:
    """Counted against what providers reported as output, over all messages where they did."""
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
    """The output tokens of an assistant's message, as its provider counted them."""
    for place in (message.extras, extras):
        usage = place.get("usage")
        if not isinstance(usage, dict) and isinstance(place.get("message"), dict):
            usage = place["message"].get("usage")
        if isinstance(usage, dict):
            found = usage.get("output_tokens", usage.get("completion_tokens"))
            return found if isinstance(found, int) else None
    return None


async def _ratios(cases: Sequence[Case]) -> tuple[Metric, Metric]:
    """Native at a tenth; and what smart, at half, keeps of users' messages word for word."""
    ratios: list[float] = []
    kept: list[float] = []
    for case in cases:
        native, smart = Way("native", 0.1), Way("smart", 0.5)
        view = await view_of(case, native, make_strategy(native.settings, local_summarizer()))
        ratios.append(view.tokens_before / max(1, view.tokens_after))
        view = await view_of(case, smart, make_strategy(smart.settings, local_summarizer()))
        shown = {text_of(message.parts) for message in view.messages}
        users = [text_of(each.parts) for each in case.messages if is_said_by_user(each)]
        if users:
            kept.append(sum(text in shown for text in users) / len(users))
    return (
        _mean("compression ratio", "10 : 1", ratios, lambda value: f"{value:.1f} : 1"),
        _mean("user messages preserved", "90 %", kept, lambda value: f"{value:.1%}"),
    )


async def _automatic(cases: Sequence[Case]) -> tuple[Metric, Metric]:
    """Sessions that outgrow their model: do they end below its limit, and what does it take."""
    done: list[float] = []
    seconds: list[float] = []
    async with open_engine(_IN_MEMORY) as engine:
        for case in cases:
            tokens = sum(count_messages(case.messages))
            window = max(_SMALLEST, int(_SMALL * tokens))
            model = f"metrics:{window}"
            await engine.models.edit(model, max_input=window, max_output=window)
            session = await engine.session(case.id, model=model)
            await session.append(*case.messages)
            if not (await session.status()).needs_compression:
                continue
            done.append(await _is_compressed(session))
            started = perf_counter()
            await session.status()
            seconds.append(perf_counter() - started)
    return (
        _mean("automatic success rate", "99 %", done, lambda value: f"{value:.1%}"),
        _mean("overhead of a turn", "20 % of 1 s", seconds, lambda value: f"{value:.1%} of 1 s"),
    )


async def _is_compressed(session: Session) -> bool:
    try:
        await session.prepare()
    except (BlockedError, CompressionError):
        return False
    return not (await session.status()).needs_compression


def _profiles(cases: Sequence[Case]) -> Metric:
    """What is saved by a cheaper model that condenses for the one that people talk with."""
    figures = Figures(
        sum(sum(count_messages(case.messages)) for case in cases),
        sum(sum(count_messages(case.messages)) // 10 for case in cases),
        calls=max(1, len(cases)),
    )
    candidates = [Candidate.of(name, name) for name in (DEAR, CHEAP)]
    cheap = next(each for each in compare(figures, candidates, DEAR) if each.name == CHEAP)
    name, goal = "condensing cost saved through a profile", "50 %"
    if cheap.share is None:
        return Metric(name, goal, None, "unknown: a price is not known", len(cases))
    return Metric(name, goal, cheap.share, f"{cheap.share:.0%}, {CHEAP} for {DEAR}", len(cases))


def _mean(name: str, goal: str, values: Sequence[float], shown: Callable[[float], str]) -> Metric:
    if not values:
        return Metric(name, goal, None, "unknown: no conversation shows it", 0)
    return Metric(name, goal, mean(values), shown(mean(values)), len(values))
