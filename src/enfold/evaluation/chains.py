"""Chains: what is left of the first fold after more and more compressions.

The first third of a conversation is compressed as a session; then the rest comes in ten parts, with
a compression after each. What counts are the exact items of what the first compression folded that
its view kept. After each later one they are looked for in the view, and where they are not in it,
by one search for the item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from enfold.engine import Engine, Session
from enfold.engine.recall import recall_found
from enfold.errors import CompressionError
from enfold.evaluation.cases import Case
from enfold.history import cut_points
from enfold.messages import Message, text_of
from enfold.receipt import receipt
from enfold.receipt.shown import Shown
from enfold.tokens import count_messages

COMPRESSIONS = 10
FEWEST_ITEMS = 5
"""Items of the first fold below which a share says nothing."""
_SEARCH_TOKENS = 300
_SMALLEST = 1_500
"""Tokens of the smallest model's window: below, there is no room for a summary and a tail."""
_RETENTION = 0.1
"""The share of the window that stays verbatim."""


@dataclass(frozen=True, slots=True)
class Decay:
    """Shares of the first fold's kept items: after it, and after each of ten more."""

    items: int
    in_view: tuple[float, ...]
    reachable: tuple[float, ...]


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
    items: list[str] = []
    shares: list[tuple[float, float]] = []
    for part in parts:
        await session.append(*part)
        await _compress(session, strategy)
        view = (await session.prepare()).messages
        items = items or _kept(part, view)
        if len(items) < FEWEST_ITEMS:
            return None
        shares.append(await _left(session, view, items))
    in_view, reachable = zip(*shares, strict=True)
    return Decay(len(items), in_view, reachable)


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


def _kept(folded: Sequence[Message], view: Sequence[Message]) -> list[str]:
    """The exact items of a part that its view keeps, where the part itself is no longer in it."""
    shown = {text_of(message.parts) for message in view}
    gone = [message for message in folded if text_of(message.parts) not in shown]
    return [item for _, item in receipt(gone, view).having("kept")]


async def _left(
    session: Session, view: Sequence[Message], items: Sequence[str]
) -> tuple[float, float]:
    shown = Shown(view)
    missing = [item for item in items if not shown.holds(item)]
    found = [item for item in missing if await _is_found(session, item)]
    kept = len(items) - len(missing)
    return kept / len(items), (kept + len(found)) / len(items)


async def _is_found(session: Session, item: str) -> bool:
    passages = await recall_found(session, f'"{item}"', max_tokens=_SEARCH_TOKENS)
    return any(item in passage.text for passage in passages)
