"""Measuring: what of a case is in its view, what a search reaches, and what it costs to send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from enfold.engine import Engine, Session
from enfold.engine.recall import recall_found
from enfold.evaluation.cases import Case
from enfold.evaluation.presence import Shown, is_shown, says_something, share
from enfold.evaluation.views import View
from enfold.tokens import get

RECALL_TOKENS = 1_500
"""What one search may give back."""
TURNS = 20
"""Requests after the compression over which its cost is reckoned."""
CACHE_WRITE = 1.25
CACHE_READ = 0.1
"""What a token costs that is written to a prompt cache, or read from it, beside an ordinary one."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Mean shares of the evidence of a case's questions."""

    questions: int
    in_view: float
    by_search: float
    """Reached by one search, in the view or not."""
    reachable: float
    """In the view, or reached by one search."""
    reachable_of_all: float
    """The same of all evidence messages, with those that say nothing among them."""
    search_tokens: int
    """What the longest answer took."""


@dataclass(frozen=True, slots=True)
class Sending:
    """What the next requests cost, in ordinary input tokens, with a prompt cache."""

    as_it_was: float
    condensed: float

    @property
    def saved(self) -> float:
        """The share that is saved; negative where it costs more."""
        return 1 - self.condensed / self.as_it_was if self.as_it_was else 0.0


async def stored(engine: Engine, case: Case, model: str) -> Session:
    """The case as a session that can be searched."""
    session = await engine.session(case.id, model=model)
    await session.append(*case.messages)
    return session


async def evidence(case: Case, view: View, session: Session) -> Evidence | None:
    """How much of the evidence is there. None if the case has none that says something."""
    shown = Shown(view.messages)
    telling = {index for index, message in enumerate(case.messages) if says_something(message)}
    in_view = {i for i in range(len(case.messages)) if shown.holds(case.messages[i])}
    rows: list[tuple[float, ...]] = []
    longest = 0
    for probe in case.probes:
        wanted = [index for index in probe.evidence if index in telling]
        if not wanted:
            continue
        passages = await recall_found(session, probe.question, max_tokens=RECALL_TOKENS)
        found = {passage.position - 1 for passage in passages if is_shown(passage)}
        reached = in_view | found
        rows.append(
            (
                share(in_view, wanted),
                share(found, wanted),
                share(reached, wanted),
                share((reached & telling) | found, probe.evidence),
            )
        )
        longest = max(longest, await _tokens(session, [passage.line for passage in passages]))
    if not rows:
        return None
    in_the_view, by_search, reachable, of_all = map(mean, zip(*rows, strict=True))
    return Evidence(len(rows), in_the_view, by_search, reachable, of_all, longest)


def sending(case: Case, view: View, turns: int = TURNS) -> Sending:
    """What so many further requests cost, each as long as the case's messages are in the mean.

    Before, everything so far is in the cache. A view that was rewritten is written to it once.
    """
    turn = view.tokens_before / max(1, len(case.messages))
    changed = view.tokens_after != view.tokens_before
    return Sending(
        _requests(view.tokens_before, turn, turns, cached=True),
        _requests(view.tokens_after, turn, turns, cached=not changed),
    )


def _requests(tokens: int, turn: float, turns: int, *, cached: bool) -> float:
    first = tokens * (CACHE_READ if cached else CACHE_WRITE) + turn * CACHE_WRITE
    later = sum(
        (tokens + turn * done) * CACHE_READ + turn * CACHE_WRITE for done in range(1, turns)
    )
    return first + later


async def _tokens(session: Session, lines: Sequence[str]) -> int:
    return get(await session.tokenizer()).count("\n".join(lines))
