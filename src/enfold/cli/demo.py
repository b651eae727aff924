"""`enfold demo`: what enfold does, in a minute, without a key and without a network."""

from __future__ import annotations

import asyncio

from enfold.cli.screen import put, put_table, say
from enfold.engine import Engine, Session
from enfold.engine.results import Prepared
from enfold.sample import TITLE, sample_messages
from enfold.wiring import open_engine

_MODEL = "demo:small"
_MAX_INPUT = 12_000
_MAX_OUTPUT = 16_000


def demo() -> None:
    """Show a long conversation being counted, folded, searched and unfolded again."""
    asyncio.run(_run())


async def _run() -> None:
    async with open_engine("sqlite:///:memory:") as engine:
        await engine.models.edit(_MODEL, max_input=_MAX_INPUT, max_output=_MAX_OUTPUT)
        engine.events.subscribe(lambda event: say(f"  {event}"))
        session = await engine.session("demo", model=_MODEL, title=TITLE)
        await _fill(session)
        prepared = await _fold(session)
        await _find(engine, session, prepared)
        await _unfold(session)


async def _fill(session: Session) -> None:
    messages = sample_messages()
    await session.append(*messages)
    status = await session.status()
    put(f"\n1. A conversation that no longer fits: {TITLE!r}\n")
    put_table(
        str(status.decision),
        ("", "tokens"),
        [
            (f"{status.messages} messages", f"{status.current_token_count:,}"),
            (f"a window of {_MAX_INPUT:,} leaves", f"{status.context_limit:,}"),
            ("compressed from", f"{status.threshold_token_count:,}"),
        ],
    )


async def _fold(session: Session) -> Prepared:
    put("\n2. The next turn folds what is old, before anything is sent\n")
    prepared = await session.prepare("Where do we stand?")
    status = await session.status()
    put_table(
        f"{status.utilization:.0%} of the window in use",
        ("", "tokens"),
        [
            ("summary", f"{status.summary_tokens:,}"),
            (f"{len(prepared.view.shown)} messages as they were", f"{_verbatim(prepared):,}"),
        ],
    )
    put("\n   The summary begins:\n")
    for line in (prepared.view.summary or "").splitlines()[:14]:
        put(f"   │ {line}")
    return prepared


def _verbatim(prepared: Prepared) -> int:
    return sum(shown.tokens for shown in prepared.view.shown)


async def _find(engine: Engine, session: Session, prepared: Prepared) -> None:
    put("\n3. Nothing is gone: the folded part can be searched\n")
    visible = {shown.id for shown in prepared.view.shown}
    for hit in await session.search("E-4031", limit=2):
        place = "in the view" if hit.message in visible else "folded"
        put(f"   message {hit.depth} ({place}): {' '.join(hit.snippet.split())}")
    found = await engine.search('"fire office" BR-114', limit=1)
    for hit in found:
        put(f"   message {hit.depth}: {' '.join(hit.snippet.split())}")


async def _unfold(session: Session) -> None:
    put("\n4. And unfolded\n")
    await session.undo()
    history = await session.messages()
    exact = history == sample_messages()
    put(f"   undone: {len(history)} messages, {'all' if exact else 'NOT all'} as they came in\n")
    put("Next: enfold --help, enfold count FILE, enfold import FILE, enfold sessions")
