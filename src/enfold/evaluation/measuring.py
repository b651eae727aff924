"""Measuring: what of a case is in its view, what a search reaches, and what it costs to send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from enfold.engine import Engine, Session
from enfold.engine.recall import recall_found
from enfold.evaluation.cases import Case
from enfold.evaluation.presence import LOOSEST, RULES, Shown, share
from enfold.evaluation.views import View
from enfold.messages import Message, text_of
from enfold.tokens import get

RECALL_TOKENS = 1_500
"""What one search may give back."""
TURNS = 20
"""Requests after the compression over which its cost is reckoned."""
CACHE_WRITE = 1.25
CACHE_READ = 0.1
"""What a token costs that is written to a prompt cache, or read from it, beside an ordinary one."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Mean shares of the evidence of a case's questions, by one rule."""

    questions: int
    """Whose evidence counts by this rule."""
    in_view: float
    by_search: float
    """Reached by one search, in the view or not."""
    reachable: float
    """In the view, or reached by one search."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is there of the evidence of a case's questions."""

    by_rule: Mapping[str, Reach]
    """From the strictest rule to the loosest; those that count nothing here are left out."""
    search_tokens: int
    """What the longest answer took."""

    @property
    def loosest(self) -> Reach:
        """By the rule that is read first: what is there in substance."""
        return self.by_rule[LOOSEST]


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


async def evidence(case: Case, view: Sequence[Message], session: Session) -> Evidence | None:
    """How much of the evidence is there. None if the case has none that says something."""
    shown = Shown(text_of(message.parts) for message in view)
    rows: dict[str, list[tuple[float, ...]]] = {}
    longest = 0
    for probe in case.probes:
        if not probe.evidence:
            continue
        passages = await recall_found(session, probe.question, max_tokens=RECALL_TOKENS)
        found = Shown(passage.text for passage in passages)
        for rule in RULES:
            wanted = [i for i in probe.evidence if rule.counts(case.messages[i])]
            if wanted:
                in_view = {i for i in wanted if rule.holds(shown, case.messages[i])}
                searched = {i for i in wanted if rule.holds(found, case.messages[i])}
                sets = (in_view, searched, in_view | searched)
                rows.setdefault(rule.name, []).append(_shares(sets, wanted))
        longest = max(longest, await _tokens(session, [passage.line for passage in passages]))
    if LOOSEST not in rows:
        return None
    by_rule = {
        name: Reach(len(each), *map(mean, zip(*each, strict=True))) for name, each in rows.items()
    }
    return Evidence(by_rule, longest)


def _shares(sets: tuple[set[int], set[int], set[int]], wanted: Sequence[int]) -> tuple[float, ...]:
    return tuple(share(each, wanted) for each in sets)


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
