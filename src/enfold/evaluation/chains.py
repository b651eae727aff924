"""Chains: what is left of the first fold after more and more compressions.

The first third of a conversation is compressed as a session; then the rest comes in ten parts, with
a compression after each. What counts is what the first compression folded and its view kept: exact
items, and of each message that the view quotes eight words in a row. After each later compression
they are looked for in the view, and where they are not in it, by one search for them. Of questions
about the first third, evidence is looked for as in any view, after the first and the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from enfold.engine import Engine, Session
from enfold.engine.recall import recall_found
from enfold.errors import CompressionError
from enfold.evaluation import presence
from enfold.evaluation.cases import Case
from enfold.evaluation.measuring import Evidence, evidence
from enfold.history import cut_points
from enfold.messages import Message, text_of
from enfold.receipt import receipt
from enfold.receipt import shown as receipt_shown
from enfold.tokens import count_messages

COMPRESSIONS = 10
FEWEST = 5
"""Items and quotations of the first fold below which a share says nothing."""
_SEARCH_TOKENS = 300
_SMALLEST = 1_500
"""Tokens of the smallest model's window: below, there is no room for a summary and a tail."""
_RETENTION = 0.1
"""The share of the window that stays verbatim."""


@dataclass(frozen=True, slots=True)
class Decay:
    """Shares of what the first fold kept: after it, and after each of ten more."""

    items: int
    """Exact items."""
    quotations: int
    """Messages that are quoted."""
    in_view: tuple[float, ...]
    reachable: tuple[float, ...]
    evidence: tuple[Evidence, Evidence] | None = None
    """Of the questions about the first third, after the first fold and after the last."""


async def decay(engine: Engine, case: Case, strategy: str, budget: float) -> Decay | None:
    """The decay of a case. None where it is too short, or its first fold kept too few items."""
    parts = _parts(case.messages)
    if len(parts) <= COMPRESSIONS:
        return None
    tokens = sum(count_messages(case.messages))
    window = max(_SMALLEST, int(budget * tokens) if budget <= 1 else int(budget))
    model = f"evaluation:window-{window}"
    await engine.models.edit(
        model, max_input=window, max_output=window, retention_tokens=int(_RETENTION * window)
    )
    session = await engine.session(f"{case.id} chained", model=model)
    early = _about_the_first(case, len(parts[0]))
    kept = _Kept((), ())
    shares: list[tuple[float, float]] = []
    found: list[Evidence] = []
    for part in parts:
        await session.append(*part)
        await _compress(session, strategy)
        view = (await session.prepare()).messages
        kept = kept if shares else _kept(part, view)
        if kept.total < FEWEST:
            return None
        shares.append(await _left(session, view, kept))
        if part in (parts[0], parts[-1]) and (there := await evidence(early, view, session)):
            found.append(there)
    in_view, reachable = zip(*shares, strict=True)
    of_questions = (found[0], found[-1]) if found else None
    return Decay(len(kept.items), len(kept.quotations), in_view, reachable, of_questions)


def _about_the_first(case: Case, messages: int) -> Case:
    """The case with those of its questions whose evidence is among the first messages."""
    probes = (each for each in case.probes if each.evidence and max(each.evidence) < messages)
    return replace(case, probes=tuple(probes))


def _parts(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """A third, then ten parts, cut where they may be cut; none if there are too few messages."""
    points = cut_points(messages)
    first = len(messages) // 3
    cuts = [0]
    for part in range(COMPRESSIONS):
        at = first + (len(messages) - first) * part // COMPRESSIONS
        point = next((point for point in points if point >= max(at, cuts[-1] + 1)), len(messages))
        cuts.append(point)
    ends = [*cuts[1:], len(messages)]
    return [messages[start:end] for start, end in zip(cuts, ends, strict=True) if end > start]


async def _compress(session: Session, strategy: str) -> None:
    """As far as there is something to fold yet."""
    try:
        await session.compress(strategy=strategy)
    except CompressionError:
        return


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a view kept of what was folded."""

    items: Sequence[str]
    quotations: Sequence[str]

    @property
    def total(self) -> int:
        return len(self.items) + len(self.quotations)

    def missing(self, view: Sequence[Message]) -> list[str]:
        """What of it a later view does not have."""
        exact, quoted = receipt_shown.Shown(view), presence.Shown(map(_text, view))
        return [
            *(item for item in self.items if not exact.holds(item)),
            *(words for words in self.quotations if not quoted.has_words(words)),
        ]


def _kept(folded: Sequence[Message], view: Sequence[Message]) -> _Kept:
    """What a view keeps of a part, where the part itself is no longer in it."""
    standing = set(map(_text, view))
    gone = [message for message in folded if _text(message) not in standing]
    shown = presence.Shown(standing)
    quoted = (presence.quotation(message, shown) for message in gone)
    return _Kept(
        [item for _, item in receipt(gone, view).having("kept")],
        list(dict.fromkeys(words for words in quoted if words)),
    )


async def _left(session: Session, view: Sequence[Message], kept: _Kept) -> tuple[float, float]:
    missing = kept.missing(view)
    lost = [words for words in missing if not await _is_found(session, words)]
    return 1 - len(missing) / kept.total, 1 - len(lost) / kept.total


async def _is_found(session: Session, words: str) -> bool:
    passages = await recall_found(session, f'"{words}"', max_tokens=_SEARCH_TOKENS)
    return any(words in " ".join(passage.text.split()) for passage in passages)


def _text(message: Message) -> str:
    return text_of(message.parts)
